/** What is done with all that were chosen: asked about first, with what is lost, then told line by line. */
import { CheckCircleOutlined, CloseCircleOutlined } from "@ant-design/icons";
import { useQueryClient } from "@tanstack/react-query";
import { Button, Checkbox, InputNumber, Modal, Progress, Tooltip } from "antd";
import { useState } from "react";
import { keys } from "@/api/news";
import { troubleWords } from "@/look/parts";
import { lookWords } from "@/look/words";
import { useWords } from "@/words";
import { BATCH_VERBS, type BatchVerb, carryOutAll, type Losses, losses, type Result, type Workload } from "./batch";
import { adminWords } from "./words";

const MOST_NAMED = 8;
const USUAL_PRIORITY = 500;
const TITLES = { stop: "stopTitle", pause: "pauseTitle", resume: "resumeTitle", rerun: "rerunTitle", priority: "priorityTitle" } as const;
const LABELS = { stop: "stop", pause: "pause", resume: "resume", rerun: "rerun", priority: "setPriority" } as const;

interface Props {
  shown: number; // how many there are to choose from
  chosen: readonly Workload[];
  onAll: () => void;
  onClear: () => void;
}

export function BatchBar({ shown, chosen, onAll, onClear }: Props) {
  const say = useWords(adminWords);
  const client = useQueryClient();
  const [asking, setAsking] = useState<{ verb: BatchVerb; loss: Losses } | null>(null);
  const [priority, setPriority] = useState(USUAL_PRIORITY);
  const [step, setStep] = useState<{ done: number; all: number } | null>(null);
  const [results, setResults] = useState<Result[] | null>(null);
  const go = async () => {
    if (!asking) return;
    const { able } = asking.loss;
    setStep({ done: 0, all: able.length });
    const told = await carryOutAll(asking.verb, able, priority, (done) => setStep({ done, all: able.length }));
    setStep(null);
    setAsking(null);
    setResults(told);
    onClear();
    await Promise.all([keys.workloads(), keys.queue, keys.envs].map((queryKey) => client.invalidateQueries({ queryKey })));
  };
  const why = (loss: Losses) => (chosen.length === 0 ? say("chooseFirst") : loss.able.length === 0 ? say("noneCan") : undefined);
  return (
    <div className="row batch surface" style={{ padding: "8px 12px" }}>
      <Checkbox
        checked={shown > 0 && chosen.length === shown}
        indeterminate={chosen.length > 0 && chosen.length < shown}
        disabled={shown === 0}
        onChange={(event) => (event.target.checked ? onAll() : onClear())}
      >
        {say("chooseAll", { n: shown })}
      </Checkbox>
      <span role="status" style={{ minWidth: 90 }}>{say("chosen", { n: chosen.length })}</span>
      {BATCH_VERBS.map((verb) => {
        const loss = losses(verb, chosen);
        return (
          <Tooltip key={verb} title={why(loss)}>
            <span><Button size="small" danger={verb === "stop"} disabled={loss.able.length === 0} onClick={() => setAsking({ verb, loss })}>{say(LABELS[verb])}</Button></span>
          </Tooltip>
        );
      })}
      {chosen.length > 0 && <Button size="small" type="link" onClick={onClear}>{say("clear")}</Button>}
      <Modal
        open={asking !== null}
        title={asking && say(TITLES[asking.verb], { n: asking.loss.able.length })}
        okText={asking && say(LABELS[asking.verb])}
        okButtonProps={{ danger: asking?.verb === "stop" || asking?.verb === "pause" }}
        cancelText={say("cancel")}
        confirmLoading={step !== null}
        closable={step === null}
        onOk={() => void go()}
        onCancel={() => step === null && setAsking(null)}
      >
        {asking && <Asked verb={asking.verb} loss={asking.loss} priority={priority} onPriority={setPriority} />}
        {step && <Progress percent={Math.round((100 * step.done) / step.all)} format={() => say("working", step)} />}
      </Modal>
      <Results results={results} onClose={() => setResults(null)} />
    </div>
  );
}

function Asked({ verb, loss, priority, onPriority }: { verb: BatchVerb; loss: Losses; priority: number; onPriority: (n: number) => void }) {
  const say = useWords(adminWords);
  const named = loss.able.slice(0, MOST_NAMED);
  return (
    <div className="stack" style={{ gap: 10 }}>
      <span>{say(`${verb}Lost`, { running: loss.running, cards: loss.cards })}</span>
      {verb === "stop" && loss.envs > 0 && <span>{say("envsStop")}</span>}
      {verb === "priority" && (
        <label className="row">{say("newPriority")} <InputNumber min={1} max={1000} precision={0} value={priority} onChange={(value) => onPriority(value ?? USUAL_PRIORITY)} /></label>
      )}
      <ul style={{ margin: 0, paddingInlineStart: 20 }}>
        {named.map((one) => <li key={one.id}>{one.name} <span className="quiet">{one.owner}</span></li>)}
        {loss.able.length > named.length && <li className="quiet">{say("andMore", { n: loss.able.length - named.length })}</li>}
      </ul>
      {loss.unable > 0 && <span className="quiet">{say("leftOut", { n: loss.unable })}</span>}
    </div>
  );
}

function Results({ results, onClose }: { results: Result[] | null; onClose: () => void }) {
  const say = useWords(adminWords);
  const frame = useWords(lookWords);
  const bad = results?.filter((one) => one.error !== null).length ?? 0;
  return (
    <Modal open={results !== null} title={say("results")} onCancel={onClose} footer={<Button type="primary" onClick={onClose}>{say("close")}</Button>}>
      <p role="status">{say("resultsSum", { good: (results?.length ?? 0) - bad, bad })}</p>
      <ul className="results">
        {results?.map(({ workload, warnings, error }) => (
          <li key={workload.id}>
            {error === null ? <CheckCircleOutlined className="state-good" /> : <CloseCircleOutlined className="state-bad" />}
            <span>
              {workload.name} <span className="quiet">{workload.owner}</span>
              {error !== null && <span className="state-bad"> · {troubleWords(error, frame("unreachable"))}</span>}
              {warnings.map((warning) => <span key={warning} className="quiet"> · {warning}</span>)}
            </span>
          </li>
        ))}
      </ul>
    </Modal>
  );
}
