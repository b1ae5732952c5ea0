"""Queries a server with gql, over HTTP and over a socket, and prints the answers."""

import asyncio
import json
import sys

from gql import Client, gql
from gql.transport.exceptions import TransportQueryError
from gql.transport.httpx import HTTPXTransport
from gql.transport.websockets import WebsocketsTransport

base, key = sys.argv[1:]
headers = {"Authorization": f"Bearer {key}"}


def over_http() -> dict:
    transport = HTTPXTransport(url=f"{base}/graphql", headers=headers)
    with Client(transport=transport, fetch_schema_from_transport=True) as client:
        document = gql("query Cube($name: String!) { cube(name: $name) { name } }")
        document.variable_values = {"name": "flights"}
        cube = client.execute(document)["cube"]["name"]
        try:
            # The client checks documents by the schema. Members are strings there, so only the server refuses this one.
            client.execute(gql('{ query(measures: ["flights.nothing"]) { data } }'))
            refused = None
        except TransportQueryError as error:
            refused = error.errors[0]["extensions"]["code"]
    return {"cube": cube, "refused": refused}


async def over_socket() -> list:
    transport = WebsocketsTransport(
        url=f"{base.replace('http', 'ws', 1)}/graphql",
        init_payload={"authorization": f"Bearer {key}"},
        subprotocols=[WebsocketsTransport.GRAPHQLWS_SUBPROTOCOL],
    )
    async with Client(transport=transport) as session:
        document = gql('subscription { queryResult(measures: ["flights.count"]) { data } }')
        async for result in session.subscribe(document):
            return result["queryResult"]["data"]
    return []


print(json.dumps({"http": over_http(), "live": asyncio.run(over_socket())}))
