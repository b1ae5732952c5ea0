/** Arrow streams: completeness, headers and decoding. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { tableFromArrays, tableToIPC } from "apache-arrow";
import { ResponseError } from "@terrane/client";
import { toTable } from "@terrane/client/arrow";
import { Script, connect } from "./answers.js";

const TYPE = "application/vnd.apache.arrow.stream";
const BYTES = tableToIPC(tableFromArrays({ count: [1, 2] }), "stream");
const QUERY = { measures: ["flights.count"] };

function stream(bytes: Uint8Array, headers = {}): Response {
  return new Response(bytes.slice(), { headers: { "content-type": TYPE, ...headers } });
}

test("a stream is read with its metadata and decoded", async () => {
  const facts = { "x-terrane-total-rows": "7", "x-terrane-truncated": "true", "x-terrane-cache-key": "k", "x-terrane-as-of": "2024-01-01T00:00:00Z" };
  const script = new Script(stream(BYTES, facts), stream(BYTES));
  const client = connect(script);
  const result = await client.arrow(QUERY);
  assert.deepEqual([result.totalRows, result.truncated, result.cacheKey], [7, true, "k"]);
  assert.equal(result.asOf, "2024-01-01T00:00:00Z");
  assert.equal(script.sent[0]!.headers.get("accept"), TYPE);
  assert.deepEqual(
    (await toTable(result)).toArray().map((row) => row["count"]),
    [1, 2],
  );
  assert.equal((await client.arrow(QUERY)).totalRows, undefined);
});

test("incomplete streams and other types are no answer", async () => {
  for (const response of [stream(BYTES.subarray(0, -8)), stream(new Uint8Array()), Response.json([])]) {
    await assert.rejects(connect(new Script(response)).arrow(QUERY), ResponseError);
  }
});
