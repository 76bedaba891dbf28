/** Small pieces that every page uses. Look here before making another. */
import { CopyOutlined } from "@ant-design/icons";
import { Alert, App, Button, Tooltip } from "antd";
import { type ReactNode, useEffect, useState } from "react";
import { Refusal, type Schemas, Unreachable } from "@/api/client";
import { useLanguage, useWords } from "@/words";
import { lookWords } from "./words";

export type State = Schemas["State"];

const TONES: Record<State, string> = {
  queued: "warn",
  placed: "busy",
  starting: "busy",
  running: "good",
  stopping: "busy",
  succeeded: "good",
  failed: "bad",
  stopped: "idle",
  paused: "idle",
};

/** A state in words and colour. A stopped environment is stored as paused. */
export function StateMark({ state, kind }: { state: State; kind?: Schemas["Kind"] }) {
  const say = useWords(lookWords);
  const shown = kind === "env" && state === "paused" ? "stopped" : state;
  return <span className={`state state-${TONES[state]}`}>{say(shown)}</span>;
}

/** A spinner for what takes a while. Shown for a blink, it would stay behind, unseen but heard by screen readers. */
export const slow = (pending: boolean): false | { delay: number } => pending && { delay: 300 };

/** The heading of a page. `name` says it in the browser's tab, where the title is more than words. */
export function PageHead({ title, name, children }: { title: ReactNode; name?: string; children?: ReactNode }) {
  const said = name ?? (typeof title === "string" ? title : undefined);
  return (
    <div className="spread" style={{ marginBottom: 16 }}>
      {said && <title>{`${said} · gpuyard`}</title>}
      <h1>{title}</h1>
      <div className="row">{children}</div>
    </div>
  );
}

/** What went wrong, in the server's words, with a way to try again. */
export function Trouble({ error, again }: { error: unknown; again?: () => void }) {
  const say = useWords(lookWords);
  const problems = error instanceof Refusal ? error.problems.slice(1) : [];
  return (
    <Alert
      type="error"
      showIcon
      title={troubleWords(error, say("unreachable"))}
      description={problems.length ? <ul>{problems.map((one) => <li key={one.message}>{one.message}</li>)}</ul> : undefined}
      action={again && <Button size="small" onClick={again}>{say("tryAgain")}</Button>}
    />
  );
}

export function troubleWords(error: unknown, unreachable: string): string {
  if (error instanceof Unreachable) return unreachable;
  return error instanceof Error ? error.message : String(error);
}

/** Shows what a failed action said, as a notice at the top. */
export function useTell(): (error: unknown) => void {
  const { message } = App.useApp();
  const say = useWords(lookWords);
  return (error) => void message.error(troubleWords(error, say("unreachable")), 6);
}

/** Asks before something is lost, and says what. Resolves to true when it was meant. */
export function useConfirm(): (ask: { title: string; lost: ReactNode; ok: string }) => Promise<boolean> {
  const { modal } = App.useApp();
  const say = useWords(lookWords);
  return ({ title, lost, ok }) =>
    new Promise((answer) => {
      modal.confirm({
        title,
        content: lost,
        okText: ok,
        okButtonProps: { danger: true },
        cancelText: say("cancel"),
        onOk: () => answer(true),
        onCancel: () => answer(false),
      });
    });
}

/** Something to type elsewhere, with a button that copies it. */
export function CopyText({ text, label }: { text: string; label?: string }) {
  const say = useWords(lookWords);
  const { message } = App.useApp();
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    void message.success(say("copied"));
  };
  return (
    <span className="row" style={{ flexWrap: "nowrap", minWidth: 0 }}>
      <code className="cut" style={{ minWidth: 0 }} title={text}>{text}</code>
      <Button size="small" type="text" icon={<CopyOutlined />} aria-label={`${say("copy")}: ${label ?? text}`} onClick={() => void copy()} />
    </span>
  );
}

/** A page or list without anything yet: says what belongs here and how to make the first. */
export function Nothing({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="surface stack" style={{ alignItems: "center", textAlign: "center", padding: 40 }}>
      <strong style={{ fontSize: 16 }}>{title}</strong>
      {children}
    </div>
  );
}

/** An amount of seconds as people say it: the largest unit that is at least 2, else the next smaller. */
export function spent(seconds: number): { unit: "seconds" | "minutes" | "hours" | "days"; n: number } {
  const whole = Math.max(0, Math.floor(seconds));
  if (whole < 120) return { unit: "seconds", n: whole };
  if (whole < 7200) return { unit: "minutes", n: Math.floor(whole / 60) };
  if (whole < 172_800) return { unit: "hours", n: Math.floor(whole / 3600) };
  return { unit: "days", n: Math.floor(whole / 86_400) };
}

export function useSpent(): (seconds: number) => string {
  const say = useWords(lookWords);
  return (seconds) => {
    const { unit, n } = spent(seconds);
    return say(unit, { n });
  };
}

/** How long ago: there nobody counts seconds beyond a minute. */
export function useAgo(): (seconds: number) => string {
  const say = useWords(lookWords);
  const inWords = useSpent();
  return (seconds) => say("ago", { time: seconds >= 60 && seconds < 120 ? say("minutes", { n: 1 }) : inWords(seconds) });
}

/** The clock for what shows ages; it ticks every ten seconds. */
export function useNow(everyMs = 10_000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), everyMs);
    return () => clearInterval(timer);
  }, [everyMs]);
  return now;
}

/** How long ago, with the moment itself, in the user's zone, when pointed at. */
export function Ago({ at }: { at: string }) {
  const inWords = useAgo();
  const now = useNow();
  return <Moment at={at}>{inWords((now - Date.parse(at)) / 1000)}</Moment>;
}

export function Moment({ at, children }: { at: string; children?: ReactNode }) {
  const { language } = useLanguage();
  const shown = moment(at, language);
  return (
    <Tooltip title={shown}>
      <time dateTime={at}>{children ?? shown}</time>
    </Tooltip>
  );
}

const clocks = new Map<string, Intl.DateTimeFormat>(); // dear to make, and long lists need them for every row
function clockOf(language: string): Intl.DateTimeFormat {
  const known = clocks.get(language);
  if (known) return known;
  const made = new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", { dateStyle: "medium", timeStyle: "medium" });
  clocks.set(language, made);
  return made;
}

export function moment(at: string, language: string): string {
  return clockOf(language).format(new Date(at));
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;
export function bytes(amount: number): string {
  let unit = 0;
  let left = amount;
  while (left >= 1024 && unit < UNITS.length - 1) {
    left /= 1024;
    unit += 1;
  }
  return `${left >= 100 || Number.isInteger(left) ? Math.round(left) : left.toFixed(1)} ${UNITS[unit]}`;
}
