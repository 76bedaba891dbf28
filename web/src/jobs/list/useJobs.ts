/** The jobs that fit the filters, page by page, kept current where one looks. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useMemo, useRef } from "react";
import { api, asked, type Schemas } from "@/api/client";
import { keys } from "@/api/news";
import { useLanguage } from "@/words";
import { type Book, extended, marksOf, opened, refreshed } from "./book";
import type { JobQuery } from "./filters";

const PAGE = 250;
const REASONS_MS = 10_000; // reasons of those that wait change without news

type Job = Schemas["WorkloadOut"];

const load = (query: JobQuery, cursor: string | null) =>
  asked(api.GET("/api/v1/workloads", { params: { query: { ...query, limit: PAGE, cursor } } }));

export function useJobs(query: JobQuery) {
  const client = useQueryClient();
  const { language } = useLanguage();
  const key = useMemo(() => keys.workloads("jobs", query, language), [query, language]);
  const view = useRef({ first: 0, last: 0 });
  const asking = useRef<string | null>(null);
  const told = useQuery({
    queryKey: key,
    queryFn: async (): Promise<Book<Job>> => {
      const before = client.getQueryData<Book<Job>>(key);
      if (!before) return opened(await load(query, null));
      const marks = marksOf(before, view.current.first, view.current.last);
      const pages = await Promise.all(marks.map((mark) => load(query, mark.cursor)));
      const now = client.getQueryData<Book<Job>>(key) ?? before; // it may have grown meanwhile
      return marks.reduce((book, mark, at) => refreshed(book, mark, pages[at] ?? { items: [], next: null }), now);
    },
    refetchInterval: REASONS_MS,
    structuralSharing: false,
  });
  const more = useCallback(async () => {
    const cursor = client.getQueryData<Book<Job>>(key)?.next;
    if (!cursor || asking.current === cursor) return;
    asking.current = cursor;
    try {
      const page = await load(query, cursor);
      client.setQueryData<Book<Job>>(key, (book) => book && extended(book, cursor, page));
    } finally {
      asking.current = null;
    }
  }, [client, key, query]);
  return { ...told, rows: told.data?.rows, hasMore: Boolean(told.data?.next), more, view };
}
