/** Everyone's work: found by filters, chosen, and asked something of, many at once. */
import { useInfiniteQuery } from "@tanstack/react-query";
import { Button, Input, Select, Table, type TableColumnsType } from "antd";
import { useMemo, useState } from "react";
import { Link } from "react-router-dom";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { Ago, Nothing, PageHead, slow, StateMark, Trouble } from "@/look/parts";
import { lookWords } from "@/look/words";
import { workPath } from "@/overview/CardDetail";
import { inPlain } from "@/overview/Said";
import { useSession } from "@/session/session";
import { useLanguage, useWords } from "@/words";
import "./admin.css";
import { BatchBar } from "./BatchBar";
import type { Workload } from "./batch";
import { ForAdmins, useFilters, useGroups, useLeads, useUsers } from "./parts";
import { adminWords } from "./words";

const PAGE = 200;
const REASONS_MS = 10_000; // why something waits is no news of its own
const STATES = ["queued", "placed", "starting", "running", "stopping", "paused", "succeeded", "failed", "stopped"] as const;
const FILTERS = ["state", "owner", "group", "kind", "search"] as const;

function useWorkloads(filters: Partial<Record<(typeof FILTERS)[number], string>>) {
  const { language } = useLanguage();
  return useInfiniteQuery({
    queryKey: keys.workloads("everyone", filters, language),
    queryFn: ({ pageParam }) => asked(api.GET("/api/v1/workloads", { params: { query: { ...filters, kind: filters.kind as "job" | "env" | undefined, limit: PAGE, cursor: pageParam } } })),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (page) => page.next ?? undefined,
    refetchInterval: (query) => ((query.state.data?.pages.length ?? 0) <= 1 ? REASONS_MS : false),
  });
}

export default function WorkloadsPage() {
  const say = useWords(adminWords);
  const { who } = useSession();
  const [filters, setFilter] = useFilters(FILTERS);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const { data, error, refetch, fetchNextPage, hasNextPage, isFetchingNextPage } = useWorkloads(filters);
  const rows = useMemo(() => data?.pages.flatMap((page) => page.items) ?? [], [data]);
  const picked = useMemo(() => rows.filter((one) => chosen.includes(one.id)), [rows, chosen]);
  return (
    <ForAdmins leadsToo>
      <PageHead title={say(who.user.admin ? "workloads" : "workloadsOfMine")} />
      <Filters filters={filters} onSet={setFilter} />
      <BatchBar shown={rows.length} chosen={picked} onAll={() => setChosen(rows.map((one) => one.id))} onClear={() => setChosen([])} />
      {error && <Trouble error={error} again={() => void refetch()} />}
      <Table
        rowKey="id"
        size="small"
        virtual={rows.length > PAGE}
        columns={useColumns()}
        dataSource={rows}
        loading={!data && !error}
        tableLayout="fixed"
        scroll={rows.length > PAGE ? { x: 990, y: 600 } : { x: 990 }}
        pagination={false}
        locale={{ emptyText: <Nothing title={say("workloadsNone")}><span className="quiet">{say("workloadsNoneHow")}</span></Nothing> }}
        rowSelection={{ selectedRowKeys: [...chosen], onChange: (ids) => setChosen(ids.map(String)), columnWidth: 40, hideSelectAll: true }}
      />
      {hasNextPage && <Button block loading={slow(isFetchingNextPage)} onClick={() => void fetchNextPage()}>{say("more")}</Button>}
    </ForAdmins>
  );
}

interface FiltersProps {
  filters: Partial<Record<(typeof FILTERS)[number], string>>;
  onSet: (key: (typeof FILTERS)[number], value: string | undefined) => void;
}

function Filters({ filters, onSet }: FiltersProps) {
  const say = useWords(adminWords);
  const states = useWords(lookWords);
  const { who } = useSession();
  const leads = useLeads();
  const { data: users } = useUsers();
  const { data: groups } = useGroups();
  const named = (names: readonly string[]) => names.map((value) => ({ value, label: value }));
  const led = (groups?.items ?? []).map((one) => one.name).filter((name) => who.user.admin || leads.includes(name));
  return (
    <div className="row" role="search">
      <Input.Search allowClear aria-label={say("search")} placeholder={say("search")} defaultValue={filters.search ?? ""} onSearch={(text) => onSet("search", text.trim())} style={{ width: 200 }} />
      <Select mode="multiple" allowClear maxTagCount="responsive" aria-label={say("state")} placeholder={say("anyState")} value={filters.state?.split(",") ?? []} options={STATES.map((value) => ({ value, label: states(value) }))} onChange={(values: string[]) => onSet("state", values.join(","))} style={{ width: 210 }} />
      <Select allowClear showSearch aria-label={say("owner")} placeholder={say("owner")} value={filters.owner ?? null} options={named((users?.items ?? []).map((one) => one.name))} onChange={(value) => onSet("owner", value ?? undefined)} style={{ width: 140 }} />
      <Select allowClear showSearch aria-label={say("group")} placeholder={say("group")} value={filters.group ?? null} options={named(led)} onChange={(value) => onSet("group", value ?? undefined)} style={{ width: 140 }} />
      <Select allowClear aria-label={say("kind")} placeholder={say("anyKind")} value={filters.kind ?? null} options={(["job", "env"] as const).map((value) => ({ value, label: say(value) }))} onChange={(value) => onSet("kind", value ?? undefined)} style={{ width: 140 }} />
    </div>
  );
}

function useColumns(): TableColumnsType<Workload> {
  const say = useWords(adminWords);
  const { language } = useLanguage();
  return [
    { title: say("name"), width: 140, ellipsis: true, render: (_, one) => <Link to={workPath(one.id, one.kind)} title={`${one.name} ${one.id}`}>{one.name}</Link> },
    { title: say("state"), width: 90, render: (_, one) => <StateMark state={one.state} kind={one.kind} /> },
    { title: say("owner"), width: 90, ellipsis: true, dataIndex: "owner" },
    { title: say("group"), width: 90, ellipsis: true, dataIndex: "group" },
    { title: say("cards"), width: 66, align: "right", render: (_, one) => one.cards || "–" },
    { title: say("priority"), width: 70, align: "right", dataIndex: "priority" },
    { title: say("submitted"), width: 100, render: (_, one) => <Ago at={one.submitted_at} /> },
    { title: say("reason"), width: 300, render: (_, one) => <span className="two-lines" title={inPlain(one.reason, language)}>{inPlain(one.reason, language)}</span> },
  ];
}
