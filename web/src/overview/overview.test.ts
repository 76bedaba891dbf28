import { describe, expect, it } from "vitest";
import type { Schemas } from "@/api/client";
import { moment } from "@/look/parts";
import { concerns } from "./attention";
import { type Board, type BoardCard, type BoardNode, colourOf, conditionOf, heatOf, inNameOrder, LIGHT, ownersOf, tally, tonesOf } from "./board";
import { changedRows, type Picture } from "./draw";
import { cornerOf, layOut, moved, spotAt } from "./layout";
import { mineAndOurs } from "./QuotaPanel";
import { inPlain, instant, partsOf } from "./Said";

const card = (index: number, more: Partial<BoardCard> = {}): BoardCard => ({ index, device: "nvidia", model: "A100", simulated: false, used: 0, trouble: null, work: [], ...more });
const node = (name: string, cards: BoardCard[], state = "ready"): BoardNode => ({ name, state, cpu: 8, cpu_used: 0, memory: 1, memory_used: 0, labels: {}, cards });
const work = (owner: string | null): Schemas["BoardWork"] => ({ name: owner && "train", owner, group: owner && "vision", kind: "job", state: "running" });
const many = (n: number) => Array.from({ length: n }, (_, i) => node(`node-${i + 1}`, Array.from({ length: 8 }, (__, c) => card(c))));

describe("the sums", () => {
  it("count parts of cards, and a card that is ill or unheard of as neither free nor used", () => {
    const nodes = [
      node("a", [card(0, { used: 0.25 }), card(1), card(2, { used: 1, trouble: "ECC" })]),
      node("b", [card(0, { simulated: true }), card(1, { used: 1 })], "cordoned"),
      node("c", [card(0, { used: 1 })], "lost"),
    ];
    expect(tally(nodes)).toEqual({ nodes: 3, cards: 6, free: 1.75, used: 1.25, unhealthy: 2, closed: 1, simulated: 1 });
    expect(nodes.map((one) => one.cards.map((cell) => conditionOf(one, cell)))).toEqual([["used", "free", "trouble"], ["closed", "used"], ["trouble"]]);
  });

  it("name owners by what they hold, and put together those whose names are not ours to know", () => {
    const board: Board = {
      nodes: [node("a", [card(0, { used: 1, work: ["1"] }), card(1, { used: 0.5, work: ["2"] }), card(2, { used: 1, work: ["3"] }), card(3, { used: 1, work: ["4"] })])],
      works: { 1: work("ann"), 2: work("bob"), 3: work(null), 4: work(null) },
      percent: {},
    };
    expect(ownersOf(board)).toEqual([{ owner: null, cards: 2 }, { owner: "ann", cards: 1 }, { owner: "bob", cards: 0.5 }]);
  });
});

describe("colours", () => {
  it("differ between owners as long as there are enough, and stay the same from day to day", () => {
    const names = ["ann", "bob", "chen", "dora", "emil", "fay", "gus", "hana", "ivan", "jun"];
    const tones = tonesOf(names, LIGHT.owners);
    expect(new Set(tones.values()).size).toBe(names.length);
    expect([...tonesOf(names.toReversed(), LIGHT.owners)]).toEqual([...tones]);
    expect(tonesOf([...names, "kim", "lee"], LIGHT.owners).size).toBe(12);
  });

  it("tell use in steps, measured use before what is given out", () => {
    const busy = node("a", [card(0, { used: 1, work: ["1"] })]);
    const board: Board = { nodes: [busy], works: { 1: work("ann") }, percent: { a: { 0: 5 } } };
    const [cell] = busy.cards;
    expect(cell && colourOf(board, busy, cell, "use", LIGHT, new Map())).toBe(LIGHT.heat[0]);
    expect(cell && colourOf({ ...board, percent: {} }, busy, cell, "use", LIGHT, new Map())).toBe(LIGHT.heat.at(-1));
    expect([0, 0.2, 0.21, 1, 7].map((use) => LIGHT.heat.indexOf(heatOf(use, LIGHT.heat)))).toEqual([0, 0, 1, 4, 4]);
  });
});

describe("the picture", () => {
  it.each([[20, 980], [20, 340], [200, 980], [1000, 1180], [1000, 340], [1, 240]])("finds every card of %i machines on %i pixels where it was drawn", (count, width) => {
    const nodes = many(count);
    const layout = layOut(nodes, width);
    for (const spot of [{ node: 0, card: 0 }, { node: count - 1, card: 7 }, { node: Math.floor(count / 2), card: 3 }]) {
      const { x, y } = cornerOf(layout, spot);
      expect(spotAt(layout, nodes, x + 1, y + 1)).toEqual(spot);
      expect(x + layout.cell).toBeLessThanOrEqual(width);
      expect(y + layout.cell).toBeLessThanOrEqual(layout.height);
    }
    expect(spotAt(layout, nodes, 1, 1)).toBeNull();
    expect(spotAt(layout, nodes, -5, 3)).toBeNull();
  });

  it("is walked through with the arrow keys and never left", () => {
    const nodes = [node("a", [card(0), card(1)]), node("b", [card(0)]), node("c", [])];
    expect(moved({ node: 0, card: 1 }, "ArrowRight", nodes, 3)).toEqual({ node: 0, card: 1 });
    expect(moved({ node: 0, card: 1 }, "ArrowDown", nodes, 3)).toEqual({ node: 1, card: 0 });
    expect(moved({ node: 2, card: 0 }, "PageDown", nodes, 3)).toEqual({ node: 2, card: 0 });
    expect(moved({ node: 1, card: 0 }, "Home", nodes, 3)).toEqual({ node: 0, card: 0 });
    expect(moved({ node: 0, card: 0 }, "x", nodes, 3)).toEqual({ node: 0, card: 0 });
  });

  it("shows machines in the order in which people count", () => {
    expect(inNameOrder([node("n-10", []), node("n-9", []), node("n-1", [])]).map((one) => one.name)).toEqual(["n-1", "n-9", "n-10"]);
  });
});

describe("what needs attention", () => {
  const now = Date.parse("2026-11-16T12:00:00Z") / 1000;
  const job = (id: string, more: object) => ({ id, name: id, kind: "job", reason: "because", reason_code: "waiting.busy", submitted_at: "2026-11-16T11:59:00Z", ...more }) as unknown as Schemas["WorkloadOut"];
  const env = (id: string, more: object) => ({ id, name: id, kind: "env", state: "running", stop_at: null, idle_seconds: null, used_at: null, started_at: "2026-11-16T08:00:00Z", ...more }) as unknown as Schemas["EnvOut"];
  const nothing = { failed: [], queued: [], envs: [], nodes: [] };

  it("is what failed within a day, not before", () => {
    const failed = [job("new", { ended_at: "2026-11-16T02:00:00Z" }), job("old", { ended_at: "2026-11-14T02:00:00Z" })];
    expect(concerns({ ...nothing, failed }, now).map((one) => one.name)).toEqual(["new"]);
  });

  it("is what can never start at once, and what waits for long, longest first", () => {
    const queued = [
      job("fresh", {}),
      job("long", { submitted_at: "2026-11-16T11:30:00Z" }),
      job("longer", { submitted_at: "2026-11-16T09:30:00Z" }),
      job("never", { reason_code: "waiting.never_fits" }),
    ];
    expect(concerns({ ...nothing, queued }, now).map((one) => [one.kind, one.name])).toEqual([["never", "never"], ["waits", "longer"], ["waits", "long"]]);
  });

  it("is an environment that will be stopped soon, by its timer or because nobody uses it", () => {
    const envs = [
      env("timer", { stop_at: "2026-11-16T12:20:00Z" }),
      env("later", { stop_at: "2026-11-16T18:00:00Z" }),
      env("idle", { idle_seconds: 3600, used_at: "2026-11-16T11:05:00Z" }),
      env("used", { idle_seconds: 3600, used_at: "2026-11-16T11:59:00Z" }),
      env("resting", { state: "paused", stop_at: "2026-11-16T12:20:00Z" }),
    ];
    expect(concerns({ ...nothing, envs }, now).map((one) => [one.kind, one.name, "seconds" in one && one.seconds])).toEqual([["timer", "timer", 1200], ["idle", "idle", 300]]);
  });

  it("is a machine that is lost or full, and one with ill cards", () => {
    const nodes = [node("well", [card(0)]), node("gone", [], "lost"), node("full", [], "disk_full"), node("ill", [card(0, { trouble: "ECC" }), card(1)])];
    expect(concerns({ ...nothing, nodes }, now).map((one) => [one.kind, one.name])).toEqual([["lost", "gone"], ["disk_full", "full"], ["cards", "ill"]]);
  });
});

describe("quotas", () => {
  it("are mine first, then my groups', and never another member's", () => {
    const line = (group: string, user: string | null, resource: string) => ({ group, user, resource, limit: 1, guaranteed: 0, used: 0, borrowed: 0, lent: 0 });
    const lines = [line("vision", null, "nvidia"), line("vision", "bob", "nvidia"), line("vision", "ann", "nvidia"), line("other", null, "cpu"), line("vision", null, "cpu")];
    expect(mineAndOurs(lines, "ann", ["vision"]).map((one) => [one.user, one.resource])).toEqual([["ann", "nvidia"], [null, "cpu"], [null, "nvidia"]]);
  });
});

describe("drawing", () => {
  const pictureOf = (nodes: BoardNode[], more: Partial<Picture> = {}): Picture => ({
    board: { nodes, works: {}, percent: NOTHING }, nodes, layout: layOut(nodes, 980), view: "owner", palette: LIGHT, tones: new Map([["ann", "#111111"]]),
    text: "#000000", quiet: "#777777", warn: "#b35900", spot: null, only: undefined, ...more,
  });
  const NOTHING = {};
  const nodes = many(20);

  it("is done again for those machines only that are different", () => {
    const after = nodes.with(7, node("node-8", nodes[7]?.cards ?? [], "cordoned"));
    expect(changedRows(pictureOf(after), pictureOf(nodes))).toEqual([7]);
    expect(changedRows(pictureOf(nodes), pictureOf(nodes))).toEqual([]);
  });

  it.each<[string, Partial<Picture>]>([
    ["colours mean something else", { view: "use" }],
    ["a name has another colour", { tones: new Map([["ann", "#222222"]]) }],
    ["another name has come", { tones: new Map([["ann", "#111111"], ["bob", "#333333"]]) }],
    ["another card is pointed at", { spot: { node: 0, card: 0 } }],
    ["it is wider", { layout: layOut(nodes, 1180) }],
    ["it was measured how busy cards are", { board: { nodes, works: {}, percent: { "node-1": { 0: 5 } } } }],
    ["one owner stands out", { only: "ann" }],
  ])("is done again as a whole when %s", (_, more) => {
    expect(changedRows(pictureOf(nodes, more), pictureOf(nodes))).toBeNull();
  });

  it("is done as a whole for the first time, and when there are more machines", () => {
    expect(changedRows(pictureOf(nodes), null)).toBeNull();
    expect(changedRows(pictureOf(many(21)), pictureOf(nodes))).toBeNull();
  });
});

describe("a sentence of the server", () => {
  it("has commands and ids of work apart from what is plain", () => {
    expect(partsOf("Runs there: b9gt5attxh、q7dar5xre3. Then `yard env start dev2`.")).toEqual(["Runs there: ", "b9gt5attxh", "、", "q7dar5xre3", ". Then ", "`yard env start dev2`", "."]);
    expect(partsOf("It waits for 4 cards.")).toEqual(["It waits for 4 cards."]);
    expect(partsOf("最晚 2026-11-18 03:36:23 UTC 结束。").map(instant)).toEqual(["", "2026-11-18T03:36:23Z", ""]);
    expect(instant("2026-99-18 03:36:23 UTC")).toBe("");
    expect(inPlain("Over by 2026-11-18 03:36:23 UTC, `yard ls`.", "en")).toBe(`Over by ${moment("2026-11-18T03:36:23Z", "en")}, \`yard ls\`.`);
  });
});
