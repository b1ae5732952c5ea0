// Runs the audits of GraphQL over HTTP against a server, and prints each with its result.
import { serverAudits } from "graphql-http";

const [base, key] = process.argv.slice(2);
const fetchFn = (url, options = {}) =>
  fetch(url, { ...options, headers: { ...options.headers, authorization: `Bearer ${key}` } });

const results = [];
for (const audit of serverAudits({ url: `${base}/graphql`, fetchFn })) {
  const result = await audit.fn();
  results.push({ id: audit.id, name: audit.name, status: result.status, reason: result.reason });
}
console.log(JSON.stringify(results));
