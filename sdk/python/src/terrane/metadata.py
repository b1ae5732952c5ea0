"""Cubes with their members, and the other metadata documents of the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from terrane.errors import UnknownMemberError, nearest_names
from terrane.members import Dimension, Measure, Member, Metric, Segment
from terrane.query import FilterLike, MemberLike, Query
from terrane.wire import from_wire, list_from_wire


@dataclass(frozen=True)
class CubeMeta:
    """The metadata of a cube. `joins` contains the names of joined cubes."""

    name: str
    title: str
    description: str | None
    measures: tuple[Measure, ...]
    dimensions: tuple[Dimension, ...]
    segments: tuple[Segment, ...]
    joins: tuple[str, ...]


class Cube:
    """A cube whose members are attributes: `flights.origin`, or `flights["origin"]`.

    Members named like an attribute of this class (`meta`, `group_by`, `agg`, `filter`) are accessible only by `[]`.
    """

    def __init__(self, meta: CubeMeta) -> None:
        self.meta = meta
        parts: tuple[tuple[Measure | Dimension | Segment, ...], ...] = (meta.segments, meta.dimensions, meta.measures)
        self._members: dict[str, Member] = {member.name: member for part in parts for member in part}

    def group_by(self, *members: MemberLike) -> Query:
        """Start a query that groups by dimensions."""
        return Query().group_by(*members)

    def agg(self, *members: MemberLike) -> Query:
        """Start a query that computes measures."""
        return Query().agg(*members)

    def filter(self, *filters: FilterLike) -> Query:
        """Start a query with filters."""
        return Query().filter(*filters)

    def __getitem__(self, name: str) -> Member:
        if name in self._members:
            return self._members[name]
        nearest = nearest_names(name, self._members)
        raise UnknownMemberError(f"cube `{self.meta.name}` has no member `{name}`", nearest=nearest)

    def __getattr__(self, name: str) -> Member:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._members})

    def __repr__(self) -> str:
        return f"Cube({self.meta.name!r})"


class SearchOptions(TypedDict, total=False):
    """The optional fields of `POST /api/v1/search`."""

    types: Sequence[Literal["cube", "measure", "dimension", "metric", "value"]]
    cube: str
    tags: Sequence[str]
    certification_status: Literal["draft", "pending_review", "certified", "deprecated", "archived"]
    limit: int


@dataclass(frozen=True)
class SearchHit:
    """A cube, member or metric that matches a search, or a value of the dimension `name`."""

    type: str
    name: str
    cube: str | None
    title: str
    description: str | None = None
    score: float = 0
    tags: tuple[str, ...] = ()
    matches: tuple[Mapping[str, Any], ...] = ()
    value: str | None = None


@dataclass(frozen=True)
class SearchResults:
    """The hits of a search, best first. `has_more` is true if the limit omitted further hits."""

    hits: tuple[SearchHit, ...]
    has_more: bool

    def __iter__(self) -> Iterator[SearchHit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)


@dataclass(frozen=True)
class Interpretation:
    """The meaning of a question in plain language. `query` is None if the question is unclear; see `clarifications`."""

    query: Query | None
    confidence: float
    interpretation: tuple[Mapping[str, Any], ...] = ()
    alternatives: tuple[Mapping[str, Any], ...] = ()
    clarifications: tuple[Mapping[str, Any], ...] = ()


@dataclass(frozen=True)
class Sql:
    """The SQL of a query, and the values of its placeholders."""

    sql: str
    params: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Explanation:
    """The members, joins, policies and plan of a query. `warehouse_plan` needs the scope `admin`."""

    sql: str
    params: tuple[Any, ...]
    members: tuple[Mapping[str, Any], ...]
    facts: tuple[Mapping[str, Any], ...]
    policies: tuple[str, ...]
    plan: tuple[str, ...]
    warehouse_plan: Any = None
    warehouse_plan_reason: str | None = None


@dataclass(frozen=True)
class Health:
    """The state of the server and of its dependencies."""

    status: str
    version: str
    uptime_seconds: float
    checks: Mapping[str, str] = field(default_factory=dict)
    project: Mapping[str, Any] = field(default_factory=dict)


def cube_from_wire(data: Mapping[str, Any]) -> Cube:
    """Return the cube of a metadata document."""
    name = data.get("name", "")
    segments = [Segment(ref=f"{name}.{item}", name=item, cube=name) for item in data.get("segments", [])]
    members = {"measures": measures_from_wire(data), "dimensions": dimensions_from_wire(data), "segments": segments}
    return Cube(from_wire(CubeMeta, {**data, **members}))


def measures_from_wire(data: Mapping[str, Any]) -> list[Measure]:
    """Return the measures of a document."""
    return list_from_wire(Measure, _with_refs(data, "measures"), "measures")


def dimensions_from_wire(data: Mapping[str, Any]) -> list[Dimension]:
    """Return the dimensions of a document."""
    return list_from_wire(Dimension, _with_refs(data, "dimensions"), "dimensions")


def metrics_from_wire(data: Mapping[str, Any]) -> list[Metric]:
    """Return the metrics of a document."""
    return list_from_wire(Metric, _with_refs(data, "metrics"), "metrics")


def _with_refs(data: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Add the reference that queries use: `cube.name`, or only the name for metrics."""
    return {key: [{**item, "ref": ".".join(filter(None, (item.get("cube"), item.get("name"))))} for item in data[key]]}
