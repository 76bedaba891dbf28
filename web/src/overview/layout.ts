/** Where every machine and every card stands in the picture, and which one is at a point. Pure numbers. */
import type { BoardNode } from "./board";

export interface Layout {
  cell: number;
  gap: number;
  row: number;
  label: number;
  block: number;
  between: number;
  perColumn: number;
  columns: number;
  width: number;
  height: number;
}

export interface Spot {
  node: number;
  card: number;
}

const LEAST_BETWEEN = 20; // columns of machines
const MOST_BETWEEN = 64;
const SIZES = [
  { upTo: 48, cell: 20, gap: 3 },
  { upTo: 240, cell: 14, gap: 2 },
  { upTo: Infinity, cell: 9, gap: 1 },
] as const;

/** Machines are rows, one below the other, in as many columns as the width has room for. */
export function layOut(nodes: readonly BoardNode[], width: number): Layout {
  const size = SIZES.find((one) => nodes.length <= one.upTo) ?? SIZES[2];
  const cards = Math.max(1, nodes.reduce((most, node) => Math.max(most, node.cards.length), 0));
  const longest = nodes.reduce((most, node) => Math.max(most, node.name.length), 0);
  const label = Math.min(longest * 7 + 12, size.cell >= 14 ? 150 : 92, Math.max(40, width * 0.35));
  const { cell, gap } = fitted(size, cards, width - label);
  const row = Math.max(cell + gap + (size.cell >= 14 ? 4 : 2), 11);
  const block = label + cards * (cell + gap);
  const columns = Math.max(1, Math.min(Math.floor((width + LEAST_BETWEEN) / (block + LEAST_BETWEEN)), Math.ceil(nodes.length / 6) || 1));
  const perColumn = Math.ceil(nodes.length / columns) || 1;
  const spare = columns > 1 ? (width - columns * block) / (columns - 1) : LEAST_BETWEEN;
  const between = Math.floor(Math.min(MOST_BETWEEN, Math.max(LEAST_BETWEEN, spare)));
  return { cell, gap, row, label, block, between, perColumn, columns, width, height: perColumn * row };
}

/** Cells are made smaller where even one machine would not fit. */
function fitted(size: { cell: number; gap: number }, cards: number, room: number): { cell: number; gap: number } {
  const step = Math.floor(room / cards);
  if (step >= size.cell + size.gap) return size;
  return step >= 6 ? { cell: step - 1, gap: 1 } : { cell: Math.max(2, step), gap: 0 };
}

export function cornerOf(layout: Layout, spot: Spot): { x: number; y: number } {
  const column = Math.floor(spot.node / layout.perColumn);
  return {
    x: column * (layout.block + layout.between) + layout.label + spot.card * (layout.cell + layout.gap),
    y: (spot.node % layout.perColumn) * layout.row + Math.floor((layout.row - layout.cell) / 2),
  };
}

/** The card at a point, the gap beside it included; null between and beside machines. */
export function spotAt(layout: Layout, nodes: readonly BoardNode[], x: number, y: number): Spot | null {
  const column = Math.floor(x / (layout.block + layout.between));
  const line = Math.floor(y / layout.row);
  if (x < 0 || y < 0 || column >= layout.columns || line >= layout.perColumn) return null;
  const node = column * layout.perColumn + line;
  const card = Math.floor((x - column * (layout.block + layout.between) - layout.label) / (layout.cell + layout.gap));
  const there = nodes[node]?.cards.length ?? 0;
  return card >= 0 && card < there ? { node, card } : null;
}

/** Where an arrow key leads: along the machine, or to the same card of the next one. */
export function moved(spot: Spot, key: string, nodes: readonly BoardNode[], perColumn: number): Spot {
  const last = nodes.length - 1;
  const steps: Record<string, [number, number]> = {
    ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], PageUp: [-perColumn, 0], PageDown: [perColumn, 0],
  };
  if (key === "Home") return { node: 0, card: 0 };
  if (key === "End") return { node: Math.max(0, last), card: 0 };
  const step = steps[key];
  if (!step || last < 0) return spot;
  const node = Math.min(last, Math.max(0, spot.node + step[0]));
  const cards = nodes[node]?.cards.length ?? 0;
  return { node, card: Math.min(Math.max(0, cards - 1), Math.max(0, spot.card + step[1])) };
}
