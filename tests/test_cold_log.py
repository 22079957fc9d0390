"""What is archived of a log, read without its Redis."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog import lakelog as lakelog_module
from lakelog.cli import main as cli
from lakelog.errors import (
    InvalidArgumentError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from lakelog.place import PathRoot
from lakelog.values.offsets import AtTimestamp
from tests.support.servers import RedisServer

EPOCH_MS = 1_700_000_000_000


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis()


@pytest.fixture
def root(tmp_path: Path) -> str:
    return str(tmp_path / "cold")


@pytest.fixture
def log(server: RedisServer, root: str) -> Iterator[Lakelog]:
    """A topic of two partitions: 30 records archived, ten more that are not."""
    with Lakelog.connect(server.url, root, engine="inline") as log:
        log.topics.create("orders", 2, {"segment.ms": 60_000, "retention.ms": -1})
        append(log, 0, 30)
        log.archive()
        append(log, 30, 40)
        yield log


@pytest.fixture
def cold(log: Lakelog, server: RedisServer, root: str) -> Lakelog:
    """Opened when Redis is gone."""
    server.kill()
    return Lakelog.connect(None, root, engine="inline")


def append(log: Lakelog, start: int, end: int) -> None:
    with log.producer() as producer:
        for n in range(start, end):
            producer.send(
                "orders",
                b"%d" % n,
                key=b"k%d" % (n % 3),
                partition=n % 2,
                timestamp_ms=EPOCH_MS + 1000 * n,
            )


def values(records: Any) -> list[int]:
    return [int(record.value) for record in records]


def test_all_that_is_archived_is_read_and_sought(cold):
    (topic,) = cold.topics.list()
    assert (topic.name, topic.partitions) == ("orders", 2)
    orders = cold.log("orders")
    for partition in (0, 1):
        offsets = orders.offsets()[partition]
        assert (offsets.log_start, offsets.archived_end, offsets.log_end) == (0, 15, 15)
        assert values(orders.read(partition).records()) == list(range(partition, 30, 2))
        assert orders.count(partition) == 15
        assert orders.seek(partition, "latest") == 15
        assert orders.seek(partition, AtTimestamp(EPOCH_MS + 1000 * (20 + partition))) == 10
        assert orders.seek(partition, AtTimestamp(EPOCH_MS + 1000 * 30)) is None
        assert orders.seek(partition, "max-timestamp") == 14
        assert orders.fetch(partition, 15).next_offset == 15
        with pytest.raises(OffsetOutOfRangeError, match=r"\[0, 15\)"):
            orders.fetch(partition, 16)
    assert orders.sample(5).num_rows == 5


def test_it_says_what_it_does_not_know(cold, root):
    status = cold.status()
    assert [one.state for one in status.partitions] == ["cold only", "cold only"]
    assert [one.unarchived for one in status.partitions] == [None, None]
    assert status.servers == ()
    assert root in repr(cold)
    with pytest.raises(UnknownTopicOrPartitionError, match="there are orders"):
        cold.log("nobody")


def test_a_place_is_needed():
    with pytest.raises(InvalidArgumentError, match=r"Lakelog\.embedded\('\./x'\)"):
        Lakelog("./x")
    with pytest.raises(InvalidArgumentError, match="neither a Redis nor a cold root"):
        Lakelog.connect(None, None)


def test_what_needs_redis_is_refused_and_it_closes_all_the_same(log, root):
    with Lakelog.connect(None, root, engine="inline") as cold:
        for call in (
            cold.producer,
            cold.archive,
            partial(cold.archive, "orders"),
            cold.archive_continuously,
            partial(cold.share_consumer, "orders", group_id="g"),
            cold.restore,
            cold.record_groups,
        ):
            with pytest.raises(InvalidArgumentError, match="needs its Redis"):
                call()


def test_a_consumer_follows_the_archive(log, root):
    cold = Lakelog.connect(None, root, engine="inline")
    found: list[int] = []
    with cold.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("orders", 0), ("orders", 1)])
        while len(found) < 30:
            found += values(r for records in consumer.poll(1000).values() for r in records)
        assert sorted(found) == list(range(30))
        assert consumer.poll(0) == {}
        archiving = threading.Timer(0.2, log.archive)
        archiving.start()
        while len(found) < 40:
            found += values(r for records in consumer.poll(60_000).values() for r in records)
        archiving.join()
    assert sorted(found) == list(range(40))


def test_a_topic_that_was_made_anew_is_the_new_one(log, root):
    cold = Lakelog.connect(None, root, engine="inline")
    old = cold.log("orders")
    before = old.topic
    log.topics.delete("orders")
    log.topics.create("orders", 1)
    append_one = log.producer()
    append_one.send("orders", b"7").result()
    append_one.close()
    log.archive()
    (after,) = cold.topics.list()
    assert after.topic_id != before.topic_id
    assert values(cold.log("orders").read(0).records()) == [7]
    assert (
        old.offsets()[0].log_end == 15
    )  # of its own table, which is there until somebody deletes it
    assert values(old.read(0, 13).records()) == [26, 28]


def test_the_place_is_listed_once_for_all_topics_and_never_to_read(log, root, monkeypatch):
    monkeypatch.setattr(lakelog_module, "CATALOGUE_LASTS_S", 0.0)
    listed: list[str] = []
    real = PathRoot.catalogue

    def catalogue(self: PathRoot, keyspace: str | None, **known: Any) -> Any:
        listed.append(str(self))
        return real(self, keyspace, **known)

    monkeypatch.setattr(PathRoot, "catalogue", catalogue)
    cold = Lakelog.connect(None, root, engine="inline")
    for work in (cold.status, cold.cleanup, lambda: cold.log("orders")):
        listed.clear()
        work()
        assert len(listed) == 1
    orders = cold.log("orders")
    listed.clear()
    assert values(orders.read(0).records()) == list(range(0, 30, 2))
    with cold.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([("orders", 0)])
        listed.clear()
        while consumer.poll(0):
            pass
    assert listed == []


def test_the_explorer_shows_it(cold):
    explorer = cold.explore("orders", 1, "latest")
    view = explorer.view
    assert (view.topic, view.partition, view.end_offset) == ("orders", 1, 15)
    shown = eval(explorer.expression, {"log": cold.log("orders")})
    assert values(shown.records())[-1] == 29


# -- the command line --------------------------------------------------------------------------


@pytest.fixture
def run(
    cold: Lakelog, root: str, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[str, str]]:
    def run(*arguments: str, code: int = 0) -> tuple[str, str]:
        assert cli.main(["--cold", root, "--engine", "inline", *arguments]) == code
        said = capsys.readouterr()
        return said.out, said.err

    return run


def test_the_command_line_reads_without_redis(run, root):
    shown, said = run("--output", "json", "consume", "orders", "--partition", "1")
    assert [int(json.loads(line)["value"]) for line in shown.splitlines()] == list(range(1, 30, 2))
    assert f"the log ends where {root} ends" in said
    assert run("offsets", "orders")[0] == "orders:0:15\norders:1:15\n"
    assert run("offsets", "orders", "--time", "earliest")[0] == "orders:0:0\norders:1:0\n"
    page = json.loads(run("--output", "json", "status")[0])
    assert [row["state"] for row in page["partitions"]] == ["cold only", "cold only"]
    assert [row["archived_end"] for row in page["partitions"]] == [15, 15]
    assert [row["log_end"] for row in page["partitions"]] == [None, None]


def test_the_command_line_lists_and_verifies_segments_without_redis(run):
    rows = json.loads(run("--output", "json", "segments", "list", "orders")[0])
    assert {row["tier"] for row in rows} == {"cold"}
    assert sum(row["records"] for row in rows) == 30
    page = json.loads(run("--output", "json", "segments", "list", "orders", "--verify")[0])
    assert page["findings"] == []
    assert "offset" in run("segments", "dump", "orders", "-p", "0", "--records")[0]
    _, said = run("segments", "list", "orders", "--tier", "hot", code=1)
    assert "without a Redis" in said


def test_what_needs_redis_says_so(run):
    _, said = run("topics", "list", code=1)
    assert "--redis" in said
