/** Sign-in with a password and renewal of tokens. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { ConnectionFailedError, UnauthorizedError } from "@terrane/client";
import { FakeClock, ROWS, Script, connect, error, json, rows, tokens } from "./answers.js";

const USER = { username: "ada", password: "the secret" };
const [TOKEN, REFRESH, QUERY] = ["/api/v1/auth/token", "/api/v1/auth/refresh", "/api/v1/query"];
const BODY = { measures: ["a.b"] };

test("the first request signs in", async () => {
  const script = new Script(tokens(1), rows(), rows());
  const client = connect(script, USER);
  await client.query(BODY);
  await client.query(BODY);
  assert.deepEqual(script.paths, [TOKEN, QUERY, QUERY]);
  assert.deepEqual(script.sent[0]!.body, USER);
  assert.deepEqual(script.bearers, [null, "Bearer access-1", "Bearer access-1"]);
});

test("expiring tokens are refreshed before a request", async () => {
  const clock = new FakeClock();
  const script = new Script(tokens(1, 3600), rows(), rows(), tokens(2), rows());
  const client = connect(script, { ...USER, clock });
  await client.query(BODY);
  clock.now += 3569_000;
  await client.query(BODY);
  clock.now += 2_000;
  await client.query(BODY);
  assert.deepEqual(script.paths, [TOKEN, QUERY, QUERY, REFRESH, QUERY]);
  assert.deepEqual(script.sent[3]!.body, { refresh_token: "refresh-1" });
});

test("a refused token is refreshed once", async () => {
  const script = new Script(tokens(1), error(401, "TOKEN_EXPIRED"), tokens(2), rows());
  assert.deepEqual((await connect(script, USER).query(BODY)).rows, ROWS);
  assert.deepEqual(script.paths, [TOKEN, QUERY, REFRESH, QUERY]);
  const twice = new Script(tokens(1), error(401, "TOKEN_EXPIRED"), tokens(2), error(401, "TOKEN_EXPIRED"));
  await assert.rejects(connect(twice, USER).query(BODY), UnauthorizedError);
});

test("an ended session signs in again", async () => {
  const script = new Script(tokens(1), error(401, "INVALID_TOKEN"), error(401, "INVALID_TOKEN"), tokens(2), rows());
  await connect(script, USER).query(BODY);
  assert.deepEqual(script.paths, [TOKEN, QUERY, REFRESH, TOKEN, QUERY]);
});

test("a wrong password rejects once", async () => {
  const script = new Script(error(401, "UNAUTHORIZED"));
  await assert.rejects(connect(script, USER).query(BODY), UnauthorizedError);
  assert.deepEqual(script.paths, [TOKEN]);
});

test("a refresh is never repeated, and the next request signs in", async () => {
  const script = new Script(tokens(1), error(401, "TOKEN_EXPIRED"), new TypeError("fetch failed"), tokens(2), rows());
  const client = connect(script, USER);
  await assert.rejects(client.query(BODY), ConnectionFailedError);
  await client.query(BODY);
  assert.deepEqual(script.paths, [TOKEN, QUERY, REFRESH, TOKEN, QUERY]);
});

test("a refused API key is not renewed", async () => {
  const script = new Script(error(401, "UNAUTHORIZED"));
  await assert.rejects(connect(script, { apiKey: "k" }).query(BODY), UnauthorizedError);
  assert.deepEqual(script.bearers, ["Bearer k"]);
});

test("health needs no sign-in", async () => {
  const script = new Script(json({ status: "healthy", version: "1", checks: {}, uptime_seconds: 1 }));
  assert.equal((await connect(script, USER).health()).status, "healthy");
  assert.deepEqual(script.bearers, [null]);
});

test("concurrent requests share one renewal", async () => {
  const callers = 16;
  const counts: Record<string, number> = {};
  let release = () => {};
  const allRefused = new Promise<void>((resolve) => (release = resolve));
  let refusals = 0;
  const fetch = async (url: string, init: RequestInit) => {
    const path = new URL(url).pathname;
    const count = (counts[path] = (counts[path] ?? 0) + 1);
    if (path === TOKEN) return tokens(1);
    if (path === REFRESH) return count === 1 ? tokens(2) : error(401, "INVALID_TOKEN");
    if (new Headers(init.headers).get("authorization") === "Bearer access-2") return rows();
    if (++refusals === callers) release();
    await allRefused;
    return error(401, "TOKEN_EXPIRED");
  };
  const client = connect(new Script(), { ...USER, fetch });
  await Promise.all(Array.from({ length: callers }, () => client.query(BODY)));
  assert.deepEqual(counts, { [TOKEN!]: 1, [REFRESH!]: 1, [QUERY!]: 2 * callers });
});

test("an aborted request leaves the sign-in to the others", async () => {
  let finish = (_response: Response) => {};
  const signIn = () => new Promise<Response>((resolve) => (finish = resolve));
  const client = connect(new Script(signIn, rows()), USER);
  const controller = new AbortController();
  const aborted = client.query(BODY, { signal: controller.signal });
  const other = client.query(BODY);
  controller.abort();
  await assert.rejects(aborted, { name: "AbortError" });
  finish(tokens(1));
  assert.deepEqual((await other).rows, ROWS);
});
