/** A new group; what it may use is set when it is there. */
import { Form, Input, Modal } from "antd";
import { useState } from "react";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { useWords } from "@/words";
import { groupWords } from "./groupWords";
import { atFields, Rest, useAct } from "./parts";

const NAME = /^[a-z][a-z0-9_-]{0,31}$/;

export function AddGroup({ open, onClose, onMade }: { open: boolean; onClose: () => void; onMade: (name: string) => void }) {
  const say = useWords(groupWords);
  const [form] = Form.useForm<{ name: string }>();
  const [rest, setRest] = useState<string[]>([]);
  const add = useAct(({ name }: { name: string }) => asked(api.POST("/api/v1/groups", { body: { name, quota: {}, guarantees: {}, weight: 1, fifo: false } })), [keys.people(), keys.quota], true);
  const submit = (wish: { name: string }) => {
    setRest([]);
    add.mutate(wish, {
      onSuccess: (made) => {
        form.resetFields();
        onMade(made.name);
      },
      onError: (error) => setRest(atFields(form, error, ["name"])),
    });
  };
  return (
    <Modal open={open} title={say("add")} onCancel={onClose} okText={say("add")} cancelText={say("cancel")} confirmLoading={add.isPending} onOk={() => form.submit()} destroyOnHidden>
      <Rest messages={rest} />
      <Form form={form} layout="vertical" requiredMark={false} onFinish={submit}>
        <Form.Item name="name" label={say("name")} extra={say("nameRule")} rules={[{ required: true, message: say("nameMissing") }, { pattern: NAME, message: say("nameRule") }]}>
          <Input autoComplete="off" />
        </Form.Item>
      </Form>
    </Modal>
  );
}
