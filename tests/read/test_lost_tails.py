"""Tails lost one after the other, while clocks step: no offset is given to two records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import pytest
from bench import Bench

from lakelog.archive.archiver import Archiver
from lakelog.archive.copy import HotRows
from lakelog.base import failpoints
from lakelog.base.clock import ManualClock
from lakelog.cold.reserve import reserve
from lakelog.errors import RecoveryNeededError
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.hot.keys import Keys
from lakelog.hot.recovery import Recovery
from lakelog.ingest.producer import Producer
from lakelog.read.topic_log import TopicLog
from lakelog.values import reservation
from lakelog.values.reservation import FIRST_OFFSETS, LEAST_OFFSETS, Wanted
from lakelog.values.topic_partition import OffsetRange, TopicPartition
from tests.support.servers import RedisServer

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


class Lossy:
    """A log whose server comes back as it was at the start, again and again."""

    def __init__(self, server: RedisServer, bench: Bench) -> None:
        self.server = server
        self.bench = bench
        self.clock = ManualClock()  # what the scripts take for the server's time
        self.produce()
        self.size = server.append_only_size()

    def lose(self, step_ms: int) -> None:
        self.server.cut_append_only_file(to_size=self.size)
        self.server.start()
        self.clock.advance(step_ms)

    def log(self) -> TopicLog:
        """As a new process opens it."""
        hot = HotLog.connect(self.server.url, clock=self.clock)
        return TopicLog(self.bench.topic, hot, self.bench.table)

    def produce(self) -> int:
        """The offset that a new producer is told of, which knows of none before."""
        log = self.log()
        with self.producer(log) as producer:
            return producer.send(log.topic.name, b"value").result().offset

    def read(self) -> list[tuple[int, bytes | None]]:
        """Offsets and values of the log."""
        records = self.log().read(0).to_arrow()
        return list(zip(*(records[name].to_pylist() for name in ("offset", "value")), strict=True))

    def producer(self, log: TopicLog) -> Producer:
        def recover(tp: TopicPartition, at_least: int) -> None:
            log.recover(tp.partition, at_least)

        return Producer(log.hot, log.hot.topics(), recover, clock=self.clock)

    def archive(self) -> None:
        log = self.log()
        assert log.table is not None
        Archiver(self.bench.topic, log.hot, log.table).run_once()


@pytest.fixture
def lossy(make_redis, make_bench, redis_program) -> Callable[..., Lossy]:
    def make(**settings: object) -> Lossy:
        server = make_redis(program=redis_program, appendfsync="no")
        return Lossy(server, make_bench(url=server.url, **settings))

    return make


@pytest.mark.parametrize(
    "steps_ms",
    [
        pytest.param((-1, -1, -1), id="back"),
        pytest.param((0, 0, 0), id="standing still"),
        pytest.param((HOUR_MS, -HOUR_MS + 1, 0), id="forward and back"),
        pytest.param((400 * DAY_MS, -399 * DAY_MS, -2 * DAY_MS), id="far forward and back"),
    ],
)
@pytest.mark.parametrize("first", ["producer", "archiver"])
def test_no_offset_is_given_twice_whatever_the_clock_does(lossy, steps_ms, first):
    """The recovery is lost with all that came after it, so only cold remembers it."""
    it = lossy()
    given = [0]
    for step_ms in steps_ms:
        it.lose(step_ms)
        if first == "archiver":
            it.archive()
        given += [it.produce(), it.produce()]
    assert all(before < after for before, after in itertools.pairwise(given)), given


def test_a_recovery_that_died_after_its_commit_wastes_what_it_reserved(lossy):
    it = lossy()
    it.lose(0)
    log = it.log()

    def die(*_: object) -> NoReturn:
        reserve(log.table, {0: Wanted(0)})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        log.hot.recover(it.bench.topic.partition(0), 0, die)
    assert not it.log().offsets()[0].recovered
    assert it.produce() == FIRST_OFFSETS + LEAST_OFFSETS


def test_what_a_gap_took_in_is_not_archived_after_somebody_read_over_it(lossy):
    """An archiver has copied it out of the server that then lost it."""
    it = lossy()
    it.archive()
    it.produce()
    reading: list[int] = []
    once = iter([True])

    def lose_and_read() -> None:
        if not next(once, False):
            return
        it.lose(0)
        it.bench.table = it.bench.table_of(HotRows(HotSource(it.server.url)))
        it.produce()
        reading.extend(offset for offset, _ in it.read())

    with failpoints.armed("cold.before_commit", lose_and_read):
        it.archive()
    assert reading == [0, FIRST_OFFSETS]
    it.archive()
    assert [offset for offset, _ in it.read()] == reading


@pytest.fixture
def few(monkeypatch) -> int:
    """So many offsets are reserved at a time."""
    for name in ("FIRST_OFFSETS", "LEAST_OFFSETS"):
        monkeypatch.setattr(reservation, name, 10)
    return 10


def test_appends_go_on_without_a_gap_when_all_that_was_reserved_is_given_out(few, lossy):
    it = lossy()
    assert [it.produce() for _ in range(3 * few)] == list(range(1, 3 * few + 1))
    assert it.log().offsets()[0].gaps == ()


def test_an_archiver_reserves_before_it_is_too_late(few, lossy):
    it = lossy()
    for _ in range(few // 2):
        it.produce()
    it.archive()
    assert (
        it.log()
        .hot.offsets([it.bench.topic.partition(0)])[it.bench.topic.partition(0)]
        .reserved_end
        == 2 * few
    )
    assert it.log().table.snapshot().reserved_end(0) == 2 * few


def test_the_log_jumps_over_what_somebody_else_reserved(few, lossy):
    """Such as an old primary, on the far side of a split."""
    it = lossy()
    other = reserve(it.log().table, {0: Wanted(0)})[0]
    given = [it.produce() for _ in range(few)]
    assert given == [*range(1, few), other.end]
    assert it.log().offsets()[0].gaps == (OffsetRange(few, other.end),)


def test_without_the_cold_tier_a_producer_waits_until_an_archiver_has_settled_it(lossy):
    it = lossy()
    it.lose(0)
    log = it.log()
    root = it.bench.root / it.bench.topic.name
    it.bench.root.mkdir(exist_ok=True)
    root.write_text("no folder, so no table can be made or read here")
    with it.producer(log) as producer:
        sent = producer.send(log.topic.name, b"value")
        with pytest.raises(RecoveryNeededError, match="only the cold tier says") as caught:
            log.recover(0, 0)
        assert caught.value.retriable
        assert not sent.done()
        root.unlink()
        it.archive()
        assert sent.result().offset >= FIRST_OFFSETS


def test_a_partition_of_an_older_lakelog_is_bound_by_the_clock_once_more(lossy, make_redis):
    it = lossy()
    tp = it.bench.topic.partition(0)
    log = it.log()
    with it.server.client() as client:
        client.hdel(Keys().partition(tp).state, "reserved_end")
    it.produce()
    it.size = it.server.append_only_size()
    it.lose(HOUR_MS)
    offset = it.produce()
    assert offset > HOUR_MS * 16_384
    seen = log.hot.offsets([tp])[tp]
    assert seen.reserved_end == log.table.snapshot().reserved_end(0) > offset


def test_of_an_untiered_topic_the_gap_is_on_disk_before_an_append_follows(lossy, monkeypatch):
    """Nothing outside of Redis remembers it."""
    it = lossy(tiered=False)
    it.lose(0)
    step_each, seen = Recovery._step_each, []

    def observed(self: Recovery, server: Any, tps: Sequence[TopicPartition], verb: str) -> Any:
        with it.server.client() as client:
            seen.append((verb, *client.config_get("appendfsync").values()))
        (tp,) = tps
        now = it.log().hot.offsets([tp])[tp]
        assert now.gaps
        assert now.paused
        return step_each(self, server, tps, verb)

    with monkeypatch.context() as patch:
        patch.setattr(Recovery, "_step_each", observed)
        it.log().recover(0, 0)
    assert seen == [("unmark", "always"), ("resume", "no")]
    given = [it.produce()]
    it.size = it.server.append_only_size()
    it.lose(-DAY_MS)
    given.append(it.produce())
    assert given == sorted(set(given))
