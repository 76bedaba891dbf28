/** The rows of the list: however many there are, only those in sight are drawn. */
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, type RefObject, useCallback, useEffect, useRef, useState } from "react";
import { Link } from "react-router-dom";
import type { Schemas } from "@/api/client";
import { moment, StateMark, useAgo, useNow, useSpent } from "@/look/parts";
import { inPlain } from "@/overview/Said";
import { type Facts, useLanguage, useWords } from "@/words";
import { inShort } from "../expected";
import { hasEnded, isRunning } from "../wishes";
import { jobWords } from "../words";

type Job = Schemas["WorkloadOut"];
const WIDE_PX = 44;
const NARROW_PX = 84;
const ELSE_PX = 310; // what stands above and below the rows
const AHEAD = 150; // rows before the end at which the next page is asked for

interface Props {
  rows: Job[];
  narrow: boolean;
  hasMore: boolean;
  more: () => Promise<void>;
  view: RefObject<{ first: number; last: number }>;
  chosen: ReadonlySet<string>;
  choose: (id: string, on: boolean) => void;
  chooseAll: (on: boolean) => void;
}

export function JobRows({ rows, narrow, hasMore, more, view, chosen, choose, chooseAll }: Props) {
  const say = useWords(jobWords);
  const box = useRef<HTMLDivElement>(null);
  const now = useNow();
  const { language } = useLanguage();
  const inWords = useStable(useSpent(), language);
  const ago = useStable(useAgo(), language);
  const all = rows.length > 0 && chosen.size >= rows.length && rows.every((row) => chosen.has(row.id));
  const keyOf = useCallback((index: number) => rows[index]?.id ?? index, [rows]); // a new one makes all rows be measured anew
  // oxlint-disable-next-line react/incompatible-library -- it is not handed on
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => box.current,
    estimateSize: () => (narrow ? NARROW_PX : WIDE_PX),
    getItemKey: keyOf,
    overscan: 3,
  });
  useEffect(() => virtual.measure(), [virtual, narrow]);
  const items = virtual.getVirtualItems();
  const [first, last] = [items[0]?.index ?? 0, items.at(-1)?.index ?? 0];
  useEffect(() => {
    view.current = { first, last };
    if (hasMore && last >= rows.length - AHEAD) void more();
  }, [view, first, last, hasMore, more, rows.length]);
  return (
    <div className="jobs-table" role="table" aria-label={say("jobs")} aria-rowcount={hasMore ? -1 : rows.length + 1}>
      <div role="rowgroup">
        <div className="jobs-row jobs-head" role="row">
          <span role="columnheader"><input type="checkbox" aria-label={say("selectAll")} checked={all} onChange={(event) => chooseAll(event.target.checked)} /></span>
          <span role="columnheader">{say("name")}</span>
          <span role="columnheader">{say("state")}</span>
          <span role="columnheader">{say("owner")}</span>
          <span role="columnheader" className="jobs-number">{say("cards")}</span>
          <span role="columnheader">{say("age")}</span>
          <span role="columnheader">{say("time")}</span>
          <span role="columnheader">{say("reason")}</span>
        </div>
      </div>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls has to be reachable by keyboard */}
      <div ref={box} className="jobs-scroll" role="rowgroup" tabIndex={0} aria-label={say("jobs")} style={{ height: `min(${virtual.getTotalSize()}px, max(280px, calc(100dvh - ${ELSE_PX}px)))` }}>
        <div role="presentation" style={{ height: virtual.getTotalSize(), position: "relative" }}>
          {items.map((item) => {
            const job = rows[item.index];
            return job && <JobRow key={item.key} job={job} index={item.index} top={item.start} now={now} chosen={chosen.has(job.id)} choose={choose} say={say} language={language} inWords={inWords} ago={ago} />;
          })}
        </div>
      </div>
    </div>
  );
}

/** The same function for as long as the language is the same. */
function useStable<T>(value: T, language: string): T {
  const [kept, keep] = useState({ value, language });
  if (kept.language !== language) keep({ value, language });
  return kept.language === language ? kept.value : value;
}

interface RowProps {
  job: Job;
  index: number;
  top: number;
  now: number;
  chosen: boolean;
  choose: (id: string, on: boolean) => void;
  // Handed down, not asked for in every row: rows are made by the hundred.
  say: Say;
  language: string;
  inWords: (seconds: number) => string;
  ago: (seconds: number) => string;
}

type Say = (key: keyof typeof jobWords, facts?: Facts) => string;

const JobRow = memo(function JobRow({ job, index, top, now, chosen, choose, say, language, inWords, ago }: RowProps) {
  const when = inShort(job.expected_start, "start", now, language, say) || inShort(job.expected_end, "end", now, language, say);
  const reason = inPlain(job.reason, language);
  return (
    <div className="jobs-row jobs-line" role="row" aria-rowindex={index + 2} style={{ transform: `translateY(${top}px)` }}>
      <span role="cell" className="jobs-check">
        <input type="checkbox" aria-label={say("select", { name: job.name })} checked={chosen} onChange={(event) => choose(job.id, event.target.checked)} />
      </span>
      <span role="cell" className="jobs-name cut"><Link to={`/jobs/${job.id}`} title={`${job.name} (${job.id})`}>{job.name}</Link></span>
      <span role="cell" className="jobs-state"><StateMark state={job.state} /></span>
      <span role="cell" className="jobs-owner cut quiet" title={`${job.owner} · ${job.group}`}>{job.owner} · {job.group}</span>
      <span role="cell" className="jobs-cards jobs-number">{job.cards}</span>
      <span role="cell" className="jobs-age quiet"><time dateTime={job.submitted_at} title={moment(job.submitted_at, language)}>{ago((now - Date.parse(job.submitted_at)) / 1000)}</time></span>
      <span role="cell" className="jobs-time quiet">{progress(job, now, say, inWords)}</span>
      <span role="cell" className="jobs-reason quiet" title={[when, reason].filter(Boolean).join(" · ")}>{when && <>{when} · </>}{reason}</span>
    </div>
  );
});

/** How far it is: the step it says it has saved, and how long it waits, runs or took. */
function progress(job: Job, now: number, say: Say, inWords: (seconds: number) => string): string {
  const seconds = (from: string, to: number) => inWords((to - Date.parse(from)) / 1000);
  if (hasEnded(job)) return job.started_at && job.ended_at ? say("took", { time: seconds(job.started_at, Date.parse(job.ended_at)) }) : "–";
  if (isRunning(job) && job.started_at && job.saved_step !== null) return say("atStep", { n: job.saved_step, time: seconds(job.started_at, now) });
  if (isRunning(job) && job.started_at) return say("runs", { time: seconds(job.started_at, now) });
  return job.state === "queued" ? say("waits", { time: seconds(job.submitted_at, now) }) : "–";
}
