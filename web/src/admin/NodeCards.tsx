/** The cards of one machine: as a strip of cells, and one by one with the work on each. */
import { Tooltip } from "antd";
import { Link } from "react-router-dom";
import { StateMark } from "@/look/parts";
import { useLook } from "@/look/theme";
import { type Board, type BoardNode, conditionOf, DARK, LIGHT } from "@/overview/board";
import { workPath } from "@/overview/CardDetail";
import { useBoard } from "@/overview/useBoard";
import { overviewWords } from "@/overview/words";
import { useWords } from "@/words";
import { adminWords } from "./words";

const OF_CONDITION = { free: "isFree", used: "isUsed", trouble: "isTrouble", closed: "isClosed" } as const;
const TONES = { free: "idle", used: "good", trouble: "bad", closed: "warn" } as const;

export function CardStrip({ node }: { node: BoardNode }) {
  const say = useWords(overviewWords);
  const { dark } = useLook();
  const palette = dark ? DARK : LIGHT;
  const colours = { free: palette.free, used: palette.owners[0], trouble: palette.bad, closed: palette.closed };
  const inWords = (["free", "used", "trouble", "closed"] as const)
    .map((condition) => [condition, node.cards.filter((card) => conditionOf(node, card) === condition).length] as const)
    .filter(([, n]) => n > 0)
    .map(([condition, n]) => `${n} ${say(OF_CONDITION[condition])}`)
    .join(", ");
  return (
    <Tooltip title={inWords}>
      <span className="strip" role="img" aria-label={inWords}>
        {node.cards.map((card) => <i key={card.index} style={{ background: colours[conditionOf(node, card)] }} />)}
      </span>
    </Tooltip>
  );
}

export function NodeCards({ node }: { node: BoardNode }) {
  const works = useBoard().data?.works;
  const say = useWords(adminWords);
  const states = useWords(overviewWords);
  return (
    <table className="plain-table" aria-label={say("showCards", { name: node.name })}>
      <thead>
        <tr><th className="number">{say("index")}</th><th>{say("model")}</th><th>{say("state")}</th><th>{say("work")}</th></tr>
      </thead>
      <tbody>
        {node.cards.map((card) => {
          const condition = conditionOf(node, card);
          return (
            <tr key={card.index}>
              <td className="number">{card.index}</td>
              <td>{card.model}{card.simulated && <span className="quiet"> · {states("simulated")}</span>}</td>
              <td><span className={`state state-${TONES[condition]}`}>{states(OF_CONDITION[condition])}</span>{card.trouble && <> · {card.trouble}</>}</td>
              <td>{card.work.map((id) => <OnCard key={id} id={id} work={works?.[id]} />)}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function OnCard({ id, work }: { id: string; work: Board["works"][string] | undefined }) {
  const say = useWords(overviewWords);
  if (!work?.name) return <span className="quiet">{say("someones")}</span>;
  return (
    <span className="row">
      <Link to={workPath(id, work.kind)}>{work.name}</Link> {work.owner} <span className="quiet">{work.group}</span> <StateMark state={work.state} kind={work.kind} />
    </span>
  );
}
