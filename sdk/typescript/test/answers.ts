/** Responses in the form of the REST interface, a `fetch` that gives them in order, and a clock that never waits. */
import { Client } from "@terrane/client";
import type { ClientOptions, Clock } from "@terrane/client";

export const BASE_URL = "http://terrane.test";
export const ROWS = [{ "flights.origin": "JFK", "flights.count": 2 }];

interface Sent {
  method: string;
  path: string;
  headers: Headers;
  body: any;
}
type Answer = Response | Error | (() => Response | Promise<Response>);

/** Returns a JSON response. */
export function json(body: unknown, status = 200, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
}

/** Returns the answer of a query. */
export function rows(data: unknown[] = ROWS): Response {
  const meta = { total_rows: data.length, returned_rows: data.length, truncated: false, warnings: [], cached: false };
  return json({ data, query: { sql: "SELECT 1", duration_ms: 1.5 }, meta });
}

/** Returns an error. */
export function error(status: number, code: string, headers = {}, fields = {}): Response {
  return json({ error: { code, message: "it failed", correlation_id: "c1", ...fields } }, status, headers);
}

/** Returns the tokens of a sign-in session. */
export function tokens(number: number, expiresIn = 3600): Response {
  const names = { access_token: `access-${number}`, refresh_token: `refresh-${number}` };
  return json({ ...names, token_type: "bearer", expires_in: expiresIn });
}

/** A `fetch` that gives the listed answers in order and records the requests. */
export class Script {
  readonly sent: Sent[] = [];
  readonly #answers: Answer[];

  constructor(...answers: Answer[]) {
    this.#answers = answers;
  }

  readonly fetch = async (url: string, init: RequestInit): Promise<Response> => {
    const { pathname, search } = new URL(url);
    const body = typeof init.body === "string" ? JSON.parse(init.body) : undefined;
    this.sent.push({ method: init.method ?? "GET", path: pathname + search, headers: new Headers(init.headers), body });
    const answer = this.#answers.shift();
    if (answer === undefined) throw new Error("no answer is left");
    if (answer instanceof Error) throw answer;
    return typeof answer === "function" ? answer() : answer;
  };

  get paths(): string[] {
    return this.sent.map((request) => request.path);
  }

  get bearers(): (string | null)[] {
    return this.sent.map((request) => request.headers.get("authorization"));
  }
}

/** A clock that only moves when a client sleeps. */
export class FakeClock implements Clock {
  now = 1_000_000_000;
  readonly sleeps: number[] = [];

  monotonicMs = (): number => this.now;
  dateMs = (): number => this.now;
  sleep = async (ms: number, signal?: AbortSignal): Promise<void> => {
    signal?.throwIfAborted();
    this.sleeps.push(ms);
    this.now += ms;
  };
}

/** Returns a client whose requests a script answers. */
export function connect(script: Script, options: Partial<ClientOptions> = {}): Client {
  return new Client({ baseUrl: BASE_URL, fetch: script.fetch, clock: new FakeClock(), ...options });
}
