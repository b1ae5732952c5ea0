/**
 * Tests against a real server that serves `examples/flights`, with a key of the scope `read`.
 *
 * Counts are facts of the data: 336,776 flights of 2013, of which 120,835 left EWR, 111,279 JFK and 104,662 LGA.
 */
import assert from "node:assert/strict";
import { setTimeout } from "node:timers/promises";
import { describe, test } from "node:test";
import * as terrane from "@terrane/client";
import { toTable } from "@terrane/client/arrow";
import { generateProject } from "@terrane/client/codegen";
import { readFile } from "node:fs/promises";
import { connect, needsServer, needsUser, password, url, username } from "./server.js";

const { after, and, before, between, contains, day, desc, endsWith, eq, gt, gte, inRange, isIn, isNotSet, isSet } =
  terrane;
const { lt, lte, month, ne, not, notContains, notIn, notInRange, or, startsWith } = terrane;
const [ALL, EWR, JFK, LGA] = [336_776, 120_835, 111_279, 104_662];
const server = connect();
const flights = server.from("flights");

type Filters = Parameters<typeof flights.where>;

async function count(...filters: Filters): Promise<number> {
  const { rows } = await flights
    .measures("count")
    .where(...filters)
    .run();
  return rows[0]?.count ?? 0;
}

const COMPLEMENTS: [Filters[0], Filters[0]][] = [
  [eq("origin", "JFK"), ne("origin", "JFK")],
  [isIn("origin", ["JFK", "LGA"]), notIn("origin", ["JFK", "LGA"])],
  [contains("origin", "F"), notContains("origin", "F")],
  [startsWith("origin", "J"), not(startsWith("origin", "J"))],
  [endsWith("origin", "A"), not(endsWith("origin", "A"))],
  [gt("departure_hour", 12), lte("departure_hour", 12n)],
  [gte("departure_hour", 12), lt("departure_hour", 12)],
  [between("departure_hour", 6, 9), or(lt("departure_hour", 6), gt("departure_hour", 9))],
  [isSet("departure_delay"), isNotSet("departure_delay")],
  [ne("departure_delay", null), eq("departure_delay", null)],
  [inRange("flight_date", "2013-Q1"), notInRange("flight_date", "2013-Q1")],
  [inRange("flight_date", ["2013-02", "2013-03-05"]), notInRange("flight_date", ["2013-02", "2013-03-05"])],
  [before("flight_date", "2013-03"), gte("flight_date", "2013-03")],
  [after("time_hour", new Date("2013-03-01T00:00:00Z")), lte("time_hour", new Date("2013-03-01T00:00:00Z"))],
  [eq(month("flight_date"), "2013-02"), ne(month("flight_date"), "2013-02")],
  [and(eq("origin", "JFK"), gt("departure_hour", 12)), or(ne("origin", "JFK"), lte("departure_hour", 12))],
  [eq("airlines.name", "Envoy Air"), ne("airlines.name", "Envoy Air")],
];

describe("queries", needsServer, () => {
  test("rows and facts", async () => {
    const { rows, meta, sql, durationMs } = await flights
      .groupBy("origin")
      .measures("count")
      .orderBy(desc("count"))
      .limit(2)
      .run();
    assert.deepEqual(rows, [
      { origin: "EWR", count: EWR },
      { origin: "JFK", count: JFK },
    ]);
    assert.deepEqual([meta.total_rows, meta.returned_rows, meta.truncated], [3, 2, true]);
    assert.match(sql!, /GROUP BY/);
    assert.ok(durationMs! >= 0);
  });

  for (const [filter, complement] of COMPLEMENTS) {
    test(`a filter and its complement cover all rows: ${JSON.stringify(filter)}`, async () => {
      const counts = [await count(filter), await count(complement)];
      assert.equal(counts[0]! + counts[1]!, ALL);
      assert.ok(Math.min(...counts) > 0);
    });
  }

  test("filters select the right rows", async () => {
    assert.equal(await count(isIn("origin", ["JFK", "LGA"])), JFK + LGA);
    assert.equal(await count(eq(month("flight_date"), "2013-02")), 24_951);
    assert.equal(await count(inRange("flight_date", "2013-03")), 28_834);
  });

  test("filters on measures and metrics filter groups", async () => {
    const { rows } = await flights
      .groupBy("origin")
      .measures("count")
      .where(gt("count", 110_000), gt("on_time_rate", 0.5))
      .run();
    assert.deepEqual(new Set(rows.map((row) => row.origin)), new Set(["EWR", "JFK"]));
  });

  test("buckets, joined cubes and sort keys", async () => {
    const query = flights.groupBy("origin", month("flight_date"), "airlines.name").measures("count", "on_time_rate");
    const { rows } = await query
      .orderBy(desc(month("flight_date")), "origin", "airlines.name")
      .limit(1)
      .run();
    assert.deepEqual(Object.keys(rows[0]!), ["origin", "airlines.name", "flight_date.month", "count", "on_time_rate"]);
    assert.equal(rows[0]!["flight_date.month"], "2013-12");
    const shared = await flights.groupBy(month("metric_time")).measures("count", "weather.count").limit(1).run();
    assert.equal(shared.rows[0]!["metric_time.month"], "2013-01");
  });

  test("segments, ranges and comparisons", async () => {
    const delayed = await flights.measures("count").segment("delayed").run();
    assert.equal(delayed.rows[0]!.count, await count(gt("departure_delay", 15)));
    const march = flights
      .measures("count")
      .timeRange(["2013-03-01", "2013-03-31"], { dimension: "flight_date", granularity: "month" });
    assert.deepEqual((await march.compare({ shift: "1 month" }).run()).rows, [
      { "flight_date.month": "2013-03", count: 28_834, "count.previous": 24_951 },
    ]);
    const words = await flights
      .measures("count")
      .timeRange("2013-Q1", { dimension: "flight_date", granularity: "month" })
      .run();
    assert.deepEqual(
      words.rows.map((row) => row["flight_date.month"]),
      ["2013-01", "2013-02", "2013-03"],
    );
    assert.equal((await flights.measures("count").timeRange("last 7 days").run()).rows[0]?.count ?? 0, 0);
  });

  test("the server may answer from its cache", async () => {
    const query = flights.measures("late").where(eq("origin", "JFK"));
    await query.run();
    assert.equal((await query.run()).meta.cached, true);
    assert.equal((await query.options({ cache: false }).run()).meta.cached, false);
  });

  test("options", async () => {
    const query = flights.groupBy("origin").measures("count").limit(1).options({ totals: true, numbers: "string" });
    const { rows, meta } = await query.run();
    assert.deepEqual(rows, [{ origin: "EWR", count: String(EWR) }]);
    assert.deepEqual(meta.totals, { count: String(ALL) });
  });

  test("fields of the REST interface", async () => {
    const filters = [eq(month("flights.flight_date"), "2013-02")];
    const { rows } = await server.query({
      measures: ["flights.count"],
      dimensions: [month("flights.flight_date")],
      filters,
    });
    assert.deepEqual(rows, [{ "flights.flight_date.month": "2013-02", "flights.count": 24_951 }]);
  });
});

describe("Arrow", needsServer, () => {
  test("streams have the types of the warehouse", async () => {
    const query = flights
      .groupBy("time_hour", "flight_date", "is_cancelled", "origin")
      .measures("count", "average_departure_delay");
    const stream = await query.limit(5).arrow();
    const table = await toTable(stream);
    assert.deepEqual(
      table.schema.fields.map((field) => String(field.type)),
      ["Timestamp<MICROSECOND, UTC>", "Date32<DAY>", "Bool", "Utf8", "Int64", "Float64"],
    );
    assert.equal(stream.truncated, true);
  });

  test("large streams are complete", async () => {
    const query = flights.groupBy("flight_date", "carrier", "flight_number", "origin").measures("count").limit(400_000);
    const table = await toTable(await query.arrow());
    assert.ok(table.numRows > 300_000);
    const column = table.getChild("count")!;
    let sum = 0n;
    for (const value of column) sum += BigInt(value);
    assert.equal(sum, BigInt(ALL));
  });
});

describe("jobs", needsServer, () => {
  test("a job has its rows in pages, is listed, and can be deleted", async () => {
    const job = await flights.groupBy("flight_date", "carrier", "origin").measures("count").limit(20_000).submit();
    const { rows, meta } = await job.result({ timeoutMs: 60_000 });
    assert.equal(job.status, "complete");
    assert.ok(rows.length > 10_000 && rows.length === job.state.row_count && rows.length === meta.total_rows);
    assert.equal(
      rows.reduce((sum, row) => sum + row.count, 0),
      ALL,
    );
    assert.equal((await toTable(await job.arrow())).numRows, rows.length);
    assert.ok((await server.jobs()).some((other) => other.id === job.id));
    assert.equal((await server.job(job.id)).status, "complete");
    assert.equal((await job.cancel()).status, "expired");
    await assert.rejects(job.result(), terrane.GoneError);
  });
});

describe("metadata and questions", needsServer, () => {
  test("metadata", async () => {
    const cube = await server.cube("flights");
    assert.deepEqual(cube.dimensions.find(({ name }) => name === "flight_date")?.granularities, [
      "day",
      "week",
      "month",
      "quarter",
      "year",
    ]);
    assert.ok((await server.cubes()).some(({ name }) => name === "origin_airport"));
    assert.ok((await server.measures()).some(({ cube, name }) => cube === "flights" && name === "count"));
    assert.ok((await server.dimensions()).some(({ cube, name }) => cube === "flights" && name === "origin"));
    assert.ok((await server.metrics()).some(({ name }) => name === "on_time_rate"));
  });

  test("SQL and explanations", async () => {
    const query = flights.measures("count").where(eq("origin", "JFK"));
    assert.deepEqual((await query.sql()).params, ["JFK"]);
    const inline = await query.sql({ inline: true });
    assert.match(inline.sql, /^SELECT.*'JFK'/s);
    assert.deepEqual(inline.params, []);
    assert.ok((await query.explain()).plan.length > 0);
  });

  test("search, questions and health", async () => {
    const { results } = await server.search("average delay", { types: ["measure"], limit: 5 });
    assert.ok(results.length > 0 && results.every((hit) => hit.type === "measure"));
    const meaning = await server.ask("top 3 carriers by flights in 2013-02");
    assert.equal((await server.query(meaning.query!)).rows.length, 3);
    const unclear = await server.ask("top 5 frobnicators");
    assert.deepEqual([unclear.query, unclear.clarifications[0]!.text], [null, "frobnicators"]);
    assert.equal((await server.health()).status, "healthy");
  });

  test("the generated types of this project are current", async () => {
    const text = generateProject({ cubes: await server.cubes(), metrics: await server.metrics() });
    assert.equal(text, await readFile(new URL("../test/project.ts", import.meta.url), "utf8"));
  });
});

const WRONG: [string, (client: terrane.Client) => Promise<unknown>, typeof terrane.TerraneError, string?][] = [
  ["unknown measure", (c) => c.query({ measures: ["flights.cuont"] }), terrane.InvalidMeasureError, "flights.count"],
  ["unknown short name", (c) => c.from("flights").measures("cuont").run(), terrane.InvalidQueryError],
  [
    "unknown dimension",
    (c) => c.query({ dimensions: ["flights.orgin"] }),
    terrane.InvalidDimensionError,
    "flights.origin",
  ],
  ["unknown metric", (c) => c.query({ metrics: ["on_time_rat"] }), terrane.InvalidQueryError, "on_time_rate"],
  ["unknown field", (c) => c.query({ mesures: [] } as never), terrane.InvalidQueryError, "measures"],
  ["unknown cube of a query", (c) => c.from("fligts").measures("count").run(), terrane.InvalidQueryError, "flights"],
  ["empty query", (c) => c.query({}), terrane.InvalidQueryError],
  ["limit", (c) => c.from("flights").measures("count").limit(1e9).run(), terrane.InvalidQueryError],
  [
    "time zone",
    (c) => c.from("flights").measures("count").options({ timezone: "Mars/Base" }).run(),
    terrane.InvalidQueryError,
  ],
  ["join path", (c) => c.query({ measures: ["planes.count"], dimensions: ["airlines.name"] }), terrane.NoJoinPathError],
  ["operator", (c) => c.from("flights").measures("count").where(gt("origin", "F")).run(), terrane.InvalidFilterError],
  [
    "value",
    (c) => c.from("flights").measures("count").where(eq("departure_hour", "noon")).run(),
    terrane.InvalidFilterError,
  ],
  ["granularity", (c) => c.from("flights").groupBy(terrane.hour("flight_date")).run(), terrane.InvalidQueryError],
  ["Arrow", (c) => c.arrow({ measures: ["flights.cuont"] }), terrane.InvalidMeasureError, "flights.count"],
  ["job", (c) => c.submit({ measures: ["flights.cuont"] }), terrane.InvalidMeasureError, "flights.count"],
  ["SQL", (c) => c.sql({ measures: ["flights.cuont"] }), terrane.InvalidMeasureError, "flights.count"],
  ["unknown cube", (c) => c.cube("fligts"), terrane.NotFoundError, "flights"],
  ["name of two dots", (c) => c.cube(".."), terrane.NotFoundError],
  ["name of special characters", (c) => c.cube("ü/?#"), terrane.NotFoundError],
  ["unknown job", (c) => c.job("0".repeat(32)), terrane.NotFoundError],
  ["long search", (c) => c.search("x".repeat(301)), terrane.InvalidQueryError],
  ["large body", (c) => c.query({ dimensions: ["x".repeat(300_000)] }), terrane.PayloadTooLargeError],
];

describe("errors", needsServer, () => {
  for (const [name, call, expected, nearest] of WRONG) {
    test(`${name}: ${expected.name}`, async () => {
      const untyped = connect() as unknown as terrane.Client;
      const caught = await call(untyped).then(
        () => assert.fail("no error"),
        (reason: terrane.TerraneError) => reason,
      );
      assert.equal(caught.constructor, expected);
      assert.ok(caught.correlationId);
      if (nearest !== undefined) assert.equal(caught.nearest[0], nearest);
    });
  }

  test("an unknown key is unauthorized", async () => {
    const apiKey = "trn_0000000000000000_wrong";
    await assert.rejects(connect({ apiKey }).from("flights").measures("count").run(), (caught: Error) => {
      return caught instanceof terrane.UnauthorizedError && !String(caught.stack).includes(apiKey);
    });
  });

  test("a closed port is a failed connection", async () => {
    const client = new terrane.Client({ baseUrl: "http://127.0.0.1:9", retry: { attempts: 2, backoffMs: 1 } });
    await assert.rejects(client.health(), terrane.ConnectionFailedError);
  });

  test("an abort ends a running query", async () => {
    const query = flights
      .groupBy("flight_date", "carrier", "flight_number", "tailnum", day("time_hour"))
      .measures("count");
    const started = performance.now();
    await assert.rejects(query.options({ cache: false }).run({ signal: AbortSignal.timeout(20) }), {
      name: "TimeoutError",
    });
    assert.ok(performance.now() - started < 1000);
  });
});

describe("sign-in", needsUser, () => {
  test("expired access tokens are renewed", async () => {
    // A server with a short `security.jwt.access_token_expiry` shows the renewal.
    const query = connect({ username, password }).from("flights").measures("count");
    for (let round = 0; round < 3; round++) {
      assert.deepEqual((await query.run()).rows, [{ count: ALL }]);
      await setTimeout(1100);
    }
  });

  test("a wrong password is unauthorized", async () => {
    const client = new terrane.Client({ baseUrl: url!, username, password: "not the password" });
    await assert.rejects(client.query({ measures: ["flights.count"] }), (caught: Error) => {
      return caught instanceof terrane.UnauthorizedError || caught instanceof terrane.RateLimitedError;
    });
  });
});
