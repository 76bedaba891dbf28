import { describe, expect, it } from "vitest";
import { CARD_HOUR, cardHours, percent, type Sums, stacked, waterfall } from "./waterfall";

const sums = (parts: Partial<Record<string, number>>): Sums => {
  const order = ["unhealthy", "draining", "free", "quota", "reserved", "fragmented", "idle", "used"];
  const buckets = Object.fromEntries(order.map((name) => [name, parts[name] ?? 0])) as Sums["buckets"];
  return { capacity: Object.values(buckets).reduce((a, b) => a + b, 0), buckets };
};

describe("the waterfall", () => {
  it("takes one part after the other away from the whole until what was used is left at the beginning", () => {
    const steps = waterfall(sums({ unhealthy: 10, free: 30, used: 60 }));
    expect(steps.map(({ bucket }) => bucket)).toEqual(["capacity", "unhealthy", "draining", "free", "quota", "reserved", "fragmented", "idle", "used"]);
    expect(steps[0]).toMatchObject({ share: 1, from: 0 });
    expect(steps[1]).toMatchObject({ share: 0.1, from: 0.9 });
    expect(steps[3]).toMatchObject({ share: 0.3, from: 0.6 });
    expect(steps.at(-1)).toMatchObject({ bucket: "used", share: 0.6, from: 0 });
  });

  it("is empty where there were no cards", () => {
    expect(waterfall(sums({}))).toEqual([]);
    expect(stacked(sums({}))).toEqual([]);
  });

  it("fills the whole bar when the parts stand side by side, what was used first", () => {
    const parts = stacked(sums({ unhealthy: 1, idle: 1, used: 2 }));
    expect(parts[0]).toMatchObject({ bucket: "used", from: 0, share: 0.5 });
    expect(parts.reduce((sum, { share }) => sum + share, 0)).toBeCloseTo(1);
    expect(parts.at(-1)).toMatchObject({ bucket: "unhealthy", from: 0.75, share: 0.25 });
  });
});

describe("numbers", () => {
  it("never tell nearly nothing as nothing, nor nearly all as all", () => {
    expect([0, 0.0004, 0.5, 0.9996, 1].map(percent)).toEqual(["0.0 %", "<0.1 %", "50.0 %", ">99.9 %", "100.0 %"]);
  });

  it("tell few card-hours more exactly than many", () => {
    expect([0.256, 12.34, 12_345.6].map((hours) => cardHours(hours * CARD_HOUR, "en"))).toEqual(["0.26", "12.3", "12,346"]);
  });
});
