"""Conversion between Python values and the JSON of the REST interface.

Filter values are scalars: strings, numbers, booleans, dates and times. Nothing here knows routes or HTTP.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, Protocol, TypeVar, runtime_checkable

from terrane.errors import ResponseError

T = TypeVar("T")


@runtime_checkable
class Wire(Protocol):
    """An object with its own JSON form in the REST interface."""

    def to_wire(self) -> Any:
        """Return the JSON form."""


def scalar_to_wire(value: object) -> str | int | float | bool | None:
    """Return a filter value as JSON; decimals become strings, which the server reads with all their digits."""
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (date, datetime)):
        return value.isoformat()
    if isinstance(value, (Decimal, Real)) and not math.isfinite(value):
        raise ValueError(f"expected a finite number, found {value}")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    raise TypeError(f"expected a string, number, boolean, date, time or None, found {type(value).__name__}")


def to_wire(value: object) -> Any:
    """Return a value of a request body as JSON, with members, filters and queries replaced by their JSON form."""
    if isinstance(value, Wire):
        return to_wire(value.to_wire())
    if isinstance(value, Mapping):
        return {str(key): to_wire(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [to_wire(item) for item in value]
    return scalar_to_wire(value)


def from_wire(cls: type[T], data: object) -> T:
    """Return a dataclass of the fields of a JSON object; unknown fields are ignored, so that servers may add fields."""
    if not isinstance(data, Mapping):
        raise ResponseError(f"expected an object for {cls.__name__}, found {type(data).__name__}")
    names = {field.name for field in dataclasses.fields(cls) if field.init}  # type: ignore[arg-type]
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in data.items() if name in names}
    try:
        return cls(**values)
    except TypeError:
        raise ResponseError(f"a field of {cls.__name__} is missing in the response") from None


def list_from_wire(cls: type[T], data: object, key: str) -> list[T]:
    """Return the objects of the list `key` of a JSON object."""
    items = data.get(key) if isinstance(data, Mapping) else None
    if not isinstance(items, list):
        raise ResponseError(f"expected a list `{key}` in the response")
    return [from_wire(cls, item) for item in items]
