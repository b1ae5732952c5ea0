"""Responses in the form of the REST interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import httpx

ROWS = [{"flights.origin": "JFK", "flights.count": 2}]


def rows(data: list[dict[str, Any]] | None = None, **meta: Any) -> httpx.Response:
    """Return the answer of a query."""
    data = ROWS if data is None else data
    facts = {"total_rows": len(data), "returned_rows": len(data), "truncated": False, "warnings": [], "cached": False}
    return httpx.Response(
        200, json={"data": data, "query": {"sql": "SELECT 1", "duration_ms": 1.5}, "meta": facts | meta}
    )


def error(status: int, code: str, headers: dict[str, str] | None = None, **fields: Any) -> httpx.Response:
    """Return an error."""
    info = {"code": code, "message": "it failed", "correlation_id": "c1", **fields}
    return httpx.Response(status, json={"error": info}, headers=headers)


def tokens(number: int, expires_in: int = 3600) -> httpx.Response:
    """Return the tokens of a sign-in session."""
    names = {"access_token": f"access-{number}", "refresh_token": f"refresh-{number}"}
    return httpx.Response(200, json={**names, "token_type": "bearer", "expires_in": expires_in})


class Script:
    """A handler that returns the listed responses in order and records the requests. It raises a listed exception."""

    def __init__(self, answers: Iterable[httpx.Response | Exception]) -> None:
        self._answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def paths(self) -> list[str]:
        return [request.url.path for request in self.requests]
