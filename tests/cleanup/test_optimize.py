"""Optimize: fewer files, the same records, and no news for readers of the Delta table."""

from __future__ import annotations

from uuid import uuid4

import pyarrow as pa
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cleanup.optimize import optimize_change, plan_optimize
from lakelog.cleanup.plan import plan_cleanup
from lakelog.cold.change import Change, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import CleanedEnd
from lakelog.cold.segment import COLUMNS, SegmentFile, SegmentIndex, is_ours
from lakelog.cold.table import ColdSnapshot
from lakelog.values.topic import Topic


def optimize(log) -> None:
    cold = log.table.snapshot()
    log.table.apply(optimize_change(plan_optimize(log.topic, cold)), cold)


def layout(log, partition: int = 0) -> list[tuple[int, int, int]]:
    files = log.table.snapshot().files.of_partition(partition)
    return [(file.segment, file.start_offset, file.end_offset) for file in files]


def pairs(count: int) -> list[tuple[bytes, bytes]]:
    return [(b"k%d" % at, b"v" * 50) for at in range(count)]


def test_each_segment_becomes_one_file(cold_log):
    log = cold_log(partitions=2)
    log.segment(pairs(10), pairs(20), pairs(5))
    log.segment(pairs(10))
    log.segment(pairs(10), partition=1)
    before = log.left(0)
    optimize(log)
    assert layout(log) == [(0, 0, 35), (35, 35, 45)]
    assert layout(log, 1) == [(0, 0, 10)]
    assert log.left(0) == before


def test_what_a_stranger_merged_is_sorted_again(cold_log):
    log = cold_log()
    log.segment(pairs(30), pairs(30))
    log.segment(pairs(1))
    before = log.left()
    DeltaTable(log.table.path).optimize.z_order(["value"])
    cold = log.table.snapshot()
    assert not all(is_ours(file.path) for file in cold.files)
    (planned,) = plan_cleanup(log.topic, cold, log.clock.now_ms()).steps
    assert planned.action == "sort"
    assert planned.why.startswith("somebody else wrote the file")
    optimize(log)
    assert all(is_ours(file.path) for file in log.table.snapshot().files)
    assert log.left() == before


def test_emptied_segments_that_follow_each_other_become_one_but_not_over_a_gap(cold_log):
    log = cold_log(**{"cleanup.policy": "compact"})
    for base in (None, None, None, 20, None, None):  # a tail was lost before 20
        log.segment([(b"a", b"v")], base=base)
    cold = log.table.snapshot()
    *emptied, newest = cold.files.of_partition(0)
    log.table.apply(
        Change(
            adds=tuple(
                Rewrite(log.topic.partition(0), file.segment, (file,), OffsetSet.of(range(30)))
                for file in emptied
            ),
            removes=tuple(emptied),
            registers={CleanedEnd(0): newest.start_offset},
        ),
        cold,
    )
    optimize(log)
    assert layout(log) == [(0, 0, 3), (20, 3, 22), (22, 22, 23)]
    assert plan_optimize(log.topic, log.table.snapshot()) == []
    assert log.left() == [(22, b"a", b"v")]


@settings(max_examples=200)
@given(sizes=st.lists(st.integers(1, 1000), min_size=1, max_size=60))
def test_archiving_again_and_again_leaves_few_files_and_copies_each_record_seldom(sizes):
    """A model of the open segment: one more file, then optimize, and so on."""
    topic = Topic("t", uuid4(), 1)
    files: list[SegmentFile] = []
    copied = 0
    end = 0
    for size in sizes:
        files.append(a_file(end, end + size, size))
        end += size
        for rewrite in plan_optimize(topic, ColdSnapshot(1, index_of(files))):
            merged = sum(file.size_bytes for file in rewrite.files)
            copied += merged
            start = rewrite.files[0].start_offset
            files = [file for file in files if file.start_offset < start]
            files.append(a_file(start, end, merged))
        total = sum(sizes)
        assert len(files) <= 1 + total.bit_length()
    assert copied <= total * (1 + total.bit_length())


def a_file(start: int, end: int, size_bytes: int) -> SegmentFile:
    path = f"partition=0/segment=0/archive-{start:020}-{end:020}-{'0' * 32}.parquet"
    return SegmentFile(0, 0, path, size_bytes, end - start, start, end, 0, 0, 0)


def index_of(files: list[SegmentFile]) -> SegmentIndex:
    rows = [
        {
            **{name: getattr(file, name) for name in COLUMNS.names[:10]},
            "first": file.start_offset,
            "last": file.end_offset - 1,
            "ours": True,
        }
        for file in files
    ]
    return SegmentIndex(pa.Table.from_pylist(rows, schema=COLUMNS))
