import { describe, expect, it } from "vitest";
import { type Facts, fill } from "@/words";
import { clock, inShort, inWords, rounded } from "./expected";
import { jobWords } from "./words";

const pick = (language: "en" | "zh") => (key: keyof typeof jobWords, facts?: Facts) => fill(jobWords[key][language === "zh" ? 1 : 0], facts);
const NOON = new Date(2026, 10, 16, 12, 0, 0).getTime();
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const at = (ms: number) => new Date(NOON + ms).toISOString();
const told = (middle: number, late: number) => ({ p50: at(middle), p90: at(late), rough: false, unknown: null, unknown_code: null });

describe("when something starts", () => {
  it("is told less exactly the further away it is", () => {
    expect(rounded(NOON + 7.6 * MINUTE, NOON, false).getTime()).toBe(NOON + 8 * MINUTE);
    expect(rounded(NOON + 63 * MINUTE, NOON, false).getTime()).toBe(NOON + 65 * MINUTE);
    expect(rounded(NOON + 31.1 * HOUR, NOON, false).getTime()).toBe(NOON + 31 * HOUR);
  });

  it("never puts the late moment too early", () => {
    for (let minutes = 1; minutes < 20_000; minutes += 37) {
      expect(rounded(NOON + minutes * MINUTE + 1, NOON, true).getTime()).toBeGreaterThanOrEqual(NOON + minutes * MINUTE);
    }
  });

  it("has a date only on another day", () => {
    expect(clock(new Date(NOON + 2 * HOUR), NOON, "en")).toBe("14:00");
    expect(clock(new Date(NOON + 26 * HOUR), NOON, "en")).toContain("17/11");
  });

  it("is two moments in both languages", () => {
    expect(inShort(told(2 * HOUR, 4 * HOUR), "start", NOON, "en", pick("en"))).toBe("starts ~14:00 (by 16:00)");
    expect(inShort(told(2 * HOUR, 4 * HOUR), "end", NOON, "zh", pick("zh"))).toBe("约 14:00 结束（一般不晚于 16:00）");
    expect(inWords(told(2 * HOUR, 4 * HOUR), NOON, "en", pick("en"))).toBe("about 14:00, nine times out of ten by 16:00");
    expect(inShort(told(0, 5_000), "start", NOON, "en", pick("en"))).toBe("starts any moment");
  });

  it("says why when nobody knows, and nothing in a cell", () => {
    const unknown = { p50: null, p90: null, rough: false, unknown: "Nobody can tell.", unknown_code: "guess.endless" };
    expect(inShort(unknown, "start", NOON, "en", pick("en"))).toBe("");
    expect(inWords(unknown, NOON, "en", pick("en"))).toBe("Nobody can tell.");
    expect(inWords(null, NOON, "en", pick("en"))).toBe("");
  });
});
