"""Query results: rows with their metadata, and frames from the Arrow stream of the server.

Frames are never made of JSON, which lacks types. A result that was read as JSON requests the Arrow stream once, when
the first frame is needed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from terrane import frames

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Format = Literal["json", "arrow"]
Row = dict[str, Any]


@dataclass(frozen=True)
class Meta:
    """Metadata of the rows. Fields that the format or the route does not provide are None; `raw` has all fields."""

    total_rows: int | None = None
    returned_rows: int | None = None
    truncated: bool | None = None
    cached: bool | None = None
    cache_key: str | None = None
    as_of: str | None = None
    age_ms: int | None = None
    stale: bool | None = None
    warnings: tuple[str, ...] = ()
    totals: Mapping[str, Any] | None = None
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Payload:
    """The contents of one response: `rows` of JSON, or the `arrow` stream."""

    meta: Meta
    rows: list[Row] | None = None
    arrow: bytes | None = field(default=None, repr=False)
    sql: str | None = None
    duration_ms: float | None = None


class _Rows:
    """The rows of a payload, the same for both clients."""

    def __init__(self, payload: Payload) -> None:
        self._payload = payload
        self._rows = payload.rows

    @property
    def rows(self) -> list[Row]:
        """The rows as dictionaries, keyed by member. Reading them from an Arrow stream requires `pyarrow`."""
        if self._rows is None:
            self._rows = frames.rows_from_arrow(self._payload.arrow or b"")
        return self._rows

    @property
    def meta(self) -> Meta:
        """Metadata of the rows."""
        return self._payload.meta

    @property
    def sql(self) -> str | None:
        """The statement that ran, with placeholders; None for Arrow streams and jobs."""
        return self._payload.sql

    @property
    def duration_ms(self) -> float | None:
        """The duration of the query on the server; None for Arrow streams and jobs."""
        return self._payload.duration_ms

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(total_rows={self.meta.total_rows}, returned_rows={self.meta.returned_rows})"


class QueryResult(_Rows):
    """The result of a query."""

    def __init__(self, payload: Payload, fetch_arrow: Callable[[], bytes]) -> None:
        super().__init__(payload)
        self._arrow = payload.arrow
        self._fetch_arrow = fetch_arrow

    def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table. Needs the extra `arrow`."""
        return frames.arrow_table(self._stream())

    def to_pandas(self, *, dtype_backend: frames.DtypeBackend = "pyarrow") -> pandas.DataFrame:
        """Return a pandas frame with Arrow types or numpy types. Needs the extra `pandas`."""
        return frames.pandas_frame(self._stream(), dtype_backend)

    def to_polars(self) -> polars.DataFrame:
        """Return a polars frame. Needs the extra `polars`."""
        return frames.polars_frame(self._stream())

    def _stream(self) -> bytes:
        if self._arrow is None:
            self._arrow = self._fetch_arrow()
        return self._arrow


class AsyncQueryResult(_Rows):
    """The result of a query of `AsyncClient`; frames are awaited. See `QueryResult`."""

    def __init__(self, payload: Payload, fetch_arrow: Callable[[], Awaitable[bytes]]) -> None:
        super().__init__(payload)
        self._arrow = payload.arrow
        self._fetch_arrow = fetch_arrow

    async def to_arrow(self) -> pyarrow.Table:
        """Return an Arrow table. Needs the extra `arrow`."""
        return frames.arrow_table(await self._stream())

    async def to_pandas(self, *, dtype_backend: frames.DtypeBackend = "pyarrow") -> pandas.DataFrame:
        """Return a pandas frame with Arrow types or numpy types. Needs the extra `pandas`."""
        return frames.pandas_frame(await self._stream(), dtype_backend)

    async def to_polars(self) -> polars.DataFrame:
        """Return a polars frame. Needs the extra `polars`."""
        return frames.polars_frame(await self._stream())

    async def _stream(self) -> bytes:
        if self._arrow is None:
            self._arrow = await self._fetch_arrow()
        return self._arrow
