/** The rules for repeating requests: which failures, how long to wait, and when to give up. */
import { ConnectionFailedError } from "./errors.js";
import type { TerraneError } from "./errors.js";
import type { Reply } from "./transport.js";

/**
 * Limits of retries. Only idempotent requests are repeated, after 429, 503 and failed connections.
 *
 * A request is sent at most `attempts` times. The wait is the `Retry-After` of the server; without it, a random part of
 * `backoffMs`, doubled for each attempt. A wait of more than `maxWaitMs`, or one that ends more than `totalMs` after
 * the first attempt began, rejects with the error at once. `attempts: 1` switches retries off.
 */
export interface RetryPolicy {
  readonly attempts: number;
  readonly backoffMs: number;
  readonly maxWaitMs: number;
  readonly totalMs: number;
}

const DEFAULTS: RetryPolicy = { attempts: 4, backoffMs: 250, maxWaitMs: 30_000, totalMs: 60_000 };
const RETRIED_STATUSES: ReadonlySet<number> = new Set([429, 503]);

/** Returns a complete policy, or throws if a limit is invalid. */
export function retryPolicy(limits: Partial<RetryPolicy> = {}): RetryPolicy {
  const policy = { ...DEFAULTS, ...limits };
  if (!(policy.attempts >= 1)) throw new RangeError("attempts must be at least 1");
  if (![policy.backoffMs, policy.maxWaitMs, policy.totalMs].every((ms) => ms >= 0)) {
    throw new RangeError("retry times must not be negative");
  }
  return policy;
}

/** Returns true if the next attempt may succeed. */
export function isRetried(outcome: Reply | TerraneError): boolean {
  return outcome instanceof Error ? outcome instanceof ConnectionFailedError : RETRIED_STATUSES.has(outcome.status);
}

/** Returns the time to wait after a failed attempt, counted from 1, or undefined to give up. */
export function waitMs(
  policy: RetryPolicy,
  attempt: number,
  elapsedMs: number,
  retryAfter: number | undefined,
): number | undefined {
  if (attempt >= policy.attempts) return undefined;
  const longest = Math.min(policy.backoffMs * 2 ** (attempt - 1), policy.maxWaitMs);
  const wait = retryAfter ?? Math.random() * longest;
  return wait > policy.maxWaitMs || elapsedMs + wait > policy.totalMs ? undefined : wait;
}

/** Returns the time of a `Retry-After` header, which contains seconds or an HTTP date. */
export function retryAfterMs(headers: Headers, nowMs = Date.now()): number | undefined {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (/^[0-9]+$/.test(text)) return Number(text) * 1000;
  const isDate = /^[A-Z][a-z]{2}, .* GMT$/.test(text);
  const date = isDate ? Date.parse(text) : Number.NaN;
  return Number.isNaN(date) ? undefined : Math.max(0, date - nowMs);
}
