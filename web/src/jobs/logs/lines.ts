/** Lines as a terminal would leave them: what was written over is gone. */

const LONGEST_UNSETTLED = 8192;
export const LONGEST_SHOWN = 10_000;

/** Progress bars write a line again and again from its beginning; the last state of it is the line.

Seen from the last state backwards: of what was there before, only what reaches further shows. So it takes no longer than the line is long. */
export function overwritten(line: string): string {
  if (!line.includes("\r")) return line;
  const parts = line.split("\r").filter((part) => part !== "");
  // Escapes take no room on the screen, so what they stand in cannot be laid over by counting: it begins anew.
  const anew = parts.findLastIndex((part) => part.includes("\x1b"));
  if (anew >= 0 && anew === parts.length - 1) return parts[anew] ?? "";
  let shown = "";
  for (let at = parts.length - 1; at > anew; at -= 1) shown += (parts[at] ?? "").slice(shown.length);
  return shown;
}

/** A line that does not end yet, kept short however often it is written over. */
export function settled(line: string): string {
  if (line.length <= LONGEST_UNSETTLED) return line;
  const last = line.lastIndexOf("\r");
  return last < 0 ? line : overwritten(line.slice(0, last)) + line.slice(last);
}

/** A piece of output as lines. `open`: the last one goes on in the next piece. */
export function linesOf(text: string): { lines: string[]; open: boolean } {
  const lines = text.split("\n");
  const open = lines.at(-1) !== "";
  if (!open) lines.pop();
  return { lines, open };
}
