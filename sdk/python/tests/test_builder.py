"""The query builder: operators, immutability, members of cubes and their errors. Needs no server."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pytest

from terrane import Cube, Dimension, Filter, Measure, Member, Order, Query, Segment, UnknownMemberError, asc, desc
from terrane.metadata import cube_from_wire
from terrane.wire import to_wire

DIMENSION = {"cube": "flights", "title": "", "description": None, "primary_key": False}
META: dict[str, Any] = {
    "name": "flights",
    "title": "Flights",
    "description": None,
    "measures": [
        {"name": "count", "cube": "flights", "type": "count", "title": "Flights", "drill_members": ["origin"]},
        {
            "name": "typical",
            "cube": "flights",
            "type": "number",
            "title": "Typical",
            "aggregation": "median",
            "rolling_window": {"trailing": "7 day", "leading": None, "offset": "end"},
        },
    ],
    "dimensions": [
        {**DIMENSION, "name": "origin", "type": "string", "granularities": []},
        {**DIMENSION, "name": "name", "type": "string", "granularities": []},
        {**DIMENSION, "name": "scheduled", "type": "time", "granularities": ["day", "month"]},
        {**DIMENSION, "name": "filter", "type": "string", "granularities": []},
    ],
    "segments": ["delayed"],
    "joins": ["airlines"],
    "field_of_a_later_version": 1,
}
x = Member("a.x")


@pytest.fixture
def flights() -> Cube:
    return cube_from_wire(META)


@pytest.mark.parametrize(
    ("built", "operator", "value"),
    [
        (x == "JFK", "equals", "JFK"),
        (x == None, "equals", None),  # noqa: E711 - a comparison of the query
        (x != "JFK", "notEquals", "JFK"),
        (x > 1, "gt", 1),
        (x >= 1.5, "gte", 1.5),
        (x < Decimal("1E+2"), "lt", "100"),
        (x <= Decimal("0.10"), "lte", "0.10"),
        (x == True, "equals", True),  # noqa: E712
        (x > date(2013, 2, 1), "gt", "2013-02-01"),
        (x < datetime(2013, 2, 1, 12, tzinfo=timezone.utc), "lt", "2013-02-01T12:00:00+00:00"),
        (x.is_in(["a", None]), "inList", ["a", None]),
        (x.is_in({1}), "inList", [1]),
        (x.not_in([]), "notInList", []),
        (x.contains("a%"), "contains", "a%"),
        (x.not_contains("a"), "notContains", "a"),
        (x.starts_with("a"), "startsWith", "a"),
        (x.ends_with("a"), "endsWith", "a"),
        (x.between(1, 2), "between", [1, 2]),
        (x.between("2013-01-01", "2013-02-01"), "between", ["2013-01-01", "2013-02-01"]),
        (x.in_range("last 7 days"), "inDateRange", "last 7 days"),
        (x.in_range(date(2013, 1, 1), "2013-02"), "inDateRange", ["2013-01-01", "2013-02"]),
        (x.not_in_range("2013-01", "2013-02"), "notInDateRange", ["2013-01", "2013-02"]),
        (x.before("2013"), "beforeDate", "2013"),
        (x.after("2013"), "afterDate", "2013"),
    ],
)
def test_comparisons_are_the_operators_of_the_interface(built: Filter, operator: str, value: object) -> None:
    assert built.to_wire() == {"dimension": "a.x", "operator": operator, "value": value}


def test_tests_for_null_have_no_value() -> None:
    assert x.is_set().to_wire() == {"dimension": "a.x", "operator": "set"}
    assert x.is_not_set().to_wire() == {"dimension": "a.x", "operator": "notSet"}


def test_filters_are_combined_as_trees() -> None:
    a, b, c = (Filter({"dimension": name, "operator": "set"}) for name in "abc")
    assert (a & b & c).to_wire() == {"and": [a.wire, b.wire, c.wire]}
    assert (a | b | c).to_wire() == {"or": [a.wire, b.wire, c.wire]}
    assert (a | ~(b & c)).to_wire() == {"or": [a.wire, {"not": {"and": [b.wire, c.wire]}}]}


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: bool(x == 1),
        lambda: 1 < x < 2,
        lambda: (x == 1) and (x == 2),
        lambda: (x == 1) & True,  # type: ignore[operator]
        lambda: x == Member("a.y"),
        lambda: x == object(),
        lambda: x == [1],
        lambda: x.is_in("JFK"),
        lambda: x.is_in([[1]]),
        lambda: x.contains(Member("a.y")),  # type: ignore[arg-type]
        lambda: Query().filter(x),  # type: ignore[arg-type]
        lambda: Query().filter("a.x = 1"),  # type: ignore[arg-type]
        lambda: Query().group_by(object()).to_wire(),  # type: ignore[arg-type]
    ],
)
def test_misuse_is_a_type_error(misuse: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        misuse()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), Decimal("NaN"), Decimal("-Infinity")])
def test_numbers_without_a_json_form_are_rejected(value: object) -> None:
    with pytest.raises(ValueError, match="finite"):
        _ = x == value


def test_builder_makes_the_request_body(flights: Cube) -> None:
    query = (
        flights.group_by(flights.origin, flights.scheduled.month)
        .agg(flights.count, "on_time_rate")
        .filter(flights.origin == "JFK", {"member": "flights.distance", "operator": "gt", "value": 10})
        .segment(flights.delayed)
        .order_by(flights.count.desc(), flights.origin, "on_time_rate", desc("a.b"), asc("a.c"))
        .limit(10)
        .offset(5)
        .options(timezone="Europe/Berlin", totals=True)
    )
    assert query.to_wire() == {
        "dimensions": ["flights.origin", "flights.scheduled.month"],
        "measures": ["flights.count", "on_time_rate"],
        "filters": [
            {"dimension": "flights.origin", "operator": "equals", "value": "JFK"},
            {"member": "flights.distance", "operator": "gt", "value": 10},
        ],
        "segments": ["flights.delayed"],
        "order_by": [
            {"field": "flights.count", "direction": "desc"},
            {"field": "flights.origin", "direction": "asc"},
            {"field": "on_time_rate", "direction": "asc"},
            {"field": "a.b", "direction": "desc"},
            {"field": "a.c", "direction": "asc"},
        ],
        "limit": 10,
        "offset": 5,
        "timezone": "Europe/Berlin",
        "totals": True,
    }


def test_queries_are_immutable(flights: Cube) -> None:
    base = flights.agg(flights.count)
    assert base.group_by("a.x").to_wire() != base.group_by("a.y").to_wire()
    assert base.to_wire() == {"measures": ["flights.count"]}


@pytest.mark.parametrize(
    ("query", "field", "value"),
    [
        (Query().time_range("last 7 days"), "time_range", "last 7 days"),
        (
            Query().time_range("2013-01-01", date(2013, 2, 1)),
            "time_range",
            {"start": "2013-01-01", "end": "2013-02-01"},
        ),
        (Query().time_range(None, "2013-02"), "time_range", {"end": "2013-02"}),
        (
            Query().time_range("2013-01", "2013-02", dimension=x, granularity="day"),
            "time_range",
            {"start": "2013-01", "end": "2013-02", "dimension": "a.x", "granularity": "day"},
        ),
        (
            Query().time_range("2013-Q1", dimension=x, granularity="day"),
            "time_dimensions",
            [{"dimension": "a.x", "date_range": "2013-Q1", "granularity": "day"}],
        ),
        (Query().compare(shift="1 month"), "compare_range", {"shift": "1 month"}),
        (Query().compare("2013-01", "2013-02"), "compare_range", ["2013-01", "2013-02"]),
        (Query().compare("last year"), "compare_range", "last year"),
    ],
)
def test_time_ranges(query: Query, field: str, value: object) -> None:
    assert query.to_wire() == {field: value}


@pytest.mark.parametrize(
    "build",
    [
        lambda: Query().time_range(None),
        lambda: Query().time_range("last week", granularity="day"),
        lambda: Query().compare(),
        lambda: x.in_range(None),
    ],
)
def test_incomplete_ranges_are_rejected(build: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"a start or an end|requires a dimension"):
        build()


def test_members_have_their_metadata(flights: Cube) -> None:
    assert isinstance(flights.count, Measure)
    assert isinstance(flights.origin, Dimension)
    assert isinstance(flights.delayed, Segment)
    assert flights.count.drill_members == ("origin",)
    assert (flights.count.aggregation, flights.count.rolling_window) == (None, None)
    assert isinstance(flights.typical, Measure)
    assert flights.typical.aggregation == "median"
    assert flights.typical.rolling_window == {"trailing": "7 day", "leading": None, "offset": "end"}
    assert flights["name"].ref == "flights.name"
    assert flights.name.ref == "flights.name"
    assert flights["filter"].ref == "flights.filter"
    assert {"origin", "count", "delayed", "group_by"} <= set(dir(flights))


@pytest.mark.parametrize(
    ("access", "nearest"),
    [
        (lambda cube: cube.orign, "origin"),
        (lambda cube: cube["cuont"], "count"),
        (lambda cube: cube.scheduled.mnth, "month"),
        (lambda cube: cube.scheduled.by("dya"), "day"),
        (lambda _: Member("a.x").yaer, "year"),  # type: ignore[attr-defined]
    ],
)
def test_typing_mistakes_have_the_nearest_names(flights: Cube, access: Callable[[Cube], object], nearest: str) -> None:
    with pytest.raises(UnknownMemberError) as caught:
        access(flights)
    assert isinstance(caught.value, AttributeError)
    assert caught.value.nearest[0] == nearest
    assert nearest in str(caught.value)


def test_only_offered_granularities_are_attributes(flights: Cube) -> None:
    assert flights.scheduled.month.ref == "flights.scheduled.month"
    assert not hasattr(flights.scheduled, "year")
    assert not hasattr(flights.origin, "month")
    assert not hasattr(flights.count, "month")
    assert not hasattr(flights.scheduled.month, "day")


def test_segments_cannot_be_compared(flights: Cube) -> None:
    with pytest.raises(TypeError, match="segment"):
        _ = flights.delayed == 1


def test_members_and_cubes_can_be_copied(flights: Cube) -> None:
    for member in (flights.count, flights.scheduled, x):
        assert copy.deepcopy(member).ref == member.ref
        assert pickle.loads(pickle.dumps(member)).granularities == member.granularities  # noqa: S301
    assert copy.copy(flights).origin.ref == "flights.origin"
    assert len({flights.count, flights.origin, x}) == 3


def test_objects_in_plain_bodies_are_replaced(flights: Cube) -> None:
    body = {"measures": [flights.count], "filters": [x == 1], "order_by": [Order("a.x")], "limit": None}
    assert to_wire(body) == {
        "measures": ["flights.count"],
        "filters": [{"dimension": "a.x", "operator": "equals", "value": 1}],
        "order_by": [{"field": "a.x", "direction": "asc"}],
        "limit": None,
    }
