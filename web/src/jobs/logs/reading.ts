/** Reading a log by bytes, as the server has it. */
import { fetched } from "@/api/client";

export interface Which {
  id: string;
  replica: string;
  attempt: number;
}

export interface Stretch {
  data: Uint8Array;
  start: number;
  end: number;
  size: number;
  gap: { from: number; to: number } | null;
}

export function addressOf(which: Which, what: "" | "/follow" | "/download", query: Record<string, string | number | boolean> = {}): string {
  const said = new URLSearchParams({ replica: which.replica, attempt: String(which.attempt) });
  for (const [key, value] of Object.entries(query)) said.set(key, String(value));
  return `/api/v1/workloads/${encodeURIComponent(which.id)}/logs${what}?${said.toString()}`;
}

export async function read(which: Which, offset: number, limit: number): Promise<Stretch> {
  const answer = await fetched(addressOf(which, "", { raw: true, offset, limit }));
  const data = new Uint8Array(await answer.arrayBuffer());
  const said = (name: string) => Number(answer.headers.get(`X-Log-${name}`) ?? 0);
  const gap = /^(\d+)-(\d+)$/.exec(answer.headers.get("X-Log-Gap") ?? "");
  const start = said("Start");
  return { data, start, end: start + data.length, size: said("Size"), gap: gap ? { from: Number(gap[1]), to: Number(gap[2]) } : null };
}

const SAVING_MS = 60_000; // the browser takes hold of it soon after the click

/** The whole log as a file. A link cannot show who asks, so it is fetched, and the browser keeps it until it is saved. */
export async function download(which: Which): Promise<void> {
  const answer = await fetched(addressOf(which, "/download"));
  const name = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition") ?? "")?.[1] ?? "job.log";
  const href = URL.createObjectURL(await answer.blob());
  Object.assign(document.createElement("a"), { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), SAVING_MS);
}

const NEWLINE = 10;

/** Where the first whole line begins in a stretch that was cut anywhere; without one, the first whole character. */
export function firstLine(data: Uint8Array): number {
  const end = data.indexOf(NEWLINE);
  if (end >= 0 && end + 1 < data.length) return end + 1;
  let at = 0;
  while (at < 3 && at < data.length && ((data[at] ?? 0) & 0xc0) === 0x80) at += 1;
  return at;
}

/** Up to the last line end, so that no character is cut in two; without one, all of it. */
export function lastWhole(data: Uint8Array): number {
  const end = data.lastIndexOf(NEWLINE);
  return end < 0 ? data.length : end + 1;
}

export const decoded = (data: Uint8Array): string => new TextDecoder().decode(data);
