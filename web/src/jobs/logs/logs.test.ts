import { describe, expect, it } from "vitest";
import { MOST_SPANS, plain, spans } from "./ansi";
import { linesOf, overwritten, settled } from "./lines";
import { LogWindow, MOST_LINES } from "./window";

const ESC = "\x1b";

describe("colours", () => {
  it("are spans of text with a style that lasts until it is changed", () => {
    const { spans: found, end } = spans(`a${ESC}[1;31mb${ESC}[0mc${ESC}[38;5;196md${ESC}[48;2;1;2;3me`);
    expect(found.map((span) => span.text)).toEqual(["a", "b", "c", "d", "e"]);
    expect(found[1]?.style).toEqual({ bold: true, fg: "var(--ansi-1)" });
    expect(found[2]?.style).toEqual({});
    expect(found[3]?.style).toEqual({ fg: "rgb(255, 0, 0)" });
    expect(end).toEqual({ fg: "rgb(255, 0, 0)", bg: "rgb(1, 2, 3)" });
  });

  it("of the line before go on", () => {
    const { end } = spans(`${ESC}[32mgreen`);
    expect(spans("still", end).spans).toEqual([{ text: "still", style: { fg: "var(--ansi-2)" } }]);
  });

  it.each([
    ["moves of the cursor and clearing", `a${ESC}[2J${ESC}[1;1H${ESC}[?25lb`, "ab"],
    ["titles and links", `a${ESC}]0;evil title\x07b${ESC}]8;;javascript:alert(1)${ESC}\\c`, "abc"],
    ["device strings that never end", `a${ESC}P1;2q###`, "a"],
    ["escapes cut off at the end", `a${ESC}[38;5`, "a"],
    ["a bare escape", `a${ESC}`, "a"],
    ["other control characters and turned writing", "a\x00\x08b\u202Egpj.exe\u2066", "abgpj.exe"],
  ])("%s are left out", (_what, line, text) => {
    expect(plain(line)).toBe(text);
    expect(spans(line).spans.map((span) => span.text).join("")).toBe(text);
  });

  it("never let a colour say more than a colour", () => {
    for (const said of ["38;2;999;0;0", "38;5;256", "38;5;-1", "48;2;a;b;c", "38", "38;7"]) {
      expect(spans(`${ESC}[${said}mx`).spans.every((span) => !span.style.fg || /^(rgb\(\d+, \d+, \d+\)|var\(--ansi-\d+\))$/.test(span.style.fg))).toBe(true);
    }
    expect(spans(`${ESC}[31;1mred`).spans[0]?.style.fg).toBe("var(--ansi-1)");
  });

  it("are read in one go however many a line asks for, and shown as far as anybody could tell them apart", () => {
    const asked = spans(`${ESC}[${"38;5;1;".repeat(40_000)}4mx`);
    expect(asked.spans).toEqual([{ text: "x", style: { fg: "var(--ansi-1)", underline: true } }]);
    const motley = spans(`${ESC}[31ma${ESC}[32mb`.repeat(20_000)).spans;
    expect(motley.length).toBeLessThanOrEqual(MOST_SPANS + 1);
    expect(motley.map((span) => span.text).join("")).toBe("ab".repeat(20_000));
  });

  it("leave markup as the text it is", () => {
    expect(plain("<img src=x onerror=alert(1)>")).toBe("<img src=x onerror=alert(1)>");
  });
});

describe("lines that are written over", () => {
  it("show their last state, with what sticks out of the one before", () => {
    expect(overwritten("10%\r55%\r100%\r")).toBe("100%");
    expect(overwritten("downloading\rdone")).toBe("doneloading");
    expect(overwritten("windows line\r")).toBe("windows line");
    expect(overwritten(`x\r${ESC}[Kdone`)).toBe(`${ESC}[Kdone`);
    expect(overwritten(`${ESC}[31mlonger\rab\rc`)).toBe("cb");
    expect(overwritten("\r\r")).toBe("");
  });

  it("take no longer than they are long, though each state be laid over a long one", () => {
    expect(overwritten("X".repeat(150_000) + "\rab\rc".repeat(20_000))).toBe(`cb${"X".repeat(149_998)}`);
  });

  it("stay short however long it goes on", () => {
    let line = "";
    for (let n = 0; n < 20_000; n += 1) line = settled(`${line}\r${n}%`);
    expect(line.length).toBeLessThan(9000);
    expect(overwritten(line)).toBe("19999%");
  });

  it("are cut where the output was cut", () => {
    expect(linesOf("a\n\nb")).toEqual({ lines: ["a", "", "b"], open: true });
    expect(linesOf("a\n")).toEqual({ lines: ["a"], open: false });
  });
});

describe("the stretch of a log in memory", () => {
  const all = (log: LogWindow) => Array.from({ length: log.count }, (_, line) => log.line(line));

  it("joins lines over the borders of pieces, at both ends", () => {
    const log = new LogWindow();
    log.append("c\nd", 1000, 1003);
    log.append("e", 1003, 1004);
    log.append("f\ng\n", 1004, 1008);
    expect(log.prepend({ text: "a\nb", from: 997, to: 1000 })).toBe(1);
    expect(all(log)).toEqual(["a", "bc", "def", "g"]);
    expect([log.from, log.to]).toEqual([997, 1008]);
  });

  it("joins a line that runs through several pieces", () => {
    const log = new LogWindow();
    log.append("tail\n", 300, 305);
    log.prepend({ text: "middle-", from: 200, to: 300 });
    log.prepend({ text: "top\nhead-", from: 100, to: 200 });
    log.append("next", 305, 309);
    expect(all(log)).toEqual(["top", "head-middle-tail", "next"]);
  });

  it("has a line for what is no longer kept", () => {
    const log = new LogWindow();
    log.append("head\n", 0, 5);
    log.appendGap(5, 1005);
    log.append("tail", 1005, 1009);
    expect(log.count).toBe(3);
    expect([log.gapAt(0), log.gapAt(1), log.gapAt(2)]).toEqual([null, 1000, null]);
  });

  it("lets go of the oldest or the newest when there is too much, and counts right after that", () => {
    const many = Array.from({ length: 60_000 }, (_, n) => `line ${n}`).join("\n") + "\n";
    const log = new LogWindow();
    for (let n = 0; n < 4; n += 1) log.append(many, n * many.length, (n + 1) * many.length);
    expect(log.isFull).toBe(true);
    const left = log.trimHead();
    expect(left).toBe(120_000);
    expect(log.count).toBeLessThanOrEqual(MOST_LINES);
    expect(log.line(0)).toBe("line 0");
    expect(log.line(log.count - 1)).toBe("line 59999");
    log.prepend({ text: many, from: 0, to: many.length });
    expect(log.trimTail()).toBe(true);
    expect(log.line(log.count - 1)).toBe("line 59999");
  });
});
