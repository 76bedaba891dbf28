/** The ledger's sums as bars: what is taken away, one after the other, and where each bar begins. */
import type { Schemas } from "@/api/client";

export type Bucket = Schemas["Bucket"];
export type Sums = Pick<Schemas["LedgerSums"], "capacity" | "buckets">;

export const CARD_HOUR = 3_600_000_000; // in thousandths of a card times milliseconds

export interface Step {
  bucket: Bucket | "capacity";
  amount: number;
  /** Of the whole, from 0 to 1. */
  share: number;
  /** Where the bar begins, from 0 to 1. */
  from: number;
}

/** The whole first, then each bucket in the server's order, hanging where the one before has left off. */
export function waterfall({ capacity, buckets }: Sums): Step[] {
  if (capacity <= 0) return [];
  const found: Step[] = [{ bucket: "capacity", amount: capacity, share: 1, from: 0 }];
  let left = capacity;
  for (const [bucket, amount] of inOrder(buckets)) {
    left -= amount;
    found.push({ bucket, amount, share: amount / capacity, from: Math.max(0, left / capacity) });
  }
  return found;
}

/** The same buckets side by side, what worked first. */
export function stacked({ capacity, buckets }: Sums): Step[] {
  if (capacity <= 0) return [];
  let from = 0;
  return inOrder(buckets).toReversed().map(([bucket, amount]) => {
    const step = { bucket, amount, share: amount / capacity, from };
    from += step.share;
    return step;
  });
}

const inOrder = (buckets: Sums["buckets"]) => Object.entries(buckets) as [Bucket, number][];

export const shareOf = ({ capacity, buckets }: Sums, bucket: Bucket): number => (buckets[bucket] ?? 0) / (capacity || 1);

/** Never 0 % nor 100 % for what is only nearly so. */
export function percent(share: number): string {
  if (share > 0 && share < 0.001) return "<0.1 %";
  if (share < 1 && share > 0.999) return ">99.9 %";
  return `${(share * 100).toFixed(1)} %`;
}

export function cardHours(amount: number, language: string): string {
  const hours = amount / CARD_HOUR;
  const digits = hours < 10 ? 2 : hours < 1000 ? 1 : 0;
  return hours.toLocaleString(language === "zh" ? "zh-CN" : "en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
