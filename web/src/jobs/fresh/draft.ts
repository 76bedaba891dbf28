/** A job that is being written. Its text is the one truth: the form reads from it and writes into it, comments stay. */
import { type Document, isMap, parseDocument, stringify } from "yaml";

export interface FormValues {
  name: string;
  group: string;
  command: string | null; // null: a list, which the form does not show
  cards: string;
  device: string;
  replicas: string;
  cpu: string;
  memory: string;
  image: string;
  max_time: string;
  retries: string | null; // null: one for each cause
  priority: string;
  preemptible: boolean;
  workdir: string;
  env: [name: string, value: string][];
}

export type Shape = { kind: "form"; values: FormValues } | { kind: "roles" } | { kind: "broken" };
type Path = readonly string[];

export const FIRST_TEXT = "command: \"\"\ncards: 1\n";

const parsed = (text: string): Document => parseDocument(text, { strict: true, prettyErrors: false });

function understood(text: string): Document | null {
  const doc = parsed(text);
  return doc.errors.length === 0 && (doc.contents === null || isMap(doc.contents)) && isData(doc) ? doc : null;
}

/** False for what stands for something that is not there (`*.py`), for itself, or for far too much. */
function isData(doc: Document): boolean {
  try {
    return typeof JSON.stringify(doc.toJS() ?? {}) === "string";
  } catch {
    return false;
  }
}

export function shapeOf(text: string): Shape {
  const doc = understood(text);
  if (!doc) return { kind: "broken" };
  const data = (doc.toJS() ?? {}) as Record<string, unknown>;
  if ("roles" in data) return { kind: "roles" };
  const read = (key: string): string => shown(data[key]);
  return {
    kind: "form",
    values: {
      name: read("name"),
      group: read("group"),
      command: Array.isArray(data["command"]) ? null : read("command"),
      cards: read("cards"),
      device: read("device"),
      replicas: read("replicas"),
      cpu: read("cpu"),
      memory: read("memory"),
      image: read("image"),
      max_time: read("max_time"),
      retries: typeof data["retries"] === "object" && data["retries"] !== null ? null : read("retries"),
      priority: read("priority"),
      preemptible: data["preemptible"] === true,
      workdir: read("workdir"),
      env: Object.entries((data["env"] as Record<string, unknown> | undefined) ?? {}).map(([name, value]) => [name, shown(value)]),
    },
  };
}

const shown = (value: unknown): string => (value === null || value === undefined ? "" : typeof value === "object" ? JSON.stringify(value) : String(value));

/** What typed text means in a file: numbers and truths as such, all else as text. */
export function meant(typed: string): string | number | boolean {
  if (/^-?(\d+|\d*\.\d+|\d+\.)$/.test(typed)) return Number(typed);
  return typed === "true" ? true : typed === "false" ? false : typed;
}

/** The text with one value changed; undefined takes the key out. A text that cannot be read stays as it is. */
export function withValue(text: string, path: Path, value: unknown): string {
  const doc = understood(text);
  if (!doc) return text;
  if (value === undefined) {
    if (doc.hasIn(path)) doc.deleteIn(path);
  } else if (doc.contents === null) return stringify(nested(path, value), { lineWidth: 0 });
  else doc.setIn(path, doc.createNode(value));
  return isMap(doc.contents) && doc.contents.items.length === 0 ? "" : doc.toString({ lineWidth: 0 });
}

function nested(path: Path, value: unknown): unknown {
  return path.reduceRight<unknown>((inner, key) => ({ [key]: inner }), value);
}

/** Changes as the server offers them: by dotted path, empty text takes a key out. */
export function withChanges(text: string, changes: Readonly<Record<string, string>>): string {
  return Object.entries(changes).reduce((now, [key, value]) => withValue(now, pathOf(now, key), value === "" ? undefined : meant(value)), text);
}

/** A file without roles has the one role `worker`, whose keys stand at the top. */
function pathOf(text: string, key: string): Path {
  const path = key.split(".");
  const hasRoles = understood(text)?.has("roles") ?? false;
  return path[0] === "roles" && !hasRoles ? path.slice(2) : path;
}

/** The file of another job, ready to be changed. */
export const textOf = (file: Readonly<Record<string, unknown>>): string => stringify(file, { lineWidth: 0 });

/** The variables as they stand in the form; those without a name are not written yet. */
export function withEnv(text: string, env: readonly (readonly [string, string])[]): string {
  const named = env.filter(([name]) => name !== "");
  return withValue(text, ["env"], named.length > 0 ? Object.fromEntries(named) : undefined);
}

export function hasCommand(text: string): boolean {
  const shape = shapeOf(text);
  return shape.kind !== "form" || shape.values.command === null || shape.values.command.trim() !== "";
}
