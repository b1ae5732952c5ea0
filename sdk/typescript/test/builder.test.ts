/** Request bodies of the builder, and values that it refuses. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as terrane from "@terrane/client";
import {
  and,
  asc,
  between,
  desc,
  eq,
  gt,
  inRange,
  isIn,
  isNotSet,
  isSet,
  month,
  not,
  notInRange,
  or,
} from "@terrane/client";
import type { Project } from "./project.js";
import { BASE_URL, ROWS, Script, connect, rows } from "./answers.js";

const client = new terrane.Client<Project>({ baseUrl: BASE_URL });
const flights = client.from("flights");

/** Returns the request body as it is sent. */
function body(query: object): unknown {
  return JSON.parse(JSON.stringify(query));
}

test("the methods of a query write the fields of the REST interface", () => {
  const query = flights
    .groupBy("origin", month("flight_date"), "airlines.name")
    .measures("count", "on_time_rate")
    .where(eq("origin", "JFK"), gt("departure_delay", 10))
    .segment("long_haul")
    .orderBy(desc("count"), "origin", month("flight_date"))
    .limit(10)
    .offset(5);
  assert.deepEqual(body(query), {
    cube: "flights",
    dimensions: ["origin", "airlines.name"],
    time_dimensions: [{ dimension: "flight_date", granularity: "month" }],
    measures: ["count", "on_time_rate"],
    filters: [
      { dimension: "origin", operator: "equals", value: "JFK" },
      { dimension: "departure_delay", operator: "gt", value: 10 },
    ],
    segments: ["long_haul"],
    order_by: [
      { field: "count", direction: "desc" },
      { field: "origin", direction: "asc" },
      { field: "flight_date.month", direction: "asc" },
    ],
    limit: 10,
    offset: 5,
  });
});

test("queries are immutable", () => {
  const base = flights.measures("count");
  base.groupBy("origin").limit(1);
  assert.deepEqual(body(base), { cube: "flights", measures: ["count"] });
  assert.deepEqual(body(base.measures("late")), { cube: "flights", measures: ["count", "late"] });
});

test("buckets in filters are qualified, also inside of trees", () => {
  const query = flights.where(
    or(
      eq(month("flight_date"), "2013-02"),
      not(and(eq(month("weather.time_hour"), "2013-03"), eq(month("metric_time"), "x"))),
    ),
  );
  const condition = (dimension: string, value: string) => ({ dimension, operator: "equals", value });
  assert.deepEqual(body(query), {
    cube: "flights",
    filters: [
      {
        or: [
          condition("flights.flight_date.month", "2013-02"),
          { not: { and: [condition("weather.time_hour.month", "2013-03"), condition("metric_time.month", "x")] } },
        ],
      },
    ],
  });
});

const OPERATORS: [terrane.Filter, string, unknown?][] = [
  [eq("a", null), "equals", null],
  [terrane.ne("a", true), "notEquals", true],
  [gt("a", 1), "gt", 1],
  [terrane.gte("a", 1.5), "gte", 1.5],
  [terrane.lt("a", 10n ** 20n), "lt", "100000000000000000000"],
  [terrane.lte("a", new Date(0)), "lte", "1970-01-01T00:00:00.000Z"],
  [terrane.contains("a", "x"), "contains", "x"],
  [terrane.notContains("a", "x"), "notContains", "x"],
  [terrane.startsWith("a", "x"), "startsWith", "x"],
  [terrane.endsWith("a", "x"), "endsWith", "x"],
  [terrane.before("a", "2013"), "beforeDate", "2013"],
  [terrane.after("a", "2013"), "afterDate", "2013"],
  [isIn("a", new Set(["x", null])), "inList", ["x", null]],
  [terrane.notIn("a", []), "notInList", []],
  [isSet("a"), "set"],
  [isNotSet("a"), "notSet"],
  [between("a", 1, 2), "between", [1, 2]],
  [inRange("a", "last 7 days"), "inDateRange", "last 7 days"],
  [notInRange("a", [null, "2013"]), "notInDateRange", [null, "2013"]],
];
for (const [filter, operator, value] of OPERATORS) {
  test(`a filter has the operator ${operator}`, () => {
    assert.deepEqual(filter, value === undefined ? { dimension: "a", operator } : { dimension: "a", operator, value });
  });
}

test("values without a JSON form are refused", () => {
  assert.throws(() => gt("a", Number.NaN), RangeError);
  assert.throws(() => eq("a", Infinity), RangeError);
  assert.throws(() => eq("a", new Date("x")), RangeError);
  assert.throws(() => eq("a", undefined as never), TypeError);
  assert.throws(() => eq("a", {} as never), TypeError);
  assert.throws(() => isIn("a", "JFK"), TypeError);
  assert.throws(() => inRange("a", [null, null]), TypeError);
  assert.throws(() => flights.limit(-1), RangeError);
  assert.throws(() => flights.limit(Number.NaN), RangeError);
  assert.throws(() => flights.offset(1.5), RangeError);
});

test("time ranges take the form that their arguments need", () => {
  const time_range = (query: object) => (body(query) as { time_range: unknown }).time_range;
  assert.equal(time_range(flights.timeRange("last 7 days")), "last 7 days");
  assert.deepEqual(time_range(flights.timeRange(["2013-01", null])), { start: "2013-01", end: null });
  assert.deepEqual(
    time_range(flights.timeRange(["2013-01", "2013-03"], { dimension: "flight_date", granularity: "month" })),
    {
      start: "2013-01",
      end: "2013-03",
      dimension: "flight_date",
      granularity: "month",
    },
  );
  assert.deepEqual(body(flights.timeRange("2013-Q1", { dimension: "flight_date" })), {
    cube: "flights",
    time_dimensions: [{ dimension: "flight_date", date_range: "2013-Q1" }],
  });
});

test("comparisons and options are fields", () => {
  const query = flights.measures("count").options({ totals: true, timezone: "UTC" });
  assert.deepEqual(body(query.compare({ shift: "1 month" })), {
    cube: "flights",
    measures: ["count"],
    totals: true,
    timezone: "UTC",
    compare_range: { shift: "1 month" },
  });
  assert.deepEqual((body(query.compare(["2013", "2014"])) as any).compare_range, ["2013", "2014"]);
});

test("a bucket in the fields of a query is its reference", () => {
  assert.equal(
    JSON.stringify({ dimensions: [month("flights.flight_date")] }),
    '{"dimensions":["flights.flight_date.month"]}',
  );
  assert.deepEqual(asc(month("a")), { field: "a.month", direction: "asc" });
});

test("queries run in both forms", async () => {
  const script = new Script(rows(), rows(), rows());
  const other = connect(script);
  const query = other.from("flights").measures("count");
  assert.deepEqual((await query.run()).rows, ROWS);
  assert.deepEqual([...(await other.query(query))], ROWS);
  const result = await other.query({ measures: ["flights.count"] });
  assert.deepEqual([result.sql, result.durationMs, result.meta.total_rows], ["SELECT 1", 1.5, 1]);
  assert.deepEqual(
    script.sent.map((request) => request.body),
    [
      { cube: "flights", measures: ["count"] },
      { cube: "flights", measures: ["count"] },
      { measures: ["flights.count"] },
    ],
  );
});
