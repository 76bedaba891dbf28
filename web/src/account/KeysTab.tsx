/** Public keys for SSH. */
import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Button, Form, Input, Table, type TableColumnsType } from "antd";
import { api, asked, atItsField, Refusal, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { Ago, slow, Trouble, useConfirm, useTell } from "@/look/parts";
import { useWords } from "@/words";
import { accountWords } from "./words";

type Key = Schemas["KeyOut"];
const KEY = keys.people("keys");

interface Wish {
  public_key: string;
  name?: string;
}

export function KeysTab() {
  const say = useWords(accountWords);
  const confirm = useConfirm();
  const client = useQueryClient();
  const again = () => client.invalidateQueries({ queryKey: KEY });
  const list = useQuery({ queryKey: KEY, queryFn: () => asked(api.GET("/api/v1/keys")) });
  const remove = useMutation({ mutationFn: (id: string) => asked(api.DELETE("/api/v1/keys/{id}", { params: { path: { id } } })), onSettled: again, onError: useTell() });
  const askRemove = async (key: Key) => {
    if (await confirm({ title: say("removeKeyTitle", { name: key.name }), lost: say("removeKeyLost"), ok: say("removeKey") })) remove.mutate(key.id);
  };
  const columns: TableColumnsType<Key> = [
    { title: say("keyName"), dataIndex: "name", key: "name" },
    { title: say("fingerprint"), key: "fingerprint", render: (_, key) => <code>{key.fingerprint}</code> },
    { title: say("made"), key: "made", render: (_, key) => <Ago at={key.created_at} /> },
    { title: say("lastUsed"), key: "used", render: (_, key) => (key.last_used_at ? <Ago at={key.last_used_at} /> : say("never")) },
    { title: say("actions"), key: "actions", render: (_, key) => <Button size="small" danger onClick={() => void askRemove(key)} aria-label={`${say("removeKey")}: ${key.name}`}>{say("removeKey")}</Button> },
  ];
  return (
    <div className="stack">
      <NewKey onAdded={again} />
      {list.error && <Trouble error={list.error} again={() => void list.refetch()} />}
      {list.data && <Table<Key> rowKey="id" size="small" columns={columns} dataSource={list.data.items} pagination={false} scroll={{ x: "max-content" }} locale={{ emptyText: say("keysNone") }} />}
    </div>
  );
}

function NewKey({ onAdded }: { onAdded: () => Promise<void> }) {
  const say = useWords(accountWords);
  const [form] = Form.useForm<Wish>();
  const add = useMutation({
    mutationFn: ({ public_key, name }: Wish) => asked(api.POST("/api/v1/keys", { body: { public_key: public_key.trim(), name: name?.trim() || null } })),
    onSuccess: () => {
      form.resetFields();
      return onAdded();
    },
    onError: (error) => {
      if (error instanceof Refusal && error.status === 400) form.setFields([{ name: "public_key", errors: [atItsField(error)] }]);
    },
  });
  const elsewhere = add.error && !(add.error instanceof Refusal && add.error.status === 400);
  return (
    <section className="surface">
      <p className="quiet" style={{ marginTop: 0 }}>{say("keysWhy")}</p>
      {elsewhere && <div style={{ marginBottom: 16 }}><Trouble error={add.error} /></div>}
      <Form<Wish> form={form} layout="vertical" requiredMark={false} onFinish={(wish) => add.mutate(wish)}>
        <Form.Item name="public_key" label={say("publicKey")} extra={say("publicKeyHelp")} rules={[{ required: true, whitespace: true, message: say("publicKeyMissing") }]}>
          <Input.TextArea className="mono" autoSize={{ minRows: 2, maxRows: 6 }} spellCheck={false} />
        </Form.Item>
        <Form.Item name="name" label={say("keyName")} extra={say("keyNameHelp")}><Input maxLength={64} autoComplete="off" /></Form.Item>
        <Button type="primary" htmlType="submit" loading={slow(add.isPending)}>{say("addKey")}</Button>
      </Form>
    </section>
  );
}
