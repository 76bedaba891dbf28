/** The labels of a machine, by which jobs and pools choose. */
import { DeleteOutlined, PlusOutlined } from "@ant-design/icons";
import { Button, Input, Modal } from "antd";
import { useState } from "react";
import { api, asked, atItsField, Refusal } from "@/api/client";
import { keys } from "@/api/news";
import type { BoardNode } from "@/overview/board";
import { useWords } from "@/words";
import { labelChanges, type Label } from "./labels";
import { Rest, useAct } from "./parts";
import { adminWords } from "./words";

export function NodeLabels({ node, onClose }: { node: BoardNode | null; onClose: () => void }) {
  return node && <Editing key={node.name} node={node} onClose={onClose} />;
}

function Editing({ node, onClose }: { node: BoardNode; onClose: () => void }) {
  const say = useWords(adminWords);
  const [labels, setLabels] = useState<Label[]>(() => Object.entries(node.labels).map(([key, value], n) => ({ id: n, key, value })));
  const [rest, setRest] = useState<string[]>([]);
  const act = useAct(
    (changes: Record<string, string | null>) => asked(api.PATCH("/api/v1/nodes/{name}/labels", { params: { path: { name: node.name } }, body: { labels: changes } })),
    [keys.board],
    true,
  );
  const save = () => {
    const changes = labelChanges(node.labels, labels);
    if (Object.keys(changes).length === 0) onClose();
    else act.mutate(changes, { onSuccess: onClose, onError: (error) => setRest(error instanceof Refusal && error.problems.length ? error.problems.map(atItsField) : [error.message]) });
  };
  const set = (id: number, change: Partial<Label>) => setLabels(labels.map((one) => (one.id === id ? { ...one, ...change } : one)));
  const add = () => setLabels([...labels, { id: Math.max(0, ...labels.map((one) => one.id)) + 1, key: "", value: "" }]);
  return (
    <Modal open title={say("labelsOf", { name: node.name })} onCancel={onClose} onOk={save} okText={say("save")} cancelText={say("cancel")} confirmLoading={act.isPending}>
      <p className="quiet">{say("labelsWhy")}</p>
      <Rest messages={rest} />
      <div className="stack" style={{ gap: 8 }}>
        {labels.map((one) => (
          <div key={one.id} className="row" style={{ flexWrap: "nowrap" }}>
            <Input aria-label={say("labelKey")} placeholder={say("labelKey")} value={one.key} onChange={(event) => set(one.id, { key: event.target.value })} />
            <Input aria-label={say("labelValue")} placeholder={say("labelValue")} value={one.value} onChange={(event) => set(one.id, { value: event.target.value })} />
            <Button icon={<DeleteOutlined />} style={{ flex: "none" }} aria-label={say("removeLabel", { key: one.key })} onClick={() => setLabels(labels.filter((other) => other.id !== one.id))} />
          </div>
        ))}
        <Button icon={<PlusOutlined />} onClick={add}>{say("addLabel")}</Button>
      </div>
    </Modal>
  );
}
