"""Compaction by Kafka's rules, against a plain-Python cleaner, on real Delta tables."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cleanup.compaction import Compacted, compact
from lakelog.cleanup.plan import cleanable
from lakelog.cold.change import Change
from lakelog.cold.registers import CleanedEnd
from lakelog.values.config import DAY_MS, HOUR_MS

COMPACT = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}


def clean(log, **given_ms: int) -> Compacted:
    """All eligible partitions, once."""
    cold = log.table.snapshot()
    now_ms = given_ms.get("now_ms", log.clock.now_ms())
    chosen = [
        found
        for partition in range(log.topic.partitions)
        if (found := cleanable(log.topic, cold, partition, now_ms)).eligible
    ]
    return compact(log.topic, log.table, cold, chosen, now_ms)


# -- against an oracle ---------------------------------------------------------------------------

keys = st.sampled_from([b"", b"a", b"b", b"c", b"\x00", b"aa"])
values = st.sampled_from([None, b"", b"v", b"w"])
segments = st.lists(st.lists(st.tuples(keys, values), min_size=1, max_size=8), min_size=1)


class Cleaner:
    """Kafka's rule over lists: slow and obvious."""

    def __init__(self, delete_retention_ms: int) -> None:
        self.delete_retention_ms = delete_retention_ms
        self.closed: list[list] = []  # of [offset, key, value, horizon_ms]
        self.open: list = []
        self.end = self.cleaned_end = 0

    def segment(self, pairs: Sequence) -> None:
        if self.open:
            self.closed.append(self.open)
        self.open = [[self.end + at, *pair, None] for at, pair in enumerate(pairs)]
        self.end += len(pairs)

    def clean(self, now_ms: int) -> None:
        records = [record for segment in self.closed for record in segment]
        dirty = {r[1]: r[0] for r in records if r[0] >= self.cleaned_end}
        if not dirty:
            return
        kept = []
        for record in records:
            offset, key, value, horizon_ms = record
            if offset < dirty.get(key, -1):
                continue
            if value is None and horizon_ms is not None and now_ms >= horizon_ms:
                continue
            if value is None and horizon_ms is None:
                record[3] = now_ms + self.delete_retention_ms
            kept.append(record)
        self.closed = [kept]
        self.cleaned_end = self.open[0][0]

    def left(self) -> list:
        return [tuple(r[:3]) for segment in [*self.closed, self.open] for r in segment]


rounds_of = st.lists(
    st.tuples(segments, st.sampled_from([0, HOUR_MS, DAY_MS - 1, DAY_MS])), min_size=1, max_size=4
)
buffers_of = st.sampled_from([None, 64, 300])


@settings(max_examples=10)
@given(rounds=rounds_of, buffer_bytes=buffers_of)
def test_it_keeps_what_kafkas_cleaner_keeps(cold_log, rounds, buffer_bytes):
    check_against_the_cleaner(cold_log, rounds, buffer_bytes)


@pytest.mark.slow
@settings(max_examples=200)
@given(rounds=rounds_of, buffer_bytes=buffers_of)
def test_it_keeps_what_kafkas_cleaner_keeps_in_many_logs(cold_log, rounds, buffer_bytes):
    check_against_the_cleaner(cold_log, rounds, buffer_bytes)


def check_against_the_cleaner(cold_log, rounds, buffer_bytes):
    log = cold_log(**COMPACT)
    if buffer_bytes is not None:
        monkeypatched = pytest.MonkeyPatch()
        monkeypatched.setattr(
            type(log.topic.config), "dedupe_buffer_bytes", property(lambda _: buffer_bytes)
        )
    try:
        oracle = Cleaner(DAY_MS)
        for given_segments, wait_ms in rounds:
            for pairs in given_segments:
                log.segment(pairs)
                oracle.segment(pairs)
            log.clock.advance(wait_ms)
            clean(log)
            oracle.clean(log.clock.now_ms())
            assert log.left() == oracle.left()
            assert log.table.snapshot().cleaned_end(0) == oracle.cleaned_end
    finally:
        if buffer_bytes is not None:
            monkeypatched.undo()


@pytest.mark.parametrize(
    ("cleaned_end", "compacted_again"),
    [(1, False), (5, False), (6, False), (7, True), (2**40, True)],
)
def test_a_cleaned_end_past_the_archived_end_begins_again_at_the_log_start(
    cold_log, caplog, cleaned_end, compacted_again
):
    """Kafka: `LogCleanerManager.cleanableOffsets` resets a checkpoint that the log contradicts."""
    log = cold_log(**COMPACT)
    for _ in range(3):
        log.segment([(b"a", b"v"), (b"b", b"w")])
    assert log.table.snapshot().archived_end(0) == 6
    log.table.apply(Change(registers={CleanedEnd(0): cleaned_end}), log.table.snapshot())

    clean(log)

    assert ("is compacted up to offset" in caplog.text) == compacted_again
    if compacted_again or cleaned_end == 1:
        assert [offset for offset, *_ in log.left()] == [2, 3, 4, 5]
        assert log.table.snapshot().cleaned_end(0) == 4
        caplog.clear()
        clean(log)
        assert caplog.text == ""
    else:
        assert [offset for offset, *_ in log.left()] == [0, 1, 2, 3, 4, 5]


# -- the rules, one by one -----------------------------------------------------------------------


def test_only_segments_with_something_to_drop_are_rewritten(cold_log):
    log = cold_log(**COMPACT)
    log.segment([(b"a", b"1"), (b"b", b"1")])
    log.segment([(b"c", b"1"), (b"d", b"1")])
    log.segment([(b"a", b"2"), (b"e", b"1")])
    log.segment([(b"open", b"1")])
    before = {file.segment: file.path for file in log.table.snapshot().files}
    done = clean(log)
    after = {file.segment: file.path for file in log.table.snapshot().files}
    assert before[0] != after[0]
    assert {base: path for base, path in before.items() if base} == {
        base: path for base, path in after.items() if base
    }
    (report,) = done.done
    assert (report.segments_before, report.segments_rewritten, report.segments_after) == (3, 1, 3)
    assert (report.records_read, report.records_kept, report.records_dropped) == (6, 5, 1)
    assert report.keys == 5
    assert report.bytes_read - report.bytes_kept == report.bytes_dropped
    assert report.dirty_ratio_before == 1.0


def test_neighbours_that_are_rewritten_merge_up_to_a_segment_into_the_firsts_base(cold_log):
    log = cold_log(**COMPACT)
    for at in range(4):
        log.segment([(b"a", b"x"), (b"%d" % at, b"x"), (b"a", b"x")])
    log.segment([(b"open", b"1")])
    clean(log)
    files = log.table.snapshot().files.of_partition(0)
    assert [(f.segment, f.start_offset, f.end_offset, f.records) for f in files] == [
        (0, 0, 12, 5),
        (12, 12, 13, 1),
    ]


def test_a_merge_stops_where_the_segment_would_grow_too_large(cold_log):
    log = cold_log(**COMPACT, **{"internal.segment.bytes": "60000"})
    noise = random.Random(1)
    for at in range(6):
        pairs = [(b"%d-%d" % (at, n), noise.randbytes(800)) for n in range(30)]
        log.segment([(b"a", b""), *pairs, (b"a", b"")])
    log.segment([(b"open", b"1")])
    clean(log)
    *closed, _ = log.table.snapshot().files.of_partition(0)
    assert [file.segment for file in closed] == [0, 64, 128]
    assert all(file.size_bytes < 60_000 for file in closed)
    assert len(log.left()) == 6 * 30 + 1 + 1


def test_keyless_records_are_dropped_and_told(cold_log):
    log = cold_log(**COMPACT)
    log.segment([(None, b"1"), (b"a", b"1"), (None, None)])
    log.segment([(None, b"2"), (b"b", b"1")])
    log.segment([(None, b"open")])
    (report,) = clean(log).done
    assert log.left() == [(1, b"a", b"1"), (4, b"b", b"1"), (5, None, b"open")]
    assert report.keyless_dropped == 3
    (warning,) = report.warnings
    assert "dropped 3 records without a key" in warning


def test_a_segment_that_loses_all_its_records_keeps_its_range(cold_log):
    log = cold_log(**COMPACT)
    log.segment([(b"a", b"1")])
    log.segment([(b"b", b"1")])
    log.segment([(b"a", b"2")])
    log.segment([(b"open", b"1")])
    clean(log)
    files = log.table.snapshot().files.of_partition(0)
    assert [(f.start_offset, f.end_offset, f.records) for f in files] == [
        (0, 1, 0),
        (1, 2, 1),
        (2, 3, 1),
        (3, 4, 1),
    ]
    log.segment([(b"b", b"2")])
    log.segment([(b"open", b"2")])
    clean(log)  # what holds nothing joins its neighbour
    files = log.table.snapshot().files.of_partition(0)
    assert [(f.segment, f.end_offset, f.records) for f in files][:2] == [(0, 2, 0), (2, 3, 1)]


def test_records_without_a_timestamp_are_as_young_as_their_file(cold_log):
    log = cold_log(**COMPACT, **{"min.compaction.lag.ms": str(HOUR_MS)})
    log.times_ms.update(dict.fromkeys(range(2), -1))
    for _ in range(2):
        log.segment([(b"a", b"1")])
    written_ms = log.table.snapshot().files.segments(0)[0].modified_ms
    young = cleanable(log.topic, log.table.snapshot(), 0, written_ms + HOUR_MS - 1)
    assert (young.first_uncleanable, young.eligible) == (0, False)
    old = cleanable(log.topic, log.table.snapshot(), 0, written_ms + HOUR_MS)
    assert (old.first_uncleanable, old.eligible) == (1, True)


# -- what it reads and writes ----------------------------------------------------------------------


@pytest.mark.parametrize("damage", ["missing", "corrupt"])
def test_a_partition_with_a_bad_file_is_named_and_the_others_are_cleaned(cold_log, damage):
    log = cold_log(partitions=2, **COMPACT)
    for partition in (0, 1):
        log.segment([(b"a", b"1"), (b"a", b"2")], partition=partition)
        log.segment([(b"open", b"1")], partition=partition)
    bad = log.table.snapshot().files.of_partition(1)[0].path
    file = Path(log.table.path) / bad
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes()[:-20] + b"x" * 20)
    done = clean(log)
    assert [one.topic_partition.partition for one in done.done] == [0]
    assert bad in str(done.failed[1])
    assert [offset for offset, _, _ in log.left(0)] == [1, 2]
