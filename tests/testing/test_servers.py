"""What the servers of tests stand on."""

from __future__ import annotations

import socket
from contextlib import closing

import pytest

from tests.support.object_store import S3Server
from tests.support.servers import free_port


def test_a_port_is_given_nobody_else_before_its_server_listens() -> None:
    chosen = [free_port() for _ in range(300)]
    assert len(set(chosen)) == len(chosen)
    for _ in range(20_000):  # more than there are ports
        with closing(socket.socket()) as another:
            another.bind(("127.0.0.1", 0))
            assert another.getsockname()[1] not in chosen


def test_its_server_may_listen_on_it() -> None:
    with (
        closing(socket.create_server(("127.0.0.1", free_port()))) as server,
        closing(socket.create_connection(server.getsockname())),
    ):
        server.accept()[0].close()


def test_a_store_that_cannot_listen_says_why_it_does_not_start() -> None:
    server = S3Server()
    with (
        closing(socket.create_server(("127.0.0.1", server.port))),
        pytest.raises(RuntimeError, match=r"(?s)did not start.*in use"),
    ):
        server.start()
