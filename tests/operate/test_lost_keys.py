"""Keys of Redis that an eviction or a hand takes: what is left says so, and keeps the records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from lakelog.errors import DeliveryError, UnknownTopicIdError
from lakelog.hot.keys import Keys
from lakelog.lakelog import Lakelog
from lakelog.values.topic_partition import TopicPartition

T_0 = TopicPartition("t", 0)
SMALL = {"retention.ms": -1, "internal.segment.bytes": 500, "index.interval.bytes": 1}


def send(lake: Lakelog, *values: str, partition: int = 0) -> list[int]:
    with lake.producer() as producer:
        sent = [producer.send("t", one, partition=partition) for one in values]
    return [one.result().offset for one in sent]


def read(lake: Lakelog) -> list[tuple[int, bytes | None]]:
    return [(record.offset, record.value) for record in lake.log("t").read(0).records()]


def lose(lake: Lakelog, redis_url: str, *names: str, partition: int = 0) -> None:
    keys = Keys(lake.hot.keyspace).partition(TopicPartition("t", partition))
    with redis.Redis.from_url(redis_url) as client:
        for name in names:
            assert client.delete(getattr(keys, name)) == 1


def nothing_archived(lake: Lakelog) -> None:
    for _ in range(3):
        send(lake, *"abcde")


def partly_archived(lake: Lakelog) -> None:
    nothing_archived(lake)
    lake.archive("t")
    send(lake, "f", "g")


def partly_trimmed(lake: Lakelog) -> None:
    partly_archived(lake)
    lake.hot.trim(T_0, 7)


def wholly_trimmed(lake: Lakelog) -> None:
    partly_archived(lake)
    lake.archive("t")
    lake.hot.trim(T_0, 17)


def with_a_gap(lake: Lakelog) -> None:
    nothing_archived(lake)
    state = Keys(lake.hot.keyspace).partition(T_0).state
    lake.hot.connections.for_key(state).call(("HSET", state, "run_id", "another"))
    send(lake, "f", "g")
    assert lake.log("t").offsets()[0].gaps


@pytest.mark.parametrize(
    "lost", [("state",), ("state", "segments"), ("state", "times")], ids="+".join
)
@pytest.mark.parametrize(
    "history", [nothing_archived, partly_archived, partly_trimmed, wholly_trimmed, with_a_gap]
)
def test_a_repair_writes_anew_what_was_said_of_the_entries(
    lake: Lakelog, redis_url: str, history: Callable[[Lakelog], None], lost: tuple[str, ...]
) -> None:
    lake.topics.create("t", 1, SMALL)
    history(lake)
    before, end = read(lake), lake.log("t").offsets()[0].log_end
    keys = Keys(lake.hot.keyspace).partition(T_0)
    with redis.Redis.from_url(redis_url) as client:
        there = [one for one in lost if client.exists(getattr(keys, one))]
    lose(lake, redis_url, *there)

    with pytest.raises(UnknownTopicIdError, match="`lakelog check t --repair`"):
        lake.log("t").offsets()
    report = lake.check("t")
    assert not report.sound
    assert [one.verdict for one in report.partitions] == ["faults"]

    repaired = lake.check("t", repair=True)
    assert repaired.sound, repaired.findings
    assert read(lake) == before
    (offset,) = send(lake, "after")
    assert offset >= end  # none names two records
    lake.archive("t")
    assert lake.check("t").sound
    assert read(lake) == [*before, (offset, b"after")]


@pytest.mark.parametrize("history", [nothing_archived, partly_archived, partly_trimmed])
def test_lost_segments_are_made_of_the_entries(
    lake: Lakelog, redis_url: str, history: Callable[[Lakelog], None]
) -> None:
    """Without them, an archive run found a hole where the records were."""
    lake.topics.create("t", 1, SMALL)
    history(lake)
    before = read(lake)
    lose(lake, redis_url, "segments")
    assert not lake.check("t").sound
    repaired = lake.check("t", repair=True)
    assert repaired.sound, repaired.findings
    (offset,) = send(lake, "after")
    assert offset == before[-1][0] + 1  # nothing is skipped: its state was there
    lake.archive("t")
    assert lake.check("t").sound
    assert read(lake) == [*before, (offset, b"after")]


def test_an_untiered_topic_is_made_of_its_entries(lake: Lakelog, redis_url: str) -> None:
    lake.topics.create("t", 1, {**SMALL, "remote.storage.enable": False})
    nothing_archived(lake)
    before = read(lake)
    lose(lake, redis_url, "state")
    assert lake.check("t", repair=True).sound
    assert read(lake) == before


def test_a_producer_is_told_what_keeps_the_records(lake: Lakelog, redis_url: str) -> None:
    """It was told to delete them."""
    lake.topics.create("t", 1, SMALL)
    nothing_archived(lake)
    lose(lake, redis_url, "state")
    with pytest.raises(DeliveryError, match="`lakelog check t --repair` writes those anew"):
        send(lake, "more")
    assert lake.check("t", repair=True).sound
    assert len(read(lake)) == 15


def test_a_stream_of_somebody_else_is_not_taken_for_a_topics(lake: Lakelog, redis_url: str) -> None:
    lake.topics.create("t", 1, SMALL)
    keys = Keys(lake.hot.keyspace).partition(T_0)
    with redis.Redis.from_url(redis_url) as client:
        client.delete(keys.state)
        client.xadd(keys.stream, {"by": "hand"})
        kept = client.dump(keys.stream)
        repaired = lake.check("t", repair=True)
        assert not repaired.sound
        assert "may be somebody else's" in " ".join(one.what for one in repaired.repairs)
        assert client.dump(keys.stream) == kept
        assert not client.exists(keys.state)


def test_somebody_elses_file_in_a_segments_folder_is_told(lake: Lakelog, tmp_path: Path) -> None:
    lake.topics.create("t", 1, SMALL)
    partly_archived(lake)
    (folder,) = (tmp_path / "cold" / "t").glob("*/partition=0/segment=0")
    (folder / "notes.parquet").write_bytes(b"somebody's")
    report = lake.check("t")
    assert report.sound
    assert [one.where for one in report.notices] == ["partition=0/segment=0/notes.parquet"]
    assert "no commit names" in report.notices[0].what
