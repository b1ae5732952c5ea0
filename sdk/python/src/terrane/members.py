"""Members of cubes: references that can be selected, compared and ordered, with their metadata.

A comparison creates a `Filter` with exactly one operator of the REST interface.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from terrane.errors import UnknownMemberError, nearest_names
from terrane.filters import Filter, Order
from terrane.wire import scalar_to_wire

GRANULARITIES = ("second", "minute", "hour", "day", "week", "month", "quarter", "year")
Moment = str | date


class _Granularity:
    """A granularity as an attribute: `flights.flight_date.month`."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, member: Member | None, owner: type) -> Member:
        if member is None:
            raise AttributeError(self._name)
        return member.by(self._name)


@dataclass(frozen=True, eq=False)
class Member:
    """A member by its reference, `cube.member` or `cube.time_dimension.granularity`, or a metric by its name."""

    ref: str
    granularities: tuple[str, ...] = GRANULARITIES

    second, minute, hour, day = _Granularity(), _Granularity(), _Granularity(), _Granularity()
    week, month, quarter, year = _Granularity(), _Granularity(), _Granularity(), _Granularity()

    def to_wire(self) -> str:
        """Return the reference."""
        return self.ref

    def by(self, granularity: str) -> Member:
        """Return the time dimension with a granularity."""
        if granularity not in self.granularities:
            nearest = nearest_names(granularity, self.granularities)
            raise UnknownMemberError(f"`{self.ref}` has no granularity or attribute `{granularity}`", nearest=nearest)
        return Member(f"{self.ref}.{granularity}", granularities=())

    def asc(self) -> Order:
        """Return an ascending sort key."""
        return Order(self.ref)

    def desc(self) -> Order:
        """Return a descending sort key."""
        return Order(self.ref, "desc")

    def __eq__(self, value: object) -> Filter:  # type: ignore[override]
        return self._compare("equals", value)

    def __ne__(self, value: object) -> Filter:  # type: ignore[override]
        return self._compare("notEquals", value)

    __hash__ = object.__hash__

    def __gt__(self, value: object) -> Filter:
        return self._compare("gt", value)

    def __ge__(self, value: object) -> Filter:
        return self._compare("gte", value)

    def __lt__(self, value: object) -> Filter:
        return self._compare("lt", value)

    def __le__(self, value: object) -> Filter:
        return self._compare("lte", value)

    def is_in(self, values: Iterable[object]) -> Filter:
        """Return the filter `inList`: the member has one of the values."""
        return self._compare_list("inList", values)

    def not_in(self, values: Iterable[object]) -> Filter:
        """Return the filter `notInList`: the member has none of the values."""
        return self._compare_list("notInList", values)

    def is_set(self) -> Filter:
        """Return the filter `set`: the member is not null."""
        return self._condition("set")

    def is_not_set(self) -> Filter:
        """Return the filter `notSet`: the member is null."""
        return self._condition("notSet")

    def contains(self, text: str) -> Filter:
        """Return the filter `contains`, which is case-sensitive."""
        return self._compare("contains", text)

    def not_contains(self, text: str) -> Filter:
        """Return the filter `notContains`, which includes nulls."""
        return self._compare("notContains", text)

    def starts_with(self, text: str) -> Filter:
        """Return the filter `startsWith`."""
        return self._compare("startsWith", text)

    def ends_with(self, text: str) -> Filter:
        """Return the filter `endsWith`."""
        return self._compare("endsWith", text)

    def between(self, low: object, high: object) -> Filter:
        """Return the filter `between` of numbers or times, with both ends included."""
        return self._compare_list("between", (low, high))

    def in_range(self, start: Moment | None, end: Moment | None = None) -> Filter:
        """Return the filter `inDateRange`: words such as `last 7 days`, or a start and an end, both included."""
        return self._condition("inDateRange", date_range(start, end))

    def not_in_range(self, start: Moment | None, end: Moment | None = None) -> Filter:
        """Return the filter `notInDateRange`, with the arguments of `in_range`."""
        return self._condition("notInDateRange", date_range(start, end))

    def before(self, moment: Moment) -> Filter:
        """Return the filter `beforeDate`."""
        return self._compare("beforeDate", moment)

    def after(self, moment: Moment) -> Filter:
        """Return the filter `afterDate`."""
        return self._compare("afterDate", moment)

    def _compare(self, operator: str, value: object) -> Filter:
        return self._condition(operator, scalar_to_wire(value))

    def _compare_list(self, operator: str, values: Iterable[object]) -> Filter:
        if isinstance(values, (str, bytes)):
            raise TypeError("expected a list of values, found a string")
        return self._condition(operator, [scalar_to_wire(value) for value in values])

    def _condition(self, operator: str, *value: object) -> Filter:
        wire = {"dimension": self.ref, "operator": operator}
        return Filter({**wire, "value": value[0]} if value else wire)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Member:
            """Return a granularity, or raise an error with similar names."""
            if name.startswith("_"):
                raise AttributeError(name)
            return self.by(name)


@dataclass(frozen=True, eq=False, kw_only=True)
class Measure(Member):
    """A measure of a cube.

    `aggregation` is the name of the aggregation if `type` is `number` and the measure is one aggregation, such as
    `median`. `rolling_window` has the keys `trailing`, `leading` and `offset`, and is None for other measures.
    """

    name: str
    cube: str
    type: str
    title: str
    description: str | None = None
    aggregation: str | None = None
    rolling_window: Mapping[str, str | None] | None = None
    format: str | None = None
    drill_members: tuple[str, ...] = ()
    granularities: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Dimension(Member):
    """A dimension of a cube. `granularities` is empty unless `type` is `time`."""

    name: str
    cube: str
    type: str
    title: str
    description: str | None = None
    format: str | None = None
    primary_key: bool = False
    granularities: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Metric(Member):
    """A metric of the project. `cubes` contains the cubes whose measures it is computed from."""

    name: str
    type: str
    title: str
    description: str | None = None
    format: str | None = None
    time_grain: str | None = None
    cubes: tuple[str, ...] = ()
    granularities: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False, kw_only=True)
class Segment(Member):
    """A named condition of a cube, for `Query.segment`."""

    name: str
    cube: str
    granularities: tuple[str, ...] = ()

    def _condition(self, operator: str, *value: object) -> Filter:  # noqa: ARG002
        raise TypeError(f"segment `{self.ref}` cannot be compared; pass it to `segment()`")


def date_range(start: Moment | None, end: Moment | None = None) -> str | list[object]:
    """Return a phrase unchanged, or a start and an end, one of which may be None."""
    if isinstance(start, str) and end is None:
        return start
    if start is None and end is None:
        raise ValueError("expected a phrase, a start or an end")
    return [scalar_to_wire(start), scalar_to_wire(end)]
