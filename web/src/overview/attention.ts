/** What somebody should look at now, most urgent first. Facts in, lines out. */
import type { Schemas } from "@/api/client";
import type { BoardNode } from "./board";

export interface Facts {
  failed: readonly Schemas["WorkloadOut"][];
  queued: readonly Schemas["WorkloadOut"][];
  envs: readonly Schemas["EnvOut"][];
  nodes: readonly BoardNode[]; // of an admin; others get none
}

export type Concern =
  | { kind: "failed"; id: string; name: string; reason: string; at: string; env: boolean }
  | { kind: "never" | "waits"; id: string; name: string; reason: string; seconds: number; env: boolean }
  | { kind: "timer" | "idle"; id: string; name: string; seconds: number }
  | { kind: "lost" | "disk_full"; name: string }
  | { kind: "cards"; name: string; count: number; trouble: string };

const DAY = 86_400;
export const LONG_SECONDS = 600;
export const SOON_SECONDS = 3600;
const IDLE_SOON_SECONDS = 900;
// As the server names what no end of other work will bring.
const NEVER = new Set(["never_fits", "needs_replicas", "no_such_device", "no_such_model", "no_such_node", "pool_closed", "ring", "quota_never", "borrow_never"]);

export const neverStarts = (code: string): boolean => NEVER.has(code.split(".").at(-1) ?? "");

export function concerns(facts: Facts, now: number): Concern[] {
  return [...ofNodes(facts.nodes), ...ofFailed(facts.failed, now), ...ofQueued(facts.queued, now), ...ofEnvs(facts.envs, now)];
}

function ofNodes(nodes: readonly BoardNode[]): Concern[] {
  return nodes.flatMap((node): Concern[] => {
    if (node.state === "lost" || node.state === "disk_full") return [{ kind: node.state, name: node.name }];
    const ill = node.cards.filter((card) => card.trouble);
    return ill.length ? [{ kind: "cards", name: node.name, count: ill.length, trouble: ill[0]?.trouble ?? "" }] : [];
  });
}

function ofFailed(failed: Facts["failed"], now: number): Concern[] {
  return failed
    .filter((one) => one.ended_at && now - Date.parse(one.ended_at) / 1000 < DAY)
    .map((one) => ({ kind: "failed", id: one.id, name: one.name, reason: one.reason, at: one.ended_at ?? "", env: one.kind === "env" }));
}

function ofQueued(queued: Facts["queued"], now: number): Concern[] {
  const found = queued.map((one) => ({ one, seconds: now - Date.parse(one.submitted_at) / 1000, never: neverStarts(one.reason_code) }));
  return found
    .filter(({ seconds, never }) => never || seconds >= LONG_SECONDS)
    .toSorted((a, b) => Number(b.never) - Number(a.never) || b.seconds - a.seconds)
    .map(({ one, seconds, never }) => ({ kind: never ? "never" : "waits", id: one.id, name: one.name, reason: one.reason, seconds, env: one.kind === "env" }));
}

function ofEnvs(envs: Facts["envs"], now: number): Concern[] {
  return envs.flatMap((env): Concern[] => {
    if (env.state !== "running") return [];
    const timer = env.stop_at ? Date.parse(env.stop_at) / 1000 - now : Infinity;
    const lastUsed = Date.parse(env.used_at ?? env.started_at ?? "") / 1000;
    const idle = env.idle_seconds ? lastUsed + env.idle_seconds - now : Infinity;
    if (timer <= SOON_SECONDS && timer <= idle) return [{ kind: "timer", id: env.id, name: env.name, seconds: Math.max(0, timer) }];
    return idle <= IDLE_SOON_SECONDS ? [{ kind: "idle", id: env.id, name: env.name, seconds: Math.max(0, idle) }] : [];
  });
}
