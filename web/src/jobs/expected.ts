/** When something starts or ends, as two moments that are told no more exactly than they are known. */
import type { Schemas } from "@/api/client";
import type { Facts } from "@/words";
import type { jobWords } from "./words";

export type Estimate = Schemas["EstimateOut"];
type Say = (key: keyof typeof jobWords, facts?: Facts) => string;

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
// [when it is less than this away, it is told to so many milliseconds]
const STEPS: readonly [number, number][] = [[10 * MINUTE, MINUTE], [2 * HOUR, 5 * MINUTE], [12 * HOUR, 15 * MINUTE], [3 * DAY, HOUR]];
const COARSEST = 6 * HOUR;

/** The moment, rounded; the late one (`up`) is never told too early. */
export function rounded(at: number, now: number, up: boolean): Date {
  const step = STEPS.find(([below]) => at - now < below)?.[1] ?? COARSEST;
  const midnight = new Date(at).setHours(0, 0, 0, 0);
  const steps = (at - midnight) / step;
  return new Date(midnight + step * (up ? Math.ceil(steps) : Math.round(steps)));
}

/** The time of day, with the date unless it is today. */
export function clock(at: Date, now: number, language: string): string {
  const today = at.toDateString() === new Date(now).toDateString();
  const date: Intl.DateTimeFormatOptions = today ? {} : { month: "2-digit", day: "2-digit" };
  return new Intl.DateTimeFormat(language === "zh" ? "zh-CN" : "en-GB", { ...date, hour: "2-digit", minute: "2-digit" }).format(at);
}

function moments(estimate: Estimate | null | undefined): [number, number] | null {
  return estimate?.p50 && estimate.p90 ? [Date.parse(estimate.p50), Date.parse(estimate.p90)] : null;
}

/** For a cell: empty when nobody knows. */
export function inShort(estimate: Estimate | null | undefined, what: "start" | "end", now: number, language: string, say: Say): string {
  const found = moments(estimate);
  if (found === null) return "";
  const [middle, late] = found;
  if (late - now < MINUTE) return say(what === "start" ? "startsSoon" : "endsSoon");
  const facts = { middle: clock(rounded(middle, now, false), now, language), late: clock(rounded(late, now, true), now, language) };
  return say(what === "start" ? "startsAbout" : "endsAbout", facts);
}

/** For a line of its own: also why nobody knows. */
export function inWords(estimate: Estimate | null | undefined, now: number, language: string, say: Say): string {
  if (estimate?.unknown) return estimate.unknown;
  const found = moments(estimate);
  if (found === null) return "";
  const [middle, late] = found;
  if (late - now < MINUTE) return say("anyMoment");
  const facts = { middle: clock(rounded(middle, now, false), now, language), late: clock(rounded(late, now, true), now, language) };
  return say("aboutThen", facts) + (estimate?.rough ? ` ${say("roughly")}` : "");
}
