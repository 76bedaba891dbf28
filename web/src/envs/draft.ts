/** An environment as it is being asked for, and what the machines could give. Pure. */
import { atItsField, Refusal, type Schemas } from "@/api/client";

export interface Draft {
  name: string;
  image: string;
  group: string;
  cards: number;
  device: string;
  cpu: number; // 0: a fair share
  memory: number; // GiB; 0: a fair share
  idle: string;
  timer: string;
  other: Readonly<Record<string, string>>; // taken over from an offer, and not on the form
}

export const NAME_RULE = /^[A-Za-z0-9_]{1,27}$/;
export const OFF = "off";
export const EMPTY: Draft = { name: "", image: "", group: "", cards: 0, device: "", cpu: 1, memory: 2, idle: "2h", timer: OFF, other: {} };

type Body = Record<string, unknown> & { name: string };

/** As the server takes it. `withName` false: only to see what would happen. */
export function bodyOf(draft: Draft, withName = true): Body {
  const body: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(draft.other)) body[key] = value === "true" ? true : value === "false" ? false : value;
  if (withName) body["name"] = draft.name;
  if (draft.image) body["image"] = draft.image;
  if (draft.group) body["group"] = draft.group;
  if (draft.cards > 0) {
    body["cards"] = draft.cards;
    if (draft.device) body["device"] = draft.device;
  } else {
    delete body["models"];
  }
  if (draft.cpu > 0) body["cpu"] = draft.cpu;
  if (draft.memory > 0) body["memory"] = gibibytes(draft.memory);
  if (draft.idle !== OFF) body["idle"] = draft.idle;
  if (draft.timer !== OFF) body["timer"] = draft.timer;
  return body as Body;
}

/** `2G`, or `1536M` where it is not whole. */
export function gibibytes(amount: number): string {
  return Number.isInteger(amount) ? `${amount}G` : `${Math.round(amount * 1024)}M`;
}

const UNITS: Readonly<Record<string, number>> = { "": 1 / 2 ** 30, K: 1 / 2 ** 20, M: 1 / 1024, G: 1, T: 1024 };

export function inGibibytes(text: string): number {
  const match = /^([0-9.]+)([KMGT]?)i?B?$/.exec(text);
  return match ? Number(match[1]) * (UNITS[match[2] ?? ""] ?? 1) : 0;
}

export function inCores(text: string): number {
  return text.endsWith("m") ? Number(text.slice(0, -1)) / 1000 : Number(text);
}

/** The draft with an offered change taken over. */
export function withOffer(draft: Draft, changes: Readonly<Record<string, string>>): Draft {
  let next = { ...draft };
  for (const [key, value] of Object.entries(changes)) {
    if (key === "cards") next.cards = Number(value);
    else if (key === "cpu") next.cpu = inCores(value);
    else if (key === "memory") next.memory = inGibibytes(value);
    else if (key === "group") next.group = value;
    else if (key === "device") next.device = value;
    else next = { ...next, other: { ...next.other, [key]: value } };
  }
  return next;
}

export interface Range {
  most: number; // that any machine has
  now: number; // that is free on one machine now
}

export interface Limits {
  cards: Range;
  cpu: Range;
  memory: Range; // GiB
  devices: string[];
}

type Machine = Pick<Schemas["NodeOut"], "state" | "cpu" | "cpu_used" | "memory" | "memory_used" | "cards_total" | "cards_free">;

/** One environment runs on one machine: so the largest counts, not the sum. */
export function limitsOf(machines: readonly Machine[], device: string): Limits {
  const devices = [...new Set(machines.flatMap((one) => Object.keys(one.cards_total)))].toSorted();
  const kind = device || (devices[0] ?? "");
  const ready = machines.filter((one) => one.state === "ready");
  const range = (all: (one: Machine) => number, free: (one: Machine) => number): Range => ({
    most: Math.max(0, ...machines.map(all)),
    now: Math.max(0, ...ready.map(free)),
  });
  const gib = (amount: number) => Math.floor(amount / 2 ** 30);
  return {
    cards: range((one) => one.cards_total[kind] ?? 0, (one) => Math.floor(one.cards_free[kind] ?? 0)),
    cpu: range((one) => Math.floor(one.cpu), (one) => Math.floor((one.cpu - one.cpu_used) * 10) / 10),
    memory: range((one) => gib(one.memory), (one) => gib(one.memory - one.memory_used)),
    devices,
  };
}

/** What the server says about single fields, by their names; `""` for the whole. */
export function troublesAt(error: unknown): Readonly<Record<string, string>> {
  if (!(error instanceof Refusal)) return {};
  const found: Record<string, string> = {};
  const told = error.problems.length > 0 ? error.problems : [{ message: error.message, facts: error.facts }];
  for (const one of told) {
    const facts: Readonly<Record<string, unknown>> = one.facts;
    const at = facts["at"] || facts["key"] || (error.code === "refused.already_there" ? "name" : "");
    const key = String(at);
    found[key] ??= atItsField(one);
  }
  return found;
}
