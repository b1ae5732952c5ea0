"""Queries a server through a client that openapi-python-client generated, and prints the results as JSON."""

import json
import sys

from terrane_client import AuthenticatedClient
from terrane_client.api.metadata import cube
from terrane_client.api.query import query, query_explain, query_sql
from terrane_client.models import (
    Condition,
    Detail,
    InvalidMeasureError,
    MemberCondition,
    NotFilter,
    Operator,
    OrFilter,
    Query,
    SqlQuery,
    TimeRangeObject,
)

base, key = sys.argv[1:]
client = AuthenticatedClient(base_url=base, token=key)
either = OrFilter(
    or_=[
        Condition(dimension="flights.carrier", operator=Operator.EQUALS, value="UA"),
        NotFilter(not_=MemberCondition(member="flights.carrier", operator=Operator.INLIST, values=["UA", "B6"])),
    ]
)
january = TimeRangeObject(start="2013-01-01", end="2013-01-31")
asked = {"measures": ["flights.count"], "filters": [either], "time_range": january}

answer = query.sync(client=client, body=Query(**asked))
sql = query_sql.sync(client=client, body=SqlQuery(**asked, inline=True))
explained = query_explain.sync(client=client, body=Query(**asked))
wrong = query.sync(client=client, body=Query(measures=["flights.cuont"]))
assert isinstance(wrong, InvalidMeasureError), wrong
missing = cube.sync("nothing", client=client)
assert isinstance(missing, Detail), missing

print(
    json.dumps(
        {
            "count": answer.data[0].additional_properties["flights.count"],
            "total": answer.meta.total_rows,
            "sql": sql.sql,
            "reason": explained.facts[0].role.value,
            "nearest": wrong.error.available_measures,
            "detail": missing.detail,
        }
    )
)
