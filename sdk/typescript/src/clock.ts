/** The clock of retries and tokens. */
import { abortable } from "./signals.js";

export interface Clock {
  /** Returns a monotonic time in milliseconds. */
  monotonicMs(): number;
  /** Returns the time since 1970 in milliseconds. */
  dateMs(): number;
  /** Waits until the time has passed or the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  monotonicMs: () => performance.now(),
  dateMs: () => Date.now(),
  async sleep(ms, signal) {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const pause = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
    try {
      await (signal ? abortable(pause, signal) : pause);
    } finally {
      clearTimeout(timer);
    }
  },
};
