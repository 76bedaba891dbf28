/** Somebody new. The password is made by the server, shown once, and changed at the first login. */
import { Form, Input, Modal, Select } from "antd";
import { useState } from "react";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { useWords } from "@/words";
import { atFields, Rest, useAct, useGroups } from "./parts";
import { adminWords } from "./words";

type Made = Schemas["UserMade"];
const NAME = /^[a-z][a-z0-9_-]{0,31}$/;
const ROLES = ["member", "lead", "admin"] as const;

interface Wish {
  name: string;
  role: (typeof ROLES)[number];
  group?: string;
}

export function AddUser({ open, onClose, onMade }: { open: boolean; onClose: () => void; onMade: (made: Made) => void }) {
  const say = useWords(adminWords);
  const [form] = Form.useForm<Wish>();
  const [rest, setRest] = useState<string[]>([]);
  const groups = useGroups();
  const add = useAct((body: Wish) => asked(api.POST("/api/v1/users", { body })), [keys.people()], true);
  const submit = (wish: Wish) => {
    setRest([]);
    add.mutate(wish, {
      onSuccess: (made) => {
        form.resetFields();
        onMade(made);
      },
      onError: (error) => setRest(atFields(form, error, ["name", "role", "group"])),
    });
  };
  return (
    <Modal open={open} title={say("addUser")} onCancel={onClose} okText={say("addUser")} cancelText={say("cancel")} confirmLoading={add.isPending} onOk={() => form.submit()} destroyOnHidden>
      <Rest messages={rest} />
      <Form form={form} layout="vertical" requiredMark={false} initialValues={{ role: "member" }} onFinish={submit} onValuesChange={() => setRest([])}>
        <Form.Item name="name" label={say("name")} extra={say("nameRule")} rules={[{ required: true, message: say("nameMissing") }, { pattern: NAME, message: say("nameRule") }]}>
          <Input autoComplete="off" />
        </Form.Item>
        <Form.Item name="role" label={say("role")}>
          <Select options={ROLES.map((value) => ({ value, label: say(value) }))} />
        </Form.Item>
        <Form.Item name="group" label={say("firstGroup")} extra={say("firstGroupExtra")}>
          <Select allowClear showSearch options={(groups.data?.items ?? []).map((one) => ({ value: one.name, label: one.name }))} />
        </Form.Item>
        <button type="submit" hidden aria-hidden="true" tabIndex={-1} />{/* so that Enter sends it */}
      </Form>
    </Modal>
  );
}
