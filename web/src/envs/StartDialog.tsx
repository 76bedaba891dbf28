/** Starting anew, perhaps with other resources: with cards when the code is ready, without while it is written. */
import { Form, Modal, Segmented } from "antd";
import { useState } from "react";
import { useWords } from "@/words";
import { Amount } from "./Amount";
import { type Changes, type Env, useMachines } from "./asking";
import { gibibytes, limitsOf } from "./draft";
import { envWords } from "./words";

interface Props {
  env: Env;
  verb: "start" | "restart";
  onDone: (changes: Changes) => void;
  onLeave: () => void;
}

export function StartDialog({ env, verb, onDone, onLeave }: Props) {
  const say = useWords(envWords);
  const { data } = useMachines();
  const limits = limitsOf(data?.items ?? [], env.device ?? "");
  const before = { cards: env.cards, cpu: env.cpu ?? 0, memory: env.memory === null ? 0 : env.memory / 2 ** 30 };
  const [wish, setWish] = useState(before);
  const changes: Changes = {};
  if (wish.cards !== before.cards) changes["cards"] = wish.cards;
  if (wish.cpu !== before.cpu) changes["cpu"] = wish.cpu > 0 ? wish.cpu : null;
  if (wish.memory !== before.memory) changes["memory"] = wish.memory > 0 ? gibibytes(wish.memory) : null;
  const kinds = [{ value: "without", label: say("withoutCards") }, { value: "with", label: say("withCards"), disabled: limits.cards.most === 0 }];
  const choose = (kind: string) => setWish({ ...wish, cards: kind === "without" ? 0 : before.cards || 1 });
  return (
    <Modal
      open
      title={say(verb === "start" ? "startTitle" : "restartTitle", { name: env.name })}
      okText={say(verb)}
      onOk={() => onDone(changes)}
      onCancel={onLeave}
      okButtonProps={{ danger: verb === "restart" }}
    >
      <p className="quiet">{say(verb === "start" ? "startHelp" : "restartHelp")}</p>
      <Form layout="vertical">
        <Form.Item>
          <Segmented aria-label={say("cards")} options={kinds} value={wish.cards > 0 ? "with" : "without"} onChange={choose} />
        </Form.Item>
        {wish.cards > 0 && <Amount id="again-cards" label={say("cards")} value={wish.cards} range={limits.cards} least={1} onChange={(cards) => setWish({ ...wish, cards })} />}
        <Amount id="again-cpu" label={say("cpu")} value={wish.cpu} range={limits.cpu} help={say("fairHelp")} onChange={(cpu) => setWish({ ...wish, cpu })} />
        <Amount id="again-memory" label={say("memory")} value={wish.memory} range={limits.memory} help={say("fairHelp")} onChange={(memory) => setWish({ ...wish, memory })} />
      </Form>
    </Modal>
  );
}
