/** Who did what, and whether the record of it is whole. */
import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Alert, Button, Input, Select, Table, type TableColumnsType } from "antd";
import { useMemo } from "react";
import { Link } from "react-router-dom";
import { api, asked, type Schemas } from "@/api/client";
import { Moment, PageHead, slow, Trouble } from "@/look/parts";
import { workPath } from "@/overview/CardDetail";
import { useWords } from "@/words";
import "./admin.css";
import { auditWords } from "./auditWords";
import { ForAdmins, useFilters, useUsers } from "./parts";
import { adminWords } from "./words";

type Line = Schemas["AuditOut"];
const FILTERS = ["who", "action", "object", "outcome"] as const;
const PAGE = 100;
const TONES: Record<string, string> = { done: "good", refused: "warn", failed: "bad" };

export default function AuditPage() {
  const say = useWords(adminWords);
  const [filters, setFilter] = useFilters(FILTERS);
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useInfiniteQuery({
    queryKey: ["audit", filters],
    queryFn: ({ pageParam }) => asked(api.GET("/api/v1/audit", { params: { query: { ...filters, limit: PAGE, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
  });
  const lines = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  return (
    <ForAdmins>
      <PageHead title={say("audit")} />
      <Whole />
      <Filters filters={filters} onSet={setFilter} />
      {error && <Trouble error={error} again={() => void refetch()} />}
      <Table rowKey="id" size="small" columns={useColumns(setFilter)} dataSource={lines} loading={!data && !error} scroll={{ x: "max-content" }} pagination={false} locale={{ emptyText: say("auditNone") }} />
      {hasNextPage && <Button block loading={slow(isFetchingNextPage)} onClick={() => void fetchNextPage()}>{say("more")}</Button>}
    </ForAdmins>
  );
}

function Whole() {
  const say = useWords(adminWords);
  const { data, error, refetch, isFetching } = useQuery({ queryKey: ["audit-check"], queryFn: () => asked(api.GET("/api/v1/audit/check")), staleTime: 60_000 });
  if (error) return <Trouble error={error} again={() => void refetch()} />;
  const again = <Button size="small" loading={slow(isFetching)} onClick={() => void refetch()}>{say("checkAgain")}</Button>;
  if (!data) return <Alert type="info" showIcon title={say("checking")} />;
  if (data.intact) return <Alert type="success" showIcon role="status" title={say("auditIntact", { n: data.lines })} action={again} />;
  return <Alert type="error" showIcon role="alert" title={say("auditBroken", { n: data.broken_at })} action={again} />;
}

interface FiltersProps {
  filters: Partial<Record<(typeof FILTERS)[number], string>>;
  onSet: (key: (typeof FILTERS)[number], value: string | undefined) => void;
}

function Filters({ filters, onSet }: FiltersProps) {
  const say = useWords(adminWords);
  const { data: users } = useUsers();
  const inWords = useInWords();
  const actions = Object.keys(auditWords).filter((key) => key.includes(".")).map((value) => ({ value, label: `${inWords(value)} (${value})` }));
  const outcomes = (["done", "refused", "failed"] as const).map((value) => ({ value, label: say(`outcome${value}`) }));
  return (
    <div className="row" role="search">
      <Select allowClear showSearch aria-label={say("who")} placeholder={say("who")} value={filters.who ?? null} options={(users?.items ?? []).map((one) => ({ value: one.name, label: one.name }))} onChange={(value) => onSet("who", value ?? undefined)} style={{ width: 150 }} />
      <Select allowClear showSearch={{ optionFilterProp: "label" }} aria-label={say("action")} placeholder={say("action")} value={filters.action ?? null} options={actions} onChange={(value) => onSet("action", value ?? undefined)} popupMatchSelectWidth={false} style={{ width: 230 }} />
      <Input.Search key={`object ${filters.object ?? ""}`} allowClear aria-label={say("object")} placeholder={`${say("object")}: node-1`} defaultValue={filters.object ?? ""} onSearch={(text) => onSet("object", text.trim())} style={{ width: 230 }} />
      <Select allowClear aria-label={say("outcome")} placeholder={say("anyOutcome")} value={filters.outcome ?? null} options={outcomes} onChange={(value) => onSet("outcome", value ?? undefined)} style={{ width: 150 }} />
    </div>
  );
}

function useColumns(onSet: FiltersProps["onSet"]): TableColumnsType<Line> {
  const say = useWords(adminWords);
  const inWords = useInWords();
  return [
    { title: "#", dataIndex: "id", align: "right" },
    { title: say("at"), render: (_, line) => <Moment at={line.at} /> },
    { title: say("who"), dataIndex: "who" },
    { title: say("action"), render: (_, line) => <Button type="link" size="small" style={{ padding: 0 }} title={line.action} onClick={() => onSet("action", line.action)}>{inWords(line.action)}</Button> },
    { title: say("object"), render: (_, line) => <Thing line={line} /> },
    { title: say("outcome"), render: (_, line) => <Outcome outcome={line.outcome} /> },
    { title: say("address"), dataIndex: "address" },
    { title: say("facts"), render: (_, line) => <Facts facts={line.facts} /> },
  ];
}

function Outcome({ outcome }: { outcome: string }) {
  const say = useWords(adminWords);
  const key = `outcome${outcome}` as keyof typeof adminWords;
  return <span className={`state state-${TONES[outcome] ?? "idle"}`}>{key in adminWords ? say(key) : outcome}</span>;
}

/** In the reader's language where there are words for it. */
function useInWords(): (written: string) => string {
  const say = useWords(auditWords);
  return (written) => (written in auditWords ? say(written as keyof typeof auditWords) : written);
}

/** What it was done to; work can be looked at. */
function Thing({ line }: { line: Line }) {
  const kind = /^(workload|env)\./.exec(line.action)?.[1];
  const code = <code>{line.object}</code>;
  return kind && line.object ? <Link to={workPath(line.object, kind === "env" ? "env" : "job")}>{code}</Link> : code;
}

const TELLING: ReadonlySet<string> = new Set(["via", "what"]); // facts whose values are words of ours

function Facts({ facts }: { facts: Record<string, unknown> }) {
  const inWords = useInWords();
  const told = (key: string, value: unknown) => (typeof value !== "string" ? JSON.stringify(value) : TELLING.has(key) ? inWords(value) : value);
  const shown = Object.entries(facts).filter(([, value]) => value !== "" && value !== null);
  return <span className="facts">{shown.map(([key, value]) => <span key={key}><span className="quiet">{inWords(key)}</span> {told(key, value)}</span>)}</span>;
}
