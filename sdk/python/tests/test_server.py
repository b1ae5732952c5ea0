"""Tests against a real server that serves `examples/flights`, with a key of the scope `read`.

Counts are facts of the data: 336,776 flights of 2013, of which 120,835 left EWR, 111,279 JFK and 104,662 LGA.
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Connect

import terrane
from terrane import Client, Cube, Filter, Member, Query, TerraneError

ALL, EWR, JFK, LGA = 336_776, 120_835, 111_279, 104_662


@pytest.fixture
def flights(server: Client) -> Cube:
    return server.cube("flights")


def count(server: Client, *filters: Filter) -> int:
    rows = server.query(Query().agg("flights.count").filter(*filters)).rows
    return int(rows[0]["flights.count"]) if rows else 0


def test_builder_returns_rows_and_facts(server: Client, flights: Cube) -> None:
    query = flights.group_by(flights.origin).agg(flights.count).order_by(flights.count.desc()).limit(2)
    result = server.query(query)
    assert result.rows == [
        {"flights.origin": "EWR", "flights.count": EWR},
        {"flights.origin": "JFK", "flights.count": JFK},
    ]
    assert (result.meta.total_rows, result.meta.returned_rows, result.meta.truncated) == (3, 2, True)
    assert result.sql is not None
    assert "GROUP BY" in result.sql


origin, date, delay, hour = (
    Member(f"flights.{name}") for name in ("origin", "flight_date", "departure_delay", "departure_hour")
)


@pytest.mark.parametrize(
    ("kept", "left_out"),
    [
        (origin == "JFK", origin != "JFK"),
        (origin.is_in(["JFK", "LGA"]), origin.not_in(["JFK", "LGA"])),
        (origin.contains("F"), origin.not_contains("F")),
        (origin.starts_with("J"), ~origin.starts_with("J")),
        (origin.ends_with("A"), ~origin.ends_with("A")),
        (hour > 12, hour <= 12),
        (hour >= 12, hour < 12),
        (hour.between(6, 9), (hour < 6) | (hour > 9)),
        (delay.is_set(), delay.is_not_set()),
        (delay != None, delay == None),  # noqa: E711 - comparisons of the query
        (date.between("2013-01-01", "2013-02-01"), ~date.between("2013-01-01", "2013-02-01")),
        (date.in_range("2013-Q1"), date.not_in_range("2013-Q1")),
        (date.in_range("2013-02", datetime.date(2013, 3, 5)), date.not_in_range("2013-02", "2013-03-05")),
        (date.before("2013-03"), date >= "2013-03"),
        (date.after(datetime.date(2013, 3, 1)), date <= datetime.date(2013, 3, 1)),
        (date.month == "2013-02", date.month != "2013-02"),
        ((origin == "JFK") & (hour > 12), (origin != "JFK") | (hour <= 12)),
        (~((origin == "JFK") | (hour > 12)), (origin == "JFK") | (hour > 12)),
    ],
)
def test_each_operator_and_its_complement_cover_all_rows(server: Client, kept: Filter, left_out: Filter) -> None:
    counts = count(server, kept), count(server, left_out)
    assert sum(counts) == ALL
    assert min(counts) > 0


def test_filters_are_right(server: Client) -> None:
    assert count(server, origin == "JFK") == JFK
    assert count(server, origin.is_in(["JFK", "LGA"])) == JFK + LGA
    assert count(server, date.month == "2013-02") == 24_951
    assert count(server, date.in_range("2013-03")) == 28_834


def test_filters_on_measures_filter_groups(server: Client, flights: Cube) -> None:
    query = flights.group_by(flights.origin).agg(flights.count).filter(flights.count > 110_000)
    assert {row["flights.origin"] for row in server.query(query)} == {"EWR", "JFK"}


def test_segments_ranges_and_comparisons(server: Client, flights: Cube) -> None:
    delayed = server.query(flights.agg(flights.count).segment(flights.delayed)).rows[0]["flights.count"]
    assert delayed == count(server, delay > 15)
    query = flights.agg(flights.count).time_range(
        "2013-03-01", "2013-03-31", dimension=flights.flight_date, granularity="month"
    )
    assert server.query(query.compare(shift="1 month")).rows == [
        {"flights.flight_date.month": "2013-03", "flights.count": 28_834, "flights.count.previous": 24_951}
    ]
    words = flights.agg(flights.count).time_range("2013-Q1", dimension=flights.flight_date, granularity="month")
    assert [row["flights.flight_date.month"] for row in server.query(words)] == ["2013-01", "2013-02", "2013-03"]
    assert server.query(flights.agg(flights.count).time_range("last 7 days")).rows in ([{"flights.count": 0}], [])


def test_options_reach_the_server(server: Client, flights: Cube) -> None:
    query = flights.group_by(flights.origin).agg(flights.count).limit(1).options(totals=True, numbers="string")
    result = server.query(query)
    assert result.rows == [{"flights.origin": "EWR", "flights.count": str(EWR)}]
    assert result.meta.totals == {"flights.count": str(ALL)}
    assert server.query(query, numbers="number").rows[0]["flights.count"] == EWR


def test_frames_have_the_types_of_the_warehouse(server: Client, flights: Cube) -> None:
    pytest.importorskip("pyarrow")
    query = flights.group_by(flights.time_hour, flights.flight_date, flights.is_cancelled, flights.origin)
    result = server.query(query.agg(flights.count, flights.average_departure_delay).limit(5), format="arrow")
    assert [str(field.type) for field in result.to_arrow().schema] == [
        "timestamp[us, tz=UTC]",
        "date32[day]",
        "bool",
        "string",
        "int64",
        "double",
    ]
    assert result.meta.truncated is True
    assert isinstance(result.rows[0]["flights.time_hour"], datetime.datetime)


def test_all_formats_have_the_same_rows(server: Client, flights: Cube) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    query = flights.group_by(flights.origin, flights.flight_date.month).agg(flights.count, flights.punctuality)
    result = server.query(query)
    assert len(result.rows) == 36
    assert result.to_arrow().to_pylist() == result.rows
    assert result.to_pandas().to_dict("records") == result.rows
    assert result.to_polars().to_dicts() == result.rows
    assert server.query(query, format="arrow").rows == result.rows


def test_large_arrow_streams_are_complete(server: Client, flights: Cube) -> None:
    pytest.importorskip("polars")
    query = flights.group_by(flights.flight_date, flights.carrier, flights.flight_number, flights.origin)
    frame = server.query(query.agg(flights.count).limit(400_000), format="arrow").to_polars()
    assert frame.height > 300_000
    assert frame["flights.count"].sum() == ALL


def test_jobs_have_results(server: Client, flights: Cube) -> None:
    query = flights.group_by(flights.flight_date, flights.carrier, flights.origin).agg(flights.count).limit(20_000)
    job = server.submit(query)
    result = job.result(60)
    assert job.status == "complete"
    assert len(result.rows) == job.state.row_count
    assert len(result.rows) > 10_000
    assert sum(row["flights.count"] for row in result) == ALL
    assert server.job(job.id).status == "complete"
    assert job.id in [listed.id for listed in server.jobs()]
    assert job.cancel().status == "expired"
    with pytest.raises(terrane.GoneError):
        job.result()


def test_job_results_are_frames(server: Client) -> None:
    pytest.importorskip("pyarrow")
    job = server.submit(measures=["flights.count"], dimensions=["flights.origin"])
    assert job.result(60).to_arrow().num_rows == 3
    assert job.result(60, format="arrow").to_arrow().column_names == ["flights.origin", "flights.count"]


def test_metadata_lists_members(server: Client, flights: Cube) -> None:
    assert {"flights", "airlines", "origin_airport"} <= {cube.meta.name for cube in server.cubes()}
    assert "flights.count" in {measure.ref for measure in server.measures()}
    assert "flights.origin" in {dimension.ref for dimension in server.dimensions()}
    assert "on_time_rate" in {metric.ref for metric in server.metrics()}
    assert flights.flight_date.granularities == ("day", "week", "month", "quarter", "year")
    role = server.cube("origin_airport")
    assert server.query(flights.group_by(role.name).agg("on_time_rate").limit(1)).rows[0].keys() == {
        "origin_airport.name",
        "on_time_rate",
    }


def test_sql_explain_search_ask_and_health(server: Client) -> None:
    assert server.sql(measures=["flights.count"]).sql.startswith("SELECT")
    assert server.sql(Query().agg("flights.count").filter(origin == "JFK"), inline=True).params == ()
    assert server.sql(Query().agg("flights.count").filter(origin == "JFK")).params == ("JFK",)
    assert server.explain(measures=["flights.count"]).plan
    assert {hit.type for hit in server.search("average delay", types=["measure"], limit=5)} == {"measure"}
    meaning = server.ask("top 3 carriers by flights in 2013-02")
    assert len(server.query(meaning.query).rows) == 3
    assert server.health().status == "healthy"


def test_unclear_questions_have_no_query(server: Client) -> None:
    meaning = server.ask("top 5 frobnicators")
    assert meaning.query is None
    assert meaning.clarifications[0]["text"] == "frobnicators"


BAD: list[tuple[Callable[[Client], Any], type[TerraneError], str]] = [
    (lambda c: c.query(measures=["flights.cuont"]), terrane.InvalidMeasureError, "flights.count"),
    (lambda c: c.query(dimensions=["flights.orgin"]), terrane.InvalidDimensionError, "flights.origin"),
    (lambda c: c.query(metrics=["on_time_rat"]), terrane.InvalidQueryError, "on_time_rate"),
    (lambda c: c.query(measures=["a"], segments=["flights.delaid"]), terrane.InvalidQueryError, ""),
    (lambda c: c.query({"mesures": []}), terrane.InvalidQueryError, "measures"),
    (lambda c: c.query(cube="fligts", measures=["count"]), terrane.InvalidQueryError, "flights"),
    (lambda c: c.query(), terrane.InvalidQueryError, ""),
    (lambda c: c.query(measures=["flights.count"], limit=-1), terrane.InvalidQueryError, ""),
    (lambda c: c.query(measures=["flights.count"], limit=10**9), terrane.InvalidQueryError, ""),
    (lambda c: c.query(measures=["flights.count"], timezone="Mars/Base"), terrane.InvalidQueryError, ""),
    (lambda c: c.query(measures=["planes.count"], dimensions=["airlines.name"]), terrane.NoJoinPathError, ""),
    (lambda c: c.query(Query().agg("flights.count").filter(origin > "F")), terrane.InvalidFilterError, ""),
    (lambda c: c.query(Query().agg("flights.count").filter(hour == "noon")), terrane.InvalidFilterError, ""),
    (lambda c: c.query(measures=["flights.cuont"], format="arrow"), terrane.InvalidMeasureError, "flights.count"),
    (lambda c: c.submit(measures=["flights.cuont"]), terrane.InvalidMeasureError, "flights.count"),
    (lambda c: c.sql(measures=["flights.cuont"]), terrane.InvalidMeasureError, "flights.count"),
    (lambda c: c.cube("fligts"), terrane.NotFoundError, "flights"),
    (lambda c: c.cube(".."), terrane.NotFoundError, ""),
    (lambda c: c.cube("ü/?#"), terrane.NotFoundError, ""),
    (lambda c: c.job("0" * 32), terrane.NotFoundError, ""),
    (lambda c: c.search("delay", type=["measure"]), terrane.InvalidQueryError, ""),  # type: ignore[call-arg]
    (lambda c: c.search("x" * 301), terrane.InvalidQueryError, ""),
    (lambda c: c.ask("x" * 501), terrane.InvalidQueryError, ""),
    (lambda c: c.query(dimensions=["x" * 300_000]), terrane.PayloadTooLargeError, ""),
]


@pytest.mark.parametrize(("call", "cls", "nearest"), BAD)
def test_wrong_input_has_the_exception_of_its_code(
    server: Client, call: Callable[[Client], Any], cls: type[TerraneError], nearest: str
) -> None:
    with pytest.raises(cls) as caught:
        call(server)
    assert type(caught.value) is cls
    assert caught.value.correlation_id
    assert (caught.value.nearest or ("",))[0] == nearest or not nearest


def test_unknown_keys_are_unauthorized(open_client: Connect, server_url: str) -> None:
    key = "trn_0000000000000000_wrong"
    with pytest.raises(terrane.UnauthorizedError) as caught:
        open_client(server_url, api_key=key).query(measures=["flights.count"])
    assert key not in str(caught.value)


def test_expired_access_tokens_are_renewed(open_client: Connect, server_url: str, login: dict[str, str]) -> None:
    """Use a server with a short `security.jwt.access_token_expiry` to see the renewal."""
    client = open_client(server_url, **login)
    for _ in range(3):
        assert client.query(measures=["flights.count"]).rows == [{"flights.count": ALL}]
        time.sleep(1.1)


def test_wrong_passwords_are_unauthorized(open_client: Connect, server_url: str, login: dict[str, str]) -> None:
    client = open_client(server_url, username=login["username"], password="not the password")
    with pytest.raises((terrane.UnauthorizedError, terrane.RateLimitedError)):
        client.query(measures=["flights.count"])
