/** What somebody should look at now. */
import { useQuery } from "@tanstack/react-query";
import { CheckCircleOutlined } from "@ant-design/icons";
import { Skeleton } from "antd";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { Ago, Trouble, useNow, useSpent } from "@/look/parts";
import { useSession } from "@/session/session";
import { useLanguage, useWords } from "@/words";
import { type Concern, concerns } from "./attention";
import type { Board } from "./board";
import { workPath } from "./CardDetail";
import { Said } from "./Said";
import { overviewWords } from "./words";

const MOST_SHOWN = 8;
const REASONS_MS = 10_000; // why something waits is no news of its own

function useMine(state: Schemas["State"], again: number | false) {
  const { language } = useLanguage();
  const query = { mine: true, state, limit: 50 };
  return useQuery({
    queryKey: keys.workloads("attention", state, language),
    queryFn: () => asked(api.GET("/api/v1/workloads", { params: { query } })),
    refetchInterval: again,
  });
}

export function AttentionPanel({ board }: { board: Board | undefined }) {
  const say = useWords(overviewWords);
  const { who } = useSession();
  const now = useNow() / 1000;
  const { language } = useLanguage();
  const failed = useMine("failed", false);
  const queued = useMine("queued", REASONS_MS);
  const envs = useQuery({ queryKey: [...keys.envs, "attention", language], queryFn: () => asked(api.GET("/api/v1/envs")), refetchInterval: 60_000 });
  const error = failed.error ?? queued.error ?? envs.error;
  const ready = failed.data && queued.data && envs.data;
  const found = ready
    ? concerns({ failed: failed.data.items, queued: queued.data.items, envs: envs.data.items, nodes: who.user.admin ? (board?.nodes ?? []) : [] }, now)
    : [];
  return (
    <section className="surface" aria-labelledby="attention-head" style={{ minWidth: 0 }}>
      <h2 id="attention-head">{say("attention")}</h2>
      {error && <Trouble error={error} again={() => void Promise.all([failed.refetch(), queued.refetch(), envs.refetch()])} />}
      {!ready && !error && <Skeleton active title={false} />}
      {ready && found.length === 0 && <p className="state-good" style={{ margin: 0 }}><CheckCircleOutlined /> {say("attentionNone")}</p>}
      <ul className="concerns">
        {found.slice(0, MOST_SHOWN).map((one) => <ConcernLine key={`${one.kind} ${"id" in one ? one.id : one.name}`} one={one} />)}
      </ul>
      {found.length > MOST_SHOWN && <p className="quiet" style={{ marginBottom: 0 }}>{say("attentionMore", { n: found.length - MOST_SHOWN })}</p>}
    </section>
  );
}

function ConcernLine({ one }: { one: Concern }) {
  const say = useWords(overviewWords);
  const inWords = useSpent();
  switch (one.kind) {
    case "lost":
    case "disk_full":
      return <Line bad to={`/admin/nodes?node=${encodeURIComponent(one.name)}`} name={one.name} what={say(one.kind === "lost" ? "nodeIll" : "nodeFull")} />;
    case "cards":
      return <Line bad to={`/admin/nodes?node=${encodeURIComponent(one.name)}`} name={one.name} what={say("cardsIll", { n: one.count, trouble: one.trouble })} />;
    case "failed":
      return <Line bad to={workPath(one.id, one.env ? "env" : "job")} name={one.name} what={<Failed at={one.at} />} reason={one.reason} />;
    case "never":
      return <Line bad to={workPath(one.id, one.env ? "env" : "job")} name={one.name} what={say("never")} reason={one.reason} />;
    case "waits":
      return <Line to={workPath(one.id, one.env ? "env" : "job")} name={one.name} what={say("waitsLong", { time: inWords(one.seconds) })} reason={one.reason} />;
    case "timer":
    case "idle":
      return <Line to={workPath(one.id, "env")} name={one.name} what={say(one.kind === "timer" ? "stopsSoon" : "idleSoon", { time: inWords(one.seconds) })} />;
  }
}

function Failed({ at }: { at: string }) {
  const say = useWords(overviewWords);
  const [before, after] = say("failed", { ago: "\n" }).split("\n");
  return <>{before}<Ago at={at} />{after}</>;
}

function Line({ to, name, what, reason, bad = false }: { to: string; name: string; what: ReactNode; reason?: string; bad?: boolean }) {
  return (
    <li className={bad ? "bad" : undefined}>
      <span><Link to={to}><strong>{name}</strong></Link> {what}</span>
      {reason && <span className="reason"><Said text={reason} /></span>}
    </li>
  );
}
