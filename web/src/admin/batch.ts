/** The same wish for many workloads: which of them it can be asked of, what is lost by it, and carrying it out. */
import { api, asked, type Schemas } from "@/api/client";
import { can, carryOut, hasEnded, isRunning, type Verb } from "@/jobs/wishes";

export type Workload = Schemas["WorkloadOut"];
export type BatchVerb = Verb | "priority";
export const BATCH_VERBS: readonly BatchVerb[] = ["stop", "pause", "resume", "rerun", "priority"];
const AT_ONCE = 4;

export function possible(verb: BatchVerb, one: Workload): boolean {
  if (verb === "priority") return !hasEnded(one) && one.wanted !== "stop";
  if (verb === "rerun") return one.kind === "job";
  // A stopped environment is stored as paused.
  if (verb === "stop" && one.kind === "env" && (one.state === "paused" || one.wanted === "pause")) return false;
  return can(verb, one);
}

export interface Losses {
  able: Workload[];
  unable: number;
  running: number;
  cards: number;
  envs: number;
}

export function losses(verb: BatchVerb, chosen: readonly Workload[]): Losses {
  const able = chosen.filter((one) => possible(verb, one));
  const going = able.filter(isRunning);
  const cards = Math.round(going.reduce((sum, one) => sum + one.cards, 0) * 100) / 100;
  return { able, unable: chosen.length - able.length, running: going.length, cards, envs: able.filter((one) => one.kind === "env").length };
}

export interface Result {
  workload: Workload;
  warnings: readonly string[];
  error: unknown; // null: it was done
}

function ask(verb: BatchVerb, workload: Workload, priority: number): Promise<Schemas["Answered"]> {
  if (verb !== "priority") return carryOut(verb, workload.id);
  return asked(api.PATCH("/api/v1/workloads/{ref}", { params: { path: { ref: workload.id } }, body: { priority } }));
}

/** A few at a time. Every one has its own result, in the order in which they were chosen. */
export async function carryOutAll(verb: BatchVerb, chosen: readonly Workload[], priority: number, onStep: (done: number) => void): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  let done = 0;
  const work = async (): Promise<void> => {
    for (let place = next++; place < chosen.length; place = next++) {
      const workload = chosen[place];
      if (!workload) return;
      try {
        const answer = await ask(verb, workload, priority);
        results[place] = { workload, warnings: answer.warnings, error: null };
      } catch (error) {
        results[place] = { workload, warnings: [], error };
      }
      done += 1;
      onStep(done);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return results;
}

