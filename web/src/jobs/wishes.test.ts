import { describe, expect, it } from "vitest";
import { can, forAll } from "./wishes";

describe("what can be asked of a job", () => {
  it("follows its state and what is wanted of it already", () => {
    expect(can("stop", { state: "running", wanted: "run" })).toBe(true);
    expect(can("stop", { state: "failed", wanted: "run" })).toBe(false);
    expect(can("pause", { state: "running", wanted: "stop" })).toBe(false);
    expect(can("resume", { state: "paused", wanted: "pause" })).toBe(true);
    expect(can("resume", { state: "running", wanted: "run" })).toBe(false);
    expect(can("rerun", { state: "stopped", wanted: "stop" })).toBe(true);
  });

  it("is done for all although some are refused", async () => {
    const done: string[] = [];
    const refused = await forAll(["a", "b", "c"], async (id) => {
      if (id === "b") throw new Error("no");
      done.push(id);
    });
    expect(done.toSorted()).toEqual(["a", "c"]);
    expect(refused).toHaveLength(1);
  });
});
