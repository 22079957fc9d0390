"""Each role can do its whole work by the rights that `acl` prints for it, and nothing else."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import redis
from redis.exceptions import NoPermissionError

from lakelog import Lakelog, TopicPartition
from lakelog.errors import (
    DeliveryError,
    HotTierAccessError,
    HotTierUnavailableError,
    QuotaExceededError,
)
from lakelog.operate.acl.acl import acl
from lakelog.operate.acl.redis_rules import Role
from lakelog.operate.skip import Skips
from tests.support.servers import RedisServer

SECRET = "sesame"
HOT_SOON = {"retention.ms": -1, "local.retention.ms": 0, "segment.ms": 1}
ORDERS, OTHERS = TopicPartition("orders", 0), TopicPartition("others", 0)

#: What is tried and refused without harm: whether a disk is synced.
TRIED = {"config|get"}


@dataclass
class World:
    """A server whose default user may do anything, and a log on it with two topics."""

    server: RedisServer
    cold: Path

    @contextlib.contextmanager
    def root(self) -> Iterator[redis.Redis]:
        with self.server.client() as client:
            yield client

    def lake(self, url: str | None = None, keyspace: str = "lakelog") -> Lakelog:
        return Lakelog.connect(
            url or self.server.url, str(self.cold), engine="inline", keyspace=keyspace
        )

    def make(self, role: Role, *, keyspace: str = "lakelog", **more: Any) -> str:
        """A user of that role, anew; its URL."""
        made = acl(role, keyspace=keyspace, **more)
        with self.root() as client:
            assert client.execute_command("ACL SETUSER", made.user, *made.redis, f">{SECRET}")
            client.execute_command("ACL LOG RESET")
        return self.server.url.replace("//", f"//{made.user}:{SECRET}@")

    def refused(self) -> set[tuple[str, str]]:
        """What was refused since: where, and what."""
        with self.root() as client:
            log = client.acl_log()
        return {
            (entry["context"], entry["object"]) for entry in log if entry["object"] not in TRIED
        }

    def fill(self) -> None:
        with self.lake() as lake:
            for name in ("orders", "others"):
                lake.topics.create(name, 1, HOT_SOON)
            produce(lake, "orders", "others")


def produce(lake: Lakelog, *topics: str, records: int = 40) -> None:
    with lake.producer() as producer:
        for topic in topics:
            for n in range(records):
                producer.send(topic, f"order {n}", key=f"k{n % 5}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    try:
        yield server.start()
    finally:
        server.kill()


@pytest.fixture
def world(server: RedisServer, tmp_path: Path) -> World:
    made = World(server, tmp_path / "cold")
    with made.root() as client:
        client.flushall()
        client.script_flush()
        for user in client.acl_users():
            if user != "default":
                client.acl_deluser(user)
    made.fill()
    return made


def test_a_tenant_s_producer_keeps_to_quotas_and_meets_nobody(world: World) -> None:
    with world.lake() as lake:
        lake.tenants.create("acme", {"hot.bytes": 100_000, "producer.byte.rate": "1MiB"})
    with Lakelog.connect(world.server.url, str(world.cold), tenant="acme") as own:
        for name in ("orders", "others"):
            own.topics.create(name, 1, HOT_SOON)
        produce(own, "others")
    url = world.make(Role.PRODUCER, keyspace="lakelog.acme", topics="orders")
    with Lakelog.connect(url, tenant="acme") as own:
        produce(own, "orders")
        with own.producer(delivery_timeout_ms=2_000) as producer:
            refused = producer.send("orders", b"x" * 100_000)  # others are not its to look at
            with pytest.raises(DeliveryError) as told:
                refused.result()
        assert isinstance(told.value.last_error, QuotaExceededError)
        with pytest.raises(HotTierAccessError):
            own.hot.offsets([OTHERS])
    with pytest.raises(HotTierAccessError), Lakelog.connect(url) as lake:
        lake.topics.list()
    with pytest.raises(HotTierAccessError):
        Lakelog.connect(url, tenant="shared")


# -- what each does ------------------------------------------------------------------------------


def as_producer(lake: Lakelog) -> None:
    produce(lake, "orders")
    lake.log("orders").recover(0, 10**6)  # what it does when a server has lost its tail
    produce(lake, "orders", records=1)


def as_reader(lake: Lakelog) -> None:
    log = lake.log("orders")
    assert log.read(0).to_arrow().num_rows == 40
    assert log.seek(0, "max-timestamp") is not None
    assert log.search('key = "k1"').page(5)
    assert log.offsets()[0].log_end == 40
    log.count(0)
    with lake.consumer("orders", auto_offset_reset="earliest") as consumer:
        assert drained(consumer) == 40
        consumer.offsets_for_times({ORDERS: 1})
    lake.status("orders")


def as_consumer(lake: Lakelog) -> None:
    with lake.consumer("orders", group_id="nightly", auto_offset_reset="earliest") as consumer:
        assert drained(consumer) == 40
        consumer.commit()
        assert consumer.committed(ORDERS) == 40
    with lake.share_consumer(
        "orders", group_id="workers", share_auto_offset_reset="earliest"
    ) as worker:
        taken = 0
        while taken < 40:
            taken += sum(map(len, worker.poll(500, 50).values()))


def drained(consumer: Any) -> int:
    seen = 0
    while seen < 40:
        seen += sum(map(len, consumer.poll(2_000).values()))
    return seen


def as_archiver(lake: Lakelog) -> None:
    lake.archive()
    produce_by = lake.archiver("orders")
    produce_by.run_once()
    for _ in lake.archive_continuously("orders", max_duration=timedelta(seconds=0.2)):
        pass
    lake.cleanup()
    lake.record_groups()
    lake.status()


def as_admin(lake: Lakelog) -> None:
    lake.topics.create("made", 2)
    lake.topics.alter("made", {"retention.ms": 10**9})
    lake.topics.add_partitions("made", 3)
    lake.topics.set_defaults({"log.roll.ms": 10**8})
    produce(lake, "made")
    as_consumer(lake)
    as_archiver(lake)
    lake.groups.list()
    lake.groups.delete("nightly")
    lake.share_groups.delete("workers")
    lake.log("orders").raise_log_start(0, 3)
    lake.erase("orders", "k1")
    lake.hot.pause([ORDERS])
    lake.hot.resume([ORDERS])
    skips = lake.skips("made", 0)
    assert isinstance(skips, Skips)
    lake.topics.delete("made")
    lake.undelete("made")
    lake.topics.delete("made")
    lake.purge("made")
    lake.check(repair=True)
    lake.restorable()


WORK: dict[Role, Callable[[Lakelog], None]] = {
    Role.PRODUCER: as_producer,
    Role.READER: as_reader,
    Role.CONSUMER: as_consumer,
    Role.ARCHIVER: as_archiver,
    Role.ADMIN: as_admin,
}


@pytest.mark.parametrize("role", Role)
def test_a_role_does_its_whole_work(world: World, role: Role) -> None:
    topics = "*" if role in (Role.ARCHIVER, Role.ADMIN) else "orders"
    with world.lake(world.make(role, topics=topics)) as lake:
        WORK[role](lake)
    assert world.refused() == set()


@pytest.mark.parametrize(
    ("role", "work"),
    [
        (Role.PRODUCER, lambda lake: produce(lake, "orders")),
        (Role.ARCHIVER, as_archiver),
        (Role.ADMIN, lambda lake: lake.erase("orders", "k1")),
    ],
)
def test_half_a_transaction_in_a_gap_keeps_no_role_from_its_work(
    world: World, role: Role, work: Callable[[Lakelog], None]
) -> None:
    with world.lake() as lake, world.root() as client:
        end = lake.log("orders").offsets()[0].log_end
        client.xadd("lakelog:stream:orders:0", {"value": "half"}, id=f"{end}-1")
        lake.log("orders").recover(0, end + 1)
    topics = "orders" if role is Role.PRODUCER else "*"
    with world.lake(world.make(role, topics=topics)) as lake:
        work(lake)
    assert world.refused() == set()


# -- what none, or another one, may do -----------------------------------------------------------

STREAM, OTHER_STREAM = "lakelog:stream:orders:0", "lakelog:stream:others:0"
FOREIGN = "sales:stream:orders:0"

#: What would meet others, or take the server from them.
NOBODY: list[tuple[Any, ...]] = [
    ("EVAL", "return 1", 0),
    ("EVAL_RO", "return 1", 0),
    ("FCALL", "f", 0),
    ("FUNCTION", "LIST"),
    ("FUNCTION", "LOAD", "#!lua name=f\nredis.register_function('f', function() end)"),
    ("SCRIPT", "FLUSH"),
    ("SCRIPT", "KILL"),
    ("SCAN", 0),
    ("KEYS", "*"),
    ("RANDOMKEY",),
    ("DBSIZE",),
    ("FLUSHALL",),
    ("FLUSHDB",),
    ("SWAPDB", 0, 1),
    ("CONFIG", "GET", "requirepass"),
    ("CONFIG", "SET", "dir", "/"),
    ("ACL", "LIST"),
    ("ACL", "SETUSER", "me"),
    ("MONITOR",),
    ("CLIENT", "LIST"),
    ("SHUTDOWN",),
    ("REPLICAOF", "NO", "ONE"),
    ("SLOWLOG", "GET"),
    ("LATENCY", "LATEST"),
    ("MODULE", "LIST"),
    ("PUBLISH", "news", "x"),
    ("XRANGE", FOREIGN, "-", "+"),
    ("XADD", FOREIGN, "*", "value", "x"),
    ("HGETALL", "sales:topics"),
    ("HGETALL", "sales:groups"),
    ("HSET", f"{{{FOREIGN}}}:state", "log_end", 0),
    ("COPY", FOREIGN, STREAM),
    ("RENAME", FOREIGN, STREAM),
    ("DEL", FOREIGN),
]

ANOTHER_TOPIC: list[tuple[Any, ...]] = [
    ("XRANGE", OTHER_STREAM, "-", "+"),
    ("XREAD", "COUNT", 1, "STREAMS", OTHER_STREAM, "0"),
    ("XADD", OTHER_STREAM, "*", "value", "x"),
    ("HGETALL", f"{{{OTHER_STREAM}}}:state"),
    ("ZRANGE", f"{{{OTHER_STREAM}}}:segments", 0, -1),
    ("HSET", "lakelog:topics", "orders", "x"),
    ("HDEL", "lakelog:topics", "orders"),
    ("SET", STREAM, "x"),
    ("DEL", STREAM),
    ("UNLINK", STREAM),
    ("RENAME", STREAM, f"{STREAM}1"),
]

APPENDING: list[tuple[Any, ...]] = [
    ("XADD", STREAM, "*", "value", "x"),
    ("XTRIM", STREAM, "MAXLEN", 0),
    ("XDEL", STREAM, "0-1"),
    ("HSET", f"{{{STREAM}}}:state", "log_end", 0),
    ("ZREM", f"{{{STREAM}}}:segments", "x"),
    ("HDEL", f"{{{STREAM}}}:producers", "1"),
]

GROUPS: list[tuple[Any, ...]] = [
    ("HGETALL", "lakelog:group:nightly"),
    ("HSET", "lakelog:group:nightly", "version", 1),
    ("HGETALL", "{lakelog:group:nightly}:offsets"),
    ("HGETALL", f"{{{STREAM}}}:shares"),
    ("HSET", f"{{{STREAM}}}:shares", "nightly", "x"),
]

LOADING: list[tuple[Any, ...]] = [("SCRIPT", "LOAD", "return 1")]

REFUSED: dict[Role, list[tuple[Any, ...]]] = {
    Role.PRODUCER: [*NOBODY, *ANOTHER_TOPIC, *LOADING, *GROUPS[:3]],
    Role.READER: [*NOBODY, *ANOTHER_TOPIC, *APPENDING, *LOADING, *GROUPS[:3], GROUPS[4]],
    Role.CONSUMER: [
        *(*NOBODY, *ANOTHER_TOPIC, *APPENDING, *LOADING),
        ("HGETALL", "lakelog:group:daily"),
        ("DEL", "lakelog:group:daily"),
        ("HSET", f"{{{OTHER_STREAM}}}:shares", "nightly", "x"),
    ],
    Role.ARCHIVER: NOBODY,
    Role.ADMIN: NOBODY,
}


@pytest.mark.parametrize("role", Role)
def test_a_role_can_do_nothing_else(world: World, role: Role) -> None:
    narrow = role not in (Role.ARCHIVER, Role.ADMIN)
    groups = {"groups": ["nightly", "workers"]} if role is Role.CONSUMER else {}
    url = world.make(role, topics="orders" if narrow else "*", **groups)
    with redis.Redis.from_url(url) as client:
        allowed = [command for command in REFUSED[role] if not is_refused(client, command)]
        assert client.ping()
    assert allowed == []


def is_refused(client: redis.Redis, command: Iterable[Any]) -> bool:
    try:
        client.execute_command(*command)
    except NoPermissionError:
        return True
    except redis.ResponseError as error:
        raise AssertionError(f"{command}: {error}") from None
    return False


def test_what_a_role_has_no_right_to_is_refused_by_its_calls(world: World) -> None:
    reader = world.lake(world.make(Role.READER, topics="orders"))
    producer = world.lake(world.make(Role.PRODUCER, topics="orders"))
    with reader, producer:
        for call in (
            lambda: reader.hot.raise_log_start(ORDERS, 3),
            lambda: produced(reader, "orders"),
            lambda: produced(producer, "others"),
            lambda: producer.hot.offsets([OTHERS]),
            lambda: producer.topics.create("mine"),
            lambda: producer.topics.delete("orders"),
        ):
            with pytest.raises(HotTierAccessError, match="lakelog acl"):
                call()


def produced(lake: Lakelog, topic: str) -> None:
    with lake.producer(delivery_timeout_ms=2_000) as producer:
        producer.send(topic, b"x").result()


def test_keyspaces_do_not_meet(world: World) -> None:
    """An admin of one sees and changes nothing of another, whatever their names."""
    for keyspace in ("lake", "lakelog2", "lake?og", "l*"):
        admin = world.lake(world.make(Role.ADMIN, keyspace=keyspace), keyspace=keyspace)
        with admin:
            admin.topics.create("orders", 1)
            produce(admin, "orders", records=2)
            with redis.Redis.from_url(admin.place.source.url) as client:
                assert is_refused(client, ("HGETALL", "lakelog:topics"))
    with world.lake() as lake:
        assert lake.log("orders").offsets()[0].log_end == 40


def test_who_may_load_no_scripts_goes_on_once_an_archiver_has_connected(world: World) -> None:
    producing, archiving = (
        world.make(Role.PRODUCER, topics="orders"),
        world.make(Role.ARCHIVER, topics="*"),
    )
    with world.lake(producing) as lake:
        with world.root() as client:
            client.script_flush()
        with pytest.raises(HotTierUnavailableError, match="an archiver or admin of this version"):
            lake.hot.offsets([ORDERS])
        world.lake(archiving).close()
        assert lake.hot.offsets([ORDERS])[ORDERS].log_end == 40
    with world.root() as client:
        client.script_flush()
    alone = world.make(Role.PRODUCER, topics="orders", load_scripts=True)
    with world.lake(alone) as lake:
        produce(lake, "orders")
