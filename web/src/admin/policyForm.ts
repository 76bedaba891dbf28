/** The policy as plain data: read and changed by dotted paths, and the fields of the form. */
import { isMap, parseDocument, stringify } from "yaml";
import type { policyWords } from "./policyWords";

export type Policy = Readonly<Record<string, unknown>>;
export type Kind = "number" | "part" | "text" | "switch" | "choice" | "first" | "mode" | "list";
export interface Field {
  path: keyof typeof policyWords;
  kind: Kind;
}

export const SECTIONS: readonly { title: "ceilings" | "order" | "preempt" | "defragment" | "placement"; fields: readonly Field[] }[] = [
  { title: "ceilings", fields: [{ path: "ceilings.member", kind: "number" }, { path: "ceilings.lead", kind: "number" }, { path: "ceilings.admin", kind: "number" }] },
  {
    title: "order",
    fields: [
      { path: "order.first", kind: "first" },
      { path: "order.fair_share", kind: "switch" },
      { path: "order.half_life", kind: "text" },
      { path: "order.ahead", kind: "text" },
      { path: "order.tolerance", kind: "part" },
      { path: "order.cores_per_card", kind: "number" },
      { path: "order.age_every", kind: "text" },
      { path: "order.age_points", kind: "number" },
      { path: "order.first_level", kind: "text" },
      { path: "order.next_level", kind: "number" },
      { path: "order.levels", kind: "number" },
      { path: "order.oldest_first", kind: "switch" },
      { path: "order.people", kind: "list" },
    ],
  },
  { title: "preempt", fields: [{ path: "preempt.enabled", kind: "switch" }, { path: "preempt.for_priority", kind: "switch" }, { path: "preempt.for_turn", kind: "switch" }, { path: "preempt.min_run", kind: "text" }] },
  {
    title: "defragment",
    fields: [
      { path: "defragment.mode", kind: "mode" },
      { path: "defragment.after", kind: "text" },
      { path: "defragment.min_run", kind: "text" },
      { path: "defragment.max_lost", kind: "text" },
      { path: "defragment.moves", kind: "number" },
    ],
  },
  { title: "placement", fields: [{ path: "backfill", kind: "switch" }, { path: "keep_for_first", kind: "switch" }, { path: "placing", kind: "choice" }, { path: "servers", kind: "list" }] },
];

export function valueAt(policy: Policy, path: string): unknown {
  let found: unknown = policy;
  for (const key of path.split(".")) found = typeof found === "object" && found !== null ? (found as Policy)[key] : undefined;
  return found;
}

/** A copy with one value changed. */
export function withValue(policy: Policy, path: string, value: unknown): Policy {
  const [key = "", ...rest] = path.split(".");
  if (rest.length === 0) return { ...policy, [key]: value };
  const inner = policy[key];
  return { ...policy, [key]: withValue(typeof inner === "object" && inner !== null ? (inner as Policy) : {}, rest.join("."), value) };
}

export const asYaml = (policy: Policy): string => stringify(policy, { lineWidth: 0 });

export type Read = { policy: Policy } | { problem: string };

/** Aliases can make a small text enormous, so they are not read. */
export function readYaml(text: string): Read {
  const document = parseDocument(text, { prettyErrors: true });
  const [wrong] = document.errors;
  if (wrong) return { problem: wrong.message };
  if (!isMap(document.contents)) return { problem: "" };
  try {
    return { policy: document.toJS({ maxAliasCount: 0 }) as Policy };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** Whether both say the same, in whichever order they say it. */
export function same(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || typeof other !== "object" || one === null || other === null) return one === other;
  if (Array.isArray(one) !== Array.isArray(other)) return false;
  const keys = new Set([...Object.keys(one), ...Object.keys(other)]);
  return [...keys].every((key) => same((one as Policy)[key], (other as Policy)[key]));
}

/** What is wrong at this value or inside it. */
export function wrongAt(wrong: Readonly<Record<string, string>>, path: string): string | undefined {
  return wrong[path] ?? Object.entries(wrong).find(([at]) => at.startsWith(`${path}.`) || at.startsWith(`${path}[`))?.[1];
}
