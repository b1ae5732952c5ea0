// Queries a server through types that openapi-typescript generated, and prints the results as JSON.
import createClient from "openapi-fetch";
import type { components, paths } from "./schema.js";

declare const process: { argv: string[] };

const [base, key] = process.argv.slice(2);
const client = createClient<paths, "application/json">({ baseUrl: base, headers: { Authorization: `Bearer ${key}` } });

const filter: components["schemas"]["Filter"] = {
  or: [
    { dimension: "flights.carrier", operator: "equals", value: "UA" },
    { not: { member: "flights.carrier", operator: "inList", values: ["UA", "B6"] } },
  ],
};
const query: components["schemas"]["Query"] = {
  measures: ["flights.count"],
  filters: [filter],
  time_range: { start: "2013-01-01", end: "2013-01-31" },
};

const run = await client.POST("/api/v1/query", { body: query });
const count = run.data?.data[0]?.["flights.count"];
const total: number | null | undefined = run.data?.meta.total_rows;

const sql = await client.POST("/api/v1/query/sql", { body: { ...query, inline: true } });
const explained = await client.POST("/api/v1/query/explain", { body: query });
const reason = explained.data?.facts[0]?.role;

const wrong = await client.POST("/api/v1/query", { body: { measures: ["flights.cuont"] } });
let nearest: string[] | undefined;
const error = wrong.error;
if (error && "error" in error && error.error.code === "INVALID_MEASURE") {
  nearest = error.error.available_measures;
}
const missing = await client.GET("/api/v1/query/meta/cubes/{cube_name}", {
  params: { path: { cube_name: "nothing" } },
});
const detail = missing.error && "detail" in missing.error ? missing.error.detail : undefined;

console.log(JSON.stringify({ count, total, sql: sql.data?.sql, reason, nearest, detail }));
