/** From the first login to a finished example: shown on the overview to who has no work yet, until they close it. */
import { CloseOutlined, PlayCircleOutlined } from "@ant-design/icons";
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Button, Tooltip } from "antd";
import { type ReactNode, useState } from "react";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { LinkButton } from "@/look/LinkButton";
import { slow, StateMark, Trouble } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { exampleJob, isShown, readMemory } from "./example";
import { tourWords } from "./words";

const ENDED: readonly Schemas["State"][] = ["succeeded", "failed", "stopped"];
const LOG_MS = 1000;
const TAIL = 20;

function useMemory() {
  const { who } = useSession();
  const key = `yard.tour.${who.user.name}`;
  const [kept, setKept] = useState(() => localStorage.getItem(key));
  const keep = (value: string) => {
    localStorage.setItem(key, value);
    setKept(value);
  };
  return { memory: readMemory(kept), keep };
}

export function FirstSteps() {
  const { memory, keep } = useMemory();
  const mine = useQuery({
    queryKey: keys.workloads("first"),
    queryFn: () => asked(api.GET("/api/v1/workloads", { params: { query: { mine: true, limit: 1 } } })),
    enabled: memory.kind === "new",
  });
  if (!isShown(memory, mine.data?.items.length)) return null;
  const leave = () => keep("over");
  return memory.kind === "ran" ? <Example id={memory.id} onLeave={leave} /> : <Invitation onRan={keep} onLeave={leave} />;
}

function Card({ onLeave, leave, children }: { onLeave: () => void; leave: string; children: ReactNode }) {
  const say = useWords(tourWords);
  return (
    <section className="surface stack" aria-label={say("title")} style={{ borderColor: "var(--mark)" }}>
      <div className="spread" style={{ flexWrap: "nowrap" }}>
        <h2 style={{ margin: 0 }}>{say("title")}</h2>
        <Button type="text" size="small" icon={<CloseOutlined />} onClick={onLeave}>{leave}</Button>
      </div>
      {children}
    </section>
  );
}

/** Where work runs in images, the smallest that is there. */
function useImage() {
  const { who } = useSession();
  const needed = who.engine === "container";
  const { data } = useQuery({ queryKey: ["images"], queryFn: () => asked(api.GET("/api/v1/images")), enabled: needed });
  const smallest = data?.items.toSorted((one, two) => one.size - two.size)[0]?.name ?? null;
  return { needed, missing: needed && data !== undefined && smallest === null, image: smallest };
}

function Invitation({ onRan, onLeave }: { onRan: (id: string) => void; onLeave: () => void }) {
  const say = useWords(tourWords);
  const { who } = useSession();
  const client = useQueryClient();
  const { needed, missing, image } = useImage();
  const groups = who.user.memberships.map((one) => one.group);
  const run = useMutation({
    mutationFn: () => asked(api.POST("/api/v1/workloads", { body: exampleJob(image, groups.length > 1 ? (groups[0] ?? null) : null) as never })),
    onSuccess: (made) => {
      onRan(made.id);
      return client.invalidateQueries({ queryKey: keys.workloads() });
    },
  });
  const button = <Button type="primary" icon={<PlayCircleOutlined />} disabled={needed && image === null} loading={slow(run.isPending)} onClick={() => run.mutate()}>{say("run")}</Button>;
  return (
    <Card onLeave={onLeave} leave={say("dismiss")}>
      <p style={{ margin: 0, maxWidth: 720 }}>{say("why")}</p>
      {run.error && <Trouble error={run.error} />}
      <div>{missing ? <Tooltip title={say("noImage")}><span>{button}</span></Tooltip> : button}</div>
      {missing && <span className="quiet">{say("noImage")}</span>}
    </Card>
  );
}

function useExample(id: string) {
  const params = { path: { ref: id } };
  const job = useQuery({ queryKey: keys.workload(id), queryFn: () => asked(api.GET("/api/v1/workloads/{ref}", { params })) });
  const over = job.data !== undefined && ENDED.includes(job.data.state);
  const log = useQuery({
    queryKey: keys.workload(id, "tour-log", over),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}/logs", { params: { ...params, query: { tail: TAIL } }, parseAs: "text" })),
    enabled: (job.data?.attempt ?? 0) > 0,
    refetchInterval: over ? false : LOG_MS,
    placeholderData: (before) => before,
  });
  return { job, over, log };
}

function Example({ id, onLeave }: { id: string; onLeave: () => void }) {
  const say = useWords(tourWords);
  const { job, over, log } = useExample(id);
  const state = job.data?.state;
  const told = !over ? "running" : state === "succeeded" ? "done" : "failed";
  return (
    <Card onLeave={onLeave} leave={say("close")}>
      {job.error && !job.data && <Trouble error={job.error} again={() => void job.refetch()} />}
      <div className="row" aria-live="polite">{state && <StateMark state={state} />}<span>{say(told)}</span></div>
      <pre className="surface mono" aria-label={say("output")} style={{ margin: 0, minHeight: 150, overflowX: "auto", background: "var(--ground)" }}>{log.data ?? ""}</pre>
      <div className="row">
        <LinkButton to={`/jobs/${id}`} type={over ? "primary" : "default"}>{say("see")}</LinkButton>
        {over && <><LinkButton to="/envs/new">{say("env")}</LinkButton><LinkButton to="/jobs/new">{say("ownJob")}</LinkButton></>}
      </div>
    </Card>
  );
}
