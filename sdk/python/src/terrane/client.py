"""The synchronous client."""

from __future__ import annotations

import threading
from time import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx

from terrane.api import Api
from terrane.credentials import choose_credentials
from terrane.jobs import Job
from terrane.query import QueryFields, QueryLike, query_body
from terrane.results import Format, QueryResult
from terrane.retry import RetryPolicy
from terrane.session import FAILURES, Effect, Locked, Operation, Session, Sleep, T
from terrane.settings import http_settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from terrane.members import Dimension, Measure, Metric
    from terrane.metadata import Cube, Explanation, Health, Interpretation, SearchOptions, SearchResults, Sql


class Client:
    """A client of a Terrane server. Threads can share it. Close it, or use it as a context manager.

    Credentials are one of `api_key`, `token` (an access token), or `username` and `password`; without any, requests
    are anonymous. `timeout` is the number of seconds for each phase of a request: waiting for a connection, connecting,
    and each read and write. A query takes its fields as a `Query`, a mapping, or keyword arguments.
    """

    def __init__(
        self,
        base_url: str,
        *,
        api_key: str | None = None,
        token: str | None = None,
        username: str | None = None,
        password: str | None = None,
        timeout: float = 60.0,
        retry: RetryPolicy | None = None,
        max_connections: int = 20,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        session = Session(choose_credentials(api_key, token, username, password), retry or RetryPolicy())
        self._http = httpx.Client(transport=transport, **http_settings(base_url, timeout, max_connections))
        self._api = Api(session, timeout)
        self._lock = threading.Lock()

    def cubes(self) -> list[Cube]:
        """List the cubes that the caller may see."""
        return self._run(self._api.cubes())

    def cube(self, name: str) -> Cube:
        """Read a cube. For an unknown name, `NotFoundError.nearest` contains similar names."""
        return self._run(self._api.cube(name))

    def measures(self) -> list[Measure]:
        """List the measures of all cubes."""
        return self._run(self._api.measures())

    def metrics(self) -> list[Metric]:
        """List the metrics of the project."""
        return self._run(self._api.metrics())

    def dimensions(self) -> list[Dimension]:
        """List the dimensions of all cubes."""
        return self._run(self._api.dimensions())

    def query(
        self, query: QueryLike | None = None, *, format: Format = "json", **fields: Unpack[QueryFields]
    ) -> QueryResult:
        """Run a query. `format="arrow"` requests the Arrow stream directly, which saves a second request for frames."""
        body = query_body(query, fields)
        payload = self._run(self._api.query(body, format))
        return QueryResult(payload, lambda: self._run(self._api.query_arrow(body)))

    def sql(self, query: QueryLike | None = None, *, inline: bool = False, **fields: Unpack[QueryFields]) -> Sql:
        """Return the SQL of a query without running it; `inline` puts the values into the statement."""
        return self._run(self._api.sql(query_body(query, fields), inline))

    def explain(self, query: QueryLike | None = None, **fields: Unpack[QueryFields]) -> Explanation:
        """Explain the members, joins, policies and plan of a query."""
        return self._run(self._api.explain(query_body(query, fields)))

    def submit(self, query: QueryLike | None = None, **fields: Unpack[QueryFields]) -> Job:
        """Run a query as a job, which may take longer and return more rows than `query`."""
        return Job(self, self._run(self._api.submit(query_body(query, fields))))

    def job(self, job_id: str) -> Job:
        """Return a job by its identifier."""
        return Job(self, self._run(self._api.job(job_id)))

    def jobs(self) -> list[Job]:
        """List the caller's jobs, newest first."""
        return [Job(self, state) for state in self._run(self._api.jobs())]

    def search(self, text: str, **options: Unpack[SearchOptions]) -> SearchResults:
        """Search for cubes, members and metrics; `options` are the fields of `POST /api/v1/search`."""
        return self._run(self._api.search({"query": text, **options}))

    def ask(self, text: str, *, language: str = "en") -> Interpretation:
        """Translate a question in plain language into a query, which `query` runs."""
        return self._run(self._api.ask({"query": text, "language": language}))

    def health(self) -> Health:
        """Return the state of the server and of its dependencies. Needs no credential."""
        return self._run(self._api.health())

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._http.base_url)!r})"

    def _run(self, operation: Operation[T]) -> T:
        """Perform the effects of an operation and return its result."""
        reply, failure = None, None
        while True:
            try:
                # Outside the `except` block, the failure does not become the context of another
                # exception.
                effect = operation.throw(failure) if failure is not None else operation.send(reply)
            except StopIteration as end:
                result: T = end.value
                return result
            reply, failure = None, None
            try:
                reply = self._perform(effect)
            except FAILURES as error:
                failure = error

    def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Sleep):
            return sleep(effect.seconds)
        if isinstance(effect, Locked):
            with self._lock:
                return self._run(effect.operation)
        return self._http.request(
            effect.method, effect.path, json=effect.json, params=effect.params, headers=effect.headers
        )
