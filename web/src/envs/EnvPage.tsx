/** One environment: working in it, getting into it from elsewhere, and how it is. Tabs are part of the address. */
import { Tabs, type TabsProps, Tooltip } from "antd";
import { lazy, type ReactNode, Suspense } from "react";
import { useParams, useSearchParams } from "react-router-dom";
import { Refusal } from "@/api/client";
import { InsideFrame } from "@/look/InsideFrame";
import { LinkButton } from "@/look/LinkButton";
import { Nothing, PageHead, StateMark, Trouble } from "@/look/parts";
import { useLook } from "@/look/theme";
import { useWords } from "@/words";
import { AboutTab } from "./AboutTab";
import { type EnvDetail, isOpen, useEnv } from "./asking";
import { ConnectTab } from "./ConnectTab";
import { EnvActions } from "./EnvActions";
import "./envs.css";
import { envWords } from "./words";

const UsageTab = lazy(() => import("@/jobs/detail/UsageTab"));
const TOOLS = ["terminal", "lab", "ide"] as const;

/** What cannot be opened is there all the same, and says why. */
function ToolLabel({ label, closed }: { label: string; closed: string | undefined }) {
  return closed ? <Tooltip title={closed}><span aria-label={`${label}: ${closed}`}>{label}</span></Tooltip> : label;
}

function useTabs(env: EnvDetail): TabsProps["items"] {
  const say = useWords(envWords);
  const { dark } = useLook();
  const key = `${env.id}-${env.attempt}`; // another start, another visit
  const path = `/?look=${dark ? "dark" : "light"}`;
  const closed = (what: string) => env.closed[what] ?? (isOpen(env) ? undefined : say("notRunning"));
  const tools = TOOLS.map((what) => ({
    key: what,
    label: <ToolLabel label={say(what)} closed={closed(what)} />,
    disabled: closed(what) !== undefined,
    children: <InsideFrame key={key} id={env.id} owner={env.owner} what={what} path={what === "terminal" ? path : undefined} title={`${say(what)}: ${env.name}`} />,
  }));
  const later = (children: ReactNode) => <Suspense fallback={<div aria-busy="true" style={{ minHeight: 240 }} />}>{children}</Suspense>;
  return [
    { key: "about", label: say("about"), children: <AboutTab env={env} /> },
    ...tools,
    { key: "connect", label: say("connect"), children: <ConnectTab env={env} /> },
    { key: "usage", label: say("usage"), children: later(<UsageTab job={env} />) },
  ];
}

function Detail({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  const [search, setSearch] = useSearchParams();
  const tabs = useTabs(env);
  const wished = search.get("tab") ?? "about";
  const open = tabs?.find((tab) => tab.key === wished && !tab.disabled) ? wished : "about";
  const choose = (tab: string) => setSearch(tab === "about" ? {} : { tab }, { replace: true });
  return (
    <div className="page">
      <PageHead name={`${env.name} · ${say("title")}`} title={<span className="row" style={{ gap: 12 }}>{env.name}<span style={{ fontSize: 14, fontWeight: 400 }}><StateMark state={env.state} kind="env" /></span></span>}>
        <EnvActions env={env} />
      </PageHead>
      <Tabs activeKey={open} onChange={choose} items={tabs} />
    </div>
  );
}

export default function EnvPage() {
  const say = useWords(envWords);
  const { name = "" } = useParams();
  const { data, error, refetch } = useEnv(name);
  const gone = error instanceof Refusal && error.status === 404;
  if (gone) return <div className="page" role="alert"><Nothing title={say("missing")}><LinkButton to="/envs">{say("toList")}</LinkButton></Nothing></div>;
  if (data) return <Detail env={data} />;
  return <div className="page" aria-busy={!error}>{error && <Trouble error={error} again={() => void refetch()} />}</div>;
}
