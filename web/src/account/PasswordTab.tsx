/** Another password, which also ends every other login. */
import { useMutation } from "@tanstack/react-query";
import { App, Button, Checkbox, Form, Input } from "antd";
import { api, asked, atItsField, Refusal } from "@/api/client";
import { slow, Trouble } from "@/look/parts";
import { useWords } from "@/words";
import { accountWords } from "./words";

interface Wish {
  old: string;
  new: string;
  again: string;
  keep_tokens: boolean;
}

/** What the server refused is about one of the two passwords, or about neither. */
export function fieldOf(error: unknown): "old" | "new" | null {
  if (!(error instanceof Refusal)) return null;
  if (error.code === "refused.wrong_password") return "old";
  return error.code === "refused.weak_password" || error.code === "refused.same_password" ? "new" : null;
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
      const at = fieldOf(error);
      if (at && error instanceof Refusal) form.setFields([{ name: at, errors: [at === "old" ? say("oldWrong") : atItsField(error)] }]);
    },
  });
  const required = { required: true, message: say("missing") };
  const atField = fieldOf(change.error) !== null;
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
