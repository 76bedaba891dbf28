/** What would happen if the draft were submitted now: asked when typing pauses, and again when the cluster changed. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { api, asked, type Problem, Refusal, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { useLanguage } from "@/words";
import { hasCommand } from "./draft";

const TYPING_MS = 350;

export type Outlook = Schemas["PreviewOut"];

export interface Looked {
  /** Null: not known yet. */
  outlook: Outlook | null;
  /** What stands in the way, with its places. */
  problems: readonly Problem[];
  trouble: unknown;
  looking: boolean;
  empty: boolean;
}

const asYaml = { headers: { "Content-Type": "application/yaml" }, bodySerializer: (body: unknown) => String(body) };

/** The body is text here, although its description is that of a job file. */
export const yamlBody = (text: string) => ({ body: text as never, ...asYaml });

function usePaused(text: string): string {
  const [paused, setPaused] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setPaused(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return paused;
}

export function useOutlook(text: string): Looked {
  const paused = usePaused(text);
  const { language } = useLanguage();
  const empty = !hasCommand(text);
  const { data, error, isFetching } = useQuery({
    queryKey: keys.workloads("preview", paused, language),
    queryFn: () => asked(api.POST("/api/v1/preview", { params: { query: { remedies: true } }, ...yamlBody(paused) })),
    enabled: hasCommand(paused),
    placeholderData: keepPreviousData,
    gcTime: 10_000,
    refetchInterval: 15_000,
  });
  const refused = error instanceof Refusal ? error : null;
  const problems = refused ? (refused.problems.length > 0 ? refused.problems : [{ code: refused.code, message: refused.message, facts: { ...refused.facts } }]) : (data?.problems ?? []);
  return {
    outlook: empty || error ? null : (data ?? null),
    problems: empty ? [] : problems,
    trouble: empty || refused ? null : error,
    looking: !empty && (isFetching || paused !== text),
    empty,
  };
}
