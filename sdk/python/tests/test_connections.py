"""Failures of real connections on the loopback interface."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from conftest import Connect

from terrane import ClientTimeoutError, ConnectionFailedError, RetryPolicy

FAST = RetryPolicy(attempts=3, backoff_seconds=0.01)
HALF_A_BODY = b'HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{"dat'
WHOLE = b'{"data": [], "meta": {}}'
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(WHOLE), WHOLE)

Listen = Callable[[list[bytes]], str]


@pytest.fixture
def listen() -> Iterator[Listen]:
    """Return a function that opens a server, which gives one answer per connection and closes it."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def serve(answers: list[bytes]) -> None:
        for answer in answers:
            connection, _ = listener.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

    def start(answers: list[bytes]) -> str:
        threads.append(threading.Thread(target=serve, args=(answers,), daemon=True))
        threads[-1].start()
        return f"http://127.0.0.1:{listener.getsockname()[1]}"

    yield start
    for thread in threads:
        thread.join(5)
    listener.close()


def test_closed_ports_are_failed_connections(open_client: Connect) -> None:
    with pytest.raises(ConnectionFailedError):
        open_client("http://127.0.0.1:1", retry=FAST).query(measures=["a.b"])


def test_answers_that_end_early_are_repeated(open_client: Connect, listen: Listen) -> None:
    client = open_client(listen([HALF_A_BODY, b"", ANSWER]), retry=FAST)
    assert client.query(measures=["a.b"]).rows == []


def test_answers_that_always_end_early_are_failed_connections(open_client: Connect, listen: Listen) -> None:
    with pytest.raises(ConnectionFailedError):
        open_client(listen([HALF_A_BODY] * 3), retry=FAST).query(measures=["a.b"])


def test_servers_that_never_answer_are_client_timeouts(open_client: Connect, listen: Listen) -> None:
    client = open_client(listen([]), timeout=0.05)
    with pytest.raises(ClientTimeoutError) as caught:
        client.query(measures=["a.b"])
    assert isinstance(caught.value, TimeoutError)
