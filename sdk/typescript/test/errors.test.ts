/** Errors of responses, and secrets that they must not contain. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import * as terrane from "@terrane/client";
import { Script, connect, error, json, rows, tokens } from "./answers.js";

const QUERY = { measures: ["flights.count"] };
const SECRET = "trn_0123_secret";
const CODES: [number, string, typeof terrane.TerraneError][] = [
  [400, "INVALID_QUERY", terrane.InvalidQueryError],
  [400, "INVALID_MEASURE", terrane.InvalidMeasureError],
  [400, "INVALID_DIMENSION", terrane.InvalidDimensionError],
  [400, "INVALID_FILTER", terrane.InvalidFilterError],
  [400, "NO_JOIN_PATH", terrane.NoJoinPathError],
  [401, "UNAUTHORIZED", terrane.UnauthorizedError],
  [401, "TOKEN_EXPIRED", terrane.TokenExpiredError],
  [401, "INVALID_TOKEN", terrane.InvalidTokenError],
  [403, "FORBIDDEN", terrane.ForbiddenError],
  [403, "GUARDRAIL_EXCEEDED", terrane.GuardrailExceededError],
  [404, "NOT_FOUND", terrane.NotFoundError],
  [408, "QUERY_TIMEOUT", terrane.QueryTimeoutError],
  [409, "CONFLICT", terrane.ConflictError],
  [410, "GONE", terrane.GoneError],
  [413, "PAYLOAD_TOO_LARGE", terrane.PayloadTooLargeError],
  [422, "VALIDATION_ERROR", terrane.ValidationError],
  [429, "RATE_LIMITED", terrane.RateLimitedError],
  [502, "WAREHOUSE_ERROR", terrane.WarehouseError],
  [503, "OVERLOADED", terrane.UnavailableError],
  [503, "STATE_UNAVAILABLE", terrane.UnavailableError],
  [503, "RESULTS_UNAVAILABLE", terrane.UnavailableError],
  [500, "A_CODE_OF_A_LATER_VERSION", terrane.ServerError],
  [403, "A_CODE_OF_A_LATER_VERSION", terrane.ForbiddenError],
  [418, "A_CODE_OF_A_LATER_VERSION", terrane.TerraneError],
];

/** Returns the error with which a query rejects. */
async function failure(response: Response | Error, options = {}): Promise<terrane.TerraneError> {
  const client = connect(new Script(response), { retry: { attempts: 1 }, ...options });
  const caught: unknown = await client.query(QUERY).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(caught instanceof terrane.TerraneError);
  return caught;
}

for (const [status, code, expected] of CODES) {
  test(`${status} ${code} has the class ${expected.name}`, async () => {
    const caught = await failure(error(status, code));
    assert.equal(caught.constructor, expected);
    assert.equal(caught.name, expected.name);
    assert.deepEqual(
      [caught.code, caught.status, caught.correlationId, caught.message],
      [code, status, "c1", "it failed"],
    );
  });
}

test("offered names and details are properties", async () => {
  const fields = { available_measures: ["a.count", "a.counts"], details: { field: "measures" } };
  const caught = await failure(error(400, "INVALID_MEASURE", {}, fields));
  assert.deepEqual(caught.nearest, ["a.count", "a.counts"]);
  assert.deepEqual(caught.details, { available_measures: ["a.count", "a.counts"], field: "measures" });
});

test("known fields that resemble an unknown one are offered", async () => {
  const details = { field: "mesures", known_fields: ["limit", "measures", "metrics"] };
  assert.equal((await failure(error(400, "INVALID_QUERY", {}, { details }))).nearest[0], "measures");
});

test("responses of proxies have errors", async () => {
  const page = (status: number) => new Response("<html>", { status, headers: { "x-correlation-id": "c2" } });
  assert.equal((await failure(page(302))).constructor, terrane.ResponseError);
  assert.equal((await failure(page(502))).constructor, terrane.ServerError);
  assert.equal((await failure(page(403))).constructor, terrane.ForbiddenError);
  const caught = await failure(page(200));
  assert.equal(caught.constructor, terrane.ResponseError);
  assert.equal(caught.correlationId, "c2");
});

for (const body of [null, [], {}, { data: {}, meta: {}, query: {} }, { data: [], meta: {} }]) {
  test(`the body ${JSON.stringify(body)} is not an answer`, async () => {
    assert.equal((await failure(json(body))).constructor, terrane.ResponseError);
  });
}

test("an unknown cube has the nearest names", async () => {
  const cubes = { cubes: [{ name: "airlines" }, { name: "flights" }] };
  const client = connect(new Script(json({ detail: "cube `fligts` not found" }, 404), json(cubes)));
  await assert.rejects(client.cube("fligts"), (caught: terrane.NotFoundError) => {
    assert.deepEqual([caught.name, caught.status, caught.message], ["NotFoundError", 404, "cube `fligts` not found"]);
    assert.deepEqual(caught.nearest, ["flights"]);
    return true;
  });
});

for (const credentials of [{ apiKey: SECRET }, { token: SECRET }, { username: "ada", password: SECRET }]) {
  test(`${Object.keys(credentials).join(" and ")} occur in no representation`, async () => {
    const signIn = "username" in credentials ? [tokens(1)] : [];
    const script = new Script(...signIn, json({ job_id: "j", status: "pending" }, 202), rows());
    const client = connect(script, credentials);
    const query = client.from("flights");
    const shown = [client, query, await query.submit(), await query.run()];
    const texts = shown.flatMap((item) => [
      inspect(item, { depth: 9, showHidden: true }),
      JSON.stringify(item),
      String(item),
    ]);
    assert.match(script.bearers.at(-1)!, /^Bearer /);
    assert.doesNotMatch(texts.join(), /secret|access-1|refresh-1/);
  });
}

test("errors contain no credential, even if `fetch` reports it", async () => {
  const leaking = Object.assign(new TypeError(`authorization: Bearer ${SECRET}`), {
    cause: { headers: SECRET, code: "ECONNREFUSED" },
  });
  const failures = [
    await failure(leaking, { apiKey: SECRET }),
    await failure(error(401, "UNAUTHORIZED"), { apiKey: SECRET }),
  ];
  assert.match(failures[0]!.message, /ECONNREFUSED/);
  for (const caught of failures) {
    const shown = inspect(caught, { depth: 9, showHidden: true }) + JSON.stringify(caught) + String(caught.stack);
    assert.doesNotMatch(shown, /secret/);
  }
});

test("invalid arguments are refused without their values", () => {
  const baseUrl = "http://localhost";
  const options: terrane.ClientOptions[] = [
    { baseUrl: "localhost:8000" },
    { baseUrl: `http://ada:${SECRET}@localhost` },
    { baseUrl: `http://localhost?api_key=${SECRET}` },
    { baseUrl, apiKey: SECRET, token: SECRET },
    { baseUrl, username: "ada" },
    { baseUrl, apiKey: `${SECRET}\n` },
    { baseUrl, apiKey: "" },
    { baseUrl, timeoutMs: 0 },
    { baseUrl, deadlineMs: -1 },
    { baseUrl, retry: { attempts: 0 } },
    { baseUrl, retry: { totalMs: -1 } },
  ];
  for (const option of options) {
    assert.throws(
      () => new terrane.Client(option),
      (caught: Error) => !inspect(caught).includes("secret"),
    );
  }
});
