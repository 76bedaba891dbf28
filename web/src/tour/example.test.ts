import { describe, expect, it } from "vitest";
import { exampleJob, isShown, readMemory } from "./example";

describe("the first steps", () => {
  it("are shown to who has no work yet, and not before that is known", () => {
    expect(isShown(readMemory(null), 0)).toBe(true);
    expect(isShown(readMemory(null), undefined)).toBe(false);
    expect(isShown(readMemory(null), 3)).toBe(false);
  });

  it("stay while the example is looked at, and go for good when they are closed", () => {
    expect(isShown(readMemory("k3v9x2m4qa"), 1)).toBe(true);
    expect(isShown(readMemory("over"), 0)).toBe(false);
  });

  it("ask for an image only where work runs in images", () => {
    expect(exampleJob(null, null)).not.toHaveProperty("image");
    expect(exampleJob("debian:12", "vision")).toMatchObject({ image: "debian:12", group: "vision" });
  });
});
