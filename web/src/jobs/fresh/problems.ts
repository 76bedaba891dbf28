/** Where in what was written a problem is: at a line for the editor, at a field for the form. */
import { atItsField, type Problem } from "@/api/client";

export interface Place {
  line: number;
  column: number;
}

export function placeOf({ facts }: Problem): Place | null {
  const { line, column } = facts as { line?: unknown; column?: unknown };
  return typeof line === "number" ? { line, column: typeof column === "number" ? column : 1 } : null;
}

/** The key at the top of the file that it concerns; null for what concerns all of it. */
export function fieldOf({ facts }: Problem): string | null {
  const { at, key } = facts as { at?: unknown; key?: unknown };
  const said = typeof at === "string" && at !== "" ? at : typeof key === "string" ? key : "";
  const path = said.split(".");
  return (path[0] === "roles" ? path[2] : path[0]) || null;
}

/** What the form shows: a problem there stands at its field. */
const FORM_FIELDS: ReadonlySet<string> = new Set(["command", "name", "cards", "replicas", "cpu", "memory", "max_time", "group", "image", "device", "priority", "retries", "env"]);

/** What cannot be seen at a field of the form. */
export const besideFields = (problems: readonly Problem[]): Problem[] => problems.filter((problem) => !FORM_FIELDS.has(fieldOf(problem) ?? ""));

export function atField(problems: readonly Problem[], field: string): string | undefined {
  const found = problems.filter((problem) => fieldOf(problem) === field).map(atItsField);
  return found.length > 0 ? found.join(" ") : undefined;
}

/** Line and column as a position in the text, within its bounds. */
export function positionOf(text: string, { line, column }: Place): [from: number, to: number] {
  const lines = text.split("\n");
  const row = Math.min(Math.max(line, 1), lines.length) - 1;
  const start = lines.slice(0, row).reduce((sum, one) => sum + one.length + 1, 0);
  const length = lines[row]?.length ?? 0;
  return [start + Math.min(Math.max(column - 1, 0), length), start + length];
}
