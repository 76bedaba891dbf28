import { afterEach, describe, expect, it, vi } from "vitest";
import { type Ears, EventReader, EventStream, type Heard } from "./events";

afterEach(() => {
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const SENT = 'retry: 500\n\nid: 4\nevent: hello\ndata: {"version": "1"}\n\n: still here\n\nevent: log\ndata: {"text": "ü: a\\n"}\n\n';
const TOLD: Heard[] = [
  { name: "hello", data: '{"version": "1"}' },
  { name: "log", data: '{"text": "ü: a\\n"}' },
];

describe("events", () => {
  it.each([1, 2, 3, 7, 1000])("are found in text that comes in pieces of %i letters", (size) => {
    const reader = new EventReader();
    const heard: Heard[] = [];
    for (let at = 0; at < SENT.length; at += size) heard.push(...reader.take(SENT.slice(at, at + size)));
    expect(heard).toEqual(TOLD);
  });

  it("that are not whole yet are not told", () => {
    expect(new EventReader().take("event: log\ndata: {}\n")).toEqual([]);
  });
});

/** A stream of bytes to write into, and what came of it. */
function opened(quietMs?: number) {
  let pipe!: ReadableStreamDefaultController<Uint8Array>;
  const body = new ReadableStream<Uint8Array>({ start: (controller) => void (pipe = controller) });
  vi.stubGlobal("fetch", () => Promise.resolve(new Response(body)));
  const ears = { heard: vi.fn<Ears["heard"]>(), lost: vi.fn<Ears["lost"]>() };
  const stream = new EventStream("/there", ears, quietMs);
  return { ears, stream, pipe, say: (text: string) => pipe.enqueue(new TextEncoder().encode(text)) };
}

describe("a stream of events", () => {
  it("tells what it hears, also in letters that were cut in two, and once that it is over", async () => {
    const { ears, pipe } = opened();
    for (const byte of new TextEncoder().encode(SENT)) pipe.enqueue(Uint8Array.of(byte));
    pipe.close();
    await vi.waitFor(() => expect(ears.lost).toHaveBeenCalledOnce());
    expect(ears.heard.mock.calls.map(([event]) => event)).toEqual(TOLD);
  });

  it("that was closed says nothing more", async () => {
    const { ears, stream, say } = opened();
    say("data: 1\n\n");
    await vi.waitFor(() => expect(ears.heard).toHaveBeenCalledOnce());
    stream.close();
    say("data: 2\n\n");
    await new Promise((done) => setTimeout(done));
    expect(ears.heard).toHaveBeenCalledOnce();
    expect(ears.lost).not.toHaveBeenCalled();
  });

  it("that has gone quiet is lost", async () => {
    vi.useFakeTimers();
    const { ears, say } = opened(1000);
    await vi.advanceTimersByTimeAsync(900);
    say(": still here\n\n");
    await vi.advanceTimersByTimeAsync(900);
    expect(ears.lost).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(200);
    expect(ears.lost).toHaveBeenCalledOnce();
  });

  it("that is refused is lost with the refusal", async () => {
    vi.stubGlobal("fetch", () => Promise.resolve(new Response("{}", { status: 503 })));
    const lost = vi.fn<Ears["lost"]>();
    const stream = new EventStream("/there", { heard: () => undefined, lost });
    await vi.waitFor(() => expect(lost).toHaveBeenCalledOnce());
    stream.close();
    expect(lost.mock.calls[0]?.[0]).toMatchObject({ status: 503 });
  });
});
