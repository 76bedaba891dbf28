/** The way in from one's own machine: lines to copy for a shell, for other programs, and for VS Code. */
import { CopyOutlined } from "@ant-design/icons";
import { useQuery } from "@tanstack/react-query";
import { Alert, App, Button } from "antd";
import type { ReactNode } from "react";
import { Link } from "react-router-dom";
import { api, asked } from "@/api/client";
import { keys } from "@/api/news";
import { CopyText, Nothing } from "@/look/parts";
import { useSession } from "@/session/session";
import { useWords } from "@/words";
import { type EnvDetail, isOpen } from "./asking";
import { aliasOf, codeCommand, configOf, doorOf, knownHost } from "./ssh";
import { envWords } from "./words";

function CopyBlock({ text, label }: { text: string; label: string }) {
  const say = useWords(envWords);
  const { message } = App.useApp();
  const copy = () => navigator.clipboard.writeText(text).then(() => message.success(say("copied")));
  return (
    <div style={{ position: "relative" }}>
      <pre className="env-block">{text}</pre>
      <Button size="small" type="text" icon={<CopyOutlined />} style={{ position: "absolute", top: 6, insetInlineEnd: 6 }} aria-label={`${say("copyBlock")}: ${label}`} onClick={() => void copy()} />
    </div>
  );
}

export function ConnectTab({ env }: { env: EnvDetail }) {
  const say = useWords(envWords);
  const { who } = useSession();
  const door = env.ssh ? doorOf(env.ssh) : null;
  if (env.owner !== who.user.name) return <Nothing title={say("notYours")} />;
  if (!isOpen(env)) return <Nothing title={say("notRunning")} />;
  if (!env.ssh || !door) return <Nothing title={say("noSsh")} />;
  const host = aliasOf(env.name);
  return (
    <div className="stack">
      <Part title={say("sshCommand")} help={say("sshHelp")}><CopyText text={env.ssh} /><Keys /></Part>
      <Part title={say("sshConfig")} help={say("sshConfigHelp", { host })}><CopyBlock text={configOf(env.name, door)} label={say("sshConfig")} /></Part>
      <Part title={say("vscode")} help={say("vscodeHelp", { host })}><CopyText text={codeCommand(env.name, env.owner)} /></Part>
      <HostKey line={(key) => knownHost(door, key)} />
    </div>
  );
}

function Part({ title, help, children }: { title: string; help?: string; children: ReactNode }) {
  return (
    <section className="surface stack" style={{ gap: 8 }}>
      <h2 style={{ margin: 0 }}>{title}</h2>
      {help && <p className="quiet" style={{ margin: 0 }}>{help}</p>}
      {children}
    </section>
  );
}

function Keys() {
  const say = useWords(envWords);
  const { data } = useQuery({ queryKey: keys.people("keys"), queryFn: () => asked(api.GET("/api/v1/keys")) });
  if (!data) return null;
  const add = <Link to="/account?tab=keys">{say("addKey")}</Link>;
  if (data.items.length === 0) return <Alert type="info" showIcon title={say("sshNoKey")} action={add} />;
  return <span className="quiet">{say("sshKeys", { n: data.items.length })}</span>;
}

function HostKey({ line }: { line: (key: string) => string }) {
  const say = useWords(envWords);
  const { data } = useQuery({ queryKey: ["gateway"], queryFn: () => asked(api.GET("/api/v1/gateway")) });
  if (!data?.host_key || !data.host_public_key) return null;
  return (
    <Part title={say("hostKey")}>
      <CopyText text={data.host_key} />
      <p className="quiet" style={{ margin: 0 }}>{say("knownHosts")}</p>
      <CopyBlock text={line(data.host_public_key)} label={say("knownHosts")} />
    </Part>
  );
}
