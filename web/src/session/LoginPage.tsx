/** The way in. */
import { Alert, Button, Form, Input, Select } from "antd";
import { useState } from "react";
import { api, asked } from "@/api/client";
import { keepSessionKey } from "@/api/sessionKey";
import { slow, troubleWords } from "@/look/parts";
import { lookWords } from "@/look/words";
import { type Language, useLanguage, useWords } from "@/words";
import { sessionWords } from "./words";

export default function LoginPage({ onLogin }: { onLogin: (password: string) => void }) {
  const say = useWords(sessionWords);
  const frame = useWords(lookWords);
  const { language, speak } = useLanguage();
  const [trouble, setTrouble] = useState<unknown>(null);
  const [busy, setBusy] = useState(false);
  const logIn = async (body: { name: string; password: string }) => {
    setBusy(true);
    setTrouble(null);
    try {
      const answer = await asked(api.POST("/api/v1/login", { body }));
      keepSessionKey(answer.session_key);
      onLogin(body.password);
    } catch (error) {
      setTrouble(error);
    } finally {
      setBusy(false);
    }
  };
  return (
    <main className="login">
      <div className="surface login-card">
        <div className="spread">
          <h1 className="brand"><img src="/icon.svg" alt="" width={26} height={26} /> gpuyard</h1>
          <Select aria-label={frame("language")} size="small" value={language} onChange={(wish: Language) => speak(wish)} options={[{ value: "en", label: "English" }, { value: "zh", label: "中文" }]} />
        </div>
        <p className="quiet">{say("welcome")}</p>
        {trouble !== null && <Alert type="error" showIcon role="alert" title={troubleWords(trouble, frame("unreachable"))} style={{ marginBottom: 16 }} />}
        <Form layout="vertical" onFinish={(values) => void logIn(values)} requiredMark={false}>
          <Form.Item name="name" label={say("name")} rules={[{ required: true, message: say("nameMissing") }]}>
            {/* oxlint-disable-next-line jsx-a11y/no-autofocus -- the page is there for nothing else */}
            <Input autoComplete="username" autoFocus />
          </Form.Item>
          <Form.Item name="password" label={say("password")} rules={[{ required: true, message: say("passwordMissing") }]}>
            <Input.Password autoComplete="current-password" />
          </Form.Item>
          <Button type="primary" htmlType="submit" block loading={slow(busy)}>{say("logIn")}</Button>
        </Form>
        <p className="quiet" style={{ marginTop: 16 }}>{say("forgotten")}</p>
      </div>
    </main>
  );
}
