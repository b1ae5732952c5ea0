/**
 * Sends single HTTP requests with `fetch`. In: a request with its credential. Out: a complete response, or an error
 * that contains neither the request nor the credential.
 *
 * Cookies are neither sent nor stored, and redirects are not followed. The cache mode is the default one, because other
 * modes add `cache-control: no-cache`, which bypasses the server's result cache.
 */
import { ClientTimeoutError, ConnectionFailedError } from "./errors.js";
import { limited } from "./signals.js";
import { VERSION } from "./version.js";

/** The function `fetch`, or a replacement. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface HttpRequest {
  readonly method: string;
  readonly path: string;
  readonly query?: Record<string, string | number> | undefined;
  readonly body?: unknown;
  readonly headers: Record<string, string>;
}

/** A response whose body was read. */
export class Reply {
  constructor(
    readonly status: number,
    readonly headers: Headers,
    readonly bytes: Uint8Array,
  ) {}

  get isSuccess(): boolean {
    return this.status >= 200 && this.status < 300;
  }

  /** Returns the body as JSON, or throws. */
  json(): unknown {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(this.bytes));
  }
}

/**
 * True in Node and similar runtimes. Browsers do not let pages set the user agent, and limit the headers of requests to
 * other origins.
 */
export const isServerRuntime =
  (globalThis as { process?: { versions?: { node?: string } } }).process?.versions?.node !== undefined;

export class Transport {
  readonly #baseUrl: string;
  readonly #timeoutMs: number;
  readonly #fetch: Fetch;

  constructor(baseUrl: string, timeoutMs: number, fetch: Fetch | undefined) {
    this.#baseUrl = baseUrl;
    this.#timeoutMs = timeoutMs;
    this.#fetch = fetch ?? ((url, init) => globalThis.fetch(url, init));
  }

  /** Sends a request and reads the response. Failed connections and timeouts are returned as errors. */
  async send(request: HttpRequest, signal: AbortSignal): Promise<Reply | ConnectionFailedError> {
    const failure = () => new ClientTimeoutError(`the server did not respond within ${this.#timeoutMs} ms`);
    return limited({ ms: this.#timeoutMs, failure }, signal, async (limit) => {
      try {
        const response = await this.#fetch(this.#url(request), { ...init(request), signal: limit });
        return new Reply(response.status, response.headers, new Uint8Array(await response.arrayBuffer()));
      } catch (error) {
        limit.throwIfAborted();
        return new ConnectionFailedError(`the connection to the server failed (${reason(error)})`);
      }
    });
  }

  #url({ path, query = {} }: HttpRequest): string {
    const parameters = Object.entries(query).map(([name, value]) => `${name}=${encodeURIComponent(value)}`);
    return `${this.#baseUrl}${path}${parameters.length > 0 ? `?${parameters.join("&")}` : ""}`;
  }
}

function init({ method, body, headers }: HttpRequest): RequestInit {
  const agent: Record<string, string> = isServerRuntime ? { "user-agent": `terrane-typescript/${VERSION}` } : {};
  const type: Record<string, string> = body === undefined ? {} : { "content-type": "application/json" };
  return {
    method,
    headers: { accept: "application/json", ...agent, ...type, ...headers },
    redirect: "manual",
    credentials: "omit",
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  };
}

/** Returns the code or the class of an error. Its message is omitted, because it may contain the request. */
function reason(error: unknown): string {
  const { code, cause, name } = (error ?? {}) as { code?: unknown; cause?: { code?: unknown }; name?: unknown };
  return String(cause?.code ?? code ?? name ?? "unknown error");
}
