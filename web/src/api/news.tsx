/** News, taken in: what pages have asked for is asked for again when it changed, and the board is kept current. */
import { type QueryClient, useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { Schemas } from "./client";
import { listen, type News, type Told } from "./live";

/** Every question begins with one of these, so that news know whom they concern. */
export const keys = {
  board: ["board"] as const,
  queue: ["queue"] as const,
  workloads: (...more: unknown[]) => ["workloads", ...more] as const,
  workload: (id: string, ...more: unknown[]) => ["workload", id, ...more] as const,
  envs: ["envs"] as const,
  quota: ["quota"] as const,
  people: (...more: unknown[]) => ["people", ...more] as const,
  policy: ["policy"] as const,
};

const GATHER_MS = 400; // lists are loaded again at most this often

interface LiveState {
  down: boolean;
  stale: boolean;
}

const LiveContext = createContext<LiveState>({ down: false, stale: false });
export const useLiveState = (): LiveState => useContext(LiveContext);

/** Done whenever the connection is back. */
export function useWhenBack(act: () => void): void {
  const { down } = useLiveState();
  const before = useRef(down);
  useEffect(() => {
    if (before.current && !down) act();
    before.current = down;
  });
}

/** The board with changed rows in their places; rows of machines that are gone leave. */
export function patchBoard(board: Schemas["BoardOut"] | undefined, news: News): Schemas["BoardOut"] | undefined {
  if (!board || news.nodes.length === 0) return board;
  const changed = new Map(news.nodes.map((node) => [node.name, node]));
  const known = new Set(board.nodes.map((node) => node.name));
  const nodes = board.nodes.map((node) => changed.get(node.name) ?? node).filter((node) => node.state !== "gone");
  const added = news.nodes.filter((node) => !known.has(node.name) && node.state !== "gone");
  return { ...board, nodes: [...nodes, ...added], works: { ...board.works, ...news.works } };
}

function takeIn(client: QueryClient, news: News, later: (key: readonly unknown[]) => void): void {
  client.setQueryData<Schemas["BoardOut"]>(keys.board, (board) => patchBoard(board, news));
  for (const id of news.workloads) later(keys.workload(id));
  if (news.workloads.length > 0 || news.many) {
    later(keys.workloads());
    later(keys.envs);
  }
  if (news.line) {
    later(keys.queue);
    later(keys.quota);
  }
  if (news.kinds.includes("user") || news.kinds.includes("group")) {
    later(keys.people());
    later(keys.quota);
  }
  if (news.kinds.includes("policy")) later(keys.policy);
}

/** Gathers what is to be loaded again, and does so together. */
function makeLater(client: QueryClient): (key: readonly unknown[]) => void {
  const waiting = new Map<string, readonly unknown[]>();
  let timer: ReturnType<typeof setTimeout> | undefined;
  return (key) => {
    waiting.set(JSON.stringify(key), key);
    timer ??= setTimeout(() => {
      timer = undefined;
      const all = [...waiting.values()];
      waiting.clear();
      for (const queryKey of all) void client.invalidateQueries({ queryKey });
    }, GATHER_MS);
  };
}

export function NewsProvider({ version, children }: { version: string; children: ReactNode }) {
  const client = useQueryClient();
  const [down, setDown] = useState(false);
  const [stale, setStale] = useState(false);
  useEffect(() => {
    const later = makeLater(client);
    return listen((told: Told) => {
      setDown(told.kind === "down");
      if (told.kind === "changed") takeIn(client, told.news, later);
      if (told.kind === "reload") void client.invalidateQueries();
      if (told.kind === "up") setStale(told.version !== version);
    });
  }, [client, version]);
  const state = useMemo(() => ({ down, stale }), [down, stale]);
  return <LiveContext.Provider value={state}>{children}</LiveContext.Provider>;
}
