/** The usual things of a job as a form. All of it stands in the text of the draft. */
import { Alert, Button, Collapse, Form, Switch } from "antd";
import type { Problem } from "@/api/client";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { jobWords } from "../words";
import { type FormValues, meant, shapeOf, withEnv, withValue } from "./draft";
import { EnvRows } from "./EnvRows";
import { Field } from "./Field";
import { atField } from "./problems";

interface Props {
  text: string;
  write: (text: string) => void;
  problems: readonly Problem[];
  tried: boolean; // to submit it: then what is missing is told
  toYaml: () => void;
}

export function JobForm(props: Props) {
  const say = useWords(jobWords);
  const shape = shapeOf(props.text);
  if (shape.kind === "form") return <Fields {...props} values={shape.values} />;
  const action = <Button size="small" onClick={props.toYaml}>{say("toYaml")}</Button>;
  return <Alert type={shape.kind === "broken" ? "error" : "info"} showIcon title={say(shape.kind === "broken" ? "brokenNote" : "rolesNote")} action={action} />;
}

function Fields({ text, write, problems, tried, values }: Props & { values: FormValues }) {
  const say = useWords(jobWords);
  const { who } = useSession();
  const set = (key: string) => (typed: string) => write(withValue(text, [key], typed === "" ? undefined : meant(typed)));
  const asText = (key: string) => (typed: string) => write(withValue(text, [key], typed === "" ? undefined : typed));
  const at = (key: string) => ({ field: key, problem: atField(problems, key) });
  const groups = who.user.memberships.map((one) => one.group);
  const isList = values.command === null;
  const missing = tried && !isList && values.command?.trim() === "" ? say("required") : undefined;
  const noImages = who.engine === "process";
  return (
    <Form layout="vertical" component="div">
      <Field
        {...at("command")}
        problem={missing ?? atField(problems, "command")}
        label={say("command")}
        value={isList ? "" : (values.command ?? "")}
        disabled={isList}
        hint={say(isList ? "commandList" : "commandHint")}
        write={(typed) => write(withValue(text, ["command"], typed))}
        lines={3}
        mono
      />
      <div className="fields">
        <Field {...at("name")} label={say("name")} value={values.name} write={asText("name")} hint={say("nameHint")} />
        <Field {...at("cards")} label={say("cards")} value={values.cards} write={set("cards")} hint={say("cardsHint")} />
        <Field {...at("replicas")} label={say("replicas")} value={values.replicas} write={set("replicas")} hint={say("replicasHint")} />
        <Field {...at("cpu")} label={say("cpu")} value={values.cpu} write={set("cpu")} hint={say("cpuHint")} />
        <Field {...at("memory")} label={say("memory")} value={values.memory} write={set("memory")} hint={say("memoryHint")} />
        <Field {...at("max_time")} label={say("maxTime")} value={values.max_time} write={set("max_time")} hint={say("maxTimeHint")} />
        {(groups.length > 1 || values.group !== "") && <Field {...at("group")} label={say("group")} value={values.group} write={asText("group")} choices={groups} />}
      </div>
      <Collapse
        ghost
        size="small"
        items={[{ key: "more", label: say("more"), forceRender: true, children: <More text={text} write={write} problems={problems} values={values} noImages={noImages} /> }]}
      />
    </Form>
  );
}

interface MoreProps {
  text: string;
  write: (text: string) => void;
  problems: readonly Problem[];
  values: FormValues;
  noImages: boolean;
}

function More({ text, write, problems, values, noImages }: MoreProps) {
  const say = useWords(jobWords);
  const set = (key: string) => (typed: string) => write(withValue(text, [key], typed === "" ? undefined : meant(typed)));
  const at = (key: string) => ({ field: key, problem: atField(problems, key) });
  return (
    <>
      <div className="fields">
        <Field {...at("image")} label={say("image")} value={values.image} disabled={noImages && values.image === ""} write={set("image")} hint={say(noImages ? "imageNone" : "imageHint")} />
        <Field {...at("device")} label={say("device")} value={values.device} write={set("device")} choices={["nvidia", "ascend"]} hint={say("deviceHint")} />
        <Field {...at("priority")} label={say("priority")} value={values.priority} write={set("priority")} choices={["low", "normal", "high", "urgent"]} hint={say("priorityHint")} />
        <Field {...at("retries")} label={say("retries")} value={values.retries ?? ""} disabled={values.retries === null} write={set("retries")} hint={say(values.retries === null ? "retriesMap" : "retriesHint")} />
        <Form.Item label={say("preemptible")} htmlFor="job-preemptible" help={say("preemptibleHint")}>
          <Switch id="job-preemptible" checked={values.preemptible} onChange={(on) => write(withValue(text, ["preemptible"], on ? true : undefined))} />
        </Form.Item>
      </div>
      <EnvRows env={values.env} write={(env) => write(withEnv(text, env))} problem={atField(problems, "env")} />
      <p className="quiet" style={{ marginBottom: 0 }}>{say("restAsYaml")}</p>
    </>
  );
}
