/** Types of queries. This file must compile: lines after `@ts-expect-error` must be errors. Nothing here is run. */
import { Client, and, asc, day, desc, eq, gt, hour, isIn, month, not, or, year } from "@terrane/client";
import type { Job, QueryResult, Row, Value } from "@terrane/client";
import type { Project } from "./project.js";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
type RowIn<R> = R extends Promise<QueryResult<infer T>> ? T : never;

/** Compiles only if both types are the same. */
function same<A, B>(_proof: Same<A, B>): void {}

export function typedQueries(client: Client<Project>): void {
  const flights = client.from("flights");
  const result = flights
    .groupBy("origin", month("flight_date"), "airlines.name", "is_cancelled", year("weather.time_hour"))
    .measures("count", "on_time_rate", "planes.count", "earliest_departure")
    .where(eq("origin", "JFK"), gt("departure_delay", 10), isIn(month("flight_date"), ["2013-02"]))
    .where(or(eq("dest", "LAX"), not(and(gt("count", 1), eq("airlines.carrier", "AA")))), gt("on_time_rate", 0.5))
    .segment("long_haul", "weather.windy")
    .orderBy(desc("count"), asc(month("flight_date")), "origin", month("flight_date"))
    .limit(10)
    .run();
  interface Expected {
    origin: string | null;
    "flight_date.month": string | null;
    "airlines.name": string | null;
    is_cancelled: boolean | null;
    "weather.time_hour.year": string | null;
    count: number;
    on_time_rate: number | null;
    "planes.count": number;
    earliest_departure: number | null;
  }
  same<RowIn<typeof result>, { [K in keyof Expected]: Expected[K] }>(true);

  const compared = flights
    .measures("count")
    .timeRange(["2013-03", null], { dimension: "flight_date", granularity: "month" })
    .compare({ shift: "1 month" });
  const exact = compared.options({ numbers: "string", timezone: "Europe/Berlin" });
  same<
    RowIn<ReturnType<typeof compared.run>>,
    { "flight_date.month": string | null; count: number; "count.previous": number | null }
  >(true);
  same<
    RowIn<ReturnType<typeof exact.run>>,
    { "flight_date.month": string | null; count: string; "count.previous": string | null }
  >(true);

  const kept = client.query(flights.groupBy("metric_time", month("metric_time")).measures("flights.count"));
  same<RowIn<typeof kept>, { metric_time: string | null; "metric_time.month": string | null; "flights.count": number }>(
    true,
  );
  const job = flights.groupBy("origin").submit();
  same<typeof job, Promise<Job<{ origin: string | null }>>>(true);
  void client.cube("flights");
  void flights.timeRange("last 7 days").timeRange("2013-Q1", { dimension: "weather.time_hour", granularity: "hour" });
}

export function rejectedNames(client: Client<Project>): void {
  const flights = client.from("flights");
  // @ts-expect-error unknown cube
  client.from("fligts");
  // @ts-expect-error unknown cube
  void client.cube("fligts");
  // @ts-expect-error unknown dimension
  flights.groupBy("orgin");
  // @ts-expect-error a dimension of another cube needs its qualified name
  flights.groupBy("manufacturer");
  // @ts-expect-error unknown dimension of another cube
  flights.groupBy("planes.manufactuer");
  // @ts-expect-error a measure is not a dimension
  flights.groupBy("count");
  // @ts-expect-error not a time dimension
  flights.groupBy(month("origin"));
  // @ts-expect-error the time dimension does not offer hours
  flights.groupBy(hour("flight_date"));
  // @ts-expect-error unknown measure
  flights.measures("cuont");
  // @ts-expect-error unknown metric
  flights.measures("count", "on_time_rat");
  // @ts-expect-error a dimension is not a measure
  flights.measures("origin");
  // @ts-expect-error unknown member of a filter
  flights.where(eq("orgin", "JFK"));
  // @ts-expect-error unknown member inside a tree
  flights.where(or(eq("origin", "JFK"), not(eq("orgin", "JFK"))));
  // @ts-expect-error unknown bucket of a filter
  flights.where(eq(day("dest"), "2013-02-01"));
  // @ts-expect-error unknown segment
  flights.segment("delaid");
  // @ts-expect-error unknown member of a sort key
  flights.orderBy(desc("cuont"));
  // @ts-expect-error not a time dimension
  flights.timeRange("2013", { dimension: "origin" });
  // @ts-expect-error the time dimension does not offer hours
  flights.timeRange("2013", { dimension: "flight_date", granularity: "hour" });
  // @ts-expect-error unknown option
  flights.options({ timezon: "UTC" });
}

export async function typedRows(client: Client<Project>): Promise<void> {
  const { rows, meta } = await client.from("flights").groupBy("origin").measures("count").run();
  const total: number = rows.reduce((sum, row) => sum + row.count, 0);
  const cached: boolean | undefined = meta.cached;
  for (const row of rows) {
    // @ts-expect-error a column that was not selected
    void row.dest;
    // @ts-expect-error the origin may be null
    void row.origin.length;
  }
  void [total, cached];
}

export async function untypedQueries(client: Client): Promise<void> {
  const result = client.from("any").groupBy("a", month("b"), "c.d").measures("e").where(eq("f", 1)).run();
  same<RowIn<typeof result>, { a: Value; "b.month": Value; "c.d": Value; e: Value }>(true);
  const fields = client.query({ measures: ["a.b"], filters: [eq("a.c", 1), eq(month("a.d"), "2013-02")], limit: 1 });
  same<RowIn<typeof fields>, Row>(true);
  // @ts-expect-error unknown field
  void client.query({ mesures: ["a.b"] });
  const meaning = await client.ask("flights by origin", { language: "en" });
  if (meaning.query) void client.query(meaning.query, { signal: AbortSignal.timeout(1000), deadlineMs: 500 });
}
