/**
 * Filters and sort keys.
 *
 * Each function returns a filter in JSON form with exactly one operator of the REST interface.
 */
import { keyOf } from "./members.js";
import type { KeyOf, MemberLike, TimeBucket } from "./members.js";
import type { Operator } from "./wire.js";

/** A value to compare with. Dates are sent as instants, integers beyond 2^53 as `bigint`. */
export type FilterValue = string | number | bigint | boolean | Date | null;
/** A phrase such as `last 7 days`, or a start and an end, both included. The start or the end may be null. */
export type TimeSpan = string | readonly [start: string | Date | null, end: string | Date | null];

/** A comparison of a member. */
export interface Condition<Key extends string = string> {
  readonly dimension: Key | TimeBucket<Key>;
  readonly operator: Operator;
  readonly value?: string | number | boolean | null | (string | number | boolean | null)[];
}

/** A condition, or a tree of conditions, on members with the names `Key`. */
export type Filter<Key extends string = string> =
  | Condition<Key>
  | { readonly and: readonly Filter<Key>[] }
  | { readonly or: readonly Filter<Key>[] }
  | { readonly not: Filter<Key> };

/** A sort key. */
export interface Order<Key extends string = string> {
  readonly field: Key;
  readonly direction: "asc" | "desc";
}

/** Returns a value as JSON. Integers of the type `bigint` become strings, which the server reads with all digits. */
export function scalar(value: FilterValue): string | number | boolean | null {
  if (typeof value === "bigint") return value.toString();
  if (value instanceof Date) return value.toISOString();
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError("expected a finite number");
  if (value !== null && !["string", "number", "boolean"].includes(typeof value)) {
    throw new TypeError(`expected a string, number, boolean, date or null, found ${typeof value}`);
  }
  return value;
}

/** Returns a span as JSON. */
export function span(range: TimeSpan): string | [string | null, string | null] {
  if (typeof range === "string") return range;
  const [start, end] = range.map((moment) => scalar(moment) as string | null);
  if (range.length !== 2 || (start === null && end === null)) {
    throw new TypeError("expected a phrase, or a start and an end of which at most one is null");
  }
  return [start ?? null, end ?? null];
}

function condition<M extends MemberLike>(member: M, operator: Operator, value?: Condition["value"]) {
  const dimension = member as KeyOf<M> | TimeBucket<KeyOf<M>>;
  return (value === undefined ? { dimension, operator } : { dimension, operator, value }) as Condition<KeyOf<M>>;
}

function comparison<V extends FilterValue>(operator: Operator) {
  return <M extends MemberLike>(member: M, value: V) => condition(member, operator, scalar(value));
}

function membership(operator: Operator) {
  return <M extends MemberLike>(member: M, values: Iterable<FilterValue>) => {
    if (typeof values === "string") throw new TypeError("expected a list of values, found a string");
    return condition(member, operator, Array.from(values, scalar));
  };
}

function presence(operator: Operator) {
  return <M extends MemberLike>(member: M) => condition(member, operator);
}

function inclusion(operator: Operator) {
  return <M extends MemberLike>(member: M, range: TimeSpan) => condition(member, operator, span(range));
}

/** Filters by `equals`; `null` matches a missing value. */
export const eq = comparison("equals");
/** Filters by `notEquals`, which includes nulls. */
export const ne = comparison("notEquals");
export const gt = comparison<Exclude<FilterValue, null>>("gt");
export const gte = comparison<Exclude<FilterValue, null>>("gte");
export const lt = comparison<Exclude<FilterValue, null>>("lt");
export const lte = comparison<Exclude<FilterValue, null>>("lte");
/** Filters by `contains`, which is case-sensitive. */
export const contains = comparison<string>("contains");
/** Filters by `notContains`, which includes nulls. */
export const notContains = comparison<string>("notContains");
export const startsWith = comparison<string>("startsWith");
export const endsWith = comparison<string>("endsWith");
/** Filters by `beforeDate`. */
export const before = comparison<string | Date>("beforeDate");
/** Filters by `afterDate`. */
export const after = comparison<string | Date>("afterDate");
/** Filters by `inList`: the member has one of the values. */
export const isIn = membership("inList");
/** Filters by `notInList`: the member has none of the values. */
export const notIn = membership("notInList");
/** Filters by `set`: the member is not null. */
export const isSet = presence("set");
/** Filters by `notSet`: the member is null. */
export const isNotSet = presence("notSet");
/** Filters by `inDateRange`. */
export const inRange = inclusion("inDateRange");
/** Filters by `notInDateRange`. */
export const notInRange = inclusion("notInDateRange");

/** Filters by `between` for numbers or times, with both ends included. */
export function between<M extends MemberLike>(member: M, low: FilterValue, high: FilterValue) {
  return condition(member, "between", [scalar(low), scalar(high)]);
}

/** Combines filters, all of which must hold. */
export function and<Key extends string>(...filters: Filter<Key>[]): Filter<Key> {
  return { and: filters };
}

/** Combines filters, at least one of which must hold. */
export function or<Key extends string>(...filters: Filter<Key>[]): Filter<Key> {
  return { or: filters };
}

/** Negates a filter. */
export function not<Key extends string>(filter: Filter<Key>): Filter<Key> {
  return { not: filter };
}

/** Replaces the members in a filter. */
export function mapMembers(filter: Filter, replace: (member: MemberLike) => string): Filter {
  if ("and" in filter) return { and: filter.and.map((part) => mapMembers(part, replace)) };
  if ("or" in filter) return { or: filter.or.map((part) => mapMembers(part, replace)) };
  if ("not" in filter) return { not: mapMembers(filter.not, replace) };
  return { ...filter, dimension: replace(filter.dimension) };
}

/** Returns an ascending sort key. */
export function asc<M extends MemberLike>(member: M): Order<KeyOf<M>> {
  return { field: keyOf(member) as KeyOf<M>, direction: "asc" };
}

/** Returns a descending sort key. */
export function desc<M extends MemberLike>(member: M): Order<KeyOf<M>> {
  return { field: keyOf(member) as KeyOf<M>, direction: "desc" };
}
