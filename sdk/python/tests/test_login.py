"""Sign-in with a password: one renewal of the tokens at a time, and a limited number of renewals."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from typing import Any

import httpx
import pytest
from answers import ROWS, Script, error, rows, tokens
from conftest import URL, Connect, FakeClock

from terrane import AsyncClient, Client, ConnectionFailedError, TokenExpiredError, UnauthorizedError

USER: dict[str, Any] = {"username": "ada", "password": "correct horse battery"}
TOKEN, REFRESH, QUERY = "/api/v1/auth/token", "/api/v1/auth/refresh", "/api/v1/query"


def bearers(script: Script) -> list[str | None]:
    return [request.headers.get("authorization") for request in script.requests]


def test_one_sign_in_serves_many_requests(connect: Connect) -> None:
    script = Script([tokens(1), rows(), rows()])
    client = connect(script, **USER)
    client.query(measures=["a.b"])
    client.query(measures=["a.b"])
    assert script.paths == [TOKEN, QUERY, QUERY]
    assert bearers(script) == [None, "Bearer access-1", "Bearer access-1"]


def test_token_is_refreshed_before_it_expires(connect: Connect, clock: FakeClock) -> None:
    script = Script([tokens(1, 100), rows(), tokens(2, 100), rows()])
    client = connect(script, **USER)
    client.query(measures=["a.b"])
    clock.now += 71
    client.query(measures=["a.b"])
    assert script.paths == [TOKEN, QUERY, REFRESH, QUERY]
    assert b"refresh-1" in script.requests[2].content
    assert bearers(script)[3] == "Bearer access-2"


def test_refused_token_is_refreshed_once(connect: Connect) -> None:
    script = Script([tokens(1), error(401, "TOKEN_EXPIRED"), tokens(2), rows()])
    assert connect(script, **USER).query(measures=["a.b"]).rows == ROWS
    assert script.paths == [TOKEN, QUERY, REFRESH, QUERY]


def test_second_refusal_is_raised(connect: Connect) -> None:
    script = Script([tokens(1), error(401, "TOKEN_EXPIRED"), tokens(2), error(401, "TOKEN_EXPIRED")])
    with pytest.raises(TokenExpiredError):
        connect(script, **USER).query(measures=["a.b"])
    assert len(script.requests) == 4


def test_ended_session_is_followed_by_a_new_sign_in(connect: Connect) -> None:
    script = Script([tokens(1), error(401, "INVALID_TOKEN"), error(401, "UNAUTHORIZED"), tokens(2), rows()])
    assert connect(script, **USER).query(measures=["a.b"]).rows == ROWS
    assert script.paths == [TOKEN, QUERY, REFRESH, TOKEN, QUERY]


def test_wrong_password_is_raised_once(connect: Connect) -> None:
    script = Script([error(401, "UNAUTHORIZED")])
    with pytest.raises(UnauthorizedError) as caught:
        connect(script, **USER).query(measures=["a.b"])
    assert script.paths == [TOKEN]
    assert USER["password"] not in repr(caught.value.__dict__)


def test_refresh_is_never_repeated_and_the_next_request_signs_in(connect: Connect, clock: FakeClock) -> None:
    script = Script([tokens(1), error(401, "TOKEN_EXPIRED"), httpx.ReadError("x"), tokens(2), rows()])
    client = connect(script, **USER)
    with pytest.raises(ConnectionFailedError):
        client.query(measures=["a.b"])
    assert clock.sleeps == []
    assert client.query(measures=["a.b"]).rows == ROWS
    assert script.paths == [TOKEN, QUERY, REFRESH, TOKEN, QUERY]


def test_refused_api_key_is_not_renewed(connect: Connect) -> None:
    script = Script([error(401, "UNAUTHORIZED")])
    with pytest.raises(UnauthorizedError):
        connect(script, api_key="k").query(measures=["a.b"])
    assert bearers(script) == ["Bearer k"]


def test_health_needs_no_sign_in(connect: Connect) -> None:
    script = Script([httpx.Response(200, json={"status": "healthy", "version": "1", "uptime_seconds": 1})])
    assert connect(script, **USER).health().status == "healthy"
    assert bearers(script) == [None]


CALLERS = 16


def _answer(request: httpx.Request, counts: Counter[str]) -> httpx.Response:
    """Refuse the first access token, and accept a refresh token once."""
    counts[request.url.path] += 1
    if request.url.path == TOKEN:
        return tokens(1)
    if request.url.path == REFRESH:
        return tokens(2) if counts[REFRESH] == 1 else error(401, "INVALID_TOKEN")
    return rows() if request.headers["authorization"] == "Bearer access-2" else error(401, "TOKEN_EXPIRED")


def test_threads_share_one_refresh() -> None:
    counts: Counter[str] = Counter()
    all_refused = threading.Barrier(CALLERS, timeout=5)

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers.get("authorization") == "Bearer access-1":
            all_refused.wait()
        if request.url.path != QUERY:
            threading.Event().wait(0.05)  # time for other threads to renew as well, if nothing stops them
        return _answer(request, counts)

    with Client(URL, transport=httpx.MockTransport(answer), **USER) as client:
        threads = [threading.Thread(target=client.query, kwargs={"measures": ["a.b"]}) for _ in range(CALLERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert counts == {TOKEN: 1, REFRESH: 1, QUERY: 2 * CALLERS}


def test_tasks_share_one_refresh() -> None:
    counts: Counter[str] = Counter()

    async def main() -> None:
        all_refused, waiting = asyncio.Event(), []

        async def answer(request: httpx.Request) -> httpx.Response:
            if request.headers.get("authorization") == "Bearer access-1":
                waiting.append(request)
                if len(waiting) == CALLERS:
                    all_refused.set()
                await asyncio.wait_for(all_refused.wait(), 5)
            await asyncio.sleep(0)
            return _answer(request, counts)

        async with AsyncClient(URL, transport=httpx.MockTransport(answer), **USER) as client:
            await asyncio.gather(*(client.query(measures=["a.b"]) for _ in range(CALLERS)))

    asyncio.run(main())
    assert counts == {TOKEN: 1, REFRESH: 1, QUERY: 2 * CALLERS}
