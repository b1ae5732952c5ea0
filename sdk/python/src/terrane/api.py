"""The requests of the REST interface and the parsers of their responses, for both clients.

Each method returns an operation; see `session`.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from terrane.errors import JobCancelledError, JobTimeoutError, NotFoundError, ResponseError, error_class, nearest_names
from terrane.jobs import JobState
from terrane.members import Dimension, Measure, Metric
from terrane.metadata import (
    Cube,
    Explanation,
    Health,
    Interpretation,
    SearchHit,
    SearchResults,
    Sql,
    cube_from_wire,
    dimensions_from_wire,
    measures_from_wire,
    metrics_from_wire,
)
from terrane.query import Query
from terrane.results import Format, Meta, Payload
from terrane.session import Call, Operation, Session, Sleep
from terrane.wire import from_wire, list_from_wire

T = TypeVar("T")

ARROW = "application/vnd.apache.arrow.stream"
ARROW_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
QUERY = "/api/v1/query"
JOBS = "/api/v1/query/async"
PAGE_ROWS = 10_000
LONGEST_POLL_SECONDS = 20
SHORTEST_POLL_SECONDS = 0.25


class Api:
    """The operations of a client. A long poll ends before the timeout of its request."""

    def __init__(self, session: Session, timeout: float) -> None:
        self._session = session
        self._poll_seconds = min(LONGEST_POLL_SECONDS, int(timeout / 2))

    def cubes(self) -> Operation[list[Cube]]:
        """List the cubes."""
        return self._get("/api/v1/query/meta/cubes", lambda data: [cube_from_wire(item) for item in data["cubes"]])

    def cube(self, name: str) -> Operation[Cube]:
        """Read a cube. The error for an unknown cube contains similar names."""
        try:
            return (yield from self._get(f"/api/v1/query/meta/cubes/{quote(name, safe='')}", cube_from_wire))
        except NotFoundError as error:
            unknown = error
        unknown.nearest = tuple(nearest_names(name, [cube.meta.name for cube in (yield from self.cubes())]))
        raise unknown

    def measures(self) -> Operation[list[Measure]]:
        """List the measures of all cubes."""
        return self._get("/api/v1/query/meta/metrics", measures_from_wire)

    def metrics(self) -> Operation[list[Metric]]:
        """List the metrics."""
        return self._get("/api/v1/query/meta/metrics", metrics_from_wire)

    def dimensions(self) -> Operation[list[Dimension]]:
        """List the dimensions of all cubes."""
        return self._get("/api/v1/query/meta/dimensions", dimensions_from_wire)

    def health(self) -> Operation[Health]:
        """Read the state of the server."""
        call = Call("GET", "/health/status", lambda response: from_wire(Health, response.json()), authenticated=False)
        return self._session.perform(call)

    def query(self, body: Mapping[str, Any], format: Format) -> Operation[Payload]:
        """Run a query."""
        parse, headers = _payload_format(format)
        return self._session.perform(Call("POST", QUERY, parse, json=body, headers=headers))

    def query_arrow(self, body: Mapping[str, Any]) -> Operation[bytes]:
        """Run a query and return the Arrow stream."""
        return self._session.perform(Call("POST", QUERY, _arrow_stream, json=body, headers={"accept": ARROW}))

    def sql(self, body: Mapping[str, Any], inline: bool) -> Operation[Sql]:
        """Return the SQL of a query."""
        body = {**body, "inline": True} if inline else body
        return self._post(f"{QUERY}/sql", body, lambda data: from_wire(Sql, data))

    def explain(self, body: Mapping[str, Any]) -> Operation[Explanation]:
        """Explain a query."""
        return self._post(f"{QUERY}/explain", body, lambda data: from_wire(Explanation, data))

    def search(self, body: Mapping[str, Any]) -> Operation[SearchResults]:
        """Search for cubes, members and metrics."""
        return self._post("/api/v1/search", body, _search_results)

    def ask(self, body: Mapping[str, Any]) -> Operation[Interpretation]:
        """Translate a question in plain language into a query."""
        return self._post("/api/v1/search/nl-query", body, _interpretation)

    def submit(self, body: Mapping[str, Any]) -> Operation[JobState]:
        """Submit a job. The idempotency key makes the request safe to repeat."""
        headers = {"idempotency-key": uuid.uuid4().hex}
        return self._session.perform(Call("POST", JOBS, _job_state, json=body, headers=headers))

    def jobs(self) -> Operation[list[JobState]]:
        """List the caller's jobs, newest first."""
        return self._get(JOBS, lambda data: list_from_wire(JobState, data, "jobs"))

    def job(self, job_id: str, wait_seconds: int = 0) -> Operation[JobState]:
        """Read the state of a job. The server waits for a change for at most `wait_seconds`."""
        params = {"wait": wait_seconds} if wait_seconds else None
        return self._session.perform(Call("GET", _job_path(job_id), _job_state, params=params))

    def wait_for_job(self, job_id: str, timeout: float | None) -> Operation[JobState]:
        """Poll the state of a job until it has ended."""
        deadline = None if timeout is None else time.monotonic() + timeout
        remaining = float("inf")
        while True:
            if deadline is not None:
                remaining = max(0.0, deadline - time.monotonic())
            poll = int(min(self._poll_seconds, remaining))
            state = yield from self.job(job_id, poll)
            if state.has_ended:
                return state
            if deadline is not None and time.monotonic() >= deadline:
                raise JobTimeoutError(f"job `{job_id}` is {state.status} after {timeout} s")
            if not poll:
                yield Sleep(min(SHORTEST_POLL_SECONDS, remaining))

    def cancel_job(self, job_id: str) -> Operation[JobState]:
        """Cancel a job, or delete its result."""
        return self._session.perform(Call("DELETE", _job_path(job_id), _job_state))

    def job_result(self, state: JobState, format: Format) -> Operation[Payload]:
        """Read all rows of a job that has ended; JSON is read in pages."""
        _raise_for_job(state)
        path = f"{_job_path(state.job_id)}/result"
        parse, headers = _payload_format(format)
        if format == "arrow":
            return (yield from self._session.perform(Call("GET", path, parse, headers=headers)))
        rows: list[dict[str, Any]] = []
        while True:
            params = {"offset": len(rows), "limit": PAGE_ROWS}
            page = yield from self._session.perform(Call("GET", path, parse, params=params))
            rows += page.rows or []
            total = page.meta.total_rows or 0
            if len(rows) >= total or not page.rows:
                return Payload(Meta(total, len(rows), truncated=False, raw=page.meta.raw), rows)

    def job_arrow(self, state: JobState) -> Operation[bytes]:
        """Read the Arrow stream of a job that has ended."""
        _raise_for_job(state)
        call = Call("GET", f"{_job_path(state.job_id)}/result", _arrow_stream, headers={"accept": ARROW})
        return (yield from self._session.perform(call))

    def _get(self, path: str, parse: Callable[[Any], T]) -> Operation[T]:
        return self._session.perform(Call("GET", path, lambda response: parse(response.json())))

    def _post(self, path: str, body: Mapping[str, Any], parse: Callable[[Any], T]) -> Operation[T]:
        """Send a read-only request, which is safe to repeat."""
        return self._session.perform(Call("POST", path, lambda response: parse(response.json()), json=body))


def _job_path(job_id: str) -> str:
    return f"{JOBS}/{quote(job_id, safe='')}"


def _payload_format(format: Format) -> tuple[Callable[[httpx.Response], Payload], dict[str, str]]:
    """Return the parser and the headers of a format."""
    if format == "arrow":
        return _arrow_payload, {"accept": ARROW}
    if format == "json":
        return _json_payload, {"accept": "application/json"}
    raise ValueError(f"expected the format `json` or `arrow`, found `{format}`")


def _json_payload(response: httpx.Response) -> Payload:
    document = response.json()
    rows, facts = document["data"], document["meta"]
    if not isinstance(rows, list):
        raise ResponseError("expected a list `data`")
    meta = from_wire(Meta, {**facts, "raw": facts})
    query = document.get("query", {})
    return Payload(meta, rows, sql=query.get("sql"), duration_ms=query.get("duration_ms"))


def _arrow_payload(response: httpx.Response) -> Payload:
    stream, headers = _arrow_stream(response), response.headers
    total, truncated = headers.get("x-terrane-total-rows"), headers.get("x-terrane-truncated")
    facts: dict[str, Any] = {
        "total_rows": None if total is None else int(total),
        "truncated": None if truncated is None else truncated == "true",
        "cache_key": headers.get("x-terrane-cache-key"),
        "as_of": headers.get("x-terrane-as-of"),
    }
    return Payload(Meta(**facts, raw=facts), arrow=stream)


def _arrow_stream(response: httpx.Response) -> bytes:
    """Return the stream, or raise an error if it lacks its end marker."""
    if response.headers.get("content-type", "").partition(";")[0] != ARROW:
        raise ResponseError("expected an Arrow stream")
    if not response.content.endswith(ARROW_END):
        raise ResponseError("the Arrow stream is incomplete")
    return response.content


def _job_state(response: httpx.Response) -> JobState:
    return from_wire(JobState, response.json())


def _raise_for_job(state: JobState) -> None:
    """Raise the error of a failed or cancelled job."""
    if state.status == "cancelled":
        raise JobCancelledError(f"job `{state.job_id}` was cancelled")
    if state.status == "failed":
        error = state.error or {}
        code = error.get("code")
        raise error_class(code)(str(error.get("message", f"job `{state.job_id}` failed")), code=code)


def _search_results(data: Mapping[str, Any]) -> SearchResults:
    return SearchResults(tuple(list_from_wire(SearchHit, data, "results")), bool(data.get("has_more")))


def _interpretation(data: Mapping[str, Any]) -> Interpretation:
    query = data["query"]
    return from_wire(Interpretation, {**data, "query": None if query is None else Query(query)})
