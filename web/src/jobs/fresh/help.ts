/** What the schema of job files says about a place in a file: which keys, which values, and what a key means. */

export interface Schema {
  description?: string;
  type?: string | string[];
  enum?: unknown[];
  default?: unknown;
  properties?: Record<string, Schema>;
  items?: Schema;
  oneOf?: Schema[];
  additionalProperties?: boolean | Schema;
  $ref?: string;
  $defs?: Record<string, Schema>;
}

interface Line {
  indent: number;
  key: string | null;
}

const KEY = /^(\s*)(?:- )?\s*([A-Za-z_][\w.-]*)\s*:/;

function lineOf(text: string): Line {
  const key = KEY.exec(text);
  return { indent: text.length - text.trimStart().length, key: key?.[2] ?? null };
}

/** The keys above a line, by indentation: `["roles", "worker"]`. */
export function pathAbove(lines: readonly string[], at: number, indent: number): string[] {
  const path: string[] = [];
  let limit = indent;
  for (let row = at - 1; row >= 0 && limit > 0; row -= 1) {
    const text = lines[row] ?? "";
    if (text.trim() === "" || text.trimStart().startsWith("#")) continue;
    const line = lineOf(text);
    if (line.indent < limit && line.key !== null) {
      path.unshift(line.key);
      limit = line.indent;
    }
  }
  return path;
}

const resolved = (root: Schema, schema: Schema | undefined): Schema | undefined =>
  schema?.$ref?.startsWith("#/$defs/") ? root.$defs?.[schema.$ref.slice("#/$defs/".length)] : schema;

/** The schema of what stands at a path. */
export function schemaAt(root: Schema, path: readonly string[]): Schema | undefined {
  let here: Schema | undefined = root;
  for (const key of path) {
    const within: Schema[] = here ? [here, ...(here.oneOf ?? []), ...(here.items ? [here.items] : [])] : [];
    const next: Schema | undefined = within
      .map((one) => one.properties?.[key] ?? (typeof one.additionalProperties === "object" ? one.additionalProperties : undefined))
      .find((one) => one !== undefined);
    here = resolved(root, next);
  }
  return here;
}

export interface Choice {
  label: string;
  about: string;
}

/** The keys that may stand at a place, without those that are there already. */
export function keysAt(root: Schema, path: readonly string[], present: ReadonlySet<string>): Choice[] {
  const here = schemaAt(root, path);
  const places = here ? [here, ...(here.oneOf ?? []), ...(here.items ? [here.items] : [])] : [];
  const found = places.flatMap((one) => Object.entries(one.properties ?? {}));
  return found.filter(([key]) => !present.has(key)).map(([label, schema]) => ({ label, about: schema.description ?? "" }));
}

export function valuesAt(root: Schema, path: readonly string[]): string[] {
  const here = schemaAt(root, path);
  if (here?.enum) return here.enum.map(String);
  return here?.type === "boolean" ? ["true", "false"] : [];
}

export function aboutAt(root: Schema, path: readonly string[]): string {
  const here = schemaAt(root, path);
  const usual = here?.default === undefined ? "" : ` (${JSON.stringify(here.default)})`;
  return here?.description ? here.description + usual : "";
}
