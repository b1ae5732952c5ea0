/** Query results: rows with their metadata, or an Arrow stream. */
import { correlationId } from "./error-response.js";
import type { Reply } from "./transport.js";
import { documentWith, listIn } from "./wire.js";
import type { QueryAnswer, QueryMeta } from "./wire.js";

export const ARROW_TYPE = "application/vnd.apache.arrow.stream";
/** The end marker of an Arrow stream (Apache Arrow, "IPC Streaming Format"). */
const ARROW_END = [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0];

/** The result of a query. It can be iterated, and `Row` is the type of a row. */
export class QueryResult<Row> implements Iterable<Row> {
  constructor(
    /** The rows as objects, keyed by member. */
    readonly rows: readonly Row[],
    /** Metadata of the rows. For jobs, only the numbers of rows are set. */
    readonly meta: Partial<QueryMeta>,
    /** The statement that ran, with placeholders; undefined for jobs. */
    readonly sql?: string,
    /** The duration of the query on the server; undefined for jobs. */
    readonly durationMs?: number,
  ) {}

  [Symbol.iterator](): Iterator<Row> {
    return this.rows[Symbol.iterator]();
  }
}

/** An Arrow stream with exact types. `toTable` of `@terrane/client/arrow` decodes it. */
export interface ArrowStream {
  /** The bytes in the IPC streaming format. */
  readonly bytes: Uint8Array;
  readonly totalRows: number | undefined;
  readonly truncated: boolean | undefined;
  readonly cacheKey: string | undefined;
  /** The rows are at least as new as the data was at this time. */
  readonly asOf: string | undefined;
  readonly correlationId: string | undefined;
}

/** Parses the JSON response to a query. */
export function resultFromReply<Row>(reply: Reply): QueryResult<Row> {
  const answer = documentWith<QueryAnswer>(reply.json(), ["data", "meta", "query"]);
  const { sql, duration_ms: durationMs } = answer.query;
  return new QueryResult(listIn<Row>(answer, "data"), answer.meta, sql, durationMs);
}

/** Parses the Arrow response to a query or a job, or throws if it lacks its end marker. */
export function arrowFromReply(reply: Reply): ArrowStream {
  const { headers, bytes } = reply;
  if (headers.get("content-type")?.split(";")[0] !== ARROW_TYPE) throw new TypeError("expected an Arrow stream");
  const end = bytes.subarray(-ARROW_END.length);
  if (!ARROW_END.every((byte, index) => byte === end[index])) throw new TypeError("the Arrow stream is incomplete");
  const total = headers.get("x-terrane-total-rows");
  const truncated = headers.get("x-terrane-truncated");
  return {
    bytes,
    totalRows: total === null ? undefined : Number(total),
    truncated: truncated === null ? undefined : truncated === "true",
    cacheKey: headers.get("x-terrane-cache-key") ?? undefined,
    asOf: headers.get("x-terrane-as-of") ?? undefined,
    correlationId: correlationId(reply),
  };
}
