/**
 * Time dimensions with a granularity (buckets): `month("flight_date")`.
 *
 * Other members are strings. A bucket is an object, because `planes.year` may be a member of the cube `planes`.
 */
import type { Granularity } from "./wire.js";

/** A time dimension with a granularity. `Key` is its key in rows. */
export class TimeBucket<Key extends string = string> {
  constructor(
    readonly dimension: string,
    readonly granularity: Granularity,
  ) {}

  /** The reference, `dimension.granularity`. */
  get key(): Key {
    return `${this.dimension}.${this.granularity}` as Key;
  }

  toJSON(): string {
    return this.key;
  }
}

/** A member by its name, or a bucket. */
export type MemberLike = string | TimeBucket;

/** The key of a member in rows. */
export type KeyOf<M extends MemberLike> = M extends TimeBucket<infer Key> ? Key : M extends string ? M : never;

/** Returns the key of a member in rows. */
export function keyOf(member: MemberLike): string {
  return typeof member === "string" ? member : member.key;
}

/** Returns the reference of a bucket for fields that need a qualified name, such as filters. */
export function qualifiedBucket(bucket: TimeBucket, cube: string): string {
  const isQualified = bucket.dimension === "metric_time" || bucket.dimension.includes(".");
  return isQualified ? bucket.key : `${cube}.${bucket.key}`;
}

function bucketOf<G extends Granularity>(granularity: G) {
  return <D extends string>(dimension: D) => new TimeBucket<`${D}.${G}`>(dimension, granularity);
}

export const second = bucketOf("second");
export const minute = bucketOf("minute");
export const hour = bucketOf("hour");
export const day = bucketOf("day");
export const week = bucketOf("week");
export const month = bucketOf("month");
export const quarter = bucketOf("quarter");
export const year = bucketOf("year");
