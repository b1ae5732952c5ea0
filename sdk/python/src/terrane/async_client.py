"""The asynchronous client, for `asyncio`."""

from __future__ import annotations

import asyncio
from asyncio import sleep
from types import TracebackType
from typing import TYPE_CHECKING, Any

import httpx

from terrane.api import Api
from terrane.credentials import choose_credentials
from terrane.jobs import AsyncJob
from terrane.query import QueryFields, QueryLike, query_body
from terrane.results import AsyncQueryResult, Format
from terrane.retry import RetryPolicy
from terrane.session import FAILURES, Effect, Locked, Operation, Session, Sleep, T
from terrane.settings import http_settings

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from terrane.members import Dimension, Measure, Metric
    from terrane.metadata import Cube, Explanation, Health, Interpretation, SearchOptions, SearchResults, Sql


class AsyncClient:
    """The asynchronous client, with the methods and arguments of `Client`. It belongs to one event loop."""

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
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        session = Session(choose_credentials(api_key, token, username, password), retry or RetryPolicy())
        self._http = httpx.AsyncClient(transport=transport, **http_settings(base_url, timeout, max_connections))
        self._api = Api(session, timeout)
        self._lock = asyncio.Lock()

    async def cubes(self) -> list[Cube]:
        """List the cubes that the caller may see."""
        return await self._run(self._api.cubes())

    async def cube(self, name: str) -> Cube:
        """Read a cube. For an unknown name, `NotFoundError.nearest` contains similar names."""
        return await self._run(self._api.cube(name))

    async def measures(self) -> list[Measure]:
        """List the measures of all cubes."""
        return await self._run(self._api.measures())

    async def metrics(self) -> list[Metric]:
        """List the metrics of the project."""
        return await self._run(self._api.metrics())

    async def dimensions(self) -> list[Dimension]:
        """List the dimensions of all cubes."""
        return await self._run(self._api.dimensions())

    async def query(
        self, query: QueryLike | None = None, *, format: Format = "json", **fields: Unpack[QueryFields]
    ) -> AsyncQueryResult:
        """Run a query. `format="arrow"` requests the Arrow stream directly, which saves a second request for frames."""
        body = query_body(query, fields)
        payload = await self._run(self._api.query(body, format))
        return AsyncQueryResult(payload, lambda: self._run(self._api.query_arrow(body)))

    async def sql(self, query: QueryLike | None = None, *, inline: bool = False, **fields: Unpack[QueryFields]) -> Sql:
        """Return the SQL of a query without running it; `inline` puts the values into the statement."""
        return await self._run(self._api.sql(query_body(query, fields), inline))

    async def explain(self, query: QueryLike | None = None, **fields: Unpack[QueryFields]) -> Explanation:
        """Explain the members, joins, policies and plan of a query."""
        return await self._run(self._api.explain(query_body(query, fields)))

    async def submit(self, query: QueryLike | None = None, **fields: Unpack[QueryFields]) -> AsyncJob:
        """Run a query as a job, which may take longer and return more rows than `query`."""
        return AsyncJob(self, await self._run(self._api.submit(query_body(query, fields))))

    async def job(self, job_id: str) -> AsyncJob:
        """Return a job by its identifier."""
        return AsyncJob(self, await self._run(self._api.job(job_id)))

    async def jobs(self) -> list[AsyncJob]:
        """List the caller's jobs, newest first."""
        return [AsyncJob(self, state) for state in await self._run(self._api.jobs())]

    async def search(self, text: str, **options: Unpack[SearchOptions]) -> SearchResults:
        """Search for cubes, members and metrics; `options` are the fields of `POST /api/v1/search`."""
        return await self._run(self._api.search({"query": text, **options}))

    async def ask(self, text: str, *, language: str = "en") -> Interpretation:
        """Translate a question in plain language into a query, which `query` runs."""
        return await self._run(self._api.ask({"query": text, "language": language}))

    async def health(self) -> Health:
        """Return the state of the server and of its dependencies. Needs no credential."""
        return await self._run(self._api.health())

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self._http.base_url)!r})"

    async def _run(self, operation: Operation[T]) -> T:
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
                reply = await self._perform(effect)
            except FAILURES as error:
                failure = error

    async def _perform(self, effect: Effect) -> Any:
        if isinstance(effect, Sleep):
            return await sleep(effect.seconds)
        if isinstance(effect, Locked):
            async with self._lock:
                return await self._run(effect.operation)
        return await self._http.request(
            effect.method, effect.path, json=effect.json, params=effect.params, headers=effect.headers
        )
