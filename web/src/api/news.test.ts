import { describe, expect, it } from "vitest";
import type { Schemas } from "./client";
import type { News } from "./live";
import { patchBoard } from "./news";

const node = (name: string, state = "ready"): Schemas["BoardNode"] => ({
  name,
  state,
  cpu: 8,
  cpu_used: 0,
  memory: 0,
  memory_used: 0,
  labels: {},
  cards: [],
});
const news = (...nodes: Schemas["BoardNode"][]): News => ({ workloads: [], many: false, line: false, nodes, works: {}, kinds: [] });
const board = { nodes: [node("a"), node("b")], works: {}, percent: {} };

describe("news of the board", () => {
  it("put changed rows where they were, add new ones, and take away those that are gone", () => {
    const after = patchBoard(board, news(node("b", "gone"), node("a", "lost"), node("c")));
    expect(after?.nodes.map((one) => [one.name, one.state])).toEqual([["a", "lost"], ["c", "ready"]]);
  });

  it("leave a board alone that they do not concern", () => {
    expect(patchBoard(board, news())).toBe(board);
  });
});
