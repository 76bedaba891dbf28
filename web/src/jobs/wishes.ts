/** What can be asked of a job in which state, and carrying it out for one or for many. */
import { api, asked, type Schemas } from "@/api/client";

export type Job = Schemas["WorkloadOut"];
export type Verb = "stop" | "pause" | "resume" | "rerun";

const ENDED = new Set<Schemas["State"]>(["succeeded", "failed", "stopped"]);
const HOLDING = new Set<Schemas["State"]>(["placed", "starting", "running", "stopping"]);
export const AT_ONCE = 6; // as many as browsers connect to one server

export const hasEnded = (job: Pick<Job, "state">): boolean => ENDED.has(job.state);
/** Whether something runs that would be lost. */
export const isRunning = (job: Pick<Job, "state">): boolean => HOLDING.has(job.state);

export function can(verb: Verb, job: Pick<Job, "state" | "wanted">): boolean {
  if (verb === "rerun") return true;
  if (hasEnded(job) || job.wanted === "stop") return false;
  if (verb === "resume") return job.state === "paused" || job.wanted === "pause";
  if (verb === "pause") return job.wanted !== "pause" && job.state !== "paused";
  return true;
}

export function carryOut(verb: Verb, id: string): Promise<Schemas["Answered"]> {
  const params = { path: { ref: id } };
  if (verb === "stop") return asked(api.POST("/api/v1/workloads/{ref}/stop", { params }));
  if (verb === "pause") return asked(api.POST("/api/v1/workloads/{ref}/pause", { params }));
  if (verb === "resume") return asked(api.POST("/api/v1/workloads/{ref}/resume", { params }));
  return asked(api.POST("/api/v1/workloads/{ref}/rerun", { params: { ...params, header: { "Idempotency-Key": newKey() } }, body: { instead: false } }));
}

/** The same request sent twice is one job. `randomUUID` is only there over TLS. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** For many, a few at a time. What is refused is gathered, the others go on. */
export async function forAll(ids: readonly string[], act: (id: string) => Promise<unknown>): Promise<unknown[]> {
  const waiting = [...ids];
  const refused: unknown[] = [];
  const work = async (): Promise<void> => {
    for (let id = waiting.shift(); id !== undefined; id = waiting.shift()) {
      try {
        await act(id);
      } catch (error) {
        refused.push(error);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return refused;
}
