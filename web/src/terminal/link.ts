/** The line to a shell: it is lost and found again, and the shell does not notice. Knows nothing of screens. */

export type Heard =
  | { kind: "shown"; bytes: Uint8Array }
  | { kind: "attached"; again: boolean; fresh: boolean }
  | { kind: "lost"; tries: number }
  | { kind: "ended"; code: number | null };

export interface Size {
  rows: number;
  cols: number;
}

interface Socket {
  binaryType: string;
  readyState: number;
  onopen: (() => void) | null;
  onmessage: ((event: { data: unknown }) => void) | null;
  onclose: (() => void) | null;
  send(data: string | Uint8Array): void;
  close(): void;
}

export interface Kept {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

const OPEN = 1;
const KEPT_AS = "yard-terminal-session";
const MOST_KEPT = 4096; // letters typed while nobody hears them
const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;

export class Link {
  private socket: Socket | null = null;
  private tries = 0;
  private wasAttached = false;
  private over = true;
  private typed: Uint8Array[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly address: string,
    private readonly replica: string,
    private readonly size: () => Size,
    private readonly tell: (heard: Heard) => void,
    private readonly kept: Kept,
    private readonly connectTo: (url: string) => Socket = (url) => new WebSocket(url) as unknown as Socket,
  ) {}

  get isOver(): boolean {
    return this.over;
  }

  begin(): void {
    this.over = false;
    let opened = false;
    const socket = this.connectTo(this.url());
    this.socket = socket;
    socket.binaryType = "arraybuffer";
    socket.onopen = () => {
      opened = true;
    };
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") this.told(JSON.parse(data) as Record<string, unknown>);
      else this.tell({ kind: "shown", bytes: new Uint8Array(data as ArrayBuffer) });
    };
    socket.onclose = () => {
      if (!this.over) this.lost(opened);
    };
  }

  /** What was typed; a little of it is kept while the line is not there, or not there yet. */
  send(bytes: Uint8Array): void {
    if (this.attached) this.socket?.send(bytes);
    else if (!this.over && this.length + bytes.length <= MOST_KEPT) this.typed.push(bytes);
  }

  resize(): void {
    if (this.attached) this.socket?.send(JSON.stringify(this.size()));
  }

  /** Now rather than in a while: the browser says that the network is back, or the page is looked at again. */
  hurry(): void {
    if (this.timer === undefined || this.over) return;
    clearTimeout(this.timer);
    this.timer = undefined;
    this.begin();
  }

  private get attached(): boolean {
    return this.tries === 0 && this.wasAttached && this.socket?.readyState === OPEN;
  }

  private get length(): number {
    return this.typed.reduce((sum, bytes) => sum + bytes.length, 0);
  }

  private get keptAs(): string {
    return this.replica ? `${KEPT_AS}-${this.replica}` : KEPT_AS;
  }

  private url(): string {
    const url = new URL(this.address);
    const { rows, cols } = this.size();
    url.searchParams.set("rows", String(rows));
    url.searchParams.set("cols", String(cols));
    if (this.replica) url.searchParams.set("replica", this.replica);
    const session = this.kept.getItem(this.keptAs);
    if (session) url.searchParams.set("session", session);
    return url.href;
  }

  private told(said: Record<string, unknown>): void {
    if (typeof said["session"] === "string") {
      const fresh = said["new"] === true;
      this.kept.setItem(this.keptAs, said["session"]);
      const waiting = fresh && this.wasAttached ? [] : this.typed; // what was meant for another shell is not typed into this one
      this.tell({ kind: "attached", again: this.wasAttached, fresh });
      this.tries = 0;
      this.wasAttached = true;
      this.resize();
      this.typed = [];
      for (const bytes of waiting) this.send(bytes);
    } else if ("ended" in said) {
      this.over = true;
      this.wasAttached = false;
      this.kept.removeItem(this.keptAs);
      this.tell({ kind: "ended", code: typeof said["ended"] === "number" ? said["ended"] : null });
    }
  }

  private lost(opened: boolean): void {
    this.tries += 1;
    // A session that is gone is answered like any refusal: then a new one is begun.
    if (!opened && this.tries > 2) this.kept.removeItem(this.keptAs);
    this.tell({ kind: "lost", tries: this.tries });
    const wait = Math.min(FIRST_WAIT_MS * 2 ** (this.tries - 1), LONGEST_WAIT_MS);
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.begin();
    }, wait);
  }
}
