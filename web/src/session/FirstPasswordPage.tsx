/** A password that somebody else has given is changed before anything else. */
import { Alert, Button, Form, Input } from "antd";
import { useState } from "react";
import { api, asked, Refusal } from "@/api/client";
import { slow, troubleWords } from "@/look/parts";
import { lookWords } from "@/look/words";
import { useWords } from "@/words";
import { sessionWords } from "./words";

interface Wish {
  old: string;
  new: string;
  again: string;
}

const wrongOld = (error: unknown): boolean => error instanceof Refusal && error.code === "refused.wrong_password";

interface Props {
  given: string; // the password as it was typed to log in; empty when the page was loaded anew
  onDone: () => void;
  logOut: () => Promise<void>;
}

export default function FirstPasswordPage({ given, onDone, logOut }: Props) {
  const say = useWords(sessionWords);
  const frame = useWords(lookWords);
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const change = async (wish: Wish) => {
    setBusy(true);
    setTrouble(null);
    try {
      await asked(api.POST("/api/v1/password", { body: { old: wish.old, new: wish.new, keep_tokens: false } }));
      onDone();
    } catch (error) {
      setTrouble(error);
    } finally {
      setBusy(false);
    }
  };
  const required = [{ required: true, message: say("passwordMissing") }];
  return (
    <main className="login">
      <div className="surface login-card">
        <h1 className="brand">{say("chooseTitle")}</h1>
        <p className="quiet">{say("chooseWhy")}</p>
        {trouble !== null && <Alert type="error" showIcon role="alert" title={wrongOld(trouble) ? say("oldWrong") : troubleWords(trouble, frame("unreachable"))} style={{ marginBottom: 16 }} />}
        <Form layout="vertical" initialValues={{ old: given }} onFinish={(wish: Wish) => void change(wish)} requiredMark={false}>
          <Form.Item name="old" label={say("oneTime")} rules={required}><Input.Password autoComplete="current-password" /></Form.Item>
          <Form.Item name="new" label={say("newPassword")} extra={say("rule")} rules={[...required, { min: 10, message: say("tooShort") }]}>
            <Input.Password autoComplete="new-password" />
          </Form.Item>
          <Form.Item
            name="again"
            label={say("newAgain")}
            dependencies={["new"]}
            rules={[
              ...required,
              ({ getFieldValue }) => ({
                validator: (_, value) => (value === getFieldValue("new") ? Promise.resolve() : Promise.reject(new Error(say("different")))),
              }),
            ]}
          >
            <Input.Password autoComplete="new-password" />
          </Form.Item>
          <Button type="primary" htmlType="submit" block loading={slow(busy)}>{say("choose")}</Button>
          <Button type="link" block onClick={() => void logOut()} style={{ marginTop: 8 }}>{frame("logOut")}</Button>
        </Form>
      </div>
    </main>
  );
}
