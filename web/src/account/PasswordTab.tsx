/** Another password, which also ends every other login. */
import { useMutation } from "@tanstack/react-query";
import { App, Button, Checkbox, Form, Input } from "antd";
import { api, asked, Refusal } from "@/api/client";
import { slow, Trouble } from "@/look/parts";
import { useWords } from "@/words";
import { accountWords } from "./words";

interface Wish {
  old: string;
  new: string;
  again: string;
  keep_tokens: boolean;
}

export function PasswordTab() {
  const say = useWords(accountWords);
  const { message } = App.useApp();
  const [form] = Form.useForm<Wish>();
  const change = useMutation({
    mutationFn: ({ old, new: fresh, keep_tokens }: Wish) => asked(api.POST("/api/v1/password", { body: { old, new: fresh, keep_tokens } })),
    onSuccess: () => {
      form.resetFields();
      void message.success(say("changed"), 6);
    },
    onError: (error) => {
      const at = error instanceof Refusal ? String(error.facts["at"] ?? "") : "";
      if (at === "new" || at === "old") form.setFields([{ name: at, errors: [error.message] }]);
    },
  });
  const required = { required: true, message: say("missing") };
  const atField = change.error instanceof Refusal && ["new", "old"].includes(String(change.error.facts["at"] ?? ""));
  return (
    <section className="surface" style={{ maxWidth: 520 }}>
      <p className="quiet" style={{ marginTop: 0 }}>{say("changeWhy")}</p>
      {change.error && !atField && <div style={{ marginBottom: 16 }}><Trouble error={change.error} /></div>}
      <Form<Wish> form={form} layout="vertical" requiredMark={false} initialValues={{ keep_tokens: true }} onFinish={(wish) => change.mutate(wish)}>
        <Form.Item name="old" label={say("old")} rules={[required]}><Input.Password autoComplete="current-password" /></Form.Item>
        <Form.Item name="new" label={say("new")} extra={say("rule")} rules={[required, { min: 10, message: say("rule") }]}><Input.Password autoComplete="new-password" /></Form.Item>
        <Form.Item
          name="again"
          label={say("again")}
          dependencies={["new"]}
          rules={[required, ({ getFieldValue }) => ({ validator: (_, value) => (value === getFieldValue("new") ? Promise.resolve() : Promise.reject(new Error(say("different")))) })]}
        >
          <Input.Password autoComplete="new-password" />
        </Form.Item>
        <Form.Item name="keep_tokens" valuePropName="checked"><Checkbox>{say("keepTokens")}</Checkbox></Form.Item>
        <Button type="primary" htmlType="submit" loading={slow(change.isPending)}>{say("change")}</Button>
      </Form>
    </section>
  );
}
