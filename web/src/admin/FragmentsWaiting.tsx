/** Those that wait though cards enough are free, each with the moves that would start it. */
import { Button } from "antd";
import { useState } from "react";
import { Link } from "react-router-dom";
import { useSpent } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useWords } from "@/words";
import { type Apart, named } from "./fragments";
import { fragmentWords } from "./fragmentWords";

const SHOWN = 8;
const NAMED = 3; // machines of one move

export function FragmentsWaiting({ waiting, none }: { waiting: readonly Apart[]; none: string }) {
  const say = useWords(fragmentWords);
  const [all, setAll] = useState(false);
  const shown = all ? waiting : waiting.slice(0, SHOWN);
  return (
    <section className="surface" aria-labelledby="apart-head" style={{ minWidth: 0 }}>
      <h2 id="apart-head">{say("apart")}</h2>
      {waiting.length === 0 && <p className="quiet" style={{ margin: 0 }}>{none}</p>}
      <ul className="concerns aparts">{shown.map((one) => <Waiting key={one.id} one={one} />)}</ul>
      {shown.length < waiting.length && <Button style={{ marginTop: 12 }} onClick={() => setAll(true)}>{say("showAll", { n: waiting.length })}</Button>}
    </section>
  );
}

function Waiting({ one }: { one: Apart }) {
  const say = useWords(fragmentWords);
  const asked = Object.entries(one.asked).map(([device, n]) => say("cardsOf", { n, device })).join(" + ");
  return (
    <li data-apart={one.name ?? one.id}>
      <span className="row"><Who one={one} /><span>{say("asks", { cards: asked })}</span></span>
      <span className="reason"><Said text={one.words} /></span>
      {one.moves.length > 0 && <Moves one={one} />}
    </li>
  );
}

/** Whose work it is, as far as that may be known. */
function Who({ one: { id, name, owner, group } }: { one: Pick<Apart, "id" | "name" | "owner" | "group"> }) {
  const say = useWords(fragmentWords);
  if (name === null) return <span>{say("someones", { group })}</span>;
  return <span className="row"><Link to={`/jobs/${id}`}>{name}</Link><span className="quiet">{owner === null ? group : say("ofWhom", { owner, group })}</span></span>;
}

function Moves({ one }: { one: Apart }) {
  const say = useWords(fragmentWords);
  const spent = useSpent();
  const label = say("proposal", { name: one.name ?? one.id });
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls must be reached by those without a mouse
    <div className="moves" role="region" tabIndex={0} aria-label={label}>
      <table className="plain-table" aria-label={label}>
        <thead><tr><th scope="col">{say("work")}</th><th scope="col">{say("from")}</th><th scope="col">{say("to")}</th><th scope="col" className="number">{say("loses")}</th></tr></thead>
        <tbody>
          {one.moves.map((move) => (
            <tr key={move.id}>
              <td><Who one={move} /></td>
              <td><Places names={move.source} /></td>
              <td><Places names={move.nodes} /></td>
              <td className="number">{spent(move.lost_seconds)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Places({ names }: { names: readonly string[] }) {
  const say = useWords(fragmentWords);
  const [shown, rest] = named(names, NAMED);
  return <span title={rest > 0 ? names.join(", ") : undefined}><code>{shown}</code>{rest > 0 && <span className="quiet"> {say("andMore", { n: rest })}</span>}</span>;
}
