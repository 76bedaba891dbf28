/** The output of a job: of each replica and attempt, live, searched and downloaded. */
import { DownloadOutlined, VerticalAlignBottomOutlined, VerticalAlignTopOutlined } from "@ant-design/icons";
import { Button, Select, Tooltip } from "antd";
import { useEffect, useMemo, useRef, useState, useSyncExternalStore } from "react";
import { useSearchParams } from "react-router-dom";
import { slow, Trouble, useTell } from "@/look/parts";
import { useWords } from "@/words";
import type { Detail } from "../detail/useJob";
import { hasEnded } from "../wishes";
import { jobWords } from "../words";
import { LogFeed } from "./feed";
import { LogSearch } from "./LogSearch";
import { LogView } from "./LogView";
import { download } from "./reading";

const NAMED = 500; // replicas in the choice; of more, the first ones

function replicasOf(job: Detail): string[] {
  return job.roles.flatMap((role) => Array.from({ length: Math.min(role.replicas, NAMED) }, (_, index) => `${role.name}-${index}`)).slice(0, NAMED);
}

export default function LogsTab({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const [params, setParams] = useSearchParams();
  const replicas = useMemo(() => replicasOf(job), [job]);
  const wanted = params.get("replica") ?? "";
  const replica = replicas.includes(wanted) ? wanted : (replicas[0] ?? "worker-0");
  const numbers = job.attempts.map((one) => one.number);
  const newest = numbers.at(-1) ?? 0;
  const asked = Number(params.get("attempt"));
  const attempt = numbers.includes(asked) ? asked : newest;
  const choose = (key: string, value: string) =>
    setParams((now) => {
      const then = new URLSearchParams(now);
      then.set(key, value);
      return then;
    }, { replace: true });
  return (
    <section>
      {(replicas.length > 1 || numbers.length > 1) && <div className="log-tools">
        {replicas.length > 1 && (
          <Select showSearch aria-label={say("replica")} value={replica} onChange={(value) => choose("replica", value)} options={replicas.map((value) => ({ value }))} style={{ width: 140 }} />
        )}
        {numbers.length > 1 && (
          <Select aria-label={say("attempt")} value={attempt} onChange={(value) => choose("attempt", String(value))} options={numbers.map((value) => ({ value, label: say("tries", { n: value }) }))} style={{ width: 140 }} />
        )}
      </div>}
      {attempt === 0 ? <p className="quiet">{say(hasEnded(job) ? "logNone" : "logEmpty")}</p> : <OneLog key={`${replica}/${attempt}`} id={job.id} replica={replica} attempt={attempt} />}
    </section>
  );
}

function OneLog({ id, replica, attempt }: { id: string; replica: string; attempt: number }) {
  const say = useWords(jobWords);
  const [feed] = useState(() => new LogFeed({ id, replica, attempt }));
  useEffect(() => {
    feed.start();
    return () => feed.stop();
  }, [feed]);
  return <Opened feed={feed} label={say("logOf", { replica, attempt })} />;
}

function Opened({ feed, label }: { feed: LogFeed; label: string }) {
  const say = useWords(jobWords);
  useSyncExternalStore(feed.subscribe, feed.snapshot);
  const tell = useTell();
  const box = useRef<HTMLDivElement>(null);
  const [saving, setSaving] = useState(false);
  const [found, setFound] = useState<{ text: string; line: number | null }>({ text: "", line: null });
  const state = feed.following && feed.live ? "logLive" : feed.ended ? "logEnded" : "logPaused";
  const toStart = async () => {
    await feed.goTo(0);
    box.current?.scrollTo({ top: 0 });
  };
  const toEnd = async () => {
    await feed.toTheEnd();
    box.current?.scrollTo({ top: box.current.scrollHeight });
  };
  const save = async () => {
    setSaving(true);
    await download(feed.which).catch(tell);
    setSaving(false);
  };
  return (
    <>
      <div className="log-tools">
        <LogSearch feed={feed} box={box} found={found} onFound={setFound} />
        <Button aria-pressed={feed.following} type={feed.following ? "primary" : "default"} onClick={() => (feed.following ? feed.follow(false) : void toEnd())}>{say(feed.following ? "following" : "follow")}</Button>
        <Tooltip title={say("toStart")}><Button icon={<VerticalAlignTopOutlined />} aria-label={say("toStart")} onClick={() => void toStart()} /></Tooltip>
        <Tooltip title={say("toEnd")}><Button icon={<VerticalAlignBottomOutlined />} aria-label={say("toEnd")} onClick={() => void toEnd()} /></Tooltip>
        <Button icon={<DownloadOutlined />} loading={slow(saving)} onClick={() => void save()}>{say("download")}</Button>
        <span className="quiet">{say("logLines", { n: feed.window.count })} · {say(state)}</span>
      </div>
      {feed.trouble !== null && <Trouble error={feed.trouble} again={() => void feed.older()} />}
      {feed.window.isEmpty && <p className="quiet">{say(feed.ended ? "logNone" : "logEmpty")}</p>}
      <LogView feed={feed} box={box} wanted={found.text} here={found.line} label={label} />
    </>
  );
}
