/** The half of a login that a page keeps. Cookies go to every port of a host; this is kept for one origin, port included. */
const KEPT_AS = "yard.session";

export const sessionKey = (): string => localStorage.getItem(KEPT_AS) ?? "";

/** null: nobody is logged in here any more. */
export function keepSessionKey(key: string | null): void {
  if (key === null) localStorage.removeItem(KEPT_AS);
  else localStorage.setItem(KEPT_AS, key);
}

/** Somebody logged in or out in another tab, or this page comes back from where the browser kept it meanwhile. */
export function onOtherLogin(listener: () => void): () => void {
  const leaving = new AbortController();
  const { signal } = leaving;
  window.addEventListener("storage", ({ key }) => (key === KEPT_AS || key === null) && listener(), { signal });
  window.addEventListener("pageshow", ({ persisted }) => persisted && listener(), { signal });
  return () => leaving.abort();
}
