// Queries a server with types that are generated from its schema.
import { Client, fetchExchange } from "@urql/core";
import { graphql } from "./gql/gql.js";

const [base, key] = process.argv.slice(2);

const Cubes = graphql(`
  query Cubes($names: [String!]) {
    cubes(names: $names) {
      name
      measures {
        name
        type
      }
    }
  }
`);

const client = new Client({
  url: `${base}/graphql`,
  preferGetMethod: false,
  fetchOptions: { headers: { authorization: `Bearer ${key}` } },
  exchanges: [fetchExchange],
});

const { data, error } = await client.query(Cubes, { names: ["flights"] }).toPromise();
if (error || !data) throw error ?? new Error("no data");
const names: string[] = data.cubes.map((cube) => cube.name);
console.log(JSON.stringify({ names, measures: data.cubes[0].measures.length }));
