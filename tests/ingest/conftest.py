"""What the producer's tests share: a hot tier, producers that are closed, and a faulty network."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lakelog.hot import HotLog, TopicRegistry
from lakelog.ingest.producer import Producer, ProducerConfig
from lakelog.values.record import Record, to_records
from lakelog.values.topic_partition import TopicPartition


class Tier:
    """A hot tier, and what tests ask of it."""

    def __init__(self, url: str) -> None:
        self.hot = HotLog.connect(url)
        self.topics: TopicRegistry = self.hot.topics()

    def records(self, topic: str, partition: int = 0) -> list[Record]:
        """All records of a partition, gaps skipped."""
        tp = TopicPartition(topic, partition)
        start = self.hot.offsets([tp])[tp].local_log_start
        return [r for step in self.hot.read(tp, start) for r in to_records(tp, step.records)]

    def values(self, topic: str, partition: int = 0) -> list[bytes | None]:
        return [record.value for record in self.records(topic, partition)]


class FaultyNetwork:
    """A TCP proxy in front of a server, which a test makes misbehave.

    ``plan`` is asked at each piece of data that carries a script call to the server: ``pass``;
    ``lose`` (close before it arrives); ``cut`` (half of it arrives); ``mute`` (it arrives, but the
    connection breaks when the answer comes).
    """

    def __init__(self, server_port: int) -> None:
        self.plan: Callable[[], str] = lambda: "pass"
        self.server_port = server_port  # where connections lead that are opened from now on
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.muted = threading.Event()  # set at the first answer that was swallowed
        self._is_down = False
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def take_down(self) -> None:
        """From here on nobody gets through, until `bring_up`."""
        self._is_down = True
        for one in tuple(self._sockets):
            _close(one)

    def bring_up(self) -> None:
        self._is_down = False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            _close(one)
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self._is_down:
                _close(client)
                continue
            try:
                server = socket.create_connection(("127.0.0.1", self.server_port))
            except OSError:
                _close(client)
                continue
            self._sockets += (client, server)
            is_muted = threading.Event()
            for target in (self._to_server, self._to_client):
                thread = threading.Thread(target=target, args=(client, server, is_muted))
                self._threads.append(thread)
                thread.start()

    def _to_server(
        self, client: socket.socket, server: socket.socket, is_muted: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 16):
                if b"EVALSHA" in data:
                    match self.plan():
                        case "lose":
                            break
                        case "cut":
                            server.sendall(data[: len(data) // 2])
                            break
                        case "mute":
                            is_muted.set()
                server.sendall(data)
        _close(client)
        _close(server)

    def _to_client(
        self, client: socket.socket, server: socket.socket, is_muted: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 16):
                if is_muted.is_set():
                    self.muted.set()
                    break
                client.sendall(data)
        _close(client)
        _close(server)


def _close(one: socket.socket) -> None:
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@pytest.fixture
def make_tier() -> Iterator[Callable[[str], Tier]]:
    with contextlib.ExitStack() as stack:

        def make(url: str) -> Tier:
            tier = Tier(url)
            stack.callback(tier.hot.close)
            return tier

        yield make


@pytest.fixture
def tier(redis_url: str, make_tier: Callable[[str], Tier]) -> Tier:
    return make_tier(redis_url)


@pytest.fixture
def make_producer() -> Iterator[Callable[..., Producer]]:
    """Makes producers on a tier; what a test leaves open ends with it."""
    producers: list[Producer] = []

    def make(tier: Tier, *, recover: Any = None, clock: Any = None, **config: Any) -> Producer:
        settings = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 20, **config}
        producer = Producer(
            tier.hot,
            tier.topics,
            recover or tier.hot.recover,
            ProducerConfig.of(**settings),
            clock=clock,
        )
        producers.append(producer)
        return producer

    try:
        yield make
    finally:
        for producer in producers:
            with contextlib.suppress(Exception):
                producer.close(timeout_ms=0)


@pytest.fixture
def make_network() -> Iterator[Callable[[int], FaultyNetwork]]:
    with contextlib.ExitStack() as stack:

        def make(server_port: int) -> FaultyNetwork:
            network = FaultyNetwork(server_port)
            stack.callback(network.close)
            return network

        yield make
