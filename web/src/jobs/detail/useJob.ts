/** One job, kept current. */
import { useQuery } from "@tanstack/react-query";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { useLanguage } from "@/words";
import { hasEnded } from "../wishes";

export type Detail = Schemas["WorkloadDetail"];
const REASONS_MS = 10_000; // the reason of one that waits changes without news

export function useJob(ref: string) {
  const { language } = useLanguage();
  return useQuery({
    queryKey: keys.workload(ref, "show", language),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}", { params: { path: { ref } } })),
    refetchInterval: ({ state }) => (state.data && hasEnded(state.data) ? false : REASONS_MS),
  });
}
