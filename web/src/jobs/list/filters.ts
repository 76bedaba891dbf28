/** Which jobs are shown: kept in the address, so that a list can be linked to and survives a reload. */
import type { State } from "@/look/parts";

export const STATES: readonly State[] = ["queued", "placed", "starting", "running", "stopping", "paused", "succeeded", "failed", "stopped"];
const PERSON = /^[a-z][a-z0-9_-]{0,31}$/;

export interface Filters {
  everyone: boolean;
  states: State[];
  search: string;
  group: string;
  owner: string;
}

export function readFilters(params: URLSearchParams): Filters {
  const known = new Set<string>(STATES);
  const states = (params.get("state") ?? "").split(",").filter((word) => known.has(word)) as State[];
  return {
    everyone: params.get("whose") === "all",
    states: STATES.filter((state) => states.includes(state)),
    search: params.get("search") ?? "",
    group: params.get("group") ?? "",
    owner: params.get("owner") ?? "",
  };
}

/** Only what differs from the usual list is written. */
export function writeFilters(filters: Filters): URLSearchParams {
  const params = new URLSearchParams();
  if (filters.everyone) params.set("whose", "all");
  if (filters.states.length > 0) params.set("state", filters.states.join(","));
  for (const key of ["search", "group", "owner"] as const) if (filters[key]) params.set(key, filters[key]);
  return params;
}

export interface JobQuery {
  kind: "job";
  mine?: boolean;
  state?: string;
  search?: string;
  group?: string;
  owner?: string;
}

/** As the server is asked. A name that nobody can have is left out: it is told at its field. */
export function asQuery(filters: Filters): JobQuery {
  const query: JobQuery = { kind: "job" };
  if (!filters.everyone) query.mine = true;
  if (filters.states.length > 0) query.state = filters.states.join(",");
  if (filters.search.trim()) query.search = filters.search.trim().slice(0, 63);
  if (filters.group && canBeAName(filters.group)) query.group = filters.group;
  if (filters.everyone && filters.owner && canBeAName(filters.owner)) query.owner = filters.owner;
  return query;
}

export const canBeAName = (text: string): boolean => PERSON.test(text);

export const isNarrowed = (filters: Filters): boolean =>
  filters.states.length > 0 || filters.search !== "" || filters.group !== "" || filters.owner !== "";
