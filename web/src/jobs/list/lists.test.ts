import { describe, expect, it } from "vitest";
import { extended, marksOf, opened, refreshed } from "./book";
import { asQuery, isNarrowed, readFilters, writeFilters } from "./filters";

const rows = (...ids: string[]) => ids.map((id) => ({ id }));
const ids = (book: { rows: { id: string }[] }) => book.rows.map((row) => row.id).join("");

describe("filters", () => {
  it("come back from the address as they were written to it", () => {
    const filters = { everyone: true, states: ["queued", "failed"] as const, search: "a&b=c", group: "vision", owner: "ann" };
    expect(readFilters(writeFilters({ ...filters, states: [...filters.states] }))).toEqual(filters);
  });

  it("show one's own jobs when the address says nothing, and leave the address alone", () => {
    const usual = readFilters(new URLSearchParams());
    expect(asQuery(usual)).toEqual({ kind: "job", mine: true });
    expect(isNarrowed(usual)).toBe(false);
    expect(writeFilters(usual).toString()).toBe("");
  });

  it("do not send the server what it cannot mean", () => {
    const odd = readFilters(new URLSearchParams("whose=all&state=running,<b>&owner=No Body&group=../x&search=%20"));
    expect(asQuery(odd)).toEqual({ kind: "job", state: "running" });
  });
});

describe("a list read in pages", () => {
  const two = extended(opened({ items: rows("a", "b", "c"), next: "c" }), "c", { items: rows("d", "e", "f"), next: "f" });

  it("grows by the page that follows, once", () => {
    expect(ids(two)).toBe("abcdef");
    expect(extended(two, "c", { items: rows("x"), next: null })).toBe(two);
  });

  it("takes in new rows at the top and keeps what is behind", () => {
    const fresh = refreshed(two, two.marks[0] ?? { cursor: null, after: null }, { items: rows("N", "a", "b"), next: "b" });
    expect(ids(fresh)).toBe("Nabcdef");
    expect(fresh.next).toBe("f");
  });

  it("drops rows that are no longer meant, wherever they were", () => {
    const first = refreshed(two, two.marks[0] ?? { cursor: null, after: null }, { items: rows("a", "c", "d"), next: "d" });
    expect(ids(first)).toBe("acdef");
    const second = refreshed(two, two.marks[1] ?? { cursor: null, after: null }, { items: rows("d", "f"), next: null });
    expect(ids(second)).toBe("abcdf");
    expect(second.next).toBeNull();
  });

  it("begins anew below a page that nothing is known of any more", () => {
    const fresh = refreshed(two, two.marks[0] ?? { cursor: null, after: null }, { items: rows("x", "y"), next: "y" });
    expect([ids(fresh), fresh.next, fresh.marks.length]).toEqual(["xy", "y", 1]);
  });

  it("looks again at the first page and at those in view", () => {
    const three = extended(two, "f", { items: rows("g", "h", "i"), next: null });
    expect(marksOf(three, 7, 8).map((mark) => mark.cursor)).toEqual([null, "f"]);
    expect(marksOf(three, 0, 1).map((mark) => mark.cursor)).toEqual([null]);
  });
});
