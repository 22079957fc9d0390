"""A run that goes on tells of partitions of which there is news, and that it looks."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog import Lakelog
from lakelog.jobs import JobRun, add_readings, partition_rows
from lakelog.jobs.partition_rows import PartitionRows
from lakelog.operate.status import PartitionStatus, Status
from lakelog.testing.eventually import eventually
from lakelog.values.offsets import LogOffsets
from lakelog.values.topic_partition import TopicPartition

TOPICS = ("a", "b")


@pytest.fixture
def log(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        yield log


@pytest.fixture
def standing(log: Lakelog) -> Status:
    for topic in TOPICS:
        log.topics.create(topic, 2)
    add_readings(log, "a", 10)
    log.archive()
    return log.status()


_AWAY, _WAITS, _MOVES, _CHANGED, _ODD = "away", "waits", "moves", "changed", "odd"
#: What happens between two looks: to each partition, and whether the rows could be written.
_LOOKS = st.lists(
    st.tuples(
        st.dictionaries(
            st.integers(0, 3), st.sampled_from([_WAITS, _MOVES, _CHANGED, _ODD]), max_size=4
        ),
        st.booleans(),
    ),
    max_size=8,
)


@given(looks=_LOOKS)
def test_whoever_reads_the_newest_rows_knows_where_each_partition_stands(
    looks: list[tuple[dict[int, str], bool]],
) -> None:
    rows, seen = PartitionRows(), [_partition(n, 0, 0) for n in range(4)]
    newest: dict[object, PartitionStatus | str] = {}
    for happens, is_written in [({}, True), *looks]:
        changed, odd = set(), set()
        for n, what in happens.items():
            at = seen[n].offsets.log_end + 1
            tp = seen[n].topic_partition
            if what == _CHANGED:
                changed.add(tp)
            elif what == _ODD:
                odd.add(tp.topic)
            else:
                seen[n] = _partition(n, at, at - (what == _WAITS))
        chosen = rows.choose(Status(tuple(seen), (), 0), changed, odd)
        assert chosen.partitions
        assert {one for one in seen if one.unarchived} <= set(chosen.partitions)
        assert changed <= {one.topic_partition for one in chosen.partitions}
        if is_written:
            rows.confirm()
            newest |= {one.topic_partition: one for one in chosen.partitions}
            assert all(newest[one.topic_partition] == one for one in seen)


def _partition(number: int, log_end: int, archived_end: int) -> PartitionStatus:
    topic_partition = TopicPartition(TOPICS[number // 2], number % 2)
    return msgspec.structs.replace(
        _ANY,
        topic_partition=topic_partition,
        offsets=msgspec.structs.replace(_ANY.offsets, log_end=log_end, archived_end=archived_end),
    )


_ANY = PartitionStatus(
    TopicPartition("a", 0),
    True,
    LogOffsets(0, 0, 0, 0, recovered=True),
    hot_size_bytes=0,
    archive_lag_ms=None,
    skipped=(),
    paused=False,
)


def test_a_topic_that_failed_is_told_when_it_is_well_again(standing: Status) -> None:
    rows = PartitionRows()
    for odd, told in (((), 4), (("b",), 2), (("b",), 2), ((), 2), ((), 1)):
        chosen = rows.choose(standing, (), odd)
        rows.confirm()
        assert len(chosen.partitions) == told
    assert {one.topic_partition.topic for one in chosen.partitions} == {"a"}


def test_all_are_told_every_hour(standing: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, counts = PartitionRows(), []
    for now_s in (5.0, 60.0, 3_604.0, 3_605.0, 3_665.0):
        monkeypatch.setattr(partition_rows.time, "monotonic", partial(float, now_s))
        counts.append(len(rows.choose(standing, (), ()).partitions))
        rows.confirm()
    assert counts == [4, 1, 1, 4, 1]


def test_a_continuous_run_over_idle_partitions_leaves_one_row_a_look(
    log: Lakelog, standing: Status
) -> None:
    stop = threading.Event()
    run = JobRun(log, "archive", "4711", rows_interval_s=0.05)
    thread = threading.Thread(target=run.continuously, args=[1.0], kwargs={"stop": stop})
    thread.start()
    try:
        eventually(lambda: run.rows().num_rows >= 10)
    finally:
        stop.set()
        thread.join()
    rows = run.rows()
    looks = len(set(rows["recorded_at"].to_pylist()))
    assert rows.num_rows == 4 + (looks - 2) + 4  # the first look, those between, the run's end
