/** Jobs: polling, results in pages, and the errors of jobs that have none. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as terrane from "@terrane/client";
import { FakeClock, ROWS, Script, connect, error, json } from "./answers.js";

const QUERY = { measures: ["flights.count"] };
const JOB = "/api/v1/query/async/j";
const state = (status: string, fields = {}) =>
  json({ job_id: "j", status, created_at: "2026-01-01T00:00:00Z", ...fields });
const page = (data: unknown[], total: number) => json({ data, meta: { total_rows: total } });

test("a job waits on the server and reads its rows in pages", async () => {
  const script = new Script(state("pending"), state("running"), state("complete"), page(ROWS, 2), page(ROWS, 2));
  const job = await connect(script).submit(QUERY);
  assert.deepEqual([job.id, job.status], ["j", "pending"]);
  const result = await job.result();
  assert.deepEqual([...result], [...ROWS, ...ROWS]);
  assert.deepEqual(result.meta, { total_rows: 2, returned_rows: 2, truncated: false });
  assert.deepEqual(script.paths.slice(1), [
    `${JOB}?wait=20`,
    `${JOB}?wait=20`,
    `${JOB}/result?offset=0&limit=10000`,
    `${JOB}/result?offset=1&limit=10000`,
  ]);
});

test("polls end before the limits of requests", async () => {
  const paths = async (options: object, call = {}) => {
    const script = new Script(state("pending"), state("complete"));
    await (await connect(script, options).submit(QUERY)).wait(call);
    return script.paths[1];
  };
  assert.equal(await paths({ timeoutMs: 10_000 }), `${JOB}?wait=5`);
  assert.equal(await paths({ deadlineMs: 4_000 }), `${JOB}?wait=2`);
  assert.equal(await paths({}, { deadlineMs: 6_000 }), `${JOB}?wait=3`);
  assert.equal(await paths({ timeoutMs: 1_000 }), JOB);
});

test("a wait has a limit, and the job continues", async () => {
  const clock = new FakeClock();
  const script = new Script(state("pending"), state("running"), state("running"), state("running"), state("complete"));
  const job = await connect(script, { clock }).submit(QUERY);
  await assert.rejects(job.wait({ timeoutMs: 400 }), terrane.JobTimeoutError);
  assert.deepEqual(clock.sleeps, [250, 150]);
  assert.equal((await job.refresh()).status, "complete");
});

test("failed jobs have the error of their code", async () => {
  const failed = { error: { code: "QUERY_TIMEOUT", message: "it took too long" } };
  const job = await connect(new Script(state("pending"), state("failed", failed))).submit(QUERY);
  await assert.rejects(job.result(), (caught: Error) => {
    assert.ok(caught instanceof terrane.QueryTimeoutError);
    return caught.message === "it took too long";
  });
});

test("cancelled and expired jobs have no result", async () => {
  const script = new Script(
    state("pending"),
    state("cancelled"),
    state("cancelled"),
    state("expired"),
    error(410, "GONE"),
  );
  const job = await connect(script).submit(QUERY);
  assert.equal((await job.cancel()).status, "cancelled");
  assert.equal(script.sent[1]!.method, "DELETE");
  await assert.rejects(job.result(), terrane.JobCancelledError);
  await assert.rejects(job.arrow(), terrane.GoneError);
});

test("jobs are listed and read by their id, which cannot leave its route", async () => {
  const script = new Script(
    json({ jobs: [{ job_id: "j", status: "complete" }] }),
    state("complete"),
    error(404, "NOT_FOUND"),
  );
  const client = connect(script);
  assert.deepEqual(
    (await client.jobs()).map((job) => job.id),
    ["j"],
  );
  assert.equal((await client.job("../a?b#c")).status, "complete");
  await assert.rejects(client.job(".."), terrane.NotFoundError);
  assert.deepEqual(script.paths.slice(1), ["/api/v1/query/async/..%2Fa%3Fb%23c", "/api/v1/query/async/%252E%252E"]);
});

test("an abort ends a wait for a job", async () => {
  const client = connect(new Script(state("pending"), () => new Promise<Response>(() => {})));
  const job = await client.submit(QUERY);
  await assert.rejects(job.wait({ signal: AbortSignal.timeout(5) }), { name: "TimeoutError" });
});
