"""Retries: which failures are repeated, and how long a client waits."""

from __future__ import annotations

from email.utils import formatdate

import httpx
import pytest
from answers import ROWS, Script, error, rows
from conftest import Connect, FakeClock

from terrane import (
    ClientTimeoutError,
    ConnectionFailedError,
    RateLimitedError,
    RetryPolicy,
    TerraneError,
    UnavailableError,
)


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_in_seconds_is_obeyed(connect: Connect, clock: FakeClock, status: int) -> None:
    script = Script([error(status, "OVERLOADED", {"retry-after": "7"}), rows()])
    assert connect(script).query(measures=["flights.count"]).rows == ROWS
    assert clock.sleeps == [7.0]


def test_retry_after_as_a_date_is_obeyed(connect: Connect, clock: FakeClock) -> None:
    date = formatdate(clock.now + 12, usegmt=True)
    script = Script([error(429, "RATE_LIMITED", {"retry-after": date}), rows()])
    connect(script).query(measures=["flights.count"])
    assert clock.sleeps == [12.0]


@pytest.mark.parametrize("header", ["", "soon", "-5", "1e9", "Mon, 99 Foo", "\u0663".encode().decode("latin-1")])
def test_invalid_retry_after_is_ignored(connect: Connect, clock: FakeClock, header: str) -> None:
    script = Script([httpx.Response(503, headers=[(b"retry-after", header.encode("latin-1"))]), rows()])
    connect(script).query(measures=["flights.count"])
    assert len(clock.sleeps) == 1
    assert clock.sleeps[0] <= 0.25


def test_retry_after_beyond_the_longest_wait_is_raised_at_once(connect: Connect, clock: FakeClock) -> None:
    script = Script([error(429, "RATE_LIMITED", {"retry-after": "31"})])
    with pytest.raises(RateLimitedError) as caught:
        connect(script).query(measures=["flights.count"])
    assert caught.value.retry_after == 31
    assert clock.sleeps == []


def test_total_time_is_bounded(connect: Connect, clock: FakeClock) -> None:
    script = Script([error(503, "OVERLOADED", {"retry-after": "25"}) for _ in range(9)])
    with pytest.raises(UnavailableError):
        connect(script, retry=RetryPolicy(attempts=9)).query(measures=["flights.count"])
    assert clock.sleeps == [25.0, 25.0]


def test_attempts_are_bounded_and_backoff_doubles(
    connect: Connect, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrane.retry.random.uniform", lambda _low, high: high)
    script = Script([httpx.ConnectError("refused") for _ in range(9)])
    with pytest.raises(ConnectionFailedError):
        connect(script).query(measures=["flights.count"])
    assert len(script.requests) == 4
    assert clock.sleeps == [0.25, 0.5, 1.0]


@pytest.mark.parametrize(
    "failure",
    [httpx.ConnectError("x"), httpx.ConnectTimeout("x"), httpx.ReadError("x"), httpx.RemoteProtocolError("x")],
)
def test_failed_connections_are_repeated(connect: Connect, clock: FakeClock, failure: Exception) -> None:
    assert connect(Script([failure, rows()])).query(measures=["flights.count"]).rows == ROWS
    assert len(clock.sleeps) == 1


@pytest.mark.parametrize("failure", [httpx.ReadTimeout("x"), httpx.PoolTimeout("x"), httpx.WriteTimeout("x")])
def test_timeouts_are_not_repeated(connect: Connect, clock: FakeClock, failure: Exception) -> None:
    script = Script([failure])
    with pytest.raises(ClientTimeoutError):
        connect(script).query(measures=["flights.count"])
    assert clock.sleeps == []


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 410, 413, 415, 422, 500, 502, 504])
def test_other_statuses_are_not_repeated(connect: Connect, clock: FakeClock, status: int) -> None:
    script = Script([error(status, "X", {"retry-after": "1"})])
    with pytest.raises(TerraneError):
        connect(script, api_key="k").query(measures=["flights.count"])
    assert clock.sleeps == []


def test_repeated_submission_has_the_same_idempotency_key(connect: Connect, clock: FakeClock) -> None:
    job = {"job_id": "j", "status": "pending", "created_at": "2026-01-01T00:00:00Z", "progress": None}
    script = Script([httpx.ReadError("x"), httpx.Response(202, json=job)])
    assert connect(script).submit(measures=["flights.count"]).id == "j"
    keys = [request.headers["idempotency-key"] for request in script.requests]
    assert keys[0] == keys[1]
    assert len(clock.sleeps) == 1


@pytest.mark.parametrize("limits", [{"attempts": 0}, {"total_seconds": -1}, {"backoff_seconds": -0.1}])
def test_invalid_policies_are_rejected(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        RetryPolicy(**limits)  # type: ignore[arg-type]
