"""Reads Arrow answers of a server with pyarrow, pandas and polars, and prints the types of their columns as JSON."""

import io
import json
import sys
import urllib.request

import polars
import pyarrow

base, key = sys.argv[1:]


def arrow(**query):
    headers = {
        "Authorization": f"Bearer {key}",
        "Content-Type": "application/json",
        "Accept": "application/vnd.apache.arrow.stream",
    }
    request = urllib.request.Request(f"{base}/api/v1/query", json.dumps(query).encode(), headers)
    with urllib.request.urlopen(request) as response:
        return response.read()


def types(body):
    table = pyarrow.ipc.open_stream(body).read_all()
    pandas_types = {name: str(ty) for name, ty in table.to_pandas().dtypes.items()}
    polars_types = {name: str(ty) for name, ty in polars.read_ipc_stream(io.BytesIO(body)).schema.items()}
    return {name: [str(table.schema.field(name).type), pandas_types[name], polars_types[name]] for name in table.column_names}


query = {"measures": ["flights.count", "flights.total_departure_delay"], "dimensions": ["flights.carrier"]}
table = pyarrow.ipc.open_stream(arrow(**query)).read_all()
print(
    json.dumps(
        {
            "plain": types(arrow(**query)),
            "double": types(arrow(**query, numbers="double")),
            "sum": sum(table.to_pandas()["flights.total_departure_delay"].tolist()),
        }
    )
)
