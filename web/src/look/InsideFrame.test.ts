import { expect, test } from "vitest";
import { lent } from "./InsideFrame";

test("what was copied elsewhere is read by one's own programs only, and by our terminal", () => {
  expect(lent("lab", true)).toContain("clipboard-read");
  expect(lent("terminal", false)).toContain("clipboard-read");
  expect(lent("lab", false)).toBe("clipboard-write");
  expect(lent("p8080", false)).toBe("clipboard-write");
});
