import { afterEach, describe, expect, it, vi } from "vitest";
import { api, asked, fetched, onLoggedOut, Refusal } from "./client";
import { keepSessionKey, onOtherLogin, sessionKey } from "./sessionKey";

afterEach(() => {
  localStorage.clear();
  vi.unstubAllGlobals();
});

const refused = () => new Response(JSON.stringify({ error: { code: "refused.cookie_alone", message: "no", facts: {}, problems: [] } }), { status: 401 });

/** What was sent, whatever it was sent with. */
function listening(answer: () => Response): Headers[] {
  const sent: Headers[] = [];
  vi.stubGlobal("fetch", (what: Request | string, more?: RequestInit) => {
    sent.push(what instanceof Request ? what.headers : new Headers(more?.headers));
    return Promise.resolve(answer());
  });
  return sent;
}

describe("the key of a session", () => {
  it("goes along with every request, of whichever method and kind", async () => {
    keepSessionKey("one");
    const sent = listening(() => new Response("{}"));
    const here = { baseUrl: location.origin, fetch: (request: Request) => fetch(request) };
    await asked(api.GET("/api/v1/whoami", here));
    await asked(api.POST("/api/v1/logout", here));
    await fetched("/api/v1/live");
    expect(sent.map((headers) => headers.get("X-Session-Key"))).toEqual(["one", "one", "one"]);
  });

  it("is read anew for each request, so that a login in another tab counts", async () => {
    const sent = listening(() => new Response("{}"));
    for (const key of ["one", "two", null]) {
      keepSessionKey(key);
      await fetched("/api/v1/live");
    }
    expect(sent.map((headers) => headers.get("X-Session-Key"))).toEqual(["one", "two", null]);
    expect(sessionKey()).toBe("");
  });

  it("that is refused tells that nobody is logged in", async () => {
    listening(refused);
    const told = vi.fn();
    const leave = onLoggedOut(told);
    const trouble: unknown = await fetched("/api/v1/live").catch((error: unknown) => error);
    leave();
    expect(trouble).toBeInstanceOf(Refusal);
    expect(trouble).toMatchObject({ status: 401, code: "refused.cookie_alone" });
    expect(told).toHaveBeenCalledOnce();
  });

  it("that another tab changed or forgot is heard of, other memories are not", () => {
    const told = vi.fn();
    const leave = onOtherLogin(told);
    for (const key of ["yard.session", "yard.language", null]) window.dispatchEvent(new StorageEvent("storage", { key }));
    expect(told).toHaveBeenCalledTimes(2);
    window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true }));
    window.dispatchEvent(new PageTransitionEvent("pageshow", { persisted: false }));
    expect(told).toHaveBeenCalledTimes(3);
    leave();
    window.dispatchEvent(new StorageEvent("storage", { key: "yard.session" }));
    expect(told).toHaveBeenCalledTimes(3);
  });
});
