/** One log as it is looked at: its end first and live, what is older when one scrolls there, never too much at once. */
import { EventStream, type Heard } from "@/api/events";
import { LogWindow } from "./window";
import { addressOf, decoded, firstLine, lastWhole, read, type Stretch, type Which } from "./reading";

const TAIL_LINES = 2000;
const STEP_BYTES = 256 << 10;
const RETRY_MS = 2000;

export interface Shift {
  /** Lines that came in before, or left from before, those that were there: the view moves by them. */
  lines: number;
}

interface Told {
  text: string;
  from: number;
  to: number;
}

export class LogFeed {
  readonly window = new LogWindow();
  version = 0;
  /** True while new output comes in by itself. */
  live = false;
  ended = false;
  opened = false;
  trouble: unknown = null;
  busy = false;
  following = true;
  shifts: Shift[] = [];
  private source: EventStream | null = null;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private frame = 0;
  private waiting: (Told | { gap: [number, number] })[] = [];
  private readonly listeners = new Set<() => void>();
  private gap: Stretch["gap"] = null;

  constructor(readonly which: Which) {}

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): number => this.version;

  private tell(): void {
    this.version += 1;
    for (const listener of this.listeners) listener();
  }

  // --- live -----------------------------------------------------------------------------------------------------

  /** From the end of what is held, or, when nothing is, from the last lines on. */
  start(): void {
    if (this.source) return;
    const where: Record<string, number> = this.window.isEmpty ? { tail: TAIL_LINES } : { offset: this.window.to };
    this.source = new EventStream(addressOf(this.which, "/follow", where), { heard: (event) => this.hear(event), lost: () => this.startLater() });
    this.live = true;
  }

  private hear({ name, data }: Heard): void {
    if (name === "log") this.take(JSON.parse(data) as Told);
    if (name === "gap") {
      const { from, to } = JSON.parse(data) as { from: number; to: number };
      this.take({ gap: [from, to] });
    }
    if (name !== "end") return;
    this.flush();
    this.ended = true;
    this.stop();
    this.tell();
  }

  private startLater(): void {
    if (this.waiting.length > 0) this.flush(); // what is not taken in yet would come once more
    this.stop();
    this.retry = setTimeout(() => this.start(), RETRY_MS);
  }

  stop(): void {
    clearTimeout(this.retry);
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.source?.close();
    this.source = null;
    this.live = false;
  }

  /** Much may come at once; it is shown together, once a frame. */
  private take(what: Told | { gap: [number, number] }): void {
    this.waiting.push(what);
    if (!this.frame) this.frame = requestAnimationFrame(() => this.flush());
  }

  private flush(): void {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    for (const what of this.waiting) {
      if ("gap" in what) this.window.appendGap(...what.gap);
      else if (what.from >= this.window.to || this.window.isEmpty) this.window.append(what.text, what.from, what.to);
      else this.startOver(what); // the job truncated its own log
    }
    this.waiting = [];
    this.opened = true;
    if (this.window.isFull) this.makeRoom();
    this.tell();
  }

  private startOver(what: Told): void {
    this.window.clear();
    this.window.append(what.text, what.from, what.to);
  }

  /** Who follows lets the oldest go; for whoever reads further up, what is new waits at the server. */
  private makeRoom(): void {
    if (this.following) this.shifts.push({ lines: -this.window.trimHead() });
    else if (this.window.trimTail()) this.stop();
  }

  follow(on: boolean): void {
    if (this.following === on) return;
    this.following = on;
    this.tell();
  }

  /** To the newest, wherever one was. */
  async toTheEnd(): Promise<void> {
    this.following = true;
    if (!this.live && !(this.ended && this.reachesEnd)) {
      this.window.clear();
      this.shifts = [];
      this.start();
    }
    this.tell();
  }

  private size = 0;
  get reachesEnd(): boolean {
    return this.window.to >= this.size;
  }

  get reachesStart(): boolean {
    return this.window.isEmpty || this.window.from === 0;
  }

  // --- reading --------------------------------------------------------------------------------------------------

  private async alone(work: () => Promise<void>): Promise<void> {
    if (this.busy) return;
    this.busy = true;
    try {
      await work();
      this.trouble = null;
    } catch (error) {
      this.trouble = error;
    } finally {
      this.busy = false;
      this.tell();
    }
  }

  private async read(offset: number, limit: number): Promise<Stretch> {
    const stretch = await read(this.which, offset, limit);
    this.gap = stretch.gap;
    this.size = stretch.size;
    return stretch;
  }

  /** What stands before the first line that is held. */
  older(): Promise<void> {
    return this.alone(async () => {
      const { from } = this.window;
      if (from === 0 || this.window.isEmpty) return;
      this.following = false;
      const added = await this.readBefore(from);
      if (this.window.from >= from) return;
      this.shifts.push({ lines: added });
      if (this.window.isFull && this.window.trimTail()) this.stop();
    });
  }

  private async readBefore(from: number, step = STEP_BYTES): Promise<number> {
    const floor = this.gap && from >= this.gap.to ? this.gap.to : 0;
    if (this.gap && from === this.gap.to && this.gap.to > this.gap.from) return this.window.prependGap(this.gap.from, from);
    const known = this.gap?.to;
    const begin = Math.max(floor, from - step);
    const stretch = await this.read(begin, from - begin);
    if (stretch.gap?.to !== known) return this.readBefore(from, step); // now it is known where the gap is
    const cut = begin === floor ? 0 : firstLine(stretch.data);
    return this.window.prepend({ text: decoded(stretch.data.subarray(cut)), from: begin + cut, to: from });
  }

  /** What stands behind the last line that is held; at the very end it goes on live. */
  newer(): Promise<void> {
    return this.alone(async () => {
      if (this.live || this.window.isEmpty) return;
      const stretch = await this.read(this.window.to, STEP_BYTES);
      if (stretch.start > this.window.to && stretch.data.length > 0) this.window.appendGap(this.window.to, stretch.start);
      const end = stretch.end < stretch.size ? lastWhole(stretch.data) : stretch.data.length;
      if (end > 0) this.window.append(decoded(stretch.data.subarray(0, end)), stretch.start, stretch.start + end);
      if (this.window.isFull) this.shifts.push({ lines: -this.window.trimHead() });
      if (this.reachesEnd && !this.ended) this.start();
    });
  }

  /** Some of the log around a byte, instead of what is held. */
  goTo(byte: number): Promise<void> {
    return this.alone(async () => {
      this.stop();
      this.following = false;
      const begin = Math.max(0, byte - STEP_BYTES / 2);
      const stretch = await this.read(begin, STEP_BYTES);
      const first = begin === 0 || stretch.start > begin ? 0 : firstLine(stretch.data);
      const end = stretch.end < stretch.size ? lastWhole(stretch.data) : stretch.data.length;
      this.window.clear();
      this.shifts = [];
      this.window.append(decoded(stretch.data.subarray(first, end)), stretch.start + first, stretch.start + end);
      this.opened = true;
    });
  }
}
