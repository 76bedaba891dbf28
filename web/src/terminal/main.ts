/** A terminal as a page of its own, served by the gateway at the address of the work it leads into. */
import { FitAddon } from "@xterm/addon-fit";
import { type ITheme, Terminal } from "@xterm/xterm";
import "@xterm/xterm/css/xterm.css";
import { fill } from "./fill";
import { type Heard, type Kept, Link } from "./link";
import "./terminal.css";
import { terminalWords } from "./words";

const DARK: ITheme = {
  background: "#0e1116", foreground: "#e6e9ee", cursor: "#7fb0ff", selectionBackground: "#2f4a75",
  black: "#1c2430", red: "#ff7b72", green: "#4cc76a", yellow: "#f0b145", blue: "#6cb2ff", magenta: "#d2a8ff", cyan: "#56d4dd", white: "#d5dae2",
  brightBlack: "#8b949e", brightRed: "#ffa198", brightGreen: "#7ee787", brightYellow: "#f2cc60", brightBlue: "#a5d6ff", brightMagenta: "#e2c5ff", brightCyan: "#b3f0ff", brightWhite: "#ffffff",
};
const LIGHT: ITheme = {
  background: "#ffffff", foreground: "#1c2430", cursor: "#1554ad", cursorAccent: "#ffffff", selectionBackground: "#b9d3f5",
  black: "#1c2430", red: "#c02b2b", green: "#1a7f37", yellow: "#8a5200", blue: "#0b5cad", magenta: "#8250df", cyan: "#0e6f78", white: "#5a6372",
  brightBlack: "#4a5361", brightRed: "#a40e26", brightGreen: "#116329", brightYellow: "#6f4400", brightBlue: "#1554ad", brightMagenta: "#6639ba", brightCyan: "#0a565d", brightWhite: "#3a424e",
};
const FONTS = 'ui-monospace, "SFMono-Regular", "Noto Sans Mono", Menlo, Consolas, "Noto Sans Mono CJK SC", "Noto Sans SC", monospace';
const BRIEF_MS = 2500;

const asked = new URLSearchParams(location.search);
const chinese = document.documentElement.lang.startsWith("zh");
const notice = found("notice");
const place = found("terminal");
const system = matchMedia("(prefers-color-scheme: dark)");
const terminal = new Terminal({ cursorBlink: true, scrollback: 10_000, fontFamily: FONTS, fontSize: 14, lineHeight: 1.15, theme: theme() });
const fit = new FitAddon();
const encoder = new TextEncoder();
const link = new Link(address(), asked.get("replica") ?? "", () => ({ rows: terminal.rows, cols: terminal.cols }), heard, memory());
let hiding: ReturnType<typeof setTimeout> | undefined;

function found(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no ${id}`);
  return element;
}

/** The tab's own memory, in which a reloaded page finds its shell again. Some browsers deny it to pages inside others. */
function memory(): Kept {
  try {
    return sessionStorage;
  } catch {
    const kept = new Map<string, string>();
    return { getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => void kept.set(key, value), removeItem: (key) => void kept.delete(key) };
  }
}

/** The page stands at the beginning of its visit, with or without a path before it. */
function address(): string {
  const url = new URL(`${location.origin}${location.pathname.replace(/\/$/, "")}/.yard/terminal`);
  url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
  return url.href;
}

/** As the console looks that shows this page; alone, as the system does. */
function theme(): ITheme {
  const look = asked.get("look");
  const dark = look === "dark" || (look !== "light" && system.matches);
  document.documentElement.dataset["look"] = dark ? "dark" : "light";
  return dark ? DARK : LIGHT;
}

function say(key: keyof typeof terminalWords | null, facts: Record<string, string | number> = {}, brief = false): void {
  clearTimeout(hiding);
  notice.textContent = key ? fill(terminalWords[key][chinese ? 1 : 0], facts) : "";
  notice.hidden = key === null;
  if (brief) hiding = setTimeout(() => say(null), BRIEF_MS);
}

function heard(told: Heard): void {
  if (told.kind === "shown") {
    terminal.write(told.bytes);
  } else if (told.kind === "attached") {
    terminal.reset(); // what was shown so far comes again
    if (told.again) say(told.fresh ? "fresh" : "back", {}, true);
    else say(null);
  } else if (told.kind === "lost") {
    say(told.tries > 4 ? "refused" : "lost");
  } else {
    say("ended", { code: told.code ?? "?" });
  }
}

/** Copy and paste as in other terminals; Ctrl+C copies only what is selected, and otherwise interrupts. */
function isForTheShell(event: KeyboardEvent): boolean {
  if (event.type !== "keydown" || !event.ctrlKey || event.altKey || event.metaKey) return true;
  const key = event.key.toLowerCase();
  if (key === "v" && event.shiftKey) return false; // the browser pastes
  if (key !== "c" || !terminal.hasSelection()) return true;
  void navigator.clipboard.writeText(terminal.getSelection());
  terminal.clearSelection();
  event.preventDefault();
  return false;
}

function typed(text: string): void {
  if (!link.isOver) link.send(encoder.encode(text));
  else if (text === "\r") link.begin();
}

terminal.loadAddon(fit);
terminal.open(place);
terminal.attachCustomKeyEventHandler(isForTheShell);
terminal.onData(typed);
terminal.onBinary((text) => link.send(Uint8Array.from(text, (letter) => letter.charCodeAt(0) & 255)));
terminal.onResize(() => link.resize());
system.addEventListener("change", () => {
  terminal.options.theme = theme();
});
new ResizeObserver(() => fit.fit()).observe(place);
globalThis.addEventListener("online", () => link.hurry());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) link.hurry();
});
fit.fit();
terminal.focus();
link.begin();
