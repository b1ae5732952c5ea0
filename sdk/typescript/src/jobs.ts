/** Asynchronous queries: handles of jobs, which poll the server and read results in pages. */
import { errorClass } from "./error-response.js";
import { JobCancelledError, JobTimeoutError } from "./errors.js";
import { QueryResult } from "./results.js";
import type { ArrowStream } from "./results.js";
import * as routes from "./routes.js";
import type { CallOptions, Session } from "./session.js";
import type { JobState } from "./wire.js";

const ENDED: readonly string[] = ["complete", "failed", "cancelled", "expired"];
const PAGE_ROWS = 10_000;
const LONGEST_POLL_SECONDS = 20;
const PAUSE_MS = 250;

/** Options of waits. `deadlineMs` applies to each request of a wait. */
export interface WaitOptions extends CallOptions {
  /** The time limit for the end of the job, in milliseconds. Default: none. */
  timeoutMs?: number | undefined;
}

/** A query that runs on the server. `Row` is the type of its rows. */
export class Job<Row> {
  readonly #session: Session;
  readonly #pollSeconds: number;
  #state: JobState;

  /** `requestMs` is the time limit of a request. A long poll ends earlier. */
  constructor(session: Session, requestMs: number, state: JobState) {
    this.#session = session;
    this.#pollSeconds = pollSeconds(requestMs);
    this.#state = state;
  }

  get id(): string {
    return this.#state.job_id;
  }

  /** The state that the server reported last. */
  get state(): JobState {
    return this.#state;
  }

  /** The last known status: `pending`, `running`, `complete`, `failed`, `cancelled` or `expired`. */
  get status(): string {
    return this.#state.status;
  }

  /** Reloads the state from the server. */
  async refresh(options?: CallOptions): Promise<this> {
    this.#state = await this.#session.perform(routes.job(this.id), options);
    return this;
  }

  /** Waits until the job has ended, in any final state; rejects with `JobTimeoutError` after `timeoutMs`. */
  async wait({ timeoutMs = Infinity, ...options }: WaitOptions = {}): Promise<this> {
    const { clock } = this.#session;
    const longest = Math.min(this.#pollSeconds, pollSeconds(options.deadlineMs ?? Infinity));
    const endMs = clock.monotonicMs() + timeoutMs;
    for (;;) {
      const remainingMs = Math.max(0, endMs - clock.monotonicMs());
      const seconds = Math.floor(Math.min(longest, remainingMs / 1000));
      this.#state = await this.#session.perform(routes.job(this.id, seconds), options);
      if (ENDED.includes(this.status)) return this;
      const pauseMs = Math.min(PAUSE_MS, endMs - clock.monotonicMs());
      if (pauseMs <= 0) throw new JobTimeoutError(`job \`${this.id}\` is ${this.status} after ${timeoutMs} ms`);
      if (seconds === 0) await clock.sleep(pauseMs, options.signal);
    }
  }

  /** Waits for the job and returns its rows; rejects with the error of a failed or cancelled job. */
  async result(options: WaitOptions = {}): Promise<QueryResult<Row>> {
    await this.#finish(options);
    const rows: Row[] = [];
    for (;;) {
      const page = await this.#session.perform(routes.jobRows<Row>(this.id, rows.length, PAGE_ROWS), options);
      for (const row of page.rows) rows.push(row);
      if (rows.length >= page.totalRows || page.rows.length === 0) {
        return new QueryResult(rows, { total_rows: page.totalRows, returned_rows: rows.length, truncated: false });
      }
    }
  }

  /** Waits for the job and returns its Arrow stream; rejects as `result` does. */
  async arrow(options: WaitOptions = {}): Promise<ArrowStream> {
    await this.#finish(options);
    return this.#session.perform(routes.jobArrow(this.id), options);
  }

  /** Cancels the job, or deletes the result of a complete job. */
  async cancel(options?: CallOptions): Promise<this> {
    this.#state = await this.#session.perform(routes.cancelJob(this.id), options);
    return this;
  }

  async #finish(options: WaitOptions): Promise<void> {
    await this.wait(options);
    const { status, error } = this.#state;
    if (status === "cancelled") throw new JobCancelledError(`job \`${this.id}\` was cancelled`);
    if (status !== "failed") return;
    throw new (errorClass(error?.code))(error?.message ?? `job \`${this.id}\` failed`, { code: error?.code });
  }
}

/** Returns the longest wait that a request may ask of the server. */
function pollSeconds(requestMs: number): number {
  return Math.min(LONGEST_POLL_SECONDS, Math.floor(requestMs / 2000));
}
