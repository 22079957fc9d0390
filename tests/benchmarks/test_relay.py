"""The relay hands on what comes, to whoever it is for."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest

from tests.support.servers import free_port

from .relay import HELD_BYTES, relayed


@pytest.fixture
def mirror() -> Iterator[str]:
    """A server that answers what it is sent, backwards, once the other side has ended."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:

        def answer(connection: socket.socket) -> None:
            with connection:
                connection.sendall(whole(connection)[::-1])

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                threading.Thread(target=answer, args=(connection,)).start()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)
    thread.join()


def whole(connection: socket.socket) -> bytes:
    """What comes until the other side ends."""
    parts = []
    while part := connection.recv(1 << 20):
        parts.append(part)
    return b"".join(parts)


def asked(url: str, content: bytes) -> bytes:
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        sender = threading.Thread(target=connection.sendall, args=(content,))
        sender.start()
        sender.join()
        connection.shutdown(socket.SHUT_WR)
        return whole(connection)


@pytest.mark.parametrize("delay_s", [0.0, 0.01])
def test_every_connection_gets_its_own_bytes_in_order(mirror: str, delay_s: float) -> None:
    sent = [bytes([number]) * 1000 + b"%d" % number * 100_000 for number in range(32)]
    with relayed(mirror, delay_s) as url, ThreadPoolExecutor(len(sent)) as threads:
        answers = list(threads.map(lambda content: asked(url, content), sent))
    assert answers == [content[::-1] for content in sent]


@pytest.mark.parametrize("delay_s", [0.0, 0.01])
def test_more_than_it_holds_goes_through(mirror: str, delay_s: float) -> None:
    sent = bytes(range(256)) * (HELD_BYTES // 64)
    with relayed(mirror, delay_s) as url:
        assert asked(url, sent) == sent[::-1]


def test_a_server_that_is_not_there_is_a_closed_connection() -> None:
    with relayed(f"http://127.0.0.1:{free_port()}") as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
            assert connection.recv(1) == b""
