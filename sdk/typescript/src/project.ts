/**
 * The types of a project: the names that its queries can use, and the rows that they return.
 *
 * `terrane-codegen` writes a type of the form `ProjectTypes`. Without one, names are strings. This module contains
 * types only, no code.
 */
import type { TimeBucket } from "./members.js";
import type { Granularity, NumberForm, Value } from "./wire.js";

/** The members of a cube. The properties of `granularities` are its time dimensions. */
export interface CubeTypes {
  measures: Record<string, Value>;
  dimensions: Record<string, Value>;
  granularities: Record<string, string>;
  segments: string;
}

/** The cubes and metrics of a project. */
export interface ProjectTypes {
  cubes: Record<string, CubeTypes>;
  metrics: Record<string, Value>;
}

type Name<T> = keyof T & string;
type Cubes<P extends ProjectTypes> = P["cubes"];
type Times<P extends ProjectTypes, C extends CubeName<P>> = Cubes<P>[C]["granularities"];
type Buckets<T extends Record<string, string>> = { [D in Name<T>]: `${D}.${T[D]}` }[Name<T>];
type MetricTime = "metric_time";

export type CubeName<P extends ProjectTypes> = Name<Cubes<P>>;

/** A measure of the cube `C` by its name, a measure of any cube by its qualified name, or a metric. */
export type MeasureName<P extends ProjectTypes, C extends CubeName<P>> =
  | Name<Cubes<P>[C]["measures"]>
  | { [K in CubeName<P>]: `${K}.${Name<Cubes<P>[K]["measures"]>}` }[CubeName<P>]
  | Name<P["metrics"]>;

/** A dimension of the cube `C` by its name, or a dimension of any cube by its qualified name. */
export type DimensionName<P extends ProjectTypes, C extends CubeName<P>> =
  | Name<Cubes<P>[C]["dimensions"]>
  | { [K in CubeName<P>]: `${K}.${Name<Cubes<P>[K]["dimensions"]>}` }[CubeName<P>]
  | MetricTime;

/** The key of a time dimension with a granularity that it offers. */
export type BucketName<P extends ProjectTypes, C extends CubeName<P>> =
  | Buckets<Times<P, C>>
  | { [K in CubeName<P>]: `${K}.${Buckets<Times<P, K>>}` }[CubeName<P>]
  | `${MetricTime}.${Granularity}`;

/** A time dimension. */
export type TimeName<P extends ProjectTypes, C extends CubeName<P>> =
  Name<Times<P, C>> | { [K in CubeName<P>]: `${K}.${Name<Times<P, K>>}` }[CubeName<P>] | MetricTime;

/** The granularities of a time dimension. */
export type GranularityOf<P extends ProjectTypes, C extends CubeName<P>, D extends string> = Granularity &
  (BucketName<P, C> extends infer B ? (B extends `${D}.${infer G}` ? G : string extends B ? string : never) : never);

export type SegmentName<P extends ProjectTypes, C extends CubeName<P>> =
  Cubes<P>[C]["segments"] | { [K in CubeName<P>]: `${K}.${Cubes<P>[K]["segments"]}` }[CubeName<P>];

/** A member to group by. */
export type GroupMember<P extends ProjectTypes, C extends CubeName<P>> =
  DimensionName<P, C> | TimeBucket<BucketName<P, C>>;

/** The key of a member to filter or order by. */
export type MemberKey<P extends ProjectTypes, C extends CubeName<P>> =
  DimensionName<P, C> | BucketName<P, C> | MeasureName<P, C>;

/** The type of a measure or metric in rows. */
export type MeasureValue<P extends ProjectTypes, C extends CubeName<P>, N extends string> =
  N extends Name<Cubes<P>[C]["measures"]>
    ? Cubes<P>[C]["measures"][N]
    : N extends `${infer K extends CubeName<P>}.${infer M}`
      ? Lookup<Cubes<P>[K]["measures"], M>
      : Lookup<P["metrics"], N>;

/** The type of a dimension in rows. Buckets are labels such as `2013-02`. */
export type DimensionValue<P extends ProjectTypes, C extends CubeName<P>, N extends string> =
  N extends Name<Cubes<P>[C]["dimensions"]>
    ? Cubes<P>[C]["dimensions"][N]
    : N extends BucketName<P, C> | MetricTime
      ? string | null
      : N extends `${infer K extends CubeName<P>}.${infer D}`
        ? Lookup<Cubes<P>[K]["dimensions"], D>
        : Value;

type Lookup<T, N extends string> = N extends keyof T ? T[N] : Value;

/** The columns of a query, as its methods add them. */
export interface Selection {
  dimensions: object;
  measures: object;
  numbers: NumberForm;
  compared: boolean;
}

type Columns<D extends object, M extends object, N extends NumberForm, X extends boolean> = {
  dimensions: D;
  measures: M;
  numbers: N;
  compared: X;
};
export type NoSelection = Columns<{}, {}, "number", false>;
export type WithDimensions<S extends Selection, Added extends object> = Columns<
  S["dimensions"] & Added,
  S["measures"],
  S["numbers"],
  S["compared"]
>;
export type WithMeasures<S extends Selection, Added extends object> = Columns<
  S["dimensions"],
  S["measures"] & Added,
  S["numbers"],
  S["compared"]
>;
export type WithPrevious<S extends Selection> = Columns<S["dimensions"], S["measures"], S["numbers"], true>;
export type WithNumbers<S extends Selection, N extends NumberForm> = Columns<
  S["dimensions"],
  S["measures"],
  N,
  S["compared"]
>;

type Previous<M> = { [K in Name<M> as `${K}.previous`]: M[K] | null };
type InForm<V, F extends NumberForm> = F extends "string" ? (V extends number ? string : V) : V;
type AllColumns<S extends Selection> = S["dimensions"] &
  S["measures"] &
  (S["compared"] extends true ? Previous<S["measures"]> : {});

/** The rows of a query. */
export type RowOf<S extends Selection> = { [K in keyof AllColumns<S>]: InForm<AllColumns<S>[K], S["numbers"]> };
