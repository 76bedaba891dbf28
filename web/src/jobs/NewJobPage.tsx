/** A new job, by form or as YAML: two views of one text, with what would happen told before the click. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Alert, Button, Skeleton, Tabs } from "antd";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { Link, useNavigate, useSearchParams } from "react-router-dom";
import { api, asked, Refusal, Unreachable } from "@/api/client";
import { keys, useWhenBack } from "@/api/news";
import { PageHead, slow, Trouble } from "@/look/parts";
import { useWords } from "@/words";
import { FIRST_TEXT, hasCommand, shapeOf, textOf, withChanges } from "./fresh/draft";
import type { Schema } from "./fresh/help";
import { JobForm } from "./fresh/JobForm";
import { OutlookCard } from "./fresh/OutlookCard";
import { useOutlook, yamlBody } from "./fresh/useOutlook";
import { newKey } from "./wishes";
import { jobWords } from "./words";
import "./jobs.css";

const YamlEditor = lazy(() => import("./fresh/YamlEditor"));

export default function NewJobPage() {
  const [params] = useSearchParams();
  const from = params.get("from");
  const { data, error, refetch } = useQuery({
    queryKey: keys.workload(from ?? "", "file"),
    queryFn: () => asked(api.GET("/api/v1/workloads/{ref}/file", { params: { path: { ref: from ?? "" } } })),
    enabled: from !== null,
    staleTime: Infinity,
  });
  if (error) return <div className="page"><Trouble error={error} again={() => void refetch()} /></div>;
  if (from !== null && !data) return <div className="page" aria-busy="true"><Skeleton active /></div>;
  return <Draft key={from} first={data ? textOf(data) : FIRST_TEXT} from={from} />;
}

/** Sent with a key of its own, so that a click repeated after a lost answer makes no second job. */
function useSubmit(text: string) {
  const client = useQueryClient();
  const navigate = useNavigate();
  const key = useRef({ text: "", key: "" });
  return useMutation({
    mutationFn: () => {
      if (key.current.text !== text) key.current = { text, key: newKey() };
      const { headers, ...body } = yamlBody(text);
      return asked(api.POST("/api/v1/workloads", { ...body, headers: { ...headers, "Idempotency-Key": key.current.key } }));
    },
    onSuccess: (made) => {
      void client.invalidateQueries({ queryKey: keys.workloads() });
      void navigate(`/jobs/${made.id}`);
    },
  });
}

function Draft({ first, from }: { first: string; from: string | null }) {
  const say = useWords(jobWords);
  const [params, setParams] = useSearchParams();
  const [text, setText] = useState(first);
  const [tried, setTried] = useState(false);
  const view = params.get("as") === "yaml" ? "yaml" : "form";
  const show = (as: string) =>
    setParams((now) => {
      const then = new URLSearchParams(now);
      then.set("as", as);
      return then;
    }, { replace: true });
  const looked = useOutlook(text);
  const submit = useSubmit(text);
  useWhenBack(() => {
    if (submit.error instanceof Unreachable) submit.reset();
  });
  useEffect(() => document.getElementById("job-command")?.focus(), []); // once, not whenever the form is shown again
  const { data: schema } = useQuery({ queryKey: ["schema"], queryFn: () => asked(api.GET("/api/v1/schema/job.json")), staleTime: Infinity, enabled: view === "yaml" });
  const problems = submit.error instanceof Refusal && looked.problems.length === 0 ? submit.error.problems : looked.problems;
  const write = (now: string) => {
    setText(now);
    submit.reset();
  };
  const go = () => {
    setTried(true);
    if (hasCommand(text)) submit.mutate();
  };
  const editor = (
    <Suspense fallback={<Skeleton active />}>
      <YamlEditor text={text} write={write} problems={problems} schema={schema as Schema | undefined} label={say("editor")} />
    </Suspense>
  );
  return (
    <div className="page">
      <PageHead title={say("newJob")} />
      {from !== null && <Alert type="info" style={{ marginBottom: 12 }} title={<Link to={`/jobs/${from}`}>{say("cloneOf", { id: from })}</Link>} />}
      <div className="new-job">
        <div className="surface" style={{ paddingTop: 4 }}>
          <Tabs
            activeKey={view}
            onChange={show}
            destroyOnHidden
            items={[
              { key: "form", label: say("asForm"), children: <JobForm text={text} write={write} problems={problems} tried={tried} toYaml={() => show("yaml")} /> },
              { key: "yaml", label: say("asYaml"), children: editor },
            ]}
          />
        </div>
        <OutlookCard looked={looked} form={view === "form" && shapeOf(text).kind === "form"} change={(changes) => write(withChanges(text, changes))}>
          {submit.error && <>{looked.problems.length === 0 && <Trouble error={submit.error} />}<p className="quiet" style={{ margin: 0 }}>{say("keptOnError")}</p></>}
          {tried && looked.empty && <Alert type="error" title={say("required")} role="alert" />}
          <Button type="primary" size="large" block loading={slow(submit.isPending)} onClick={go}>{say("submit")}</Button>
        </OutlookCard>
      </div>
    </div>
  );
}
