/** The example of the first steps, and whether they are still to be shown. Pure. */
export const EXAMPLE_NAME = "example";
const SCRIPT = 'for i in 1 2 3 4 5; do echo "step $i of 5"; sleep 1; done; echo "done: this was $YARD_NAME"';

export function exampleJob(image: string | null, group: string | null): Record<string, unknown> {
  const job: Record<string, unknown> = { name: EXAMPLE_NAME, command: SCRIPT, cpu: 0.2, memory: "128M", max_time: "5m" };
  if (image) job["image"] = image;
  if (group) job["group"] = group;
  return job;
}

/** What a person's browser remembers: nothing yet, the example that was run, or that they have seen enough. */
export type Remembered = { kind: "new" } | { kind: "ran"; id: string } | { kind: "over" };

export function readMemory(kept: string | null): Remembered {
  if (kept === null || kept === "") return { kind: "new" };
  return /^[a-z][a-z0-9]{9}$/.test(kept) ? { kind: "ran", id: kept } : { kind: "over" };
}

/** Shown to who has no work yet, and until they close it to who ran the example. */
export function isShown(memory: Remembered, works: number | undefined): boolean {
  return memory.kind === "ran" || (memory.kind === "new" && works === 0);
}
