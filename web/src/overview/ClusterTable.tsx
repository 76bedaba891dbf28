/** The same cluster in rows and words. */
import { Table, type TableColumnsType } from "antd";
import { useMemo } from "react";
import { Link } from "react-router-dom";
import { bytes } from "@/look/parts";
import { useWords } from "@/words";
import { type Board, type BoardNode, inNameOrder, tally } from "./board";
import { workPath } from "./CardDetail";
import { NodeState } from "./NodeState";
import { overviewWords } from "./words";

export function ClusterTable({ board }: { board: Board }) {
  const say = useWords(overviewWords);
  const nodes = useMemo(() => inNameOrder(board.nodes), [board.nodes]);
  const columns: TableColumnsType<BoardNode> = [
    { title: say("node"), dataIndex: "name", render: (name: string) => <code>{name}</code> },
    { title: say("state"), render: (_, node) => <NodeState state={node.state} /> },
    { title: say("free"), align: "right", render: (_, node) => tally([node]).free },
    { title: say("used"), align: "right", render: (_, node) => tally([node]).used },
    { title: say("unhealthy"), align: "right", render: (_, node) => tally([node]).unhealthy },
    { title: say("cpu"), align: "right", render: (_, node) => say("ofTotal", { used: node.cpu_used, total: node.cpu }) },
    { title: say("memory"), align: "right", render: (_, node) => say("ofTotal", { used: bytes(node.memory_used), total: bytes(node.memory) }) },
    { title: say("work"), render: (_, node) => <Works board={board} node={node} /> },
  ];
  return <Table rowKey="name" size="small" columns={columns} dataSource={nodes} scroll={{ x: "max-content" }} pagination={{ pageSize: 50, hideOnSinglePage: true, showSizeChanger: false }} />;
}

function Works({ board, node }: { board: Board; node: BoardNode }) {
  const say = useWords(overviewWords);
  const ids = [...new Set(node.cards.flatMap((card) => card.work))];
  const named = ids.filter((id) => board.works[id]?.name);
  return (
    <span className="row">
      {named.map((id) => <Link key={id} to={workPath(id, board.works[id]?.kind ?? "job")}>{board.works[id]?.name}</Link>)}
      {ids.length > named.length && <span className="quiet">{say("someones")}</span>}
    </span>
  );
}
