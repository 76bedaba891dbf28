/** One job: what it is, how it came to be so, why, what it says and what it uses. Tabs are in the address. */
import { Alert, Skeleton, Tabs } from "antd";
import { type ComponentType, lazy, Suspense } from "react";
import { useParams, useSearchParams } from "react-router-dom";
import { Refusal } from "@/api/client";
import { LinkButton } from "@/look/LinkButton";
import { Nothing, PageHead, StateMark, Trouble } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useWords } from "@/words";
import { JobActions } from "./detail/JobActions";
import { type Detail, useJob } from "./detail/useJob";
import { jobWords } from "./words";
import "./jobs.css";

type Tab = ComponentType<{ job: Detail }>;
const TABS: Record<string, { word: keyof typeof jobWords; Tab: Tab }> = {
  overview: { word: "tabOverview", Tab: lazy(() => import("./detail/OverviewTab")) },
  story: { word: "tabStory", Tab: lazy(() => import("./detail/StoryTab")) },
  why: { word: "tabWhy", Tab: lazy(() => import("./detail/WhyTab")) },
  logs: { word: "tabLogs", Tab: lazy(() => import("./logs/LogsTab")) },
  terminal: { word: "terminal", Tab: lazy(() => import("./detail/TerminalTab")) },
  usage: { word: "tabUsage", Tab: lazy(() => import("./detail/UsageTab")) },
};

export default function JobPage() {
  const say = useWords(jobWords);
  const { id = "" } = useParams();
  const { data: job, error, refetch } = useJob(id);
  const gone = error instanceof Refusal && error.status === 404;
  if (gone) return <div className="page" role="alert"><Nothing title={error.message}><LinkButton to="/jobs">{say("toList")}</LinkButton></Nothing></div>;
  if (error && !job) return <div className="page"><Trouble error={error} again={() => void refetch()} /></div>;
  if (!job) return <div className="page" aria-busy="true"><Skeleton active /></div>;
  return <Shown key={job.id} job={job} />;
}

function Shown({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const [params, setParams] = useSearchParams();
  const wish = params.get("tab") ?? "";
  const chosen = wish in TABS ? wish : "overview";
  return (
    <div className="page job-page">
      <PageHead name={`${job.name} · ${say("jobs")}`} title={<span className="row" style={{ gap: 14 }}><span style={{ overflowWrap: "anywhere" }}>{job.name}</span><span style={{ fontSize: 15, fontWeight: 400 }}><StateMark state={job.state} /></span></span>}>
        <JobActions job={job} />
      </PageHead>
      {chosen !== "why" && <Alert type={job.state === "failed" ? "error" : job.state === "queued" ? "warning" : "info"} title={<Said text={job.reason} />} style={{ marginBottom: 4, overflowWrap: "anywhere" }} />}
      <Tabs
        activeKey={chosen}
        onChange={(tab) => setParams(tab === "overview" ? {} : { tab }, { replace: true })}
        destroyOnHidden
        items={Object.entries(TABS).map(([key, { word, Tab }]) => ({
          key,
          label: say(word),
          children: <Suspense fallback={<div aria-busy="true" style={{ minHeight: 200 }} />}><Tab job={job} /></Suspense>,
        }))}
      />
    </div>
  );
}
