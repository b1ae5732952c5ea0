"""Filters and sort keys in the form of the REST interface."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Filter:
    """A condition or a tree of conditions. Combine filters with `&`, `|` and `~`; put comparisons in parentheses."""

    wire: Mapping[str, Any]

    def to_wire(self) -> Mapping[str, Any]:
        """Return the JSON form."""
        return self.wire

    def __and__(self, other: Filter) -> Filter:
        return self._combine("and", other)

    def __or__(self, other: Filter) -> Filter:
        return self._combine("or", other)

    def __invert__(self) -> Filter:
        return Filter({"not": self.wire})

    def __bool__(self) -> bool:
        raise TypeError("a filter has no truth value; combine filters with `&`, `|` and `~` instead of and, or and not")

    def _combine(self, word: str, other: Filter) -> Filter:
        if not isinstance(other, Filter):
            return NotImplemented
        parts = [part for side in (self.wire, other.wire) for part in side.get(word, [side])]
        return Filter({word: parts})


@dataclass(frozen=True)
class Order:
    """A sort key: a member and a direction, `asc` or `desc`."""

    field: str
    direction: str = "asc"

    def to_wire(self) -> dict[str, str]:
        """Return the JSON form."""
        return {"field": self.field, "direction": self.direction}


def asc(field: str) -> Order:
    """Return an ascending sort key of a member given by its name."""
    return Order(field)


def desc(field: str) -> Order:
    """Return a descending sort key of a member given by its name."""
    return Order(field, "desc")
