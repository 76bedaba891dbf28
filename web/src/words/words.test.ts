import { describe, expect, it } from "vitest";
import { fill, firstLanguage } from ".";

describe("words", () => {
  it("puts facts in their places and leaves unknown places alone", () => {
    expect(fill("stop {name} after {n} s, {what}", { name: "a{n}", n: 3 })).toBe("stop a{n} after 3 s, {what}");
  });

  it("takes the word that fits the number", () => {
    const said = (n: number) => fill("{n} {n|job runs|jobs run}", { n });
    expect([0, 1, 2].map(said)).toEqual(["0 jobs run", "1 job runs", "2 jobs run"]);
  });

  it("speaks the language that was chosen, else the one the browser asks for", () => {
    expect(firstLanguage("zh", ["en-US"])).toBe("zh");
    expect(firstLanguage(null, ["zh-CN", "en"])).toBe("zh");
    expect(firstLanguage("klingon", ["de"])).toBe("en");
  });
});
