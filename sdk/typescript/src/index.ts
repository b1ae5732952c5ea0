/** Client of the Terrane semantic layer. */
export { Client } from "./client.js";
export type { ClientOptions } from "./client.js";
export type { Clock } from "./clock.js";
export * from "./errors.js";
export {
  after,
  and,
  asc,
  before,
  between,
  contains,
  desc,
  endsWith,
  eq,
  gt,
  gte,
  inRange,
  isIn,
  isNotSet,
  isSet,
  lt,
  lte,
  ne,
  not,
  notContains,
  notIn,
  notInRange,
  or,
  startsWith,
} from "./filters.js";
export type { Condition, Filter, FilterValue, Order, TimeSpan } from "./filters.js";
export { Job } from "./jobs.js";
export type { WaitOptions } from "./jobs.js";
export { TimeBucket, day, hour, minute, month, quarter, second, week, year } from "./members.js";
export type { MemberLike } from "./members.js";
export type { CubeTypes, ProjectTypes, RowOf } from "./project.js";
export { Query } from "./query.js";
export type { QueryFields, QueryLike, QueryOptions } from "./query.js";
export { QueryResult } from "./results.js";
export type { ArrowStream } from "./results.js";
export type { RetryPolicy } from "./retry.js";
export type { CallOptions } from "./session.js";
export type { Fetch } from "./transport.js";
export { VERSION } from "./version.js";
export type {
  Cube,
  Dimension,
  Explanation,
  Granularity,
  Health,
  Interpretation,
  JobState,
  Measure,
  Metric,
  NumberForm,
  QueryBody,
  QueryMeta,
  Row,
  SearchHit,
  SearchResults,
  Sql,
  Value,
} from "./wire.js";
