/** The exchange of requests and responses: credentials, retries, deadlines and parsing. */
import type { Clock } from "./clock.js";
import type { Credentials } from "./credentials.js";
import { correlationId, errorFromReply } from "./error-response.js";
import { ClientTimeoutError, ResponseError, UnauthorizedError } from "./errors.js";
import { isRetried, retryAfterMs, waitMs } from "./retry.js";
import type { RetryPolicy } from "./retry.js";
import { checkedLimit, limited } from "./signals.js";
import type { HttpRequest, Reply, Transport } from "./transport.js";

/** Options of every method that sends requests. */
export interface CallOptions {
  /** Cancels the call, which rejects with the reason of the signal. */
  signal?: AbortSignal | undefined;
  /** The time limit of a request with its sign-in, retries and waits, in milliseconds. Overrides that of the client. */
  deadlineMs?: number | undefined;
}

/** A request of the REST interface and the parser of its response. */
export interface Call<T> {
  readonly method: "GET" | "POST" | "DELETE";
  readonly path: string;
  readonly parse: (reply: Reply) => T;
  readonly query?: Record<string, string | number>;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  readonly isIdempotent?: boolean;
  readonly isAuthenticated?: boolean;
}

interface SessionSettings {
  transport: Transport;
  credentials: Credentials;
  retry: RetryPolicy;
  clock: Clock;
  deadlineMs: number | undefined;
}

export class Session {
  readonly #settings: SessionSettings;

  constructor(settings: SessionSettings) {
    this.#settings = settings;
  }

  get clock(): Clock {
    return this.#settings.clock;
  }

  /** Sends a request and returns its parsed response. */
  async perform<T>(call: Call<T>, { signal, deadlineMs }: CallOptions = {}): Promise<T> {
    const limit = deadlineMs ?? this.#settings.deadlineMs;
    const ms = limit === undefined ? undefined : checkedLimit("deadlineMs", limit);
    const failure = () => new ClientTimeoutError(`${call.method} ${call.path} did not end within ${ms} ms`);
    return limited({ ms, failure }, signal, (inner) => this.#authorize(call, inner, ms));
  }

  /** Sends a request with a credential. A refused token is renewed once. */
  async #authorize<T>(call: Call<T>, signal: AbortSignal, totalMs: number | undefined): Promise<T> {
    const { credentials } = this.#settings;
    let refused: string | undefined;
    for (;;) {
      const token = call.isAuthenticated === false ? undefined : await credentials.token(this, refused);
      const reply = await this.#exchange(call, token, signal, totalMs);
      if (reply.isSuccess) return parse(call, reply);
      const error = errorFromReply(reply);
      const isRenewable = error instanceof UnauthorizedError && credentials.renewable && token !== undefined;
      if (!isRenewable || refused !== undefined) throw error;
      refused = token;
    }
  }

  /** Sends a request, repeats it as the policy allows, and returns the last response. */
  async #exchange(
    call: Call<unknown>,
    token: string | undefined,
    signal: AbortSignal,
    limitMs = Infinity,
  ): Promise<Reply> {
    const { transport, clock, retry } = this.#settings;
    const policy = { ...retry, totalMs: Math.min(retry.totalMs, limitMs) };
    const request = httpRequest(call, token);
    const startMs = clock.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      const outcome = await transport.send(request, signal);
      const retryAfter = outcome instanceof Error ? undefined : retryAfterMs(outcome.headers, clock.dateMs());
      const isRepeated = call.isIdempotent !== false && isRetried(outcome);
      const wait = isRepeated ? waitMs(policy, attempt, clock.monotonicMs() - startMs, retryAfter) : undefined;
      if (wait !== undefined) await clock.sleep(wait, signal);
      else if (outcome instanceof Error) throw outcome;
      else return outcome;
    }
  }
}

function httpRequest({ method, path, query, body, headers }: Call<unknown>, token: string | undefined): HttpRequest {
  const authorization: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` };
  return { method, path, query, body, headers: { ...headers, ...authorization } };
}

/** Returns the parsed response of a call, or throws `ResponseError` with the correlation id. */
function parse<T>(call: Call<T>, reply: Reply): T {
  try {
    return call.parse(reply);
  } catch (error) {
    const problem = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    throw new ResponseError(`the response of ${call.method} ${call.path} cannot be read: ${problem}`, {
      status: reply.status,
      correlationId: correlationId(reply),
    });
  }
}
