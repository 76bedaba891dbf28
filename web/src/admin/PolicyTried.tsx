/** What a policy would change on the present cluster. */
import { Alert } from "antd";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import type { Schemas } from "@/api/client";
import { useWords } from "@/words";
import { policyWords } from "./policyWords";

type Tried = Schemas["PolicyTried"];
type Brief = Schemas["WorkBrief"];

const shown = (value: unknown): string => (typeof value === "string" ? value : value === null || value === undefined ? "–" : JSON.stringify(value));

export function PolicyTried({ tried }: { tried: Tried }) {
  const say = useWords(policyWords);
  const counts = [tried.starts_count, tried.stays_count, tried.evictions_count, tried.spared_count, tried.moves_count];
  const place = (n: number | null) => (n === null ? say("notWaiting") : String(n));
  return (
    <section className="policy-tried stack" role="status" aria-label={say("tried")}>
      <h2 style={{ margin: 0 }}>{say("tried")}</h2>
      {tried.warnings.map((warning) => <Alert key={warning} type="warning" showIcon title={warning} />)}
      {tried.changed.length === 0 ? <span>{say("triedSame")}</span> : <Changes changed={tried.changed} />}
      {tried.changed.length > 0 && counts.every((n) => n === 0) && <span>{say("triedNothing")}</span>}
      <Works title={say("starts")} count={tried.starts_count}>{tried.starts.map((one) => <Work key={one.id} work={one} />)}</Works>
      <Works title={say("stays")} count={tried.stays_count}>{tried.stays.map((one) => <Work key={one.id} work={one} />)}</Works>
      <Works title={say("evictions")} count={tried.evictions_count}>{tried.evictions.map((one) => <Work key={one.work.id} work={one.work} />)}</Works>
      <Works title={say("spared")} count={tried.spared_count}>{tried.spared.map((one) => <Work key={one.id} work={one} />)}</Works>
      <Works title={say("moves")} count={tried.moves_count}>
        {tried.moves.map((one) => <li key={one.work.id}>{say("movesTo", { name: one.work.name, before: place(one.before), after: place(one.after) })} <span className="quiet">{one.work.owner}</span></li>)}
      </Works>
      {tried.groups.length > 0 && <Groups groups={tried.groups} />}
    </section>
  );
}

type Word = keyof typeof policyWords;

function Changes({ changed }: { changed: Tried["changed"] }) {
  const say = useWords(policyWords);
  const named = (key: string): ReactNode => {
    if (!(key in policyWords)) return <code>{key}</code>;
    const [section = ""] = key.split(".");
    return section !== key && section in policyWords ? `${say(section as Word)} · ${say(key as Word)}` : say(key as Word);
  };
  return (
    <div style={{ overflowX: "auto" }}>
      <table className="plain-table">
        <thead><tr><th>{say("value")}</th><th>{say("before")}</th><th>{say("after")}</th></tr></thead>
        <tbody>{changed.map((one) => <tr key={one.key}><td>{named(one.key)}</td><td>{shown(one.before)}</td><td><strong>{shown(one.after)}</strong></td></tr>)}</tbody>
      </table>
    </div>
  );
}

function Works({ title, count, children }: { title: string; count: number; children: ReactNode[] }) {
  const say = useWords(policyWords);
  if (count === 0) return null;
  return (
    <div>
      <strong>{title}: {count}</strong>
      <ul style={{ margin: 0, paddingInlineStart: 20, maxHeight: 180, overflow: "auto" }}>
        {children}
        {count > children.length && <li className="quiet">{say("andMore", { n: count - children.length })}</li>}
      </ul>
    </div>
  );
}

function Work({ work }: { work: Brief }) {
  return <li><Link to={`/jobs/${work.id}`}>{work.name}</Link> <span className="quiet">{work.owner} · {work.group}</span></li>;
}

function Groups({ groups }: { groups: Tried["groups"] }) {
  const say = useWords(policyWords);
  const cell = (before: number, after: number) => (before === after ? String(after) : `${before} → ${after}`);
  return (
    <div style={{ overflowX: "auto" }}>
      <strong>{say("byGroup")}</strong>
      <table className="plain-table">
        <thead><tr><th>{say("group")}</th><th className="number">{say("starting")}</th><th className="number">{say("waiting")}</th><th className="number">{say("evicted")}</th></tr></thead>
        <tbody>
          {groups.map(({ group, before, after }) => (
            <tr key={group}>
              <td>{group}</td>
              <td className="number">{cell(before.starting, after.starting)}</td>
              <td className="number">{cell(before.waiting, after.waiting)}</td>
              <td className="number">{cell(before.evicted, after.evicted)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
