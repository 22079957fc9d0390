"""Reads through a relay that closes a connection late: when its client asks after a failover."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from lakelog import Lakelog, TopicPartition
from lakelog.errors import HotTierUnavailableError
from lakelog.operate.segments import segments


class LateRelay:
    """Passes bytes on. After a failover, a connection stands until its client asks."""

    def __init__(self, port: int) -> None:
        self._behind = port
        self._failovers = 0
        self.closed = 0  # connections, when their client asked
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def fail_over(self) -> None:
        self._failovers += 1

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        opened = self._failovers
        server = socket.create_connection(("127.0.0.1", self._behind))
        with client, server:
            while True:
                for one in select.select([client, server], [], [])[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        return
                    if one is client and opened != self._failovers:
                        self.closed += 1
                        return
                    (server if one is client else client).sendall(data)


READS: dict[str, Callable[[Lakelog], object]] = {
    "the offsets": lambda lake: lake.log("orders").offsets()[0].log_end,
    "all records": lambda lake: lake.log("orders").read(0).to_arrow().num_rows,
    "an offset by time": lambda lake: lake.log("orders").offset_for_timestamp(0, 0),
    "the topics": lambda lake: [topic.name for topic in lake.topics.list()],
    "a topic": lambda lake: lake.topics.get("orders").partitions,
    "the settings": lambda lake: lake.topics.defaults(),
    "a search": lambda lake: lake.log("orders").search("value.n = 7").to_arrow().num_rows,
    "the status": lambda lake: len(lake.status().partitions),
    "the segments": lambda lake: len(segments(lake.log("orders"))),
    "the groups": lambda lake: [one.group_id for one in lake.groups.list()],
    "a group": lambda lake: lake.groups.describe("readers").group_id,
    "the faults": lambda lake: lake.check().findings,
    "a query": lambda lake: lake.sql("select count(*) as n from orders").read_all().to_pylist(),
}


@pytest.fixture
def relay(make_redis) -> Iterator[LateRelay]:
    it = LateRelay(make_redis().port)
    yield it
    it.close()


@pytest.fixture
def lake(relay, tmp_path) -> Iterator[Lakelog]:
    with Lakelog.connect(relay.url, tmp_path / "cold", engine="inline") as it:
        it.topics.create("orders", 1)
        with it.producer() as producer:
            producer.send_batch("orders", [b'{"n":%d}' % n for n in range(10)])
        with it.consumer("orders", group_id="readers", auto_offset_reset="earliest") as consumer:
            assert consumer.poll(30_000)
            consumer.commit()
        yield it


@pytest.mark.slow
@pytest.mark.parametrize("name", READS)
def test_a_read_after_a_failover_asks_again(lake, relay, name):
    read = READS[name]
    before = read(lake)
    closed = relay.closed
    relay.fail_over()
    assert read(lake) == before
    assert relay.closed > closed


def test_an_assigned_consumer_reads_on(lake, relay):
    with lake.consumer() as consumer:
        consumer.assign([TopicPartition("orders", 0)])
        consumer.seek_to_beginning()
        assert sum(map(len, consumer.poll(10_000).values())) == 10
        relay.fail_over()
        assert consumer.position(TopicPartition("orders", 0)) == 10
        assert consumer.end_offsets([TopicPartition("orders", 0)]) == {
            TopicPartition("orders", 0): 10
        }


def test_what_writes_is_not_sent_twice(lake, relay):
    server = lake.hot.connections.for_key("key")
    relay.fail_over()
    with pytest.raises(HotTierUnavailableError, match="whether the command was executed"):
        server.call(("INCR", "key"))
    assert server.call(("GET", "key")) == [None]
