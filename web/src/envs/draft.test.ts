import { describe, expect, it } from "vitest";
import { Refusal } from "@/api/client";
import { bodyOf, EMPTY, inCores, inGibibytes, limitsOf, troublesAt, withOffer } from "./draft";

const machine = (state: string, cpu: number, used: number, cards: number, free: number) => ({
  state, cpu, cpu_used: used, memory: 64 * 2 ** 30, memory_used: used * 2 ** 30, cards_total: { nvidia: cards }, cards_free: { nvidia: free },
});

describe("what is asked for", () => {
  it("leaves out what is left to the platform", () => {
    expect(bodyOf({ ...EMPTY, name: "dev", cpu: 0, memory: 0, idle: "off" })).toEqual({ name: "dev" });
  });

  it("names a type of card only with cards", () => {
    expect(bodyOf({ ...EMPTY, name: "dev", device: "nvidia" })).not.toHaveProperty("device");
    expect(bodyOf({ ...EMPTY, name: "dev", device: "nvidia", cards: 2 })).toMatchObject({ cards: 2, device: "nvidia" });
  });

  it("writes half gigabytes exactly", () => {
    expect(bodyOf({ ...EMPTY, name: "dev", memory: 1.5 })["memory"]).toBe("1536M");
    expect([inGibibytes("1536M"), inGibibytes("8G"), inGibibytes("1073741824")]).toEqual([1.5, 8, 1]);
    expect([inCores("500m"), inCores("4")]).toEqual([0.5, 4]);
  });

  it("takes an offered change over, also one that has no place on the form", () => {
    const changed = withOffer({ ...EMPTY, cards: 8 }, { cards: "4", memory: "8G", preemptible: "true" });
    expect(changed).toMatchObject({ cards: 4, memory: 8 });
    expect(bodyOf(changed)).toMatchObject({ cards: 4, memory: "8G", preemptible: true });
  });
});

describe("what the machines could give", () => {
  it("counts the largest machine, and of what is free only those that take work", () => {
    const limits = limitsOf([machine("ready", 16, 10, 8, 2), machine("cordoned", 32, 0, 8, 8)], "");
    expect(limits.cards).toEqual({ most: 8, now: 2 });
    expect(limits.cpu).toEqual({ most: 32, now: 6 });
    expect(limits.memory).toEqual({ most: 64, now: 54 });
  });

  it("counts parts of cores, too", () => {
    expect(limitsOf([machine("ready", 2, 1.25, 8, 2)], "").cpu).toEqual({ most: 2, now: 0.7 });
  });

  it("has nothing to give where there is nothing", () => {
    expect(limitsOf([], "").cards).toEqual({ most: 0, now: 0 });
  });
});

describe("what the server says", () => {
  it("stands at the field it is about", () => {
    const refusal = new Refusal(400, "refused.bad_value", "first", [
      { code: "x", message: "no such size", facts: { at: "memory" } },
      { code: "y", message: "something else", facts: {} },
    ] as never);
    expect(troublesAt(refusal)).toEqual({ memory: "no such size", "": "something else" });
  });

  it("puts a name that is taken at the name", () => {
    expect(troublesAt(new Refusal(409, "refused.already_there", "taken", [], { what: "workplace", name: "dev" }))).toEqual({ name: "taken" });
  });
});
