/** The requests of the REST interface and the parsers of their responses. */
import type { Call } from "./session.js";
import { ARROW_TYPE, arrowFromReply, resultFromReply } from "./results.js";
import type { ArrowStream, QueryResult } from "./results.js";
import type { QueryFields } from "./query.js";
import { isServerRuntime } from "./transport.js";
import { documentWith, listIn } from "./wire.js";
import type {
  Cube,
  Dimension,
  Explanation,
  Health,
  Interpretation,
  JobState,
  Language,
  Measure,
  Metric,
  SearchOptions,
  SearchResults,
  Sql,
} from "./wire.js";

const QUERY = "/api/v1/query";
const JOBS = "/api/v1/query/async";
const META = "/api/v1/query/meta";

export const cubes = list<Cube>(`${META}/cubes`, "cubes");
export const measures = list<Measure>(`${META}/metrics`, "measures");
export const metrics = list<Metric>(`${META}/metrics`, "metrics");
export const dimensions = list<Dimension>(`${META}/dimensions`, "dimensions");
export const jobs = list<JobState>(JOBS, "jobs");
export const health: Call<Health> = {
  ...get<Health>("/health/status", ["status", "version", "checks"]),
  isAuthenticated: false,
};

export function cube(name: string): Call<Cube> {
  return get(`${META}/cubes/${segment(name)}`, ["name", "measures", "dimensions"]);
}

export function query<Row>(body: QueryFields): Call<QueryResult<Row>> {
  return { method: "POST", path: QUERY, body, parse: resultFromReply<Row> };
}

export function arrow(body: QueryFields): Call<ArrowStream> {
  return { method: "POST", path: QUERY, body, headers: { accept: ARROW_TYPE }, parse: arrowFromReply };
}

export function sql(body: QueryFields, inline: boolean): Call<Sql> {
  return post(`${QUERY}/sql`, inline ? { ...body, inline } : body, ["sql", "params"]);
}

export function explain(body: QueryFields): Call<Explanation> {
  return post(`${QUERY}/explain`, body, ["sql", "members", "plan"]);
}

export function search(text: string, options: SearchOptions): Call<SearchResults> {
  return post("/api/v1/search", { ...options, query: text }, ["results"]);
}

export function ask(text: string, language: Language): Call<Interpretation> {
  return post("/api/v1/search/nl-query", { query: text, language }, ["query", "clarifications"]);
}

/**
 * Submits a job. The idempotency key makes the request safe to repeat. Browsers may block the key in requests to
 * another origin, so the key is omitted in browsers and the request is not repeated.
 */
export function submit(body: QueryFields): Call<JobState> {
  const headers = isServerRuntime ? { "idempotency-key": crypto.randomUUID() } : {};
  return { ...post<JobState>(JOBS, body, ["job_id", "status"]), headers, isIdempotent: isServerRuntime };
}

/** Reads the state of a job. The server waits for its end for at most `waitSeconds`. */
export function job(id: string, waitSeconds = 0): Call<JobState> {
  const call = get<JobState>(jobPath(id), ["job_id", "status"]);
  return waitSeconds > 0 ? { ...call, query: { wait: waitSeconds } } : call;
}

export function cancelJob(id: string): Call<JobState> {
  return { ...job(id), method: "DELETE" };
}

/** Reads a page of the rows of a job. */
export function jobRows<Row>(id: string, offset: number, limit: number): Call<{ rows: Row[]; totalRows: number }> {
  return {
    method: "GET",
    path: `${jobPath(id)}/result`,
    query: { offset, limit },
    parse: (reply) => {
      const body = documentWith<{ meta: { total_rows: number } }>(reply.json(), ["meta"]);
      return { rows: listIn<Row>(body, "data"), totalRows: body.meta.total_rows };
    },
  };
}

export function jobArrow(id: string): Call<ArrowStream> {
  return { method: "GET", path: `${jobPath(id)}/result`, headers: { accept: ARROW_TYPE }, parse: arrowFromReply };
}

function jobPath(id: string): string {
  return `${JOBS}/${segment(id)}`;
}

/** Returns a path segment. Dots are escaped twice, because URLs resolve `..` even if it is escaped. */
function segment(name: string): string {
  return /^\.{1,2}$/.test(name) ? name.replaceAll(".", "%252E") : encodeURIComponent(name);
}

function get<T>(path: string, fields: readonly (keyof T & string)[]): Call<T> {
  return { method: "GET", path, parse: (reply) => documentWith<T>(reply.json(), fields) };
}

/** Returns a read-only request, which is safe to repeat. */
function post<T>(path: string, body: object, fields: readonly (keyof T & string)[]): Call<T> {
  return { ...get<T>(path, fields), method: "POST", body };
}

function list<T>(path: string, field: string): Call<T[]> {
  return { method: "GET", path, parse: (reply) => listIn<T>(reply.json(), field) };
}
