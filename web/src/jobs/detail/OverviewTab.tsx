/** What it is, what it asked for, where it runs, and how its attempts went. */
import { Tag } from "antd";
import { bytes, Moment, useNow, useSpent } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useLanguage, useWords } from "@/words";
import { inWords as expectedWords } from "../expected";
import { jobWords } from "../words";
import { Facts, PlainTable } from "./Facts";
import type { Detail } from "./useJob";

const SHOWN_REPLICAS = 200;
const LIVES = ["absent", "starting", "running", "ended"] as const;
const isLife = (state: string): state is (typeof LIVES)[number] => (LIVES as readonly string[]).includes(state);

export default function OverviewTab({ job }: { job: Detail }) {
  return (
    <div className="stack">
      <General job={job} />
      <Asked job={job} />
      <Replicas job={job} />
      {job.attempts.length > 1 && <Attempts job={job} />}
    </div>
  );
}

function General({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const inWords = useSpent();
  const newest = job.attempts.at(-1);
  const saved = newest?.saved_at;
  const now = useNow();
  const { language } = useLanguage();
  const starts = expectedWords(job.expected_start, now, language, say);
  const ends = expectedWords(job.expected_end, now, language, say);
  return (
    <section className="surface">
      <Facts
        items={[
          [say("id"), <code key="id">{job.id}</code>],
          [say("owner"), job.owner],
          [say("group"), job.group],
          [say("priority"), job.priority],
          [say("preemptible"), say(job.preemptible ? "yes" : "no")],
          [say("submitted"), <Moment key="at" at={job.submitted_at} />],
          starts !== "" && [say("expectedStart"), starts],
          ends !== "" && [say("expectedEnd"), ends],
          job.started_at !== null && [say("started"), <Moment key="at" at={job.started_at} />],
          job.ended_at !== null && [say("ended"), <Moment key="at" at={job.ended_at} />],
          job.exit_code !== null && [say("exitCode"), job.exit_code],
          job.max_seconds !== null && [say("maxTime"), inWords(job.max_seconds)],
          job.together !== "any" && [say("together"), say(`together_${job.together}`)],
          job.checkpoint !== null && [say("checkpoint"), <code key="path">{job.checkpoint}</code>],
          typeof saved === "string" && [say("saved"), <><Moment at={saved} />{newest?.saved_step != null && ` (${say("savedStep", { n: newest.saved_step })})`}</>],
          job.workdir !== null && [say("workdir"), <code key="digest" className="cut" style={{ display: "block" }} title={job.workdir}>{job.workdir}</code>],
        ]}
      />
    </section>
  );
}

function Asked({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const share = <span className="quiet">{say("fairShare")}</span>;
  return (
    <section className="surface stack">
      <h2 style={{ margin: 0 }}>{say("asked")}</h2>
      {job.roles.map((role) => (
        <div key={role.name} className="stack" style={{ gap: 10 }}>
          <Facts
            items={[
              job.roles.length > 1 && [say("role"), role.name],
              [say("replicas"), role.replicas],
              [say("cards"), <>{role.cards}{role.device && ` ${role.device}`} {job.simulated_cards && role.cards > 0 && <Tag>{say("simulatedNote")}</Tag>}</>],
              [say("cpu"), role.cpu ?? share],
              [say("memory"), role.memory === null ? share : bytes(role.memory)],
              role.image !== null && [say("image"), role.image],
            ]}
          />
          {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- what scrolls has to be reachable by keyboard */}
          <pre className="command" tabIndex={0} aria-label={say("command")}>{commandText(role.command)}</pre>
        </div>
      ))}
    </section>
  );
}

/** As it would be typed: a shell's own text, or words with blanks in quotes. */
function commandText(command: readonly string[]): string {
  if (command.length === 3 && command[0] === "sh" && command[1] === "-c") return command[2] ?? "";
  if (command.length === 3 && command[0] === "/bin/sh" && command[1] === "-c") return command[2] ?? "";
  return command.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`)).join(" ");
}

function Replicas({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const replicas = job.attempts.at(-1)?.replicas ?? [];
  const head = [say("replica"), say("state"), say("node"), say("cardNumbers"), say("cpu"), say("memory"), say("exitCode"), say("reason")];
  const rows = replicas.slice(0, SHOWN_REPLICAS).map((one) => ({
    key: one.replica,
    cells: [<code key="name">{one.replica}</code>, isLife(one.state) ? say(`life_${one.state}`) : one.state, one.node, one.cards.join(", ") || "–", one.cpu, bytes(one.memory), one.exit_code ?? "–", <Said key="reason" text={one.reason} />],
  }));
  return (
    <section className="surface">
      <h2>{say("replicas")}</h2>
      {rows.length === 0 ? <p className="quiet" style={{ margin: 0 }}>{say("noReplicas")}</p> : <PlainTable label={say("replicas")} head={head} rows={rows} />}
      {replicas.length > SHOWN_REPLICAS && <p className="quiet">{say("moreReplicas", { n: replicas.length - SHOWN_REPLICAS })}</p>}
    </section>
  );
}

function Attempts({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const rows = job.attempts.toReversed().map((one) => ({
    key: String(one.number),
    cells: [one.number, <Moment key="at" at={one.started_at ?? one.created_at} />, one.ended_at ? <Moment key="end" at={one.ended_at} /> : say("going"), <Said key="reason" text={one.reason} />],
  }));
  return (
    <section className="surface">
      <h2>{say("attempts")}</h2>
      <PlainTable label={say("attempts")} head={[say("attempt"), say("started"), say("ended"), say("ending")]} rows={rows} />
    </section>
  );
}
