/** The one way to the server: typed by its own description, in the user's language, with words for what goes wrong. */
import createClient, { type Middleware } from "openapi-fetch";
import { currentLanguage } from "@/words";
import type { components, paths } from "./schema";
import { sessionKey } from "./sessionKey";

export type Schemas = components["schemas"];
export type Problem = Schemas["ProblemOut"];

/** A refusal, in the server's words. `problems` says where in what was sent. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problems: readonly Problem[],
    readonly facts: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

/** What is wrong without where it is, for a problem that stands at its field. */
export function atItsField({ message, facts }: Pick<Problem, "message" | "facts">): string {
  const end = message.search(/[:：]/);
  const where = message.slice(0, Math.max(end, 0));
  const named = [facts["at"], facts["line"]].some((place) => place !== undefined && place !== "" && where.includes(String(place)));
  return named ? message.slice(end + 1).trimStart() : message;
}

/** The server did not answer at all. */
export class Unreachable extends Error {}

type Listener = () => void;
const whenLoggedOut = new Set<Listener>();
export function onLoggedOut(listener: Listener): () => void {
  whenLoggedOut.add(listener);
  return () => whenLoggedOut.delete(listener);
}

// There a 401 says that the password was wrong, not that the login is over.
const ASKS_FOR_PASSWORD: ReadonlySet<string> = new Set(["/api/v1/login", "/api/v1/password"]);

const asks: Middleware = {
  onRequest({ request }) {
    for (const [name, value] of Object.entries(sentAlong())) request.headers.set(name, value);
    return request;
  },
  onResponse({ response, schemaPath }) {
    if (!ASKS_FOR_PASSWORD.has(schemaPath)) noticeLoggedOut(response);
  },
};

/** The cookie goes by itself; without the key it is worth nothing. */
function sentAlong(): Record<string, string> {
  const key = sessionKey();
  return { "Accept-Language": currentLanguage(), ...(key ? { "X-Session-Key": key } : {}) };
}

function noticeLoggedOut({ status }: Response): void {
  if (status === 401) for (const told of whenLoggedOut) told();
}

export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin" });
api.use(asks);

interface Answer<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** `await asked(api.GET(...))`: what was asked for, or a Refusal to show. */
export async function asked<T>(call: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await call;
  } catch (trouble) {
    throw new Unreachable(String(trouble));
  }
  if (!answer.response.ok) throw refusalOf(answer.response.status, answer.error);
  return answer.data as T;
}

/** What is no JSON: bytes, files and streams. Links and pictures cannot send the key along, so they are not used for it. */
export async function fetched(address: string, { accept = "*/*", signal }: { accept?: string; signal?: AbortSignal } = {}): Promise<Response> {
  let answer: Response;
  try {
    const headers = { ...sentAlong(), Accept: accept };
    answer = await fetch(address, { credentials: "same-origin", cache: "no-store", headers, ...(signal ? { signal } : {}) });
  } catch (trouble) {
    throw new Unreachable(String(trouble));
  }
  noticeLoggedOut(answer);
  if (!answer.ok) throw refusalOf(answer.status, await answer.json().catch(() => undefined));
  return answer;
}

export function refusalOf(status: number, body: unknown): Refusal {
  const error = (body as Partial<Schemas["ErrorOut"]> | undefined)?.error;
  if (!error) return new Refusal(status, "unknown", `HTTP ${status}`, []);
  return new Refusal(status, error.code, error.message, error.problems ?? [], error.facts);
}
