/** Measurements as lines to draw. */
import type { Schemas } from "@/api/client";

export interface Line {
  name: string;
  points: [at: number, value: number][];
}

type Point = Schemas["UsagePoint"];
const MOST_LINES = 16; // more than these nobody can tell apart

const known = (points: readonly [number, number | null | undefined][]): [number, number][] =>
  points.filter((point): point is [number, number] => point[1] !== null && point[1] !== undefined);

export function lines(items: readonly Schemas["ReplicaSeries"][], value: (point: Point) => number | null): Line[] {
  return items
    .slice(0, MOST_LINES)
    .map((one) => ({ name: one.replica, points: known(one.points.map((point) => [Date.parse(point.at), value(point)])) }))
    .filter((line) => line.points.length > 0);
}

/** One line for each card of each replica. */
export function cardLines(items: readonly Schemas["ReplicaSeries"][], value: (card: Schemas["CardUseOut"]) => number | null): Line[] {
  const found: Line[] = [];
  for (const one of items) {
    const indices = [...new Set(one.points.flatMap((point) => point.cards.map((card) => card.index)))];
    for (const index of indices.toSorted((a, b) => a - b)) {
      const points = one.points.map((point): [number, number | null | undefined] => {
        const card = point.cards.find((candidate) => candidate.index === index);
        return [Date.parse(point.at), card && value(card)];
      });
      found.push({ name: `${one.replica} · ${index}`, points: known(points) });
    }
  }
  return found.filter((line) => line.points.length > 0).slice(0, MOST_LINES);
}

/** The largest of the newest values, and the largest of all. */
export function extremes(found: readonly Line[]): { now: number; most: number } {
  const largest = (values: readonly number[]) => Math.max(0, ...values);
  return {
    now: largest(found.map(({ points }) => points.at(-1)?.[1] ?? 0)),
    most: largest(found.map(({ points }) => largest(points.map(([, value]) => value)))),
  };
}

/** Two digits that count, of large numbers all before the point. */
export const plainNumber = (value: number): string => String(Number(value < 1 ? value.toPrecision(2) : value.toFixed(2)));
