import { describe, expect, it } from "vitest";
import { FIRST_TEXT, hasCommand, meant, shapeOf, textOf, withChanges, withEnv, withValue } from "./draft";
import { aboutAt, keysAt, pathAbove, type Schema, valuesAt } from "./help";
import { atField, besideFields, fieldOf, placeOf, positionOf } from "./problems";

const valuesOf = (text: string) => {
  const shape = shapeOf(text);
  if (shape.kind !== "form") throw new Error(shape.kind);
  return shape.values;
};

describe("form and YAML", () => {
  it("are the same job: what the form writes it reads again", () => {
    let text = FIRST_TEXT;
    expect(hasCommand(text)).toBe(false);
    text = withValue(text, ["command"], "python3 train.py\necho done");
    text = withValue(text, ["cards"], meant("0.5"));
    text = withValue(text, ["memory"], meant("16G"));
    text = withValue(text, ["preemptible"], true);
    text = withEnv(text, [["LR", "0.1"], ["EMPTY", ""], ["", "not yet"]]);
    const values = valuesOf(text);
    expect(values).toMatchObject({ command: "python3 train.py\necho done", cards: "0.5", memory: "16G", preemptible: true });
    expect(values.env).toEqual([["LR", "0.1"], ["EMPTY", ""]]);
    expect(hasCommand(text)).toBe(true);
  });

  it.each([
    ["for nothing", "command: *.py\n"],
    ["for nothing, merged", "<<: *base\ncommand: x\n"],
    ["for itself", "command: x\nname: &me [*me]\n"],
    ["for far too much", `a: &a [1,1,1,1,1]\n${["b", "c", "d", "e"].map((key, at) => `${key}: &${key} [${`*${"abcd"[at]},`.repeat(9)}1]\n`).join("")}`],
  ])("leave a text alone in which something stands %s", (_what, text) => {
    expect(shapeOf(text)).toEqual({ kind: "broken" });
    expect(withValue(text, ["cards"], 1)).toBe(text);
    expect(withChanges(text, { cards: "2" })).toBe(text);
    expect(hasCommand(text)).toBe(true); // what is wrong with it, the server says
  });

  it("keep comments and what the form does not know", () => {
    const text = "# my job\ncommand: x  # why\nmounts:\n  - {volume: home, at: /data}\n";
    const changed = withValue(text, ["cards"], 2);
    expect(changed).toContain("# my job");
    expect(changed).toContain("# why");
    expect(changed).toContain("volume: home");
    expect(withValue(changed, ["cards"], undefined)).not.toContain("cards");
  });

  it("never change a text that cannot be read", () => {
    const broken = "command: [\n";
    expect(shapeOf(broken).kind).toBe("broken");
    expect(withValue(broken, ["cards"], 1)).toBe(broken);
    expect(shapeOf("- a\n- b\n").kind).toBe("broken");
  });

  it("write into an empty text", () => {
    expect(withValue("", ["command"], "echo")).toBe("command: echo\n");
  });

  it("keep hostile values as the text they are", () => {
    const nasty = "<script>alert(1)</script>: \"'\n---\n- #x";
    expect(valuesOf(withEnv("command: x\n", [["A", nasty]])).env).toEqual([["A", nasty]]);
    expect(valuesOf(withValue("command: x\n", ["name"], nasty)).name).toBe(nasty);
  });

  it("take over the changes that the server offers", () => {
    expect(valuesOf(withChanges("command: x\ncards: 8\nmodels: [A100]\n", { cards: "2", models: "" }))).toMatchObject({ cards: "2" });
    expect(withChanges("command: x\nmodels: [A100]\n", { models: "" })).not.toContain("models");
    expect(withChanges("command: x\ncpu: 8\n", { "roles.worker.cpu": "2" })).toBe("command: x\ncpu: 2\n");
    expect(withChanges("roles:\n  ps:\n    command: x\n    cards: 4\n", { "roles.ps.cards": "1" })).toContain("cards: 1");
    expect(withChanges("command: x\n", { preemptible: "true", max_time: "10m" })).toBe("command: x\npreemptible: true\nmax_time: 10m\n");
  });

  it("show roles and lists only as YAML", () => {
    expect(shapeOf("roles:\n  a:\n    command: x\n").kind).toBe("roles");
    expect(valuesOf("command: [python3, -c, x]\nretries: {oom: 1}\n")).toMatchObject({ command: null, retries: null });
  });

  it("open a copy of another job", () => {
    expect(valuesOf(textOf({ name: "demo", command: "a\nb", cards: 2, env: { A: "1" } }))).toMatchObject({ name: "demo", command: "a\nb", cards: "2" });
  });
});

describe("problems", () => {
  const problem = (facts: Record<string, unknown>) => ({ code: "c", message: "no", facts });

  it("are told at their line", () => {
    expect(placeOf(problem({ line: 3, column: 8 }))).toEqual({ line: 3, column: 8 });
    expect(placeOf(problem({ at: "cards" }))).toBeNull();
    expect(positionOf("ab\ncards: x\nz", { line: 2, column: 8 })).toEqual([10, 11]);
    expect(positionOf("ab", { line: 99, column: 99 })).toEqual([2, 2]);
  });

  it("are told at their field", () => {
    expect(fieldOf(problem({ at: "roles.worker.cards" }))).toBe("cards");
    expect(fieldOf(problem({ at: "", key: "command" }))).toBe("command");
    expect(fieldOf(problem({}))).toBeNull();
    expect(atField([problem({ at: "env.A B" })], "env")).toBe("no");
    expect(atField([problem({ at: "cpu" })], "env")).toBeUndefined();
    const placed = (message: string) => ({ ...problem({ at: "memory", line: 3, column: 9 }), message });
    expect(atField([placed("line 3, column 9 (memory): `lots` is not allowed, as in: 16G")], "memory")).toBe("`lots` is not allowed, as in: 16G");
    expect(atField([placed("第 3 行第 9 列（memory）：`lots` 不行")], "memory")).toBe("`lots` 不行");
    expect(atField([placed("No: it is too much")], "memory")).toBe("No: it is too much");
    expect(besideFields([problem({ at: "memory" }), problem({ at: "ports" })])).toEqual([problem({ at: "ports" })]);
  });
});

describe("help from the schema", () => {
  const role: Schema = { properties: { cards: { description: "Cards.", default: 0 }, device: { enum: ["nvidia", "ascend"] } } };
  const schema: Schema = {
    properties: { name: { description: "A name." }, preemptible: { type: "boolean" }, roles: { additionalProperties: { $ref: "#/$defs/role" } } },
    $defs: { role },
  };
  const lines = ["name: x", "roles:", "  # the trainers", "  worker:", "    cards: 1", "    "];

  it("knows which keys may stand where", () => {
    expect(pathAbove(lines, 5, 4)).toEqual(["roles", "worker"]);
    expect(keysAt(schema, ["roles", "worker"], new Set(["cards"])).map((one) => one.label)).toEqual(["device"]);
    expect(keysAt(schema, [], new Set()).map((one) => one.label)).toEqual(["name", "preemptible", "roles"]);
    expect(keysAt(schema, ["nowhere", "at", "all"], new Set())).toEqual([]);
  });

  it("knows values and what keys mean", () => {
    expect(valuesAt(schema, ["roles", "worker", "device"])).toEqual(["nvidia", "ascend"]);
    expect(valuesAt(schema, ["preemptible"])).toEqual(["true", "false"]);
    expect(aboutAt(schema, ["roles", "worker", "cards"])).toBe("Cards. (0)");
    expect(aboutAt(schema, ["unknown"])).toBe("");
  });
});
