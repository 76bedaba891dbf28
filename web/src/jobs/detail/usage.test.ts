import { describe, expect, it } from "vitest";
import { extremes, lines, plainNumber } from "./usage";

describe("measurements in numbers", () => {
  it("are the largest of the newest, and the largest of all", () => {
    const found = [{ name: "worker-0", points: [[1, 5], [2, 1]] }, { name: "worker-1", points: [[1, 2], [2, 3]] }] as never;
    expect(extremes(found)).toEqual({ now: 3, most: 5 });
    expect(extremes([])).toEqual({ now: 0, most: 0 });
  });

  it("leave out what was not measured", () => {
    const points = [{ at: "2026-01-01T00:00:00Z", cores: null }, { at: "2026-01-01T00:00:05Z", cores: 0.5 }];
    expect(lines([{ replica: "worker-0", points }] as never, (point) => point.cores)[0]?.points).toEqual([[Date.parse("2026-01-01T00:00:05Z"), 0.5]]);
  });

  it("are written with the digits that count", () => {
    expect([0, 0.00512, 0.5, 1.239, 80].map(plainNumber)).toEqual(["0", "0.0051", "0.5", "1.24", "80"]);
  });
});
