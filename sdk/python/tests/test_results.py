"""Results: rows, metadata, and frames with the types of the Arrow stream."""

from __future__ import annotations

import datetime
import importlib
import io
from decimal import Decimal
from typing import Any

import httpx
import pytest
from answers import ROWS, Script, rows
from conftest import Connect

from terrane import MissingExtraError, ResponseError
from terrane.api import ARROW

pyarrow = pytest.importorskip("pyarrow")
ipc = pytest.importorskip("pyarrow.ipc")


AS_OF = "2024-01-01T00:00:00Z"


def table() -> Any:
    return pyarrow.table(
        {
            "a.amount": pyarrow.array([Decimal("12345678901234567890.12"), None], pyarrow.decimal128(38, 2)),
            "a.count": pyarrow.array([2**62 + 1, None], pyarrow.int64()),
            "a.at": pyarrow.array([datetime.datetime(2013, 1, 1), None], pyarrow.timestamp("us", "UTC")),
            "a.day": pyarrow.array([datetime.date(2013, 1, 1), None], pyarrow.date32()),
            "a.name": ["x", None],
        }
    )


def stream() -> bytes:
    sink = io.BytesIO()
    with ipc.new_stream(sink, table().schema) as writer:
        writer.write_table(table())
    return sink.getvalue()


def arrow(content: bytes | None = None) -> httpx.Response:
    headers = {"content-type": ARROW, "x-terrane-total-rows": "7", "x-terrane-truncated": "true", "x-terrane-as-of": AS_OF}
    return httpx.Response(200, content=stream() if content is None else content, headers=headers)


def test_rows_and_facts_are_those_of_the_response(connect: Connect) -> None:
    result = connect(Script([rows(total_rows=9, truncated=True, warnings=["w"], new=1)])).query(measures=["a.b"])
    assert result.rows == ROWS
    assert (result.meta.total_rows, result.meta.truncated, result.meta.warnings) == (9, True, ("w",))
    assert result.meta.raw["new"] == 1
    assert (result.sql, result.duration_ms) == ("SELECT 1", 1.5)


def test_integers_beyond_doubles_keep_their_digits(connect: Connect) -> None:
    script = Script([rows([{"a.b": 12345678901234567890123}])])
    assert connect(script).query(measures=["a.b"]).rows == [{"a.b": 12345678901234567890123}]


def test_frames_are_read_from_one_arrow_stream(connect: Connect) -> None:
    script = Script([rows(), arrow()])
    result = connect(script).query(measures=["a.b"])
    assert result.to_arrow().equals(table())
    result.to_pandas()
    result.to_polars()
    assert [request.headers["accept"] for request in script.requests] == ["application/json", ARROW]
    assert script.requests[0].content == script.requests[1].content


def test_arrow_format_needs_one_request(connect: Connect) -> None:
    script = Script([arrow()])
    result = connect(script).query(measures=["a.b"], format="arrow")
    assert result.to_arrow().equals(table())
    assert result.rows == table().to_pylist()
    assert (result.meta.total_rows, result.meta.truncated, result.meta.returned_rows) == (7, True, None)
    assert result.meta.as_of == AS_OF
    assert len(script.requests) == 1


def test_pandas_keeps_types(connect: Connect) -> None:
    frame = connect(Script([arrow()])).query(measures=["a.b"], format="arrow").to_pandas()
    assert frame["a.count"].tolist()[0] == 2**62 + 1
    assert frame["a.amount"][0] == Decimal("12345678901234567890.12")
    assert [str(kind) for kind in frame.dtypes] == [
        "decimal128(38, 2)[pyarrow]",
        "int64[pyarrow]",
        "timestamp[us, tz=UTC][pyarrow]",
        "date32[day][pyarrow]",
        "string[pyarrow]",
    ]


def test_pandas_has_numpy_types_on_request(connect: Connect) -> None:
    result = connect(Script([arrow()])).query(measures=["a.b"], format="arrow")
    assert str(result.to_pandas(dtype_backend="numpy")["a.count"].dtype) == "float64"
    with pytest.raises(ValueError, match="dtype_backend"):
        result.to_pandas(dtype_backend="python")  # type: ignore[arg-type]


def test_polars_keeps_types(connect: Connect) -> None:
    polars = pytest.importorskip("polars")
    frame = connect(Script([arrow()])).query(measures=["a.b"], format="arrow").to_polars()
    assert frame.dtypes == [
        polars.Decimal(38, 2),
        polars.Int64,
        polars.Datetime("us", "UTC"),
        polars.Date,
        polars.String,
    ]
    assert frame["a.count"][0] == 2**62 + 1


@pytest.mark.parametrize("content", [b"", stream()[:-8], stream()[:40]])
def test_incomplete_streams_are_rejected(connect: Connect, content: bytes) -> None:
    with pytest.raises(ResponseError, match="incomplete"):
        connect(Script([arrow(content)])).query(measures=["a.b"], format="arrow")


def test_json_in_place_of_arrow_is_rejected(connect: Connect) -> None:
    with pytest.raises(ResponseError, match="Arrow"):
        connect(Script([rows()])).query(measures=["a.b"], format="arrow")


@pytest.mark.parametrize(("library", "extra"), [("pyarrow", "arrow"), ("pandas", "pandas"), ("polars", "polars")])
def test_missing_libraries_name_the_extra(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, library: str, extra: str
) -> None:
    load = importlib.import_module

    def import_module(name: str) -> Any:
        if name.partition(".")[0] == library:
            raise ImportError(name)
        return load(name)

    result = connect(Script([arrow()])).query(measures=["a.b"], format="arrow")
    monkeypatch.setattr("terrane.frames.importlib.import_module", import_module)
    with pytest.raises(MissingExtraError, match=rf"terrane\[{extra}\]"):
        {"arrow": result.to_arrow, "pandas": result.to_pandas, "polars": result.to_polars}[extra]()
