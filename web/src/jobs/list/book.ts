/** A long list that is read page by page, newest first, and looked at again in parts without losing its place. */

export interface Row {
  id: string;
}

export interface Page<T extends Row> {
  items: T[];
  next: string | null;
}

/** Where a page begins: the cursor to ask with, and the last row before it. */
export interface Mark {
  cursor: string | null;
  after: string | null;
}

export interface Book<T extends Row> {
  rows: T[];
  marks: Mark[];
  next: string | null;
}

export const opened = <T extends Row>(page: Page<T>): Book<T> => ({
  rows: page.items,
  marks: [{ cursor: null, after: null }],
  next: page.next,
});

/** With the page that follows. One that was asked for before the book changed its end is not taken. */
export function extended<T extends Row>(book: Book<T>, cursor: string, page: Page<T>): Book<T> {
  if (book.next !== cursor) return book;
  const known = new Set(book.rows.map((row) => row.id));
  const mark = { cursor, after: book.rows.at(-1)?.id ?? null };
  return { rows: [...book.rows, ...page.items.filter((row) => !known.has(row.id))], marks: [...book.marks, mark], next: page.next };
}

/** With one page as it is now: rows that came are in, rows that left are out, and what is behind stays where it was. */
export function refreshed<T extends Row>(book: Book<T>, mark: Mark, page: Page<T>): Book<T> {
  const start = mark.after === null ? 0 : book.rows.findIndex((row) => row.id === mark.after) + 1;
  if (mark.after !== null && start === 0) return book; // its place is gone; the page before tells
  const [before, behind] = [book.rows.slice(0, start), book.rows.slice(start)];
  const fresh = new Set(page.items.map((row) => row.id));
  const kept = before.filter((row) => !fresh.has(row.id));
  const place = new Map(behind.map((row, index) => [row.id, index]));
  const anchor = page.items.reduce((last, row) => Math.max(last, place.get(row.id) ?? -1), -1);
  if (page.next === null || (anchor < 0 && behind.length > 0)) {
    return cut({ ...book, rows: [...kept, ...page.items] }, mark, page.next);
  }
  const rest = behind.slice(anchor + 1).filter((row) => !fresh.has(row.id));
  if (rest.length === 0) return cut({ ...book, rows: [...kept, ...page.items] }, mark, page.next);
  return { ...book, rows: [...kept, ...page.items, ...rest] };
}

function cut<T extends Row>(book: Book<T>, mark: Mark, next: string | null): Book<T> {
  return { ...book, marks: book.marks.slice(0, book.marks.indexOf(mark) + 1), next };
}

/** The pages that rows `first` to `last` lie on, and the first page, where new ones come in. */
export function marksOf<T extends Row>(book: Book<T>, first: number, last: number): Mark[] {
  const places = new Map(book.rows.map((row, index) => [row.id, index]));
  const starts = book.marks.map((mark) => (mark.after === null ? 0 : (places.get(mark.after) ?? -1) + 1));
  return book.marks.filter((mark, index) => {
    const begin = starts[index] ?? 0;
    const end = starts[index + 1] ?? Infinity;
    return mark.after === null || (begin > 0 && begin <= last && end > first);
  });
}
