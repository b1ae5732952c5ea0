"""Asynchronous queries: the state of a job, and the handles of both clients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from terrane.results import AsyncQueryResult, Format, QueryResult

if TYPE_CHECKING:
    from terrane.async_client import AsyncClient
    from terrane.client import Client

ENDED = frozenset({"complete", "failed", "cancelled", "expired"})


@dataclass(frozen=True)
class JobState:
    """The state of a job as the server reported it. Times are ISO 8601 strings; `progress` is a percentage."""

    job_id: str
    status: str
    created_at: str
    progress: int | None = None
    started_at: str | None = None
    completed_at: str | None = None
    expires_at: str | None = None
    row_count: int | None = None
    error: Mapping[str, Any] | None = None

    @property
    def has_ended(self) -> bool:
        """True if the state is final."""
        return self.status in ENDED


class _Handle:
    """The attributes of a job that are available without a request."""

    def __init__(self, state: JobState) -> None:
        self.state = state

    @property
    def id(self) -> str:
        """The identifier of the job."""
        return self.state.job_id

    @property
    def status(self) -> str:
        """The last known status: `pending`, `running`, `complete`, `failed`, `cancelled` or `expired`."""
        return self.state.status

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, status={self.status!r})"


class Job(_Handle):
    """A job of `Client`. `wait` and `result` without a timeout wait until the job ends."""

    def __init__(self, client: Client, state: JobState) -> None:
        super().__init__(state)
        self._client = client

    def refresh(self) -> Job:
        """Reload the state from the server."""
        self.state = self._client._run(self._client._api.job(self.id))
        return self

    def wait(self, timeout: float | None = None) -> Job:
        """Wait until the job has ended, in any final state; raise `JobTimeoutError` after `timeout` seconds."""
        self.state = self._client._run(self._client._api.wait_for_job(self.id, timeout))
        return self

    def result(self, timeout: float | None = None, *, format: Format = "json") -> QueryResult:
        """Wait for the job and return its rows; raise the error of a failed or cancelled job."""
        self.wait(timeout)
        api, run = self._client._api, self._client._run
        payload = run(api.job_result(self.state, format))
        return QueryResult(payload, lambda: run(api.job_arrow(self.state)))

    def cancel(self) -> Job:
        """Cancel the job, or delete the result of a complete job."""
        self.state = self._client._run(self._client._api.cancel_job(self.id))
        return self


class AsyncJob(_Handle):
    """A job of `AsyncClient`. See `Job`."""

    def __init__(self, client: AsyncClient, state: JobState) -> None:
        super().__init__(state)
        self._client = client

    async def refresh(self) -> AsyncJob:
        """Reload the state from the server."""
        self.state = await self._client._run(self._client._api.job(self.id))
        return self

    async def wait(self, timeout: float | None = None) -> AsyncJob:
        """Wait until the job has ended, in any final state; raise `JobTimeoutError` after `timeout` seconds."""
        self.state = await self._client._run(self._client._api.wait_for_job(self.id, timeout))
        return self

    async def result(self, timeout: float | None = None, *, format: Format = "json") -> AsyncQueryResult:
        """Wait for the job and return its rows; raise the error of a failed or cancelled job."""
        await self.wait(timeout)
        api, run = self._client._api, self._client._run
        payload = await run(api.job_result(self.state, format))
        return AsyncQueryResult(payload, lambda: run(api.job_arrow(self.state)))

    async def cancel(self) -> AsyncJob:
        """Cancel the job, or delete the result of a complete job."""
        self.state = await self._client._run(self._client._api.cancel_job(self.id))
        return self
