/** What is to be known about one card: its model, how it is, and whose work is on it. */
import { CloseOutlined } from "@ant-design/icons";
import { Button } from "antd";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { StateMark } from "@/look/parts";
import { useWords } from "@/words";
import { type Board, type BoardCard, type BoardNode, conditionOf } from "./board";
import { overviewWords } from "./words";

const OF_CONDITION = { free: "isFree", used: "isUsed", trouble: "isTrouble", closed: "isClosed" } as const;
const TONES = { free: "idle", used: "good", trouble: "bad", closed: "warn" } as const;
const OF_NODE = { lost: "nodeLost", cordoned: "nodeCordoned", disk_full: "nodeDiskFull" } as const;

interface Shown {
  board: Board;
  node: BoardNode;
  card: BoardCard;
}

/** The same in one sentence, for those who hear it. */
export function useCardSentence(): (shown: Shown) => string {
  const say = useWords(overviewWords);
  return ({ board, node, card }) => {
    const works = card.work.map((id) => {
      const work = board.works[id];
      return work?.name ? say("ofWhom", { name: work.name, owner: work.owner }) : say("someones");
    });
    const what = [say(OF_CONDITION[conditionOf(node, card)]), card.trouble, ...works].filter(Boolean).join(", ");
    return say("cardSays", { node: node.name, index: card.index, model: card.model, what });
  };
}

export function CardDetail({ board, node, card, onClose }: Shown & { onClose?: () => void }) {
  const say = useWords(overviewWords);
  const condition = conditionOf(node, card);
  const percent = board.percent[node.name]?.[card.index];
  const why = node.state in OF_NODE ? say(OF_NODE[node.state as keyof typeof OF_NODE]) : null;
  return (
    <>
      <div className="spread" style={{ gap: 8, flexWrap: "nowrap" }}>
        <strong className="cut">{node.name} · {say("card", { index: card.index })}</strong>
        {onClose && <Button size="small" type="text" icon={<CloseOutlined />} aria-label={say("close")} onClick={onClose} />}
      </div>
      <div className="quiet">{card.model}{card.simulated && ` · ${say("simulated")}`}</div>
      <div className={`state state-${TONES[condition]}`}>{say(OF_CONDITION[condition])}</div>
      {card.trouble && <div>{card.trouble}</div>}
      {why && <div>{why}</div>}
      {card.used > 0 && card.used < 1 && <div>{say("partUsed", { percent: Math.round(card.used * 100) })}</div>}
      {percent !== undefined && <div>{say("busy", { percent: Math.round(percent) })}</div>}
      {card.work.map((id) => <WorkLine key={id} id={id} work={board.works[id]} />)}
    </>
  );
}

/** Environments are found by their id as well as by their name. */
export function workPath(id: string, kind: string): string {
  return `${kind === "env" ? "/envs" : "/jobs"}/${id}`;
}

function WorkLine({ id, work }: { id: string; work: Board["works"][string] | undefined }): ReactNode {
  const say = useWords(overviewWords);
  if (!work?.name) return <div className="quiet">{say("someones")}</div>;
  return (
    <div className="row">
      <Link to={workPath(id, work.kind)}>{work.name}</Link>
      <span>{work.owner}{work.group && <span className="quiet"> · {work.group}</span>}</span>
      <StateMark state={work.state} kind={work.kind} />
    </div>
  );
}
