/**
 * The query builder: an immutable request body of a cube whose methods return new queries.
 *
 * Members of the cube have short names, and the keys of rows are the names as written. Names of other cubes are
 * qualified, such as `airlines.name`.
 */
import { mapMembers, span } from "./filters.js";
import type { Filter, Order, TimeSpan } from "./filters.js";
import type { Job } from "./jobs.js";
import { keyOf, qualifiedBucket } from "./members.js";
import type { KeyOf, MemberLike } from "./members.js";
import type {
  CubeName,
  DimensionValue,
  GranularityOf,
  GroupMember,
  MeasureName,
  MeasureValue,
  MemberKey,
  NoSelection,
  ProjectTypes,
  RowOf,
  SegmentName,
  Selection,
  TimeName,
  WithDimensions,
  WithMeasures,
  WithNumbers,
  WithPrevious,
} from "./project.js";
import type { ArrowStream, QueryResult } from "./results.js";
import type { CallOptions } from "./session.js";
import type { Explanation, Granularity, NumberForm, QueryBody, Sql } from "./wire.js";

/** The query fields without a method of their own. */
export type QueryOptions = Pick<
  QueryBody,
  | "timezone"
  | "fill_gaps"
  | "totals"
  | "total"
  | "numbers"
  | "cache"
  | "max_age"
  | "stale"
  | "pre_aggregations"
  | "ungrouped"
>;

/** A query in either form. `query()` and `explain()` accept both. */
export type QueryLike = Query<any, any, any> | QueryFields;

/** The fields of a query, as `POST /api/v1/query` names them. */
export type QueryFields = { [F in keyof Omit<QueryBody, "filters" | "dimensions">]: ReadonlyList<QueryBody[F]> } & {
  filters?: readonly (Filter | WireFilter)[] | null;
  dimensions?: readonly MemberLike[] | null;
};

type ReadonlyList<T> = T extends (infer Item)[] ? readonly Item[] : T;
type WireFilter = NonNullable<QueryBody["filters"]>[number];

/** The parts of a client that a query uses. */
export interface QueryRunner {
  query(query: QueryFields, options?: CallOptions): Promise<QueryResult<any>>;
  arrow(query: QueryFields, options?: CallOptions): Promise<ArrowStream>;
  sql(query: QueryFields, options?: CallOptions & { inline?: boolean }): Promise<Sql>;
  explain(query: QueryFields, options?: CallOptions): Promise<Explanation>;
  submit(query: QueryFields, options?: CallOptions): Promise<Job<any>>;
}

/** A query of the cube `C`. `groupBy`, `measures`, `where`, `segment` and `orderBy` append. */
export class Query<P extends ProjectTypes, C extends CubeName<P>, S extends Selection = NoSelection> {
  readonly #runner: QueryRunner;
  readonly #cube: C;
  readonly #fields: QueryFields;
  /** Stores the columns in the type; never set. */
  declare readonly selection: S;

  constructor(runner: QueryRunner, cube: C, fields: QueryFields = {}) {
    this.#runner = runner;
    this.#cube = cube;
    this.#fields = fields;
  }

  /** Groups by dimensions. Time dimensions take a granularity: `month("flight_date")`. */
  groupBy<const M extends readonly GroupMember<P, C>[]>(...members: M) {
    const names = members.filter((member) => typeof member === "string");
    const buckets = members.filter((member) => typeof member !== "string");
    const entries = buckets.map(({ dimension, granularity }) => ({ dimension, granularity }));
    const query = this.#append("dimensions", names).#append("time_dimensions", entries);
    return query.#as<WithDimensions<S, { [K in KeyOf<M[number]>]: DimensionValue<P, C, K> }>>();
  }

  /** Computes measures or metrics. */
  measures<const N extends MeasureName<P, C>>(...names: N[]) {
    return this.#append("measures", names).#as<WithMeasures<S, { [K in N]: MeasureValue<P, C, K> }>>();
  }

  /** Filters. Conditions on dimensions filter rows; conditions on measures filter groups. All of them must hold. */
  where(...filters: Filter<MemberKey<P, C>>[]): Query<P, C, S> {
    const reference = (member: MemberLike) =>
      typeof member === "string" ? member : qualifiedBucket(member, this.#cube);
    return this.#append(
      "filters",
      (filters as Filter[]).map((filter) => mapMembers(filter, reference)),
    );
  }

  /** Filters by named conditions. All of them must hold. */
  segment(...names: SegmentName<P, C>[]): Query<P, C, S> {
    return this.#append("segments", names);
  }

  /** Sorts by keys such as `desc("count")`; a member without a direction sorts ascending. */
  orderBy(...keys: (Order<MemberKey<P, C>> | MemberKey<P, C> | GroupMember<P, C>)[]): Query<P, C, S> {
    const isOrder = (key: (typeof keys)[number]): key is Order<MemberKey<P, C>> =>
      typeof key === "object" && "field" in key;
    return this.#append(
      "order_by",
      keys.map((key) => (isOrder(key) ? key : { field: keyOf(key), direction: "asc" })),
    );
  }

  /** Returns at most this number of rows. */
  limit(rows: number): Query<P, C, S> {
    return this.#set({ limit: count(rows) });
  }

  /** Skips rows. */
  offset(rows: number): Query<P, C, S> {
    return this.#set({ offset: count(rows) });
  }

  /**
   * Filters by time. Without `dimension`, each measure is filtered by the primary time dimension of its cube.
   * `granularity` groups by buckets as well.
   */
  timeRange(range: TimeSpan): Query<P, C, S>;
  timeRange<const D extends TimeName<P, C>, const G extends GranularityOf<P, C, D> = never>(
    range: TimeSpan,
    options: { dimension: D; granularity?: G },
  ): Query<P, C, WithDimensions<S, { [K in `${D}.${G}`]: string | null }>>;
  timeRange(range: TimeSpan, options: { dimension?: string; granularity?: Granularity } = {}): Query<P, C, any> {
    const ends = span(range);
    if (typeof ends !== "string") return this.#set({ time_range: { start: ends[0], end: ends[1], ...options } });
    const { dimension } = options;
    if (dimension === undefined) return this.#set({ time_range: ends });
    return this.#append("time_dimensions", [{ ...options, dimension, date_range: ends }]);
  }

  /**
   * Adds the value of each measure over another range, as `<key>.previous`. The other range is a start and an end, a
   * phrase, or a shift back such as `{ shift: "1 month" }`.
   */
  compare(range: TimeSpan | { shift: string }) {
    const isSpan = typeof range === "string" || Array.isArray(range);
    const other = isSpan ? span(range as TimeSpan) : (range as { shift: string });
    return this.#set({ compare_range: other }).#as<WithPrevious<S>>();
  }

  /** Sets other fields, for example `timezone`, `totals` or `fill_gaps`. */
  options<const O extends QueryOptions>(options: O) {
    type Form = O extends { numbers: infer N extends NumberForm } ? N : S["numbers"];
    return this.#set(options).#as<WithNumbers<S, Form>>();
  }

  /** Returns the request body. */
  toJSON(): QueryFields & { cube: C } {
    return { ...this.#fields, cube: this.#cube };
  }

  /** Runs the query. */
  run(options?: CallOptions): Promise<QueryResult<RowOf<S>>> {
    return this.#runner.query(this.toJSON(), options);
  }

  /** Runs the query and returns its Arrow stream. */
  arrow(options?: CallOptions): Promise<ArrowStream> {
    return this.#runner.arrow(this.toJSON(), options);
  }

  /** Returns the SQL without running it. */
  sql(options?: CallOptions & { inline?: boolean }): Promise<Sql> {
    return this.#runner.sql(this.toJSON(), options);
  }

  /** Explains the members, joins, policies and plan. */
  explain(options?: CallOptions): Promise<Explanation> {
    return this.#runner.explain(this.toJSON(), options);
  }

  /** Runs the query as a job. */
  submit(options?: CallOptions): Promise<Job<RowOf<S>>> {
    return this.#runner.submit(this.toJSON(), options);
  }

  #append(
    field: "dimensions" | "measures" | "filters" | "segments" | "order_by" | "time_dimensions",
    items: unknown[],
  ) {
    return items.length === 0 ? this : this.#set({ [field]: [...(this.#fields[field] ?? []), ...items] });
  }

  #set(fields: QueryFields): Query<P, C, S> {
    return new Query<P, C, S>(this.#runner, this.#cube, { ...this.#fields, ...fields });
  }

  #as<T extends Selection>(): Query<P, C, T> {
    return this as unknown as Query<P, C, T>;
  }
}

function count(rows: number): number {
  if (!Number.isSafeInteger(rows) || rows < 0) throw new RangeError("expected a non-negative number of rows");
  return rows;
}
