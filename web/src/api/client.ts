/** The one way to the server: typed by its own description, in the user's language, with words for what goes wrong. */
import createClient, { type Middleware } from "openapi-fetch";
import { currentLanguage } from "@/words";
import type { components, paths } from "./schema";

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

let csrf = "";
export function keepCsrf(token: string | null | undefined): void {
  csrf = token ?? "";
}

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
    request.headers.set("Accept-Language", currentLanguage());
    if (request.method !== "GET" && csrf) request.headers.set("X-CSRF-Token", csrf);
    return request;
  },
  onResponse({ response, schemaPath }) {
    if (response.status === 401 && !ASKS_FOR_PASSWORD.has(schemaPath)) for (const told of whenLoggedOut) told();
  },
};

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

export function refusalOf(status: number, body: unknown): Refusal {
  const error = (body as Partial<Schemas["ErrorOut"]> | undefined)?.error;
  if (!error) return new Refusal(status, "unknown", `HTTP ${status}`, []);
  return new Refusal(status, error.code, error.message, error.problems ?? [], error.facts);
}
