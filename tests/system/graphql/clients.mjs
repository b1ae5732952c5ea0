// Calls a server with Apollo Client, urql, graphql-ws and graphql-sse, and prints the answers of each.
import { ApolloClient, HttpLink, InMemoryCache, ApolloLink, gql } from "@apollo/client/core/index.js";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions/index.js";
import { OperationTypeNode } from "graphql";
import { Client as UrqlClient, fetchExchange, subscriptionExchange } from "@urql/core";
import { createClient as createSseClient } from "graphql-sse";
import { createClient as createWsClient } from "graphql-ws";
import { pipe, take, toPromise } from "wonka";
import WebSocket from "ws";

const [base, key] = process.argv.slice(2);
const url = `${base}/graphql`;
const headers = { authorization: `Bearer ${key}` };
const CUBE = "query Cube($name: String!) { cube(name: $name) { name } }";
const LIVE = `subscription Live($measures: [String!]) { queryResult(measures: $measures) { data } }`;
const variables = { measures: ["flights.count"] };

const sockets = createWsClient({ url: url.replace("http", "ws"), connectionParams: headers, webSocketImpl: WebSocket });

/** The first value of an observable, after which it is unsubscribed. */
const first = (observable) =>
  new Promise((resolve, reject) => {
    const subscription = observable.subscribe({
      next: (value) => {
        resolve(value);
        // A synchronous value comes before the subscription is known.
        setTimeout(() => subscription.unsubscribe());
      },
      error: reject,
    });
  });

const apollo = async () => {
  const link = ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(sockets),
    new HttpLink({ uri: url, headers }),
  );
  const client = new ApolloClient({ link, cache: new InMemoryCache() });
  const { data } = await client.query({ query: gql(CUBE), variables: { name: "flights" } });
  const refused = await client.query({ query: gql("{ nothing }"), errorPolicy: "all" });
  const live = await first(client.subscribe({ query: gql(LIVE), variables }));
  return { cube: data.cube.name, refused: code(refused.error.errors), live: live.data.queryResult.data };
};

const urql = async () => {
  const forwardSubscription = (request) => ({
    subscribe: (sink) => ({ unsubscribe: sockets.subscribe(request, sink) }),
  });
  const client = new UrqlClient({
    url,
    preferGetMethod: "force",
    fetchOptions: { headers },
    exchanges: [fetchExchange, subscriptionExchange({ forwardSubscription })],
  });
  const { data } = await client.query(CUBE, { name: "flights" }).toPromise();
  const refused = await client.query("{ nothing }", {}).toPromise();
  const live = await pipe(client.subscription(LIVE, variables), take(1), toPromise);
  return { cube: data.cube.name, refused: code(refused.error.graphQLErrors), live: live.data.queryResult.data };
};

const ws = async () => {
  const run = async (request) => {
    for await (const { data } of sockets.iterate(request)) return data;
  };
  const data = await run({ query: CUBE, variables: { name: "flights" } });
  const refused = await run({ query: "{ nothing }" }).catch((errors) => code(errors));
  const live = await run({ query: LIVE, variables });
  return { cube: data.cube.name, refused, live: live.queryResult.data };
};

const sse = async () => {
  const client = createSseClient({ url, headers, retryAttempts: 0 });
  const run = async (request) => {
    for await (const { data } of client.iterate(request)) return data;
  };
  const data = await run({ query: CUBE, variables: { name: "flights" } });
  const first = await client.iterate({ query: "{ nothing }" }).next();
  const live = await run({ query: LIVE, variables });
  return { cube: data.cube.name, refused: code(first.value.errors), live: live.queryResult.data };
};

const code = (errors) => errors[0].extensions.code;

console.log(JSON.stringify({ apollo: await apollo(), urql: await urql(), ws: await ws(), sse: await sse() }));
await sockets.dispose();
