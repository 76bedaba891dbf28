/** What its replicas use, over time. */
import { useQuery } from "@tanstack/react-query";
import { Select } from "antd";
import { lazy, Suspense, useMemo, useState } from "react";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { bytes, Nothing, Trouble } from "@/look/parts";
import { useWords } from "@/words";
import { hasEnded } from "../wishes";
import { jobWords } from "../words";
import { cardLines, extremes, type Line, lines, plainNumber } from "./usage";
import type { Detail } from "./useJob";

const Chart = lazy(() => import("@/look/Chart"));
const SPANS = [15, 60, 180, 360] as const;
const SAMPLES_MS = 10_000;

export default function UsageTab({ job }: { job: Pick<Detail, "id" | "state"> }) {
  const say = useWords(jobWords);
  const [minutes, setMinutes] = useState<number>(60);
  const { data, error, refetch } = useQuery({
    queryKey: keys.workload(job.id, "usage", minutes),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}/usage", { params: { path: { ref: job.id }, query: { minutes } } })),
    refetchInterval: hasEnded(job) ? false : SAMPLES_MS,
  });
  const spans = SPANS.map((value) => ({ value, label: value < 120 ? say("minutes", { n: value }) : say("hours", { n: value / 60 }) }));
  if (error && !data) return <Trouble error={error} again={() => void refetch()} />;
  const some = data?.items.some((one) => one.points.length > 0);
  return (
    <div className="stack">
      <div className="row"><span id="span-label">{say("span")}</span><Select aria-labelledby="span-label" value={minutes} onChange={setMinutes} options={spans} style={{ width: 140 }} /></div>
      {data && !some && <Nothing title={say("tabUsage")}><p className="quiet" style={{ margin: 0 }}>{say("usageNone")}</p></Nothing>}
      {data && some && <Charts items={data.items} />}
    </div>
  );
}

/** The picture's gist, for those who do not see it or want a number. */
function inNumbers(found: readonly Line[], format: (value: number) => string = plainNumber): { now: string; most: string } {
  const { now, most } = extremes(found);
  return { now: format(now), most: format(most) };
}

function Charts({ items }: { items: Schemas["ReplicaSeries"][] }) {
  const say = useWords(jobWords);
  const shown = useMemo(
    () => ({
      cores: lines(items, (point) => point.cores),
      memory: lines(items, (point) => point.memory),
      cards: cardLines(items, (card) => card.percent),
      cardMemory: cardLines(items, (card) => card.memory),
    }),
    [items],
  );
  const plot = (title: string, found: Line[], format?: (value: number) => string) =>
    found.length > 0 && (
      <section className="surface" key={title}>
        <h2>{title}</h2>
        <p className="quiet" style={{ margin: "-8px 0 8px" }}>{say(found.length > 1 ? "usageLargest" : "usageNow", inNumbers(found, format))}</p>
        <Suspense fallback={<div style={{ height: 240 }} aria-busy="true" />}><Chart label={title} lines={found} format={format} /></Suspense>
      </section>
    );
  return (
    <div className="columns">
      {plot(say("usageCards"), shown.cards)}
      {plot(say("usageCardMemory"), shown.cardMemory, bytes)}
      {plot(say("usageCores"), shown.cores)}
      {plot(say("usageMemory"), shown.memory, bytes)}
    </div>
  );
}
