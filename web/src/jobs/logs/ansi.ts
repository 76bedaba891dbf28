/** Colours of terminals as plain spans of text. Nothing else that an escape can say is done: it is left out. */

export interface Style {
  fg?: string;
  bg?: string;
  bold?: boolean;
  faint?: boolean;
  italic?: boolean;
  underline?: boolean;
  inverse?: boolean;
}

export interface Span {
  text: string;
  style: Style;
}

export const PLAIN: Style = Object.freeze({});
export const MOST_SPANS = 400; // in a line; nobody reads more colours, but a page would choke on them

// CSI, OSC and the other strings (ended by BEL or ST), and two-character escapes. What is cut off at the end counts too.
// eslint-disable-next-line no-control-regex
const ESCAPE = /\x1b(?:\[([0-9;:?<=>!]*)[ -/]*([@-~]?)|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\|$)|[ -/]*[0-~]?)|\x9b([0-9;:?]*)[ -/]*([@-~]?)/g;
// Other control characters, and those that turn the direction of writing, which make text look like what it is not.
// eslint-disable-next-line no-control-regex
const INVISIBLE = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

const clean = (text: string): string => text.replace(INVISIBLE, "");

/** The text alone, for searching and copying. */
export function plain(line: string): string {
  return clean(line.includes("\x1b") || line.includes("\x9b") ? line.replace(ESCAPE, "") : line);
}

/** A line as spans, and the style that the next line begins with. */
export function spans(line: string, start: Style = PLAIN): { spans: Span[]; end: Style } {
  if (!line.includes("\x1b") && !line.includes("\x9b")) return { spans: [{ text: clean(line), style: start }], end: start };
  const found: Span[] = [];
  let style = start;
  let last = 0;
  for (const match of line.matchAll(ESCAPE)) {
    if (found.length >= MOST_SPANS) break;
    if (match.index > last) found.push({ text: clean(line.slice(last, match.index)), style });
    last = match.index + match[0].length;
    if ((match[2] ?? match[4]) === "m") style = restyled(style, match[1] ?? match[3] ?? "");
  }
  if (last < line.length) found.push({ text: plain(line.slice(last)), style });
  return { spans: found.filter((span) => span.text !== ""), end: style };
}

type Setter = (style: Style) => Style;
const SIMPLE: Readonly<Record<number, Setter>> = {
  0: () => PLAIN,
  1: (style) => ({ ...style, bold: true }),
  2: (style) => ({ ...style, faint: true }),
  3: (style) => ({ ...style, italic: true }),
  4: (style) => ({ ...style, underline: true }),
  7: (style) => ({ ...style, inverse: true }),
  22: ({ bold: _bold, faint: _faint, ...style }) => style,
  23: ({ italic: _italic, ...style }) => style,
  24: ({ underline: _underline, ...style }) => style,
  27: ({ inverse: _inverse, ...style }) => style,
  39: ({ fg: _fg, ...style }) => style,
  49: ({ bg: _bg, ...style }) => style,
};

function restyled(style: Style, said: string): Style {
  const codes = said === "" ? [0] : said.split(/[;:]/).map((code) => (code === "" ? 0 : Number(code)));
  let now = style;
  for (let at = 0; at < codes.length; at += 1) {
    const code = codes[at] ?? 0;
    if (code === 38 || code === 48) {
      const [colour, taken] = extended(codes.slice(at + 1, at + 5), codes.length);
      at += taken;
      if (colour) now = { ...now, [code === 38 ? "fg" : "bg"]: colour };
    } else now = SIMPLE[code]?.(now) ?? basic(now, code);
  }
  return now;
}

function basic(style: Style, code: number): Style {
  if (code >= 30 && code <= 37) return { ...style, fg: named(code - 30) };
  if (code >= 90 && code <= 97) return { ...style, fg: named(code - 82) };
  if (code >= 40 && code <= 47) return { ...style, bg: named(code - 40) };
  if (code >= 100 && code <= 107) return { ...style, bg: named(code - 92) };
  return style;
}

/** The sixteen colours have shades for light and dark ground; see logs.css. */
const named = (index: number): string => `var(--ansi-${index})`;

/** The colour that these say, and how many of them; of what is not known all the rest is left out. */
function extended(codes: number[], all: number): [string | null, number] {
  const [kind = 0, a = 0, b = 0, c = 0] = codes;
  if (kind === 5) return [palette(a), 2];
  if (kind === 2) return [[a, b, c].every(isByte) ? `rgb(${a}, ${b}, ${c})` : null, 4];
  return [null, all];
}

const isByte = (n: number): boolean => Number.isInteger(n) && n >= 0 && n <= 255;

function palette(index: number): string | null {
  if (!isByte(index)) return null;
  if (index < 16) return named(index);
  if (index >= 232) return grey(8 + (index - 232) * 10);
  const cube = index - 16;
  const level = (n: number): number => (n === 0 ? 0 : 55 + n * 40);
  return `rgb(${level(Math.floor(cube / 36))}, ${level(Math.floor(cube / 6) % 6)}, ${level(cube % 6)})`;
}

const grey = (n: number): string => `rgb(${n}, ${n}, ${n})`;
