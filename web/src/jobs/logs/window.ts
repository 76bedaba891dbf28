/** The stretch of a log that is held in memory: pieces in a row, each with its lines, bounded at either end.

A log may have millions of lines, so only what is being looked at is here. Bytes say where a piece belongs; lines are counted
within the stretch. A line may begin in one piece and end in a later one. */
import { linesOf, LONGEST_SHOWN, settled } from "./lines";

export const MOST_BYTES = 12 << 20;
export const MOST_LINES = 150_000;
const MERGED_BYTES = 256 << 10;

export interface Piece {
  from: number;
  to: number;
  lines: string[];
  open: boolean;
  gap: boolean; // output that is no longer kept
}

export class LogWindow {
  pieces: Piece[] = [];
  private starts: number[] = [];
  count = 0;

  get from(): number {
    return this.pieces[0]?.from ?? 0;
  }

  get to(): number {
    return this.pieces.at(-1)?.to ?? 0;
  }

  get isEmpty(): boolean {
    return this.pieces.length === 0;
  }

  get isFull(): boolean {
    return this.to - this.from - this.gapBytes() > MOST_BYTES || this.count > MOST_LINES;
  }

  private gapBytes(): number {
    return this.pieces.reduce((sum, piece) => sum + (piece.gap ? piece.to - piece.from : 0), 0);
  }

  clear(): void {
    this.pieces = [];
    this.index();
  }

  append(text: string, from: number, to: number): void {
    const { lines, open } = linesOf(text);
    const last = this.pieces.at(-1);
    if (last && !last.gap && last.to === from && to - last.from <= MERGED_BYTES) {
      if (last.open && lines.length > 0) last.lines.push(settled((last.lines.pop() ?? "") + (lines.shift() ?? "")));
      for (const line of lines) last.lines.push(line);
      last.open = open;
      last.to = to;
    } else this.pieces.push({ from, to, lines, open, gap: false });
    this.index();
  }

  appendGap(from: number, to: number): void {
    this.pieces.push({ from, to, lines: [""], open: false, gap: true });
    this.index();
  }

  /** Returns how many lines stand before those that were first until now. */
  prepend(piece: { text: string; from: number; to: number }): number {
    const before = this.count;
    this.pieces.unshift({ from: piece.from, to: piece.to, ...linesOf(piece.text), gap: false });
    this.index();
    return this.count - before;
  }

  prependGap(from: number, to: number): number {
    this.pieces.unshift({ from, to, lines: [""], open: false, gap: true });
    this.index();
    return 1;
  }

  /** Lets go of the oldest. Returns how many lines left. */
  trimHead(): number {
    const before = this.count;
    while (this.isFull && this.pieces.length > 1) {
      this.pieces.shift();
      this.index();
    }
    return before - this.count;
  }

  /** Lets go of the newest; they are read again when they are wanted. True when there was something to let go. */
  trimTail(): boolean {
    const before = this.pieces.length;
    while (this.isFull && this.pieces.length > 1) {
      this.pieces.pop();
      this.index();
    }
    return this.pieces.length < before;
  }

  private index(): void {
    this.starts = [];
    this.count = 0;
    for (const [at, piece] of this.pieces.entries()) {
      this.starts.push(this.count);
      this.count += piece.lines.length - (this.pieces[at - 1]?.open ? 1 : 0);
    }
  }

  /** Which piece a line begins in, and which line of it that is. */
  private place(line: number): [Piece, number, number] | null {
    if (line < 0 || line >= this.count) return null;
    let [low, high] = [0, this.starts.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if ((this.starts[middle] ?? 0) <= line) low = middle;
      else high = middle - 1;
    }
    // A piece that only goes on with a line has none of its own, and begins where the next one does.
    const piece = this.pieces[low];
    if (!piece) return null;
    return [piece, line - (this.starts[low] ?? 0) + (this.pieces[low - 1]?.open ? 1 : 0), low];
  }

  line(line: number): string {
    const found = this.place(line);
    if (!found) return "";
    const [piece, index, at] = found;
    let text = piece.lines[index] ?? "";
    let next = at + 1;
    let goesOn = piece.open && index === piece.lines.length - 1;
    while (goesOn && text.length < LONGEST_SHOWN) {
      const following = this.pieces[next];
      if (!following) break;
      text += following.lines[0] ?? "";
      goesOn = following.open && following.lines.length === 1;
      next += 1;
    }
    return text;
  }

  /** The bytes that are missing here, if this line stands for a gap. */
  gapAt(line: number): number | null {
    const piece = this.place(line)?.[0];
    return piece?.gap ? piece.to - piece.from : null;
  }
}
