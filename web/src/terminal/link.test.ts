import { beforeEach, describe, expect, it, vi } from "vitest";
import { type Heard, Link } from "./link";

class Line {
  binaryType = "";
  readyState = 0;
  onopen: (() => void) | null = null;
  onmessage: ((event: { data: unknown }) => void) | null = null;
  onclose: (() => void) | null = null;
  sent: (string | Uint8Array)[] = [];
  constructor(readonly url: string) {}
  send(data: string | Uint8Array) {
    this.sent.push(data);
  }
  close() {
    this.readyState = 3;
    this.onclose?.();
  }
  attach(session: string, fresh = false) {
    this.readyState = 1;
    this.onopen?.();
    this.onmessage?.({ data: JSON.stringify({ session, new: fresh }) });
  }
}

const bytes = (text: string) => new TextEncoder().encode(text);
let lines: Line[] = [];
let heard: Heard[] = [];
const last = (): Line => {
  const line = lines.at(-1);
  if (!line) throw new Error("nobody connected");
  return line;
};

function aLink(): Link {
  const connect = (url: string) => {
    lines.push(new Line(url));
    return last();
  };
  return new Link("ws://there/.yard/terminal", "worker-1", () => ({ rows: 30, cols: 90 }), (told) => heard.push(told), sessionStorage, connect);
}

beforeEach(() => {
  lines = [];
  heard = [];
  sessionStorage.clear();
  vi.useFakeTimers();
});

describe("the line to a shell", () => {
  it("asks for the same shell again when it was lost, and types there what was typed meanwhile", () => {
    const link = aLink();
    link.begin();
    expect(new URL(last().url).searchParams.get("replica")).toBe("worker-1");
    last().attach("s1", true);
    last().close();
    link.send(bytes("ls\r"));
    vi.advanceTimersByTime(600);
    expect(new URL(last().url).searchParams.get("session")).toBe("s1");
    last().attach("s1");
    expect(last().sent).toEqual([JSON.stringify({ rows: 30, cols: 90 }), bytes("ls\r")]);
    expect(heard.map((one) => one.kind)).toEqual(["attached", "lost", "attached"]);
    expect(heard.at(-1)).toEqual({ kind: "attached", again: true, fresh: false });
  });

  it("types into the first shell what was typed before it was there", () => {
    const link = aLink();
    link.begin();
    link.send(bytes("ls\r"));
    last().attach("s1", true);
    expect(last().sent).toEqual([JSON.stringify({ rows: 30, cols: 90 }), bytes("ls\r")]);
  });

  it("types nothing into another shell than it was meant for", () => {
    const link = aLink();
    link.begin();
    last().attach("s1", true);
    last().close();
    link.send(bytes("rm -r old\r"));
    vi.advanceTimersByTime(600);
    last().attach("s2", true);
    expect(last().sent).toHaveLength(1);
  });

  it("begins a new one when the old one is refused again and again", () => {
    sessionStorage.setItem("yard-terminal-session-worker-1", "gone");
    const link = aLink();
    link.begin();
    for (let tries = 0; tries < 3; tries += 1) {
      last().close();
      vi.advanceTimersByTime(10_000);
    }
    expect(new URL(last().url).searchParams.has("session")).toBe(false);
  });

  it("does not come back by itself after the end", () => {
    const link = aLink();
    link.begin();
    last().attach("s1", true);
    last().onmessage?.({ data: JSON.stringify({ ended: 3 }) });
    last().close();
    vi.advanceTimersByTime(60_000);
    expect(lines).toHaveLength(1);
    expect(heard.at(-1)).toEqual({ kind: "ended", code: 3 });
    expect(link.isOver).toBe(true);
  });
});
