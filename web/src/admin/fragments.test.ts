import { describe, expect, it } from "vitest";
import { type Fragment, inCards, named, strandedShare, sums, worthALook } from "./fragments";

const at = (node: string, free: number, unusable: number): Fragment => ({ node, device: "nvidia", model: "A100", cards: 8, free, unusable });

describe("free cards that are not together", () => {
  it("are summed without the dust of fractions", () => {
    expect(sums([at("a", 0.1, 0.1), at("b", 0.2, 0.2)])).toEqual({ cards: 16, free: 0.3, unusable: 0.3 });
  });

  it("are listed with the most useless first, and machines without free cards not at all", () => {
    const found = worthALook([at("n10", 3, 1), at("n2", 3, 1), at("full", 0, 0), at("worst", 5, 4)], "");
    expect(found.map(({ node }) => node)).toEqual(["worst", "n2", "n10"]);
  });

  it("are found by machine or model", () => {
    expect(worthALook([at("n1", 1, 0), at("m1", 1, 0)], "n1")).toHaveLength(1);
    expect(worthALook([at("n1", 1, 0), at("m1", 1, 0)], "a10")).toHaveLength(2);
  });
});

describe("what is told of them", () => {
  it("names a few machines and counts the rest, but never leaves out only one", () => {
    expect(named(["a", "b", "c", "d"], 3)).toEqual(["a, b, c, d", 0]);
    expect(named(["a", "b", "c", "d", "e"], 3)).toEqual(["a, b, c", 2]);
  });

  it("never tells nearly nothing as nothing", () => {
    expect([0, 0.012, 0.5, 2.25, 12].map(inCards)).toEqual(["0", "<0.1", "0.5", "2.3", "12"]);
  });

  it("strands nothing where nothing is free", () => {
    const one = { device: "nvidia", cards: 4, models: [], cpu: null, share: 1, fit: 0 };
    expect(strandedShare({ ...one, free: 0, stranded: 0 })).toBe(0);
    expect(strandedShare({ ...one, free: 8, stranded: 2 })).toBe(0.25);
  });
});
