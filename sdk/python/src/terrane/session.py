"""The exchange of requests and responses without I/O: retries, credentials and parsing.

An operation is a generator. It yields effects (send a request, sleep, hold the lock), and a client performs them and
sends the reply back. The two clients differ only in how they perform the three effects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import httpx

from terrane.errors import (
    ClientTimeoutError,
    ConnectionFailedError,
    ResponseError,
    TerraneError,
    UnauthorizedError,
    error_from_response,
)
from terrane.retry import RETRIED_STATUSES, RetryPolicy, retry_after_seconds

if TYPE_CHECKING:
    from terrane.credentials import Credentials

T = TypeVar("T")


@dataclass(frozen=True)
class Send:
    """The effect of sending a request; the reply is an `httpx.Response`."""

    method: str
    path: str
    json: Any = field(default=None, repr=False)
    params: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class Sleep:
    """The effect of waiting."""

    seconds: float


@dataclass(frozen=True)
class Locked:
    """The effect of running an operation under the lock of the client."""

    operation: Operation[Any]


Effect = Send | Sleep | Locked
Operation = Generator[Effect, Any, T]
FAILURES = (httpx.RequestError, TerraneError)


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request of the REST interface and the parser of its response."""

    method: str
    path: str
    parse: Callable[[httpx.Response], T]
    json: Any = field(default=None, repr=False)
    params: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    idempotent: bool = True
    authenticated: bool = True


class Session:
    """The credentials and the retry policy of a client."""

    def __init__(self, credentials: Credentials, retry: RetryPolicy) -> None:
        self.credentials = credentials
        self._retry = retry

    def perform(self, call: Call[T]) -> Operation[T]:
        """Send a request and return its parsed response. A refused token is renewed once."""
        refused = None
        while True:
            token = (yield from self.credentials.token(self, refused)) if call.authenticated else None
            response = yield from self._exchange(call, token)
            if response.is_success:
                return parse_response(call, response)
            error = error_from_response(response)
            renewable = isinstance(error, UnauthorizedError) and self.credentials.renewable and call.authenticated
            if not renewable or refused is not None:
                raise error
            refused = token

    def _exchange(self, call: Call[T], token: str | None) -> Operation[httpx.Response]:
        """Send a request, repeat it as the policy allows, and return the last response."""
        authorization = {"authorization": f"Bearer {token}"} if token is not None else {}
        send = Send(call.method, call.path, call.json, call.params, {**call.headers, **authorization})
        started = time.monotonic()
        attempt = 1
        while True:
            outcome: httpx.Response | TerraneError
            try:
                outcome = yield send
            except httpx.RequestError as error:
                outcome = _failure(error)
            retried = call.idempotent and _is_retried(outcome)
            wait = self._wait_seconds(outcome, attempt, time.monotonic() - started) if retried else None
            if wait is None:
                if isinstance(outcome, TerraneError):
                    raise outcome
                return outcome
            yield Sleep(wait)
            attempt += 1

    def _wait_seconds(self, outcome: httpx.Response | TerraneError, attempt: int, elapsed: float) -> float | None:
        """Return the seconds to wait before the next attempt, or None to give up."""
        retry_after = None if isinstance(outcome, TerraneError) else retry_after_seconds(outcome.headers)
        return self._retry.wait_seconds(attempt, elapsed, retry_after)


def parse_response(call: Call[T], response: httpx.Response) -> T:
    """Return the parsed response of a call, or raise `ResponseError` with the correlation id."""
    problem = "is not a response of the REST interface"
    try:
        return call.parse(response)
    except ResponseError as error:
        problem = f"cannot be read: {error.message}"
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    raise ResponseError(
        f"the response of {call.method} {call.path} {problem}",
        status=response.status_code,
        correlation_id=response.headers.get("x-correlation-id"),
    )


def _is_retried(outcome: httpx.Response | TerraneError) -> bool:
    if isinstance(outcome, TerraneError):
        return isinstance(outcome, ConnectionFailedError)
    return outcome.status_code in RETRIED_STATUSES


def _failure(error: httpx.RequestError) -> TerraneError:
    """Return the error of a failed exchange. It omits the request, which contains the credential.

    A timeout while connecting counts as a failed connection. Other timeouts are not retried: the server may still be
    working on the request.
    """
    reason = f"{type(error).__name__}: {error}".removesuffix(": ")
    if isinstance(error, (httpx.NetworkError, httpx.RemoteProtocolError, httpx.ProxyError, httpx.ConnectTimeout)):
        return ConnectionFailedError(f"the connection to the server failed ({reason})")
    if isinstance(error, httpx.TimeoutException):
        return ClientTimeoutError(f"the server did not respond in time ({reason})")
    return ResponseError(f"the request or its response is invalid ({reason})")
