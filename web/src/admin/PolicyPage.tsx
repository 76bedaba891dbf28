/** The policy: read, edited, tried on the present cluster, and only then set. */
import { useQuery } from "@tanstack/react-query";
import { Alert, App, Button, Segmented, Skeleton, Tooltip } from "antd";
import { lazy, Suspense, useState } from "react";
import { api, asked, atItsField, Refusal, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { PageHead, slow, Trouble, troubleWords, useConfirm } from "@/look/parts";
import { lookWords } from "@/look/words";
import "@/overview/overview.css";
import { useWords } from "@/words";
import "./admin.css";
import { ForAdmins, useAct, useFilters } from "./parts";
import { PolicyFields } from "./PolicyFields";
import { asYaml, type Policy, readYaml, same } from "./policyForm";
import { PolicyTried } from "./PolicyTried";
import { policyWords } from "./policyWords";

const YamlEditor = lazy(() => import("@/jobs/fresh/YamlEditor"));
const NO_PROBLEMS: never[] = []; // what is wrong is told above: the server knows no lines of it

export default function PolicyPage() {
  const say = useWords(policyWords);
  const { data, error, refetch } = useQuery({ queryKey: keys.policy, queryFn: () => asked(api.GET("/api/v1/policy")) });
  return (
    <ForAdmins>
      <PageHead title={say("title")} />
      <span className="quiet">{say("about")}</span>
      {error && <Trouble error={error} again={() => void refetch()} />}
      {!data && !error && <Skeleton active />}
      {data && <Editing inForce={data} />}
    </ForAdmins>
  );
}

interface Wrong {
  at: Record<string, string>;
  rest: string[];
}
type AnyDocument = Record<string, never>; // as the description has it: any keys
const NONE: Wrong = { at: {}, rest: [] };

function useWrong(): (error: unknown) => Wrong {
  const frame = useWords(lookWords);
  return (error) => {
    if (!(error instanceof Refusal)) return { at: {}, rest: [troubleWords(error, frame("unreachable"))] };
    const found: Wrong = { at: {}, rest: [] };
    for (const problem of error.problems.length > 0 ? error.problems : [{ message: error.message, facts: error.facts }]) {
      const at = String(problem.facts["at"] ?? "");
      if (at) found.at[at] = atItsField(problem);
      found.rest.push(problem.message);
    }
    return found;
  };
}

function Editing({ inForce }: { inForce: Policy }) {
  const say = useWords(policyWords);
  const { message } = App.useApp();
  const confirm = useConfirm();
  const inWords = useWrong();
  const [{ as }, setFilter] = useFilters(["as"]);
  const [draft, setDraft] = useState<Policy | null>(null);
  const [text, setText] = useState<string | null>(null); // YAML as it is being typed
  const [wrong, setWrong] = useState<Wrong>(NONE);
  const [tried, setTried] = useState<{ policy: Policy; told: Schemas["PolicyTried"] } | null>(null);
  const policy = draft ?? inForce;
  const typed = text === null ? null : readYaml(text);
  const problem = typed && "problem" in typed ? typed.problem || say("notMapping") : null;
  const changed = problem !== null || !same(policy, inForce);
  const isTried = tried !== null && same(tried.policy, policy) && problem === null;
  const edit = (after: Policy) => {
    setDraft(after);
    setWrong(NONE);
  };
  const type = (after: string) => {
    setText(after);
    const read = readYaml(after);
    if ("policy" in read) edit(read.policy);
  };
  const undo = () => {
    setDraft(null);
    setText(null);
    setWrong(NONE);
    setTried(null);
  };
  const trying = useAct((body: Policy) => asked(api.POST("/api/v1/policy/try", { body: body as AnyDocument })), [], true);
  const setting = useAct((body: Policy) => asked(api.PUT("/api/v1/policy", { body: body as AnyDocument })), [keys.policy, keys.queue], true);
  const tryIt = () => trying.mutate(policy, { onSuccess: (told) => setTried({ policy, told }), onError: (error) => setWrong(inWords(error)) });
  const setIt = async () => {
    if (!tried) return;
    const lost = [say("setLost", { n: tried.told.changed.length }), tried.told.evictions_count > 0 ? say("setEvicts", { n: tried.told.evictions_count }) : ""];
    if (!(await confirm({ title: say("setTitle"), lost: lost.join(" "), ok: say("set") }))) return;
    setting.mutate(tried.policy, {
      onSuccess: (told) => {
        undo();
        void message.success(say("setDone", { n: told.changed.length }));
      },
      onError: (error) => setWrong(inWords(error)),
    });
  };
  const whyNot = !changed ? say("unchanged") : isTried ? undefined : say("setFirst");
  return (
    <>
      <div className="surface stack">
        <div className="spread">
          <Segmented
            aria-label={say("editAs")}
            value={as === "yaml" ? "yaml" : "form"}
            options={[{ value: "form", label: say("form"), disabled: problem !== null }, { value: "yaml", label: say("yaml") }]}
            onChange={(value) => {
              setText(null);
              setFilter("as", value === "yaml" ? "yaml" : undefined);
            }}
          />
          <div className="row">
            <Button disabled={!changed} onClick={undo}>{say("reset")}</Button>
            <Tooltip title={changed ? say("tryHow") : say("unchanged")}>
              <span><Button disabled={!changed || problem !== null} loading={slow(trying.isPending)} onClick={tryIt}>{say("tryIt")}</Button></span>
            </Tooltip>
            <Tooltip title={whyNot}>
              <span><Button type="primary" disabled={whyNot !== undefined} loading={slow(setting.isPending)} onClick={() => void setIt()}>{say("set")}</Button></span>
            </Tooltip>
          </div>
        </div>
        {wrong.rest.length > 0 && <Alert type="error" showIcon role="alert" title={wrong.rest[0]} description={wrong.rest.length > 1 ? <ul>{wrong.rest.slice(1).map((one) => <li key={one}>{one}</li>)}</ul> : undefined} />}
        {problem !== null && <Alert type="error" showIcon role="alert" title={say("badYaml", { problem })} />}
        {tried && isTried && <PolicyTried tried={tried.told} />}
        {as === "yaml" ? (
          <Suspense fallback={<div aria-busy="true" style={{ minHeight: 320 }} />}>
            <YamlEditor label={say("yamlLabel")} text={text ?? asYaml(policy)} write={type} problems={NO_PROBLEMS} schema={undefined} />
          </Suspense>
        ) : <PolicyFields policy={policy} wrong={wrong.at} onChange={edit} />}
      </div>
    </>
  );
}
