"""Exceptions of error responses, and what they must not contain."""

from __future__ import annotations

import pickle
import traceback
from typing import Any

import httpx
import pytest
from answers import Script, error
from conftest import Connect, FakeClock

import terrane
from terrane import ConnectionFailedError, NotFoundError, ResponseError, ServerError, TerraneError
from terrane.errors import error_class, error_from_response

SECRET = "trn_0123_secret"


@pytest.mark.parametrize(
    ("status", "code", "cls"),
    [
        (400, "INVALID_QUERY", terrane.InvalidQueryError),
        (400, "INVALID_MEASURE", terrane.InvalidMeasureError),
        (400, "INVALID_DIMENSION", terrane.InvalidDimensionError),
        (400, "INVALID_FILTER", terrane.InvalidFilterError),
        (400, "NO_JOIN_PATH", terrane.NoJoinPathError),
        (401, "UNAUTHORIZED", terrane.UnauthorizedError),
        (401, "TOKEN_EXPIRED", terrane.TokenExpiredError),
        (401, "INVALID_TOKEN", terrane.InvalidTokenError),
        (403, "FORBIDDEN", terrane.ForbiddenError),
        (403, "GUARDRAIL_EXCEEDED", terrane.GuardrailExceededError),
        (404, "NOT_FOUND", terrane.NotFoundError),
        (408, "QUERY_TIMEOUT", terrane.QueryTimeoutError),
        (409, "CONFLICT", terrane.ConflictError),
        (410, "GONE", terrane.GoneError),
        (413, "PAYLOAD_TOO_LARGE", terrane.PayloadTooLargeError),
        (422, "VALIDATION_ERROR", terrane.ValidationError),
        (429, "RATE_LIMITED", terrane.RateLimitedError),
        (502, "WAREHOUSE_ERROR", terrane.WarehouseError),
        (503, "OVERLOADED", terrane.UnavailableError),
        (503, "STATE_UNAVAILABLE", terrane.UnavailableError),
        (500, "A_CODE_OF_A_LATER_VERSION", terrane.ServerError),
        (403, "A_CODE_OF_A_LATER_VERSION", terrane.ForbiddenError),
        (418, "A_CODE_OF_A_LATER_VERSION", terrane.TerraneError),
    ],
)
def test_codes_have_exceptions(status: int, code: str, cls: type[TerraneError]) -> None:
    found = error_from_response(error(status, code))
    assert type(found) is cls
    assert (found.code, found.status, found.correlation_id) == (code, status, "c1")


def test_offered_names_and_details_are_attributes() -> None:
    found = error_from_response(
        error(400, "INVALID_MEASURE", available_measures=["a.count", "a.counts"], details={"field": "measures"})
    )
    assert found.nearest == ("a.count", "a.counts")
    assert found.details == {"available_measures": ["a.count", "a.counts"], "field": "measures"}
    assert str(found) == "INVALID_MEASURE: it failed (nearest: a.count, a.counts)"


def test_unknown_field_has_the_nearest_known_ones() -> None:
    details = {"field": "mesures", "known_fields": ["metrics", "measures", "limit"]}
    assert error_from_response(error(400, "INVALID_QUERY", details=details)).nearest[0] == "measures"


def test_detail_form_is_read() -> None:
    found = error_from_response(httpx.Response(404, json={"detail": "cube `x` not found"}))
    assert type(found) is NotFoundError
    assert found.message == "cube `x` not found"


@pytest.mark.parametrize("body", [b"<html>Bad gateway</html>", b"", b"[]", b"null", b'{"error": "text"}', b"\xff\xfe"])
def test_bodies_of_proxies_are_errors_by_status(body: bytes) -> None:
    headers = {"x-correlation-id": "c2"}
    assert type(error_from_response(httpx.Response(502, content=body))) is ServerError
    found = error_from_response(httpx.Response(302, content=body, headers=headers))
    assert type(found) is ResponseError
    assert found.correlation_id == "c2"


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"null", b"{}", b'{"data": 1, "meta": {}}', b'{"data": []}'])
def test_successes_of_another_form_are_response_errors(connect: Connect, body: bytes) -> None:
    script = Script([httpx.Response(200, content=body, headers={"x-correlation-id": "c3"})])
    with pytest.raises(ResponseError) as caught:
        connect(script).query(measures=["a.b"])
    assert (caught.value.status, caught.value.correlation_id) == (200, "c3")


def test_unknown_cube_has_the_nearest_names(connect: Connect) -> None:
    cube: dict[str, Any] = {
        "name": "flights",
        "title": "",
        "description": None,
        "measures": [],
        "dimensions": [],
        "segments": [],
    }
    listed = httpx.Response(200, json={"cubes": [{**cube, "joins": []}]})
    script = Script([httpx.Response(404, json={"detail": "cube `fligts` not found"}), listed])
    with pytest.raises(NotFoundError) as caught:
        connect(script).cube("fligts")
    assert caught.value.nearest == ("flights",)


def test_errors_survive_pickling() -> None:
    found = pickle.loads(pickle.dumps(error_from_response(error(429, "RATE_LIMITED", {"retry-after": "3"}))))  # noqa: S301
    assert type(found) is terrane.RateLimitedError
    assert (found.code, found.retry_after) == ("RATE_LIMITED", 3.0)


@pytest.mark.parametrize("failure", [httpx.ConnectError("refused"), error(401, "UNAUTHORIZED")])
def test_credentials_are_in_no_exception(
    connect: Connect, clock: FakeClock, failure: httpx.Response | Exception
) -> None:
    client = connect(Script([failure] * 4), api_key=SECRET)
    with pytest.raises(TerraneError) as caught:
        client.query(measures=["a.b"])
    found: BaseException | None = caught.value
    assert found is not None
    assert found.__context__ is None
    assert found.__cause__ is None
    text = "".join(traceback.format_exception(found)) + repr(found.__dict__)
    assert SECRET not in text + repr(client)
    assert "request" not in found.__dict__
    assert clock.sleeps == clock.sleeps[:3]


def test_failed_job_has_the_exception_of_its_code() -> None:
    assert error_class("QUERY_TIMEOUT") is terrane.QueryTimeoutError
    assert error_class("INTERRUPTED") is TerraneError
    assert issubclass(ConnectionFailedError, TerraneError)
