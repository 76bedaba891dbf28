/** All jobs one may see, one's own first: filtered at the server, scrolled without end, many handled at once. */
import { PlusOutlined } from "@ant-design/icons";
import { Button, Grid } from "antd";
import { useCallback, useMemo, useState } from "react";
import { useSearchParams } from "react-router-dom";
import { LinkButton } from "@/look/LinkButton";
import { Nothing, PageHead, Trouble } from "@/look/parts";
import { useWords } from "@/words";
import { BulkBar } from "./list/BulkBar";
import { asQuery, type Filters, isNarrowed, readFilters, writeFilters } from "./list/filters";
import { JobFilters } from "./list/JobFilters";
import { JobRows } from "./list/JobRows";
import { useJobs } from "./list/useJobs";
import { jobWords } from "./words";
import "./jobs.css";

export default function JobListPage() {
  const say = useWords(jobWords);
  const [params, setParams] = useSearchParams();
  const filters = useMemo(() => readFilters(params), [params]);
  const query = useMemo(() => asQuery(filters), [filters]);
  const change = useCallback(
    (some: Partial<Filters>) => setParams((now) => writeFilters({ ...readFilters(now), ...some }), { replace: true }),
    [setParams],
  );
  const { rows, error, refetch, hasMore, more, view } = useJobs(query);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const choose = useCallback((id: string, on: boolean) => {
    setChosen((now) => {
      const then = new Set(now);
      if (on) then.add(id);
      else then.delete(id);
      return then;
    });
  }, []);
  const picked = useMemo(() => (chosen.size > 0 ? (rows ?? []).filter((row) => chosen.has(row.id)) : []), [rows, chosen]);
  const wide = Grid.useBreakpoint();
  return (
    <div className="page">
      <PageHead title={say("jobs")}>
        <LinkButton to="/jobs/new" type="primary" icon={<PlusOutlined />}>{say("newJob")}</LinkButton>
      </PageHead>
      <JobFilters filters={filters} change={change} />
      {error && !rows && <Trouble error={error} again={() => void refetch()} />}
      {picked.length > 0 && <BulkBar jobs={picked} clear={() => setChosen(new Set())} />}
      {rows && rows.length > 0 && (
        <>
          <JobRows
            rows={rows}
            narrow={wide.lg === false}
            hasMore={hasMore}
            more={more}
            view={view}
            chosen={chosen}
            choose={choose}
            chooseAll={(on) => setChosen(new Set(on ? rows.map((row) => row.id) : []))}
          />
          <p className="quiet" aria-live="polite">{say(hasMore ? "loadedMore" : "loaded", { n: rows.length })}</p>
        </>
      )}
      {rows?.length === 0 && <Empty narrowed={isNarrowed(filters)} clear={() => change({ states: [], search: "", group: "", owner: "" })} />}
    </div>
  );
}

function Empty({ narrowed, clear }: { narrowed: boolean; clear: () => void }) {
  const say = useWords(jobWords);
  if (narrowed) return <Nothing title={say("noneFound")}><Button onClick={clear}>{say("clearFilters")}</Button></Nothing>;
  return (
    <Nothing title={say("noneYet")}>
      <p className="quiet" style={{ maxWidth: 560, margin: 0 }}>{say("noneYetTeach")}</p>
      <LinkButton to="/jobs/new" type="primary">{say("newJob")}</LinkButton>
    </Nothing>
  );
}
