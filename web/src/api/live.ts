/** News from the server: one connection for all tabs of a browser, which heals itself and tells when it is down. */
import type { Schemas } from "./client";
import { EventStream, type Heard } from "./events";

export interface News {
  workloads: string[];
  many: boolean;
  line: boolean;
  nodes: Schemas["BoardNode"][];
  works: Record<string, Schemas["BoardWork"]>;
  kinds: string[];
}

export type Told = { kind: "changed"; news: News } | { kind: "reload" } | { kind: "up"; version: string } | { kind: "down" };
type Listener = (told: Told) => void;

const QUIET_MS = 15_000; // the server says a word every second or so
const SLOWEST_RETRY_MS = 5_000;

/** Connects, and connects again, for ever. Numbers of events let the server tell what was missed. */
export class LiveConnection {
  private source: EventStream | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private tries = 0;
  private stopped = false;

  constructor(private readonly tell: Listener) {}

  start(): void {
    this.stopped = false;
    this.connect();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }

  private connect(): void {
    this.source = new EventStream("/api/v1/live", { heard: (event) => this.hear(event), lost: () => this.lost() }, QUIET_MS);
  }

  private hear({ name, data }: Heard): void {
    if (name === "hello") {
      const again = this.tries > 0;
      this.tries = 0;
      this.tell({ kind: "up", version: (JSON.parse(data) as { version: string }).version });
      if (again) this.tell({ kind: "reload" });
    } else if (name === "changed") this.tell({ kind: "changed", news: JSON.parse(data) as News });
    else if (name === "reload") this.tell({ kind: "reload" });
  }

  private lost(): void {
    this.source = null;
    if (this.stopped) return;
    if (this.tries > 0) this.tell({ kind: "down" });
    this.tries += 1;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.connect(), Math.min(300 * 2 ** this.tries, SLOWEST_RETRY_MS));
  }
}

/** Browsers allow six connections to one server, over all tabs: so one tab listens and tells the others. */
export function listen(listener: Listener): () => void {
  if (!("locks" in navigator) || !("BroadcastChannel" in globalThis)) {
    const alone = new LiveConnection(listener);
    alone.start();
    return () => alone.stop();
  }
  const channel = new BroadcastChannel("yard.live");
  const leaving = new AbortController();
  channel.addEventListener("message", (event: MessageEvent<Told>) => listener(event.data));
  const connection = new LiveConnection((told) => {
    listener(told);
    channel.postMessage(told);
  });
  navigator.locks
    .request("yard.live", { signal: leaving.signal }, async () => {
      connection.start();
      await new Promise<void>((done) => leaving.signal.addEventListener("abort", () => done()));
    })
    .catch((trouble: unknown) => {
      if (!leaving.signal.aborted) throw trouble;
    });
  return () => {
    leaving.abort();
    connection.stop();
    channel.close();
  };
}
