/** Time limits and cancellation of asynchronous operations. Timers and listeners end with their operation. */

/** The longest delay of a timer; a longer timer would fire at once. */
const LONGEST_DELAY_MS = 2 ** 31 - 1;

/** Returns a time limit, or throws unless it is positive. */
export function checkedLimit(name: string, ms: number): number {
  if (!(ms > 0)) throw new RangeError(`${name} must be positive`);
  return Math.min(ms, LONGEST_DELAY_MS);
}

/**
 * Runs an operation with a signal. The operation's signal aborts when `signal` aborts, or with `failure` after
 * `limit.ms`. Without `limit.ms`, the time is unlimited. After an abort, the promise settles at once, even if the
 * operation ignores its signal.
 */
export async function limited<T>(
  limit: { ms: number | undefined; failure: () => Error },
  signal: AbortSignal | undefined,
  operation: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort);
  const timer = limit.ms === undefined ? undefined : setTimeout(() => controller.abort(limit.failure()), limit.ms);
  try {
    return await abortable(operation(controller.signal), controller.signal);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}

/** Waits for a promise until the signal aborts. After an abort, the operation behind the promise continues. */
export function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
