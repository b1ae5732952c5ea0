"""Decoding of Arrow streams. The optional libraries are imported on first use."""

from __future__ import annotations

import importlib
import io
from typing import TYPE_CHECKING, Any, Literal

from terrane.errors import MissingExtraError

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

DtypeBackend = Literal["pyarrow", "numpy"]


def arrow_table(stream: bytes) -> pyarrow.Table:
    """Return the table of an Arrow stream."""
    table: pyarrow.Table = _import("pyarrow.ipc", "arrow").open_stream(stream).read_all()
    return table


def rows_from_arrow(stream: bytes) -> list[dict[str, Any]]:
    """Return the rows of an Arrow stream as Python values: `int`, `float`, `Decimal`, `date`, `datetime`, `str`."""
    rows: list[dict[str, Any]] = arrow_table(stream).to_pylist()
    return rows


def pandas_frame(stream: bytes, dtype_backend: DtypeBackend) -> pandas.DataFrame:
    """Return the pandas frame of an Arrow stream."""
    if dtype_backend not in ("pyarrow", "numpy"):
        raise ValueError(f"expected the dtype_backend `pyarrow` or `numpy`, found `{dtype_backend}`")
    library = _import("pandas", "pandas")
    table = arrow_table(stream)
    frame: pandas.DataFrame = table.to_pandas(types_mapper=library.ArrowDtype if dtype_backend == "pyarrow" else None)
    return frame


def polars_frame(stream: bytes) -> polars.DataFrame:
    """Return the polars frame of an Arrow stream."""
    frame: polars.DataFrame = _import("polars", "polars").read_ipc_stream(io.BytesIO(stream))
    return frame


def _import(module: str, extra: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise MissingExtraError(f"`{name}` is not installed; install `terrane[{extra}]`") from None
