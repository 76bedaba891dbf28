/** Free cards that are not together: sums, and the order in which they are worth a look. */
import type { Schemas } from "@/api/client";

export type Fragments = Schemas["FragmentsOut"];
export type Fragment = Schemas["FragmentOut"];
export type Apart = Schemas["ApartOut"];
export type Typical = Schemas["RequestOut"];

const exact = (milli: number): number => Math.round(milli * 1000) / 1000;

export function sums(nodes: readonly Fragment[]): { cards: number; free: number; unusable: number } {
  const sum = { cards: 0, free: 0, unusable: 0 };
  for (const { cards, free, unusable } of nodes) {
    sum.cards += cards;
    sum.free += free;
    sum.unusable += unusable;
  }
  return { cards: sum.cards, free: exact(sum.free), unusable: exact(sum.unusable) };
}

/** Machines with free cards: those with the most of little use first. */
export function worthALook(nodes: readonly Fragment[], q: string): Fragment[] {
  return nodes
    .filter(({ node, model, free }) => free > 0 && (node.includes(q) || model.toLowerCase().includes(q.toLowerCase())))
    .toSorted((a, b) => b.unusable - a.unusable || b.free - a.free || a.node.localeCompare(b.node, "en", { numeric: true }));
}

/** A few by name; how many are left out. */
export function named(names: readonly string[], most: number): [string, number] {
  const shown = names.length > most + 1 ? names.slice(0, most) : names;
  return [shown.join(", "), names.length - shown.length];
}

/** Cards in whole ones and tenths; never nothing for what is only nearly so. */
export function inCards(amount: number): string {
  if (amount > 0 && amount < 0.05) return "<0.1";
  return String(Math.round(amount * 10) / 10);
}

/** Of the free cards, from 0 to 1, what is stranded for this request. */
export const strandedShare = ({ free, stranded }: Typical): number => (free > 0 ? stranded / free : 0);
