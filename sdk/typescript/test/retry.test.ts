/** Retries, timeouts, deadlines and cancellation. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as terrane from "@terrane/client";
import { FakeClock, ROWS, Script, connect, error, json, rows } from "./answers.js";

const QUERY = { measures: ["flights.count"] };
const refused = () => Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNREFUSED" } });
/** Never answers, and ignores its signal. */
const silence = () => new Promise<Response>(() => {});

for (const status of [429, 503]) {
  test(`Retry-After of ${status} is obeyed`, async () => {
    const clock = new FakeClock();
    const script = new Script(error(status, "OVERLOADED", { "retry-after": "7" }), rows());
    assert.deepEqual((await connect(script, { clock }).query(QUERY)).rows, ROWS);
    assert.deepEqual(clock.sleeps, [7000]);
  });
}

test("Retry-After as a date is obeyed", async () => {
  const clock = new FakeClock();
  const date = new Date(clock.now + 12_000).toUTCString();
  await connect(new Script(error(429, "X", { "retry-after": date }), rows()), { clock }).query(QUERY);
  assert.deepEqual(clock.sleeps, [12_000]);
});

for (const header of ["", "soon", "-5", "1e9", "1.5", "Mon, 99 Foo", "0x10", "2013"]) {
  test(`Retry-After \`${header}\` is ignored or bounded`, async () => {
    const clock = new FakeClock();
    const script = new Script(error(503, "X", { "retry-after": header }), rows());
    await connect(script, { clock })
      .query(QUERY)
      .catch(() => {});
    assert.ok(clock.sleeps.every((ms) => ms <= 250));
  });
}

test("a Retry-After beyond the longest wait rejects at once", async () => {
  const clock = new FakeClock();
  const script = new Script(error(429, "RATE_LIMITED", { "retry-after": "31" }));
  await assert.rejects(
    connect(script, { clock }).query(QUERY),
    (caught: terrane.RateLimitedError) => caught.retryAfterMs === 31_000,
  );
  assert.deepEqual(clock.sleeps, []);
});

test("the total time is bounded", async () => {
  const clock = new FakeClock();
  const script = new Script(...Array.from({ length: 9 }, () => error(503, "OVERLOADED", { "retry-after": "25" })));
  await assert.rejects(connect(script, { clock, retry: { attempts: 9 } }).query(QUERY), terrane.UnavailableError);
  assert.deepEqual(clock.sleeps, [25_000, 25_000]);
});

test("attempts are bounded and the backoff doubles", async (context) => {
  context.mock.method(Math, "random", () => 1);
  const clock = new FakeClock();
  const script = new Script(refused(), refused(), refused(), refused(), rows());
  await assert.rejects(connect(script, { clock }).query(QUERY), terrane.ConnectionFailedError);
  assert.deepEqual(clock.sleeps, [250, 500, 1000]);
});

test("a response whose body breaks off is repeated", async () => {
  const broken = () =>
    new Response(new ReadableStream({ pull: (controller) => controller.error(new TypeError("terminated")) }));
  assert.deepEqual((await connect(new Script(broken, rows())).query(QUERY)).rows, ROWS);
});

for (const status of [400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 500, 502, 504]) {
  test(`${status} is not repeated`, async () => {
    const script = new Script(error(status, "X", { "retry-after": "1" }), rows());
    await assert.rejects(connect(script, { apiKey: "k" }).query(QUERY), terrane.TerraneError);
    assert.equal(script.sent.length, 1);
  });
}

test("a repeated submission has the same idempotency key", async () => {
  const script = new Script(refused(), json({ job_id: "j", status: "pending" }, 202));
  assert.equal((await connect(script).submit(QUERY)).id, "j");
  const [first, second] = script.sent.map((request) => request.headers.get("idempotency-key"));
  assert.ok(first);
  assert.equal(first, second);
});

test("timeouts are not repeated", async () => {
  const script = new Script(silence, rows());
  await assert.rejects(connect(script, { timeoutMs: 5 }).query(QUERY), terrane.ClientTimeoutError);
  assert.equal(script.sent.length, 1);
});

test("a body that does not end times out", async () => {
  const endless = () => new Response(new ReadableStream({ pull: () => new Promise(() => {}) }));
  await assert.rejects(connect(new Script(endless), { timeoutMs: 5 }).query(QUERY), terrane.ClientTimeoutError);
});

test("the deadline covers all attempts, and that of a call replaces that of the client", async () => {
  const client = () => connect(new Script(refused(), silence), { deadlineMs: 60_000, retry: { backoffMs: 0 } });
  await assert.rejects(client().query(QUERY, { deadlineMs: 5 }), /did not end within 5 ms/);
});

test("a wait that ends after the deadline rejects at once with the error of the server", async () => {
  const clock = new FakeClock();
  const script = new Script(error(503, "OVERLOADED", { "retry-after": "3" }), rows());
  await assert.rejects(connect(script, { clock, deadlineMs: 2000 }).query(QUERY), terrane.UnavailableError);
  assert.deepEqual(clock.sleeps, []);
});

test("an aborted call rejects with the reason of its signal", async () => {
  const reason = new Error("the view was closed");
  const script = new Script(silence, rows());
  const controller = new AbortController();
  const call = connect(script).query(QUERY, { signal: controller.signal });
  setImmediate(() => controller.abort(reason));
  await assert.rejects(call, reason);
  await assert.rejects(connect(script).query(QUERY, { signal: controller.signal }), reason);
  assert.equal(script.sent.length, 1);
});

test("an abort ends a wait", async () => {
  const script = new Script(error(503, "OVERLOADED", { "retry-after": "20" }), rows());
  const signal = AbortSignal.timeout(5);
  await assert.rejects(connect(script, { clock: undefined }).query(QUERY, { signal }), { name: "TimeoutError" });
});

test("signals keep no listeners", async () => {
  const controller = new AbortController();
  let listeners = 0;
  const { addEventListener, removeEventListener } = controller.signal;
  controller.signal.addEventListener = (...args: unknown[]) => (
    listeners++,
    addEventListener.apply(controller.signal, args as never)
  );
  controller.signal.removeEventListener = (...args: unknown[]) => (
    listeners--,
    removeEventListener.apply(controller.signal, args as never)
  );
  await connect(new Script(error(503, "X"), rows())).query(QUERY, { signal: controller.signal });
  assert.equal(listeners, 0);
});
