/** The machines: how each is, who is on which card, and whether it takes new work. */
import { App, Button, Input, Segmented, Select, Table, type TableColumnsType, Tag } from "antd";
import { useMemo, useState } from "react";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { bytes, PageHead, slow, Trouble, useConfirm } from "@/look/parts";
import { useBoard } from "@/overview/useBoard";
import { type Board, type BoardNode, inNameOrder, tally } from "@/overview/board";
import { NodeState } from "@/overview/NodeState";
import "@/overview/overview.css";
import { overviewWords } from "@/overview/words";
import { useWords } from "@/words";
import "./admin.css";
import { FragmentsView } from "./FragmentsView";
import { fragmentWords } from "./fragmentWords";
import { CardStrip, NodeCards } from "./NodeCards";
import { NodeLabels } from "./NodeLabels";
import { ForAdmins, useAct, useFilters } from "./parts";
import { adminWords } from "./words";

const STATES = ["ready", "cordoned", "lost", "disk_full"] as const;

const VIEWS = ["machines", "fragments"] as const;

export default function NodesPage() {
  const say = useWords(adminWords);
  const states = useWords(overviewWords);
  const views = useWords(fragmentWords);
  const [{ q = "", state, view }, setFilter] = useFilters(["q", "state", "view"]);
  const apart = view === "fragments";
  const options = STATES.map((value) => ({ value, label: states(`state${value}`) }));
  return (
    <ForAdmins>
      <PageHead title={say("nodes")}>
        <Segmented aria-label={views("view")} value={apart ? "fragments" : "machines"} options={VIEWS.map((value) => ({ value, label: views(value) }))} onChange={(wish) => setFilter("view", wish === "fragments" ? wish : undefined)} />
        {!apart && <Select allowClear aria-label={say("state")} placeholder={say("anyState")} value={state ?? null} options={options} onChange={(value) => setFilter("state", value ?? undefined)} style={{ width: 140 }} />}
        <Input.Search key={view} allowClear aria-label={say("find")} placeholder={say("find")} defaultValue={q} onChange={(event) => setFilter("q", event.target.value)} style={{ width: 200 }} />
      </PageHead>
      {apart ? <FragmentsView q={q} /> : <Machines q={q} state={state} />}
    </ForAdmins>
  );
}

function Machines({ q, state }: { q: string; state: string | undefined }) {
  const say = useWords(adminWords);
  const [{ node: open }, setFilter] = useFilters(["node"]);
  const [labelling, setLabelling] = useState<BoardNode | null>(null);
  const { data: board, error, refetch } = useBoard();
  const found = useMemo(() => chosen(board, q, state), [board, q, state]);
  return (
    <>
      {error && <Trouble error={error} again={() => void refetch()} />}
      <Table
        rowKey="name"
        size="middle"
        columns={useColumns(setLabelling)}
        dataSource={found}
        loading={!board && !error}
        scroll={{ x: "max-content" }}
        locale={{ emptyText: say("nodesNone") }}
        pagination={{ pageSize: 50, hideOnSinglePage: true, showSizeChanger: false }}
        expandable={{
          expandedRowKeys: open ? [open] : [],
          onExpand: (opened, node) => setFilter("node", opened ? node.name : undefined),
          expandedRowRender: showCards,
        }}
      />
      <NodeLabels node={labelling} onClose={() => setLabelling(null)} />
    </>
  );
}

const showCards = (node: BoardNode) => <NodeCards node={node} />;

function chosen(board: Board | undefined, q: string, state: string | undefined): BoardNode[] {
  const said = (node: BoardNode) => [node.name, ...Object.entries(node.labels).map(([key, value]) => `${key}=${value}`)];
  return inNameOrder(board?.nodes ?? []).filter((node) => (!state || node.state === state) && said(node).some((word) => word.includes(q)));
}

function useColumns(onLabels: (node: BoardNode) => void): TableColumnsType<BoardNode> {
  const say = useWords(adminWords);
  return [
    { title: say("node"), dataIndex: "name", render: (name: string) => <code>{name}</code> },
    { title: say("state"), render: (_, node) => <NodeState state={node.state} /> },
    { title: say("cards"), render: (_, node) => <CardStrip node={node} /> },
    { title: say("free"), align: "right", render: (_, node) => tally([node]).free },
    { title: say("cpu"), align: "right", render: (_, node) => say("ofTotal", { used: node.cpu_used, total: node.cpu }) },
    { title: say("memory"), align: "right", render: (_, node) => say("ofTotal", { used: bytes(node.memory_used), total: bytes(node.memory) }) },
    { title: say("labels"), render: (_, node) => <span className="row" style={{ gap: 4 }}>{Object.entries(node.labels).map(([key, value]) => <Tag key={key}>{key}={value}</Tag>)}</span> },
    {
      title: say("actions"),
      align: "right",
      render: (_, node) => (
        <span className="row" style={{ justifyContent: "flex-end", flexWrap: "nowrap" }}>
          <Button size="small" onClick={() => onLabels(node)} aria-label={say("labelsOf", { name: node.name })}>{say("editLabels")}</Button>
          <Cordon node={node} />
        </span>
      ),
    },
  ];
}

function Cordon({ node }: { node: BoardNode }) {
  const say = useWords(adminWords);
  const confirm = useConfirm();
  const { message } = App.useApp();
  const { name } = node;
  const closed = node.state === "cordoned";
  const act = useAct(
    (close: boolean) => asked(api.POST(close ? "/api/v1/nodes/{name}/cordon" : "/api/v1/nodes/{name}/uncordon", { params: { path: { name } } })),
    [keys.board],
  );
  const set = (close: boolean) => act.mutate(close, { onSuccess: () => void message.success(say(close ? "cordoned" : "uncordoned", { name })) });
  const ask = async () => {
    const n = new Set(node.cards.flatMap((card) => card.work)).size;
    const lost = say("cordonLost", { n, used: tally([node]).used });
    if (await confirm({ title: say("cordonTitle", { name }), lost, ok: say("cordon") })) set(true);
  };
  return (
    <Button size="small" danger={!closed} loading={slow(act.isPending)} aria-label={`${say(closed ? "uncordon" : "cordon")}: ${name}`} onClick={() => (closed ? set(false) : void ask())}>
      {say(closed ? "uncordon" : "cordon")}
    </Button>
  );
}
