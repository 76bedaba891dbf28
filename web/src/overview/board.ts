/** What the picture of the cluster says, apart from how it is drawn: what each card is, in which colour, and the sums. */
import type { Schemas } from "@/api/client";

export type Board = Schemas["BoardOut"];
export type BoardNode = Schemas["BoardNode"];
export type BoardCard = Schemas["BoardCard"];
export type BoardWork = Schemas["BoardWork"];
export type View = "owner" | "use" | "health";
export type Condition = "free" | "used" | "trouble" | "closed";

/** Why nothing new starts on a card: it is ill or unheard of (trouble), or its machine is closed for a while. */
export function conditionOf(node: BoardNode, card: BoardCard): Condition {
  if (card.trouble || node.state === "lost") return "trouble";
  if (card.used > 0) return "used";
  return node.state === "ready" ? "free" : "closed";
}

export interface Tally {
  nodes: number;
  cards: number;
  free: number;
  used: number;
  unhealthy: number;
  closed: number;
  simulated: number;
}

/** Cards, in whole ones and parts of them. What is used on an ill card counts as ill. */
export function tally(nodes: readonly BoardNode[]): Tally {
  const sum: Tally = { nodes: nodes.length, cards: 0, free: 0, used: 0, unhealthy: 0, closed: 0, simulated: 0 };
  for (const node of nodes) {
    for (const card of node.cards) {
      const condition = conditionOf(node, card);
      sum.cards += 1;
      if (card.simulated) sum.simulated += 1;
      if (condition === "trouble") sum.unhealthy += 1;
      else {
        sum.used += card.used;
        if (node.state === "ready") sum.free += 1 - card.used;
        else sum.closed += 1 - card.used;
      }
    }
  }
  for (const key of ["free", "used", "closed"] as const) sum[key] = Math.round(sum[key] * 100) / 100;
  return sum;
}

/** Whose a card is: a name, or null for work that is not ours to see. Of several owners the first counts. */
export function ownerOf(card: BoardCard, works: Board["works"]): string | null | undefined {
  if (card.used <= 0) return undefined;
  for (const id of card.work) {
    const owner = works[id]?.owner;
    if (owner) return owner;
  }
  return null;
}

/** Owners by the cards they hold, most first; `null` stands for all whose names are not ours to know. */
export function ownersOf(board: Board): { owner: string | null; cards: number }[] {
  const held = new Map<string | null, number>();
  for (const node of board.nodes) {
    for (const card of node.cards) {
      const owner = ownerOf(card, board.works);
      if (owner !== undefined) held.set(owner, (held.get(owner) ?? 0) + card.used);
    }
  }
  return [...held]
    .map(([owner, cards]) => ({ owner, cards: Math.round(cards * 100) / 100 }))
    .toSorted((a, b) => b.cards - a.cards || (a.owner ?? "~").localeCompare(b.owner ?? "~"));
}

export interface Palette {
  free: string;
  edge: string;
  foreign: string;
  closed: string;
  bad: string;
  good: string;
  mark: string;
  owners: readonly string[];
  heat: readonly string[];
}

// Tones that can be told apart, also by those who see red and green alike; each stands 3:1 off its ground.
export const LIGHT: Palette = {
  free: "#e9edf3", edge: "#8a94a3", foreign: "#7d8794", closed: "#c9cfd8", bad: "#c02b2b", good: "#1a7f37", mark: "#1c2430",
  owners: ["#1554ad", "#b35900", "#00796b", "#8e3fa8", "#9c6b00", "#c2326e", "#3f6b1d", "#4553c6", "#7a4a2b", "#00708f"],
  heat: ["#a8c7ee", "#6fa3e0", "#3c7fce", "#1b5fb0", "#0d3f80"],
};
export const DARK: Palette = {
  free: "#222a35", edge: "#6f7a89", foreign: "#848e9c", closed: "#3a4452", bad: "#ff7b72", good: "#4cc76a", mark: "#ffffff",
  owners: ["#5b9cff", "#f0984a", "#3fc4b2", "#c58be0", "#e0b84a", "#f07bab", "#8fc45a", "#8f9bff", "#c9936c", "#45bcdc"],
  heat: ["#294a73", "#2f66a6", "#4585d6", "#79aef2", "#b5d5ff"],
};

function slotOf(name: string, slots: number): number {
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return sum % slots;
}

/** The same name has the same colour from day to day, unless another one has it already; then the next that is left. */
export function tonesOf(names: Iterable<string>, tones: readonly string[]): ReadonlyMap<string, string> {
  const chosen = new Map<string, string>();
  let left = new Set(tones);
  for (const name of [...new Set(names)].toSorted()) {
    if (left.size === 0) left = new Set(tones);
    let slot = slotOf(name, tones.length);
    while (!left.has(tones[slot] ?? "")) slot = (slot + 1) % tones.length;
    const tone = tones[slot] ?? "";
    left.delete(tone);
    chosen.set(name, tone);
  }
  return chosen;
}

/** Everybody who has a name on this board. */
export function namesOn(board: Board): Set<string> {
  const names = new Set<string>();
  for (const node of board.nodes) for (const card of node.cards) for (const id of card.work) names.add(board.works[id]?.owner ?? "");
  names.delete("");
  return names;
}

/** How busy a card is, 0 to 1: as measured, or, while nothing was measured, as far as it is given out. */
export function useOf(board: Board, node: BoardNode, card: BoardCard): number {
  const percent = board.percent[node.name]?.[card.index];
  return percent === undefined ? card.used : percent / 100;
}

export function heatOf(use: number, tones: readonly string[]): string {
  const step = Math.min(tones.length - 1, Math.max(0, Math.ceil(use * tones.length) - 1));
  return tones[step] ?? "#888888";
}

/** The colour of a card that is given out, or ill; null where it is left as free or closed. */
export function colourOf(
  board: Board,
  node: BoardNode,
  card: BoardCard,
  view: View,
  palette: Palette,
  tones: ReadonlyMap<string, string>,
): string | null {
  const condition = conditionOf(node, card);
  if (condition === "trouble") return palette.bad;
  if (view === "health") return condition === "closed" || node.state !== "ready" ? null : palette.good;
  if (condition !== "used") return null;
  if (view === "use") return heatOf(useOf(board, node, card), palette.heat);
  const owner = ownerOf(card, board.works);
  return (owner && tones.get(owner)) || palette.foreign;
}

const inOrder = new Intl.Collator("en", { numeric: true });
/** node-2 before node-10. */
export function inNameOrder(nodes: readonly BoardNode[]): BoardNode[] {
  return nodes.toSorted((a, b) => inOrder.compare(a.name, b.name));
}
