/**
 * Names for the generated types of the REST interface, and checks of response bodies.
 *
 * The fields of documents have the names of the REST interface, such as `total_rows`.
 */
import type { components } from "./generated/api.js";

type Schemas = components["schemas"];

/** A value in a row or a filter. */
export type Value = Schemas["Value"];
/** A row by member. */
export type Row = Record<string, Value>;
export type Granularity = Schemas["Granularity"];
export type Operator = Schemas["Operator"];
/** The JSON form of numbers: numbers, strings with all digits, or doubles. */
export type NumberForm = Schemas["NumberForm"];
export type Measure = Schemas["Measure"];
export type Dimension = Schemas["Dimension"];
export type Metric = Schemas["Metric"];
export type Cube = Schemas["Cube"];
/** Metadata of the rows of a query. */
export type QueryMeta = Schemas["QueryMeta"];
export type QueryAnswer = Schemas["QueryAnswer"];
/** The SQL of a query, and the values of its placeholders. */
export type Sql = Schemas["Sql"];
/** The members, joins, policies and plan of a query. */
export type Explanation = Schemas["Explanation"];
/** The state of a job. Times are ISO 8601 strings; `progress` is a percentage. */
export type JobState = Schemas["JobAnswer"];
export type SearchHit = Schemas["SearchHit"];
/** The hits of a search, best first. */
export type SearchResults = Schemas["SearchResults"];
/** The optional fields of a search. */
export type SearchOptions = Partial<Omit<Schemas["Search"], "query">>;
/** The meaning of a question. `query` is null if the question is unclear; see `clarifications`. */
export type Interpretation = Omit<Schemas["NaturalLanguageAnswer"], "query" | "result"> & { query: QueryBody | null };
export type Language = Schemas["NaturalLanguageQuery"]["language"];
/** The state of the server and of its dependencies. */
export type Health = Schemas["HealthStatus"];
export type Tokens = Schemas["Tokens"];
/** The body of `POST /api/v1/query`. */
export type QueryBody = Schemas["Query"];

type JsonObject = Record<string, unknown>;

/** Returns true for JSON objects, but not for arrays. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Returns a body as the document `T`, or throws if one of the given fields is absent. */
export function documentWith<T>(body: unknown, fields: readonly (keyof T & string)[]): T {
  const missing = isObject(body) ? fields.find((field) => body[field] === undefined) : fields[0];
  if (missing !== undefined) throw new TypeError(`expected the field \`${missing}\``);
  return body as T;
}

/** Returns the list in a field of a body, or throws. */
export function listIn<T>(body: unknown, field: string): T[] {
  const list = isObject(body) ? body[field] : undefined;
  if (!Array.isArray(list)) throw new TypeError(`expected the list \`${field}\``);
  return list as T[];
}
