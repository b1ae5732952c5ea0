"""Sends operations that schemathesis generates from the schema, and prints the results.

Members of the model are strings in the schema, so most generated names are unknown. Errors with a code for a mistake of
the caller are expected. Every other error is a fault.
"""

import json
import sys
from collections import Counter

import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings

base, key = sys.argv[1:]
EXAMPLES = 25
EXPECTED = {
    "CONFLICT",
    "FORBIDDEN",
    "GRAPHQL_LIMIT_EXCEEDED",
    "GRAPHQL_SYNTAX_ERROR",
    "GRAPHQL_VALIDATION_FAILED",
    "INVALID_DIMENSION",
    "INVALID_FILTER",
    "INVALID_MEASURE",
    "INVALID_QUERY",
    "NO_JOIN_PATH",
    "NOT_FOUND",
    "PAYLOAD_TOO_LARGE",
}

schema = schemathesis.graphql.from_url(
    f"{base}/graphql",
    headers={"Authorization": f"Bearer {key}"},
)
codes: Counter = Counter()
faults: list = []


def check(document: str) -> None:
    answer = requests.post(
        f"{base}/graphql",
        json={"query": document},
        headers={"Authorization": f"Bearer {key}", "Accept": "application/json"},
        timeout=60,
    )
    body = answer.json()
    errors = body.get("errors", [])
    found = [error.get("extensions", {}).get("code") for error in errors]
    codes.update(found or ["none"])
    is_expected = answer.status_code < 500 and all(code in EXPECTED for code in found)
    has_either = isinstance(body.get("data"), dict) or errors
    if not (is_expected and has_either):
        faults.append({"document": document[:2000], "status": answer.status_code, "errors": errors[:3]})


def fuzz(operation) -> None:
    @seed(2013)
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy())
    def send(case) -> None:
        check(case.body)

    send()


operations = 0
for result in schema.get_all_operations():
    fuzz(result.ok())
    operations += 1

print(json.dumps({"operations": operations, "codes": codes, "faults": faults[:5]}))
