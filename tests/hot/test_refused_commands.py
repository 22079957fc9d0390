"""A Redis that somebody else runs refuses some commands: the log needs none of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError
from lakelog.hot.embedded.redis_program import RedisProgram
from tests.support.servers import RedisServer

#: What Amazon's ElastiCache says that it refuses, and what others do.
REFUSED = (
    *("BGREWRITEAOF", "BGSAVE", "CONFIG", "DEBUG", "MIGRATE", "REPLICAOF", "SAVE", "SLAVEOF"),
    *("SHUTDOWN", "SYNC", "PSYNC", "ACL", "MODULE", "MONITOR"),
)


@pytest.fixture
def server(make_redis: Callable[..., RedisServer], redis_program: RedisProgram) -> RedisServer:
    refused = [f'{one} ""' for one in REFUSED]
    return make_redis(program=redis_program, rename_command=refused, appendfsync="always")


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path, engine="inline") as lake:
        yield lake


def test_a_log_lives_there(lake: Lakelog) -> None:
    lake.topics.create("t", 2, {"retention.ms": -1, "local.retention.ms": 0})
    with lake.producer() as producer:
        producer.send_batch("t", [b"%d" % n + bytes(100_000) for n in range(20)], partition=0)
        producer.send("t", b"small", partition=1)
    assert lake.archive("t")
    with lake.producer() as producer:
        producer.send("t", b"hot", partition=1)
    with lake.consumer("t", group_id="g", auto_offset_reset="earliest") as consumer:
        found = [record for records in consumer.poll(60_000).values() for record in records]
        while len(found) < 22:
            found += [one for records in consumer.poll(60_000).values() for one in records]
        consumer.commit()
    assert {record.value for record in found if record.partition == 1} == {b"small", b"hot"}
    (server,) = lake.status().servers
    assert not server.takes_settings


def test_a_pause_proves_nothing_and_appends_go_on(server: RedisServer, lake: Lakelog) -> None:
    topic = lake.topics.create("t", 1, {"retention.ms": -1})
    with lake.producer() as producer:
        producer.send("t", b"a")
    lake.hot.pause(topic.topic_partitions())
    server.kill()  # its own SHUTDOWN is refused, too
    server.start()
    assert not lake.hot.resume(topic.topic_partitions())
    with lake.producer() as producer:
        assert producer.send("t", b"b").result().offset > 1


def test_acks_of_fsync_say_why_not(lake: Lakelog) -> None:
    lake.topics.create("t", 1, {"retention.ms": -1})
    with (
        lake.producer(acks="fsync") as producer,
        pytest.raises(InvalidArgumentError, match=r"tells none.*replicas=N"),
    ):
        producer.send("t", b"a").result()
