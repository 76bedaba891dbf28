/** Looking for text in a log: first in what is held, then further on at the server, stretch by stretch. */
import { plain } from "./ansi";
import type { LogFeed } from "./feed";
import { overwritten } from "./lines";
import { decoded, firstLine, lastWhole, read } from "./reading";

const STRETCH_BYTES = 2 << 20;

export type Direction = "next" | "previous";

export const shownText = (line: string): string => plain(overwritten(line));
const has = (line: string, wanted: string): boolean => shownText(line).toLowerCase().includes(wanted);

/** The nearest line with it, behind `start`, of those that are held. */
export function inWindow(feed: LogFeed, wanted: string, start: number, direction: Direction): number | null {
  const { window } = feed;
  const step = direction === "next" ? 1 : -1;
  const from = Math.min(Math.max(start, -1), window.count);
  for (let line = from + step; line >= 0 && line < window.count; line += step) {
    if (window.gapAt(line) === null && has(window.line(line), wanted)) return line;
  }
  return null;
}

/** Where in the log the nearest stretch with it begins, beyond what is held. Null: there is none. */
export async function beyond(
  feed: LogFeed,
  wanted: string,
  direction: Direction,
  going: (byte: number) => boolean,
): Promise<number | null> {
  return direction === "next" ? after(feed, wanted, going, feed.window.to) : before(feed, wanted, going);
}

/** Where the very first line with it begins. */
export const first = (feed: LogFeed, wanted: string, going: (byte: number) => boolean): Promise<number | null> => after(feed, wanted, going, 0);

async function after(feed: LogFeed, wanted: string, going: (byte: number) => boolean, from: number): Promise<number | null> {
  let at = from;
  while (going(at)) {
    const stretch = await read(feed.which, at, STRETCH_BYTES);
    if (stretch.data.length === 0) return null;
    const end = stretch.end < stretch.size ? lastWhole(stretch.data) : stretch.data.length;
    const found = byteOf(stretch.data.subarray(0, end), wanted, "next");
    if (found !== null) return stretch.start + found;
    at = stretch.start + end;
  }
  return null;
}

async function before(feed: LogFeed, wanted: string, going: (byte: number) => boolean): Promise<number | null> {
  let at = feed.window.from;
  while (at > 0 && going(at)) {
    const begin = Math.max(0, at - STRETCH_BYTES);
    const stretch = await read(feed.which, begin, at - begin);
    if (stretch.start >= at) {
      at = stretch.gap ? Math.min(stretch.gap.from, begin) : begin; // all of it is gone
      continue;
    }
    const cut = begin === 0 || stretch.start > begin ? 0 : firstLine(stretch.data);
    const found = byteOf(stretch.data.subarray(cut), wanted, "previous");
    if (found !== null) return stretch.start + cut + found;
    at = stretch.start > begin && stretch.gap ? stretch.gap.from : begin + cut;
  }
  return null;
}

/** The byte at which the first, or the last, line with it begins. */
export function byteOf(data: Uint8Array, wanted: string, direction: Direction): number | null {
  const lines = decoded(data).split("\n");
  const index = direction === "next" ? lines.findIndex((line) => has(line, wanted)) : lines.findLastIndex((line) => has(line, wanted));
  if (index < 0) return null;
  let at = 0;
  for (let line = 0; line < index; line += 1) at = data.indexOf(10, at) + 1;
  return at;
}
