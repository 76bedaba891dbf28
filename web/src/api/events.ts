/** Server-sent events, read from an answer like any other: the browser's own reader sends no header along. */
import { fetched } from "./client";

export interface Heard {
  name: string;
  data: string;
}

/** Makes events of text that comes in pieces, cut anywhere. The server ends lines with a bare newline. */
export class EventReader {
  private rest = "";

  take(text: string): Heard[] {
    const blocks = (this.rest + text).split("\n\n");
    this.rest = blocks.pop() ?? "";
    return blocks.flatMap(heardIn);
  }
}

function heardIn(block: string): Heard[] {
  const lines = block.split("\n");
  const said = (field: string) => lines.filter((line) => line.startsWith(`${field}: `)).map((line) => line.slice(field.length + 2));
  const data = said("data");
  return data.length > 0 ? [{ name: said("event").at(-1) ?? "message", data: data.join("\n") }] : [];
}

export interface Ears {
  heard: (event: Heard) => void;
  /** Once, when it is over without having been closed; with the refusal, if it was one. */
  lost: (trouble: unknown) => void;
}

/** One connection; it does not come back by itself. Hears nothing for so long: it is lost, although nobody told us. */
export class EventStream {
  private readonly leaving = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    address: string,
    private readonly ears: Ears,
    private readonly quietMs = Infinity,
  ) {
    this.watch();
    this.read(address).then(
      () => this.end(null),
      (trouble: unknown) => this.end(trouble),
    );
  }

  close(): void {
    clearTimeout(this.timer);
    this.leaving.abort();
  }

  private async read(address: string): Promise<void> {
    const { signal } = this.leaving;
    const { body } = await fetched(address, { accept: "text/event-stream", signal });
    if (!body) return;
    const reader = body.getReader();
    const text = new TextDecoder();
    const events = new EventReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done || signal.aborted) return;
      this.watch();
      for (const event of events.take(text.decode(value, { stream: true }))) {
        if (signal.aborted) return;
        this.ears.heard(event);
      }
    }
  }

  private watch(): void {
    clearTimeout(this.timer);
    if (this.quietMs !== Infinity) this.timer = setTimeout(() => this.end(null), this.quietMs);
  }

  private end(trouble: unknown): void {
    if (this.leaving.signal.aborted) return;
    this.close();
    this.ears.lost(trouble);
  }
}
