"""The clients themselves: equal interfaces, settings, credentials and requests."""

from __future__ import annotations

import inspect
import json
from typing import Any

import httpx
import pytest
from answers import Script, rows
from conftest import URL, Connect

from terrane import (
    AsyncClient,
    AsyncJob,
    AsyncQueryResult,
    Client,
    Job,
    NotFoundError,
    Query,
    QueryResult,
    ResponseError,
)


@pytest.mark.parametrize(("sync", "other"), [(Client, AsyncClient), (Job, AsyncJob), (QueryResult, AsyncQueryResult)])
def test_both_clients_have_the_same_methods(sync: type, other: type) -> None:
    def methods(cls: type) -> dict[str, list[str]]:
        public = {name: value for name, value in vars(cls).items() if inspect.isfunction(value) and name[0] != "_"}
        return {name: list(inspect.signature(value).parameters) for name, value in public.items()}

    assert methods(sync) == methods(other)
    assert all(inspect.iscoroutinefunction(getattr(other, name)) for name in methods(other))


@pytest.mark.parametrize(
    "settings",
    [
        {"api_key": "a", "token": "b"},
        {"api_key": "a", "username": "u", "password": "p"},
        {"username": "u"},
        {"password": "p"},
        {"api_key": ""},
        {"api_key": "a\nb"},
        {"token": "with space"},
        {"api_key": "schlüssel"},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"max_connections": 0},
    ],
)
def test_invalid_settings_are_rejected(open_client: Connect, settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"expected|positive|together"):
        open_client(**settings)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "terrane.test",
        "ftp://terrane.test",
        "http://",
        "http://u:secret@terrane.test",
        "http://t.test?api_key=secret",
    ],
)
def test_invalid_addresses_are_rejected(open_client: Connect, url: str) -> None:
    with pytest.raises(ValueError, match="base_url") as caught:
        open_client(url)
    assert "secret" not in str(caught.value)


def test_path_of_the_address_is_kept(connect: Connect) -> None:
    script = Script([rows()])
    connect(script, base_url=f"{URL}/semantic/").query(measures=["a.b"])
    assert script.paths == ["/semantic/api/v1/query"]


def test_names_are_quoted_in_paths(connect: Connect) -> None:
    script = Script([httpx.Response(404), httpx.Response(200, json={"cubes": []})])
    with pytest.raises(NotFoundError):
        connect(script).cube("../a?b#c/d")
    assert script.requests[0].url.raw_path == b"/api/v1/query/meta/cubes/..%2Fa%3Fb%23c%2Fd"


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        (Query().agg("a.b").limit(1), {}),
        ({"measures": ["a.b"], "limit": 1}, {}),
        (None, {"measures": ["a.b"], "limit": 1}),
        (Query().agg("a.b").limit(9), {"limit": 1}),
    ],
)
def test_queries_are_builders_mappings_or_keywords(connect: Connect, query: Any, fields: dict[str, Any]) -> None:
    script = Script([rows()])
    connect(script).query(query, **fields)
    assert json.loads(script.requests[0].content) == {"measures": ["a.b"], "limit": 1}


def test_other_queries_are_type_errors(connect: Connect) -> None:
    for query in ("SELECT 1", 5, ["a.b"]):
        with pytest.raises(TypeError):
            connect(Script([])).query(query)  # type: ignore[arg-type]


def test_unknown_formats_are_rejected(connect: Connect) -> None:
    with pytest.raises(ValueError, match="format"):
        connect(Script([])).query(measures=["a.b"], format="csv")  # type: ignore[arg-type]


def test_redirects_are_not_followed_with_a_credential(connect: Connect) -> None:
    script = Script([httpx.Response(302, headers={"location": "http://elsewhere.test/"})])
    with pytest.raises(ResponseError, match="302"):
        connect(script, api_key="k").query(measures=["a.b"])
    assert len(script.requests) == 1


def test_representations_have_no_secrets(open_client: Connect) -> None:
    client = open_client(username="ada", password="hush-hush")
    assert "hush" not in repr(client)
    assert "ada" not in repr(client)


def test_clients_are_context_managers() -> None:
    with Client(URL, transport=httpx.MockTransport(Script([rows()]))) as client:
        client.query(measures=["a.b"])
    with pytest.raises(RuntimeError):
        client.query(measures=["a.b"])
