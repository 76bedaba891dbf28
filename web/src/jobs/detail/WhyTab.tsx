/** Why it is as it is: the facts, who is ahead by which rule, and changes that start it, each one click away. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, App, Button } from "antd";
import { Link, useNavigate } from "react-router-dom";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { slow, Trouble, useNow, useTell } from "@/look/parts";
import { Said } from "@/overview/Said";
import { useLanguage, useWords } from "@/words";
import { inWords } from "../expected";
import { newKey } from "../wishes";
import { jobWords } from "../words";
import { BeforeAsked } from "./BeforeAsked";
import type { Detail } from "./useJob";

type Why = Schemas["WhyOut"];
const REASONS_MS = 10_000;

export default function WhyTab({ job }: { job: Detail }) {
  const say = useWords(jobWords);
  const { language } = useLanguage();
  const { data: why, error, refetch } = useQuery({
    queryKey: keys.workload(job.id, "why", language),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}/why", { params: { path: { ref: job.id } } })),
    refetchInterval: job.state === "queued" ? REASONS_MS : false,
  });
  if (error && !why) return <Trouble error={error} again={() => void refetch()} />;
  if (!why) return <div aria-busy="true" />;
  const waits = why.sort !== null;
  return (
    <div className="stack">
      <Alert type={waits ? (why.sort === "never" ? "error" : "warning") : "info"} showIcon title={why.sort_words ?? <Said text={why.reason} />} description={waits ? <Said text={why.reason} /> : undefined} />
      <When why={why} />
      {waits && <Remedies job={job} remedies={why.remedies} />}
      {why.facts.length > 0 && (
        <section className="surface">
          <h2>{say("facts")}</h2>
          <ul className="why-list">{why.facts.map((fact) => <li key={fact.words}><Said text={fact.words} /></li>)}</ul>
        </section>
      )}
      {waits && <Ahead why={why} />}
      <BeforeAsked job={job} />
    </div>
  );
}

function When({ why }: { why: Why }) {
  const say = useWords(jobWords);
  const { language } = useLanguage();
  const now = useNow();
  const starts = inWords(why.expected_start, now, language, say);
  const told = starts || inWords(why.expected_end, now, language, say);
  if (!told) return null;
  return (
    <section className="surface">
      <h2>{say(starts ? "expectedStart" : "expectedEnd")}</h2>
      <p style={{ margin: 0 }}>{told}</p>
    </section>
  );
}

function Remedies({ job, remedies }: { job: Detail; remedies: Why["remedies"] }) {
  const say = useWords(jobWords);
  const tell = useTell();
  const client = useQueryClient();
  const navigate = useNavigate();
  const { message } = App.useApp();
  const take = useMutation({
    mutationFn: (changes: Record<string, string>) => {
      const params = { path: { ref: job.id }, header: { "Idempotency-Key": newKey() } };
      return asked(api.POST("/api/v1/workloads/{ref}/rerun", { params, body: { set: changes, instead: true } }));
    },
    onSuccess: (made) => {
      void message.success(say("taken"));
      void client.invalidateQueries({ queryKey: keys.workloads() });
      void navigate(`/jobs/${made.id}`);
    },
    onError: tell,
  });
  return (
    <section className="surface">
      <h2>{say("remedies")}</h2>
      {remedies.length === 0 && <p className="quiet" style={{ margin: 0 }}>{say("noRemedies")}</p>}
      {remedies.length > 0 && <p className="quiet" style={{ marginTop: 0 }}>{say("remediesTried")}</p>}
      {remedies.map((remedy) => (
        <div key={remedy.words} className="offer">
          <span>{remedy.words}</span>
          <Button type="primary" loading={slow(take.isPending && take.variables === remedy.changes)} disabled={take.isPending} aria-label={`${say("take")}: ${remedy.words}`} onClick={() => take.mutate(remedy.changes)}>
            {say("take")}
          </Button>
        </div>
      ))}
    </section>
  );
}

function Ahead({ why }: { why: Why }) {
  const say = useWords(jobWords);
  return (
    <section className="surface">
      <h2>{say("ahead")}</h2>
      <p style={{ margin: 0 }}>{why.position ? say("position", { n: why.position }) : say("positionFirst")}</p>
      {why.ahead.length > 0 && <ol className="why-list" style={{ marginTop: 12 }}>
        {why.ahead.map((one) => (
          <li key={one.id}>
            {one.name === null ? say("someJob", { group: one.group }) : <Link to={`/jobs/${one.id}`}>{one.name}</Link>}
            {one.owner !== null && <span className="quiet"> ({one.owner} · {one.group})</span>}: <Said text={one.rule.words} />
          </li>
        ))}
      </ol>}
    </section>
  );
}
