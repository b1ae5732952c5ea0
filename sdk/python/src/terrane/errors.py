"""Exceptions by the error code of the server, and those of the client itself.

`error_from_response` is the only function that reads error bodies. No exception contains a request or a credential.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

import httpx

from terrane.retry import retry_after_seconds


class TerraneError(Exception):
    """The base of all errors of this package.

    `code` is the server's error code; errors of the client and of unknown cubes have None. `nearest` contains the
    names that the server offers for an unknown one, the nearest first.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        details: Mapping[str, Any] | None = None,
        nearest: Iterable[str] = (),
        correlation_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.details: dict[str, Any] = dict(details or {})
        self.nearest: tuple[str, ...] = tuple(nearest)
        self.correlation_id = correlation_id
        self.retry_after = retry_after

    def __str__(self) -> str:
        code = f"{self.code}: " if self.code else ""
        nearest = f" (nearest: {', '.join(self.nearest[:3])})" if self.nearest else ""
        return f"{code}{self.message}{nearest}"

    def __reduce__(self) -> tuple[Any, ...]:
        return (self.__class__, (self.message,), self.__dict__)


class ConnectionFailedError(TerraneError):
    """The server could not be reached, or closed the connection early."""


class ClientTimeoutError(TerraneError, TimeoutError):
    """The server did not respond within the timeout of the client."""


class ResponseError(TerraneError):
    """The response is incomplete, or is not a response of the REST interface, such as the page of a proxy."""


class MissingExtraError(TerraneError, ImportError):
    """An optional library is not installed; the message names the extra."""


class UnknownMemberError(TerraneError, AttributeError):
    """A cube has no member of this name, or a member does not offer this granularity."""


class JobTimeoutError(TerraneError, TimeoutError):
    """A job did not end within the timeout. It continues on the server."""


class JobCancelledError(TerraneError):
    """A job was cancelled and has no result."""


class InvalidQueryError(TerraneError):
    """The query is malformed or refers to an unknown name."""


class InvalidMeasureError(InvalidQueryError):
    """A measure is unknown."""


class InvalidDimensionError(InvalidQueryError):
    """A dimension or a segment is unknown."""


class InvalidFilterError(InvalidQueryError):
    """An operator or a value is invalid for the type of the member."""


class NoJoinPathError(InvalidQueryError):
    """A measure cannot be grouped or filtered by a member."""


class ValidationError(TerraneError):
    """The request is well-formed but was refused, for example because of a reused idempotency key."""


class UnauthorizedError(TerraneError):
    """A credential is missing or invalid."""


class TokenExpiredError(UnauthorizedError):
    """The access token has expired."""


class InvalidTokenError(UnauthorizedError):
    """The access token is invalid, or its session has ended."""


class ForbiddenError(TerraneError):
    """The caller lacks a scope, or a policy denies the request."""


class GuardrailExceededError(ForbiddenError):
    """The query exceeds a limit for a single query."""


class NotFoundError(TerraneError):
    """The cube, job or route does not exist."""


class ConflictError(TerraneError):
    """The state of the resource does not allow the request."""


class GoneError(TerraneError):
    """The result of a job has expired, was deleted, or is no longer accessible to the caller."""


class QueryTimeoutError(TerraneError):
    """The query took longer than the server allows; submit it as a job."""


class PayloadTooLargeError(TerraneError):
    """The request body is larger than the server allows."""


class RateLimitedError(TerraneError):
    """The caller sent too many requests; `retry_after` is the number of seconds to wait."""


class UnavailableError(TerraneError):
    """The server, its warehouse or its state database is overloaded or down."""


class ServerError(TerraneError):
    """The server has a fault."""


class WarehouseError(ServerError):
    """The warehouse refused the statement."""


_BY_CODE: dict[str, type[TerraneError]] = {
    "INVALID_QUERY": InvalidQueryError,
    "INVALID_MEASURE": InvalidMeasureError,
    "INVALID_DIMENSION": InvalidDimensionError,
    "INVALID_FILTER": InvalidFilterError,
    "NO_JOIN_PATH": NoJoinPathError,
    "VALIDATION_ERROR": ValidationError,
    "UNAUTHORIZED": UnauthorizedError,
    "TOKEN_EXPIRED": TokenExpiredError,
    "INVALID_TOKEN": InvalidTokenError,
    "FORBIDDEN": ForbiddenError,
    "GUARDRAIL_EXCEEDED": GuardrailExceededError,
    "NOT_FOUND": NotFoundError,
    "CONFLICT": ConflictError,
    "GONE": GoneError,
    "QUERY_TIMEOUT": QueryTimeoutError,
    "PAYLOAD_TOO_LARGE": PayloadTooLargeError,
    "RATE_LIMITED": RateLimitedError,
    "OVERLOADED": UnavailableError,
    "WAREHOUSE_UNAVAILABLE": UnavailableError,
    "STATE_UNAVAILABLE": UnavailableError,
    "RESULTS_UNAVAILABLE": UnavailableError,
    "WAREHOUSE_ERROR": WarehouseError,
}
_BY_STATUS: dict[int, type[TerraneError]] = {
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    413: PayloadTooLargeError,
    429: RateLimitedError,
    503: UnavailableError,
}
_COMMON_FIELDS = {"code", "message", "details", "correlation_id"}


def nearest_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that resemble a name, nearest first."""
    return difflib.get_close_matches(name, list(known), n=5, cutoff=0.5)


def error_class(code: str | None, status: int | None = None) -> type[TerraneError]:
    """Return the exception class for an error code, or for the HTTP status if the code is unknown."""
    if code in _BY_CODE:
        return _BY_CODE[code]
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return ServerError if status is not None and status >= 500 else TerraneError


def error_from_response(response: httpx.Response) -> TerraneError:
    """Return the exception for an unsuccessful response."""
    body = _json_object(response)
    error = body.get("error")
    if not isinstance(error, Mapping):
        return _error_without_code(response, body.get("detail"))
    code = str(error.get("code") or "") or None
    details = {name: value for name, value in error.items() if name not in _COMMON_FIELDS}
    if isinstance(error.get("details"), Mapping):
        details.update(error["details"])
    return error_class(code, response.status_code)(
        str(error.get("message", "")),
        code=code,
        status=response.status_code,
        details=details,
        nearest=_nearest(details),
        correlation_id=error.get("correlation_id") or response.headers.get("x-correlation-id"),
        retry_after=retry_after_seconds(response.headers),
    )


def _error_without_code(response: httpx.Response, detail: object) -> TerraneError:
    if isinstance(detail, str):
        cls, message = error_class(None, response.status_code), detail
    else:
        known = response.status_code in _BY_STATUS or response.status_code >= 500
        cls = error_class(None, response.status_code) if known else ResponseError
        message = f"the server returned status {response.status_code} without an error of the REST interface"
    return cls(
        message,
        status=response.status_code,
        correlation_id=response.headers.get("x-correlation-id"),
        retry_after=retry_after_seconds(response.headers),
    )


def _nearest(details: Mapping[str, Any]) -> list[str]:
    """Return the names that the server suggests. The lists `available_…` are sorted by similarity."""
    for name, value in details.items():
        if name.startswith("available_") and isinstance(value, list):
            return [str(item) for item in value]
    known, field = details.get("known_fields"), details.get("field")
    if isinstance(known, list) and isinstance(field, str):
        return nearest_names(field, [str(item) for item in known])
    return []


def _json_object(response: httpx.Response) -> Mapping[str, Any]:
    try:
        body = response.json()
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
