/** How it is and why, what it has, and what will stop it. */
import { Alert, App, Button, Form } from "antd";
import type { ReactNode } from "react";
import { Ago, Moment, useSpent } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useWords } from "@/words";
import { type EnvDetail, isStopped, useWhy, useWishes } from "./asking";
import { IdleSelect } from "./EnvFields";
import { Offers } from "./Outlook";
import { Resources } from "./Resources";
import { envWords } from "./words";

export function AboutTab({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  return (
    <div className="stack">
      {env.restarting ? <Alert type="info" showIcon title={say("restarting")} /> : env.state === "queued" ? <Waits env={env} /> : env.state !== "running" && <Alert type="info" showIcon title={<Said text={env.reason} />} />}
      <Closed env={env} />
      <div className="columns">
        <Facts env={env} />
        <Stopping env={env} />
      </div>
    </div>
  );
}

/** Of one that runs: the tools that are not to be had, and why. Tabs that are closed cannot be pointed at by everyone. */
function Closed({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  const closed = (["terminal", "lab", "ide"] as const).filter((what) => what in env.closed);
  if (env.state !== "running" || closed.length === 0) return null;
  const reasons = [...new Set(closed.map((what) => env.closed[what]))];
  return <Alert type="info" showIcon title={say("closedTools", { tools: closed.map((what) => say(what)).join(", ") })} description={reasons.map((reason) => <div key={reason}><Said text={reason} /></div>)} />;
}

function Waits({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  const { data } = useWhy(env);
  const { restart } = useWishes(env);
  const more = data?.facts.filter((fact) => fact.words !== data.reason) ?? [];
  return (
    <section className="surface stack" aria-label={say("waiting")}>
      <Alert
        type={data?.sort === "never" ? "error" : "warning"}
        showIcon
        title={data?.sort_words ?? say("waiting")}
        description={
          <>
            <div><Said text={data?.reason ?? env.reason} /></div>
            {more.length > 0 && <ul style={{ margin: "8px 0 0", paddingInlineStart: 20 }}>{more.map((fact) => <li key={fact.words}><Said text={fact.words} /></li>)}</ul>}
            {!!data?.position && <div>{say("ahead", { n: data.position })}</div>}
          </>
        }
      />
      <Offers offers={data?.remedies ?? []} label={say("takeIt")} onTake={(changes) => restart.mutate(changes)} />
    </section>
  );
}

function Facts({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  const rows: [string, ReactNode][] = [
    [say("resources"), <Resources key="r" env={env} />],
    [say("image"), env.image ?? say("onMachine")],
    [say("node"), env.node ?? "–"],
    [say("owner"), `${env.owner} (${env.group})`],
    [say("created"), <Ago key="c" at={env.submitted_at} />],
    [say("lastUsed"), env.used_at ? <Ago key="u" at={env.used_at} /> : say("unused")],
  ];
  if (env.state === "running" && env.started_at) rows.splice(3, 0, [say("since"), <Ago key="s" at={env.started_at} />]);
  return (
    <section className="surface">
      <h2>{say("about")}</h2>
      <dl className="env-facts">
        {rows.map(([label, value]) => <div key={label} style={{ display: "contents" }}><dt>{label}</dt><dd>{value}</dd></div>)}
      </dl>
    </section>
  );
}

const IDLE_KNOWN: Readonly<Record<number, string>> = { 1800: "30m", 3600: "1h", 7200: "2h", 28800: "8h", 86400: "24h" };

function Stopping({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  const inWords = useSpent();
  const { message } = App.useApp();
  const { timer } = useWishes(env);
  const wish = (body: { timer?: string; idle?: string }) => timer.mutate(body, { onSuccess: () => void message.success(say("saved")) });
  const idle = env.idle_seconds === null ? "off" : (IDLE_KNOWN[env.idle_seconds] ?? inWords(env.idle_seconds));
  const stopped = isStopped(env);
  const button = (text: string, wanted: string) => <Button key={wanted} size="small" disabled={timer.isPending || stopped} onClick={() => wish({ timer: wanted })}>{text}</Button>;
  return (
    <section className="surface">
      <h2>{say("stopping")}</h2>
      <p style={{ marginTop: 0 }}>{env.stop_at && !stopped ? <>{say("stopsAt")} <strong><Moment at={env.stop_at} /></strong></> : say("noTimer")}</p>
      <div className="row" style={{ marginBottom: 20 }}>
        {env.stop_at && !stopped ? [button(say("extend1"), "+1h"), button(say("extend8"), "+8h"), button(say("timerOff"), "off")] : [button(say("in1"), "1h"), button(say("in8"), "8h")]}
      </div>
      <Form layout="vertical">
        <Form.Item label={say("idle")} htmlFor="idle-now" extra={say("idleHelp")} style={{ marginBottom: 0 }}>
          <IdleSelect id="idle-now" value={idle} onChange={(wanted) => wish({ idle: wanted })} />
        </Form.Item>
      </Form>
    </section>
  );
}
