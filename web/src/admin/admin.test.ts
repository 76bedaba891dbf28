import { describe, expect, it } from "vitest";
import { losses, possible, type Workload } from "./batch";
import { labelChanges } from "./labels";
import { asYaml, readYaml, same, valueAt, withValue, wrongAt } from "./policyForm";
import { draftOf, type Group, problemAt, quotaChanges, written } from "./quotas";

const GIB = 2 ** 30;
const line = (resource: string, limit: number | null, guaranteed = 0) => ({ group: "vision", user: null, resource, limit, guaranteed, used: 0, borrowed: 0, lent: 0 });
const group: Group = { name: "vision", members: [], quotas: [line("nvidia", 8, 4), line("memory", 256 * GIB)], used: {}, weight: 1, fifo: false, warnings: [] };

describe("quotas", () => {
  it("are written as they are read, memory in its largest whole unit", () => {
    expect([256 * GIB, 2048 * GIB, 1536 * 2 ** 20, 0, 7].map((amount) => written("memory", amount))).toEqual(["256G", "2T", "1536M", "0", "7"]);
    expect([written("nvidia", 0.5), written("cpu", null)]).toEqual(["0.5", ""]);
  });

  it("send only what was changed, and null for what is taken away", () => {
    expect(quotaChanges(group, {})).toBeUndefined();
    expect(quotaChanges(group, { nvidia: { limit: " 8 ", guaranteed: "4" } })).toBeUndefined();
    expect(quotaChanges(group, { nvidia: { limit: "16", guaranteed: "" }, memory: { ...draftOf(group, "memory"), limit: "" } })).toEqual({
      limits: { nvidia: "16", memory: null },
      guarantees: { nvidia: null },
    });
  });

  it("know which field a problem is about", () => {
    expect(problemAt("quota.nvidia")).toEqual({ resource: "nvidia", part: "limit" });
    expect(problemAt("guarantees.ascend")).toEqual({ resource: "ascend", part: "guaranteed" });
    expect(problemAt("user")).toBeNull();
  });
});

describe("labels", () => {
  it("are sent as what is set, changed and taken away", () => {
    const after = [{ id: 1, key: "zone", value: "south" }, { id: 2, key: " ib ", value: "yes" }, { id: 3, key: "", value: "x" }];
    expect(labelChanges({ zone: "north", old: "1" }, after)).toEqual({ zone: "south", ib: "yes", old: null });
  });
});

describe("many at once", () => {
  const one = (id: string, more: Partial<Workload>) => ({ id, kind: "job", state: "running", wanted: "run", cards: 2, ...more }) as Workload;

  it("tells what is lost, and leaves out what cannot", () => {
    const chosen = [one("a", {}), one("b", { state: "queued" }), one("c", { state: "succeeded" }), one("d", { kind: "env", cards: 0.5 })];
    const { able, ...rest } = losses("stop", chosen);
    expect(able.map((each) => each.id)).toEqual(["a", "b", "d"]);
    expect(rest).toEqual({ unable: 1, running: 2, cards: 2.5, envs: 1 });
  });

  it("stops no environment that is stopped, or about to be", () => {
    expect(possible("stop", one("a", { kind: "env", state: "paused", wanted: "pause" }))).toBe(false);
    expect(possible("stop", one("b", { kind: "env", wanted: "pause" }))).toBe(false);
    expect(possible("stop", one("c", { state: "paused", wanted: "pause" }))).toBe(true);
  });

  it("reruns jobs only, and changes the priority of what lives", () => {
    expect([possible("rerun", one("a", { state: "failed" })), possible("rerun", one("b", { kind: "env" }))]).toEqual([true, false]);
    expect([possible("priority", one("a", {})), possible("priority", one("b", { state: "failed" })), possible("priority", one("c", { wanted: "stop" }))]).toEqual([true, false, false]);
  });
});

describe("the policy", () => {
  const policy = { backfill: true, order: { half_life: "7d", people: [] }, priorities: { low: 1 } };

  it("is changed by dotted paths and left alone elsewhere", () => {
    const after = withValue(policy, "order.half_life", "3d");
    expect(valueAt(after, "order.half_life")).toBe("3d");
    expect(valueAt(policy, "order.half_life")).toBe("7d");
    expect(valueAt(after, "order.people")).toBe(policy.order.people);
    expect(valueAt(after, "no.such.place")).toBeUndefined();
  });

  it("goes through YAML and back", () => {
    expect(readYaml(asYaml(policy))).toEqual({ policy });
    expect(readYaml("a: [1")).toHaveProperty("problem");
    expect(readYaml("- 1")).toEqual({ problem: "" });
    expect(readYaml("a: &x [1]\nb: *x")).toHaveProperty("problem");
  });

  it("is the same in whichever order it is written", () => {
    expect(same({ a: 1, b: [1, 2] }, { b: [1, 2], a: 1 })).toBe(true);
    expect(same({ a: 1 }, { a: 1, b: undefined })).toBe(true);
    expect(same({ a: [1, 2] }, { a: [2, 1] })).toBe(false);
    expect(same({ a: [] }, { a: {} })).toBe(false);
  });

  it("finds what is wrong at a value and inside it", () => {
    const wrong = { "order.half_life": "no", "servers[1]": "unknown" };
    expect([wrongAt(wrong, "order.half_life"), wrongAt(wrong, "servers"), wrongAt(wrong, "backfill")]).toEqual(["no", "unknown", undefined]);
  });
});
