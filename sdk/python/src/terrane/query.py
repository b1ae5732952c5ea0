"""The query builder, and the types of queries that clients accept.

A `Query` is an immutable request body. It needs no server: members are objects of a cube, or strings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from terrane.filters import Filter, Order
from terrane.members import Member, Moment, date_range
from terrane.wire import to_wire

if TYPE_CHECKING:
    from typing_extensions import Unpack

MemberLike = Member | str
FilterLike = Filter | Mapping[str, Any]
Numbers = Literal["number", "string", "double"]


class QueryOptions(TypedDict, total=False):
    """The query fields without a method of their own."""

    cube: str
    timezone: str
    fill_gaps: bool
    totals: bool
    total: bool
    numbers: Numbers
    cache: bool
    max_age: int
    stale: int
    pre_aggregations: Literal["off", "auto", "only"]
    ungrouped: bool


class QueryFields(QueryOptions, total=False):
    """All fields of a query, as `POST /api/v1/query` names them."""

    metrics: Sequence[MemberLike]
    measures: Sequence[MemberLike]
    dimensions: Sequence[MemberLike]
    filters: Sequence[FilterLike]
    segments: Sequence[MemberLike]
    order_by: Sequence[Order | Mapping[str, str]]
    limit: int
    offset: int
    time_range: str | Mapping[str, Any]
    time_dimensions: Sequence[Mapping[str, Any]]
    compare_range: str | Mapping[str, str] | Sequence[str]


@dataclass(frozen=True)
class Query:
    """A query. Each method returns a new one; `group_by`, `agg`, `filter`, `segment` and `order_by` append."""

    fields: Mapping[str, Any] = field(default_factory=dict)

    def to_wire(self) -> dict[str, Any]:
        """Return the request body."""
        body: dict[str, Any] = to_wire(self.fields)
        return body

    def group_by(self, *members: MemberLike) -> Query:
        """Group by dimensions. Time dimensions take a granularity: `flights.flight_date.month`."""
        return self._append("dimensions", members)

    def agg(self, *members: MemberLike) -> Query:
        """Compute measures or metrics."""
        return self._append("measures", members)

    def filter(self, *filters: FilterLike) -> Query:
        """Filter. Conditions on dimensions filter rows; conditions on measures filter groups. All of them must hold."""
        for item in filters:
            if not isinstance(item, (Filter, Mapping)):
                raise TypeError(f"expected a filter, found {type(item).__name__}")
        return self._append("filters", filters)

    def segment(self, *segments: MemberLike) -> Query:
        """Keep only rows that belong to all of these segments."""
        return self._append("segments", segments)

    def order_by(self, *keys: Order | MemberLike) -> Query:
        """Sort by keys such as `flights.count.desc()`; a member or a name without a direction sorts ascending."""
        return self._append("order_by", [key if isinstance(key, Order) else Order(to_wire(key)) for key in keys])

    def limit(self, rows: int) -> Query:
        """Return at most this number of rows."""
        return self._set("limit", rows)

    def offset(self, rows: int) -> Query:
        """Skip rows."""
        return self._set("offset", rows)

    def time_range(
        self,
        start: Moment | None,
        end: Moment | None = None,
        *,
        dimension: MemberLike | None = None,
        granularity: str | None = None,
    ) -> Query:
        """Filter by time: a phrase such as `last 7 days`, or a start and an end, both included.

        Without `dimension`, each measure is filtered by the primary time dimension of its cube. `granularity` groups
        by buckets as well.
        """
        span = date_range(start, end)
        if dimension is None and granularity is None and isinstance(span, str):
            return self._set("time_range", span)
        if dimension is None and isinstance(span, str):
            raise ValueError("a phrase with a granularity requires a dimension")
        if isinstance(span, str):
            entry = {"dimension": dimension, "date_range": span, "granularity": granularity}
            return self._append("time_dimensions", [_without_none(entry)])
        ends = dict(zip(("start", "end"), span, strict=True))
        return self._set("time_range", _without_none({**ends, "dimension": dimension, "granularity": granularity}))

    def compare(self, start: Moment | None = None, end: Moment | None = None, *, shift: str | None = None) -> Query:
        """Add the value of each measure over another range, as `<member>.previous`.

        The other range is a start and an end, a phrase, or a shift back such as `1 month`.
        """
        return self._set("compare_range", {"shift": shift} if shift is not None else date_range(start, end))

    def options(self, **options: Unpack[QueryOptions]) -> Query:
        """Set other fields, for example `timezone`, `totals` or `fill_gaps`."""
        return Query({**self.fields, **options})

    def _append(self, name: str, items: Any) -> Query:
        return self._set(name, [*self.fields.get(name, []), *items])

    def _set(self, name: str, value: object) -> Query:
        return Query({**self.fields, name: value})


QueryLike = Query | Mapping[str, Any]


def query_body(query: QueryLike | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request body of a query. `fields` override those of the query."""
    if query is not None and not isinstance(query, (Query, Mapping)):
        raise TypeError(f"expected a query, found {type(query).__name__}")
    base = query.fields if isinstance(query, Query) else query or {}
    body: dict[str, Any] = to_wire({**base, **fields})
    return body


def _without_none(fields: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}
