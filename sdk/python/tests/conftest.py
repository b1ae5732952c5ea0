"""Fixtures: every test with a client runs against the synchronous and the asynchronous one."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from typing import Any, cast

import httpx
import pytest

from terrane import AsyncClient, AsyncJob, AsyncQueryResult, Client

URL = "http://terrane.test"
Handler = Callable[[httpx.Request], httpx.Response]
Connect = Callable[..., Client]


class Blocking:
    """An asynchronous object whose methods block."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        if not inspect.iscoroutinefunction(value):
            return value
        return lambda *args, **kwargs: self._wrap(self._loop.run_until_complete(value(*args, **kwargs)))

    def __repr__(self) -> str:
        return repr(self._target)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._target)

    def __len__(self) -> int:
        return len(self._target)

    def _wrap(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._wrap(item) for item in value]
        return Blocking(value, self._loop) if isinstance(value, (AsyncJob, AsyncQueryResult)) else value


class FakeClock:
    """A clock that only moves when a client sleeps."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.sleeps: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    async def async_sleep(self, seconds: float) -> None:
        self.sleep(seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    for module in ("session", "credentials", "api", "retry"):
        monkeypatch.setattr(f"terrane.{module}.time", fake)
    monkeypatch.setattr("terrane.client.sleep", fake.sleep)
    monkeypatch.setattr("terrane.async_client.sleep", fake.async_sleep)
    return fake


@pytest.fixture(params=["sync", "async"])
def open_client(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Return a function that opens a client of either kind; clients are closed after the test."""
    loop = asyncio.new_event_loop()
    opened: list[Any] = []

    def open_one(base_url: str = URL, **settings: Any) -> Client:
        client: Any = Client(base_url, **settings)
        if request.param == "async":
            client = Blocking(AsyncClient(base_url, **settings), loop)
        opened.append(client)
        return cast(Client, client)

    yield open_one
    for client in opened:
        client.close()
    loop.close()


@pytest.fixture
def connect(open_client: Connect) -> Connect:
    """Return a function that opens a client whose requests a handler answers."""

    def connect_to(handler: Handler, **settings: Any) -> Client:
        return open_client(transport=httpx.MockTransport(handler), **settings)

    return connect_to


@pytest.fixture
def server(open_client: Connect) -> Client:
    """Return a client of the real server that `TERRANE_URL` and `TERRANE_KEY` name."""
    return open_client(_variable("TERRANE_URL"), api_key=_variable("TERRANE_KEY"))


@pytest.fixture
def server_url() -> str:
    return _variable("TERRANE_URL")


@pytest.fixture
def login() -> dict[str, str]:
    """Return the name and the password of a user of the real server."""
    return {"username": _variable("TERRANE_USERNAME"), "password": _variable("TERRANE_PASSWORD")}


def _variable(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        pytest.skip(f"{name} is not set; the test needs a real server with examples/flights")
    return value
