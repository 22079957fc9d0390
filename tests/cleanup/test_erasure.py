"""Erasing records out of a table at a path: offsets stay, gaps appear, no byte stays anywhere."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.base.failpoints import armed
from lakelog.cleanup.compaction import compact
from lakelog.cleanup.erasure import Erasure
from lakelog.cleanup.optimize import optimize_change, plan_optimize
from lakelog.cleanup.plan import cleanable
from lakelog.cold.change import Change
from lakelog.cold.registers import LogStart
from lakelog.errors import CommitConflictError, MissingFileError

SECRET = b"GEHEIM-7f3a9c51"  # nothing else has these bytes


class Crash(BaseException):
    """What a kill does to a run: nothing catches it."""


def crash() -> None:
    raise Crash


class Keys:
    """Matches records by key."""

    def __init__(self, *keys: bytes) -> None:
        self.keys = frozenset(keys)
        self.columns = ["offset", "key"]

    def may_match(self, file) -> bool:
        return True

    def holds(self, records: pa.RecordBatch, partition: int) -> np.ndarray:
        among = pa.array(sorted(self.keys), pa.binary())
        return pc.is_in(records.column("key"), among).to_numpy(zero_copy_only=False).copy()


def erasure(log, condition) -> Erasure:
    return Erasure(log.topic, log.open(), condition)


def folder(log) -> Path:
    return Path(log.table.path)


def bytes_below(path: Path) -> Iterator[bytes]:
    """All bytes of all files, and of all columns of Parquet files as they are decoded."""
    for file in path.rglob("*"):
        if file.is_file():
            yield file.read_bytes()
            if file.suffix == ".parquet":
                for column in pq.read_table(file, partitioning=None).columns:
                    yield repr(column.to_pylist()).encode()


def holds_secret(path: Path) -> bool:
    return any(SECRET in content for content in bytes_below(path))


@given(
    segments=st.lists(
        st.lists(
            st.lists(st.sampled_from([b"a", b"b", SECRET]), min_size=1, max_size=4),
            min_size=1,
            max_size=3,
        ),
        min_size=1,
        max_size=4,
    ),
    bloom=st.booleans(),
)
@settings(max_examples=20)
def test_just_the_matches_go_and_offsets_stay(cold_log, segments, bloom):
    log = cold_log(**{"lakelog.key.bloom.filter": bloom})
    for files in segments:
        log.segment(*([(key, b"v %s" % key) for key in keys] for keys in files))
    before = log.left()
    end = len(before)
    named = {file.path for file in log.table.snapshot().files}
    expected = [one for one in before if one[1] != SECRET]
    if before[-1][1] == SECRET:
        expected.append((end - 1, None, None))
    gone = [one[0] for one in before if one[1] == SECRET]

    planned = erasure(log, Keys(SECRET)).plan()
    done = erasure(log, Keys(SECRET)).run()

    assert log.left() == expected
    assert done.records == planned.records == len(gone)
    after = log.open().snapshot()
    assert after.archived_end(0) == end
    assert after.erased_end(0) == max([o + 1 for o in gone if o != end - 1], default=0)
    assert not holds_secret(folder(log))
    # only files that held a match were touched
    kept = {file.path for file in after.files} & named
    held = [f for f in segments for f in f]
    assert len(kept) == sum(SECRET not in keys for keys in held)
    assert {one.path for one in done.discarded} == named - kept
    # again: there is nothing left
    again = erasure(log, Keys(SECRET)).run()
    assert (again.records, again.discarded) == (0, ())
    assert again.versions[0] == again.versions[1]


def test_files_that_earlier_cleanups_removed_are_looked_through_too(cold_log):
    """Compaction dropped the record, but its file waits for vacuum."""
    log = cold_log(**{"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"})
    log.segment([(SECRET, b"old"), (b"a", b"v")])
    log.segment([(SECRET, None), (b"a", b"w")])
    log.segment([(b"b", b"v")])
    cold = log.table.snapshot()
    now_ms = log.clock.now_ms()
    compact(log.topic, log.table, cold, [cleanable(log.topic, cold, 0, now_ms)], now_ms)
    assert holds_secret(folder(log))

    done = erasure(log, Keys(SECRET)).run()

    assert done.records == 1  # the tombstone
    assert done.leftovers == 2
    assert not holds_secret(folder(log))


def test_what_was_written_again_stays_where_somebody_deleted_the_new_file(cold_log):
    """As a full VACUUM with a retention of 0 does; else no copy of the other records was left."""
    log = cold_log()
    log.segment([(SECRET, b"v"), (b"a", b"v")])
    named = {file.path for file in log.table.snapshot().files}

    def vacuum() -> None:
        (written,) = log.open().snapshot().files
        (folder(log) / written.path).unlink()

    with armed("erase.after_commit", vacuum), pytest.raises(MissingFileError) as error:
        erasure(log, Keys(SECRET)).run()

    assert "Nothing was deleted" in str(error.value)
    assert all((folder(log) / path).exists() for path in named)


def test_what_a_failed_archive_left_goes_whatever_its_age(cold_log):
    log = cold_log()

    with armed("cold.before_commit", crash), pytest.raises(Crash):
        log.segment([(SECRET, b"v"), (b"a", b"v")])
    log.segment([(SECRET, b"v"), (b"a", b"v")])
    assert len(list(folder(log).rglob("archive-*.parquet"))) == 2

    done = erasure(log, Keys(SECRET)).run()

    assert len(done.discarded) == 2
    assert done.beyond == ()
    assert not holds_secret(folder(log))


def test_what_a_commit_under_way_may_name_is_told_and_left(cold_log):
    """It lies above the archived end, so an archiver may be about to commit it."""
    log = cold_log()
    log.segment([(b"a", b"v")])

    with armed("cold.before_commit", crash), pytest.raises(Crash):
        log.segment([(SECRET, b"v")])

    (beyond,) = erasure(log, Keys(SECRET)).run().beyond

    assert "archive-00000000000000000001" in beyond
    assert "under way" in beyond


def test_statistics_of_value_columns_go_from_the_tables_log(cold_log):
    log = cold_log(**{"lakelog.value.columns": "name string"})
    log.segment([(SECRET, b'{"name":"%s"}' % SECRET)])
    log.segment([(b"a", b'{"name":"x"}')])
    assert any(SECRET in f.read_bytes() for f in (folder(log) / "_delta_log").glob("*.json"))

    done = erasure(log, Keys(SECRET)).run()

    assert done.history_forgotten
    assert not holds_secret(folder(log))
    assert log.left() == [(1, b"a", b'{"name":"x"}')]
    # an object that knew the table before goes on
    assert log.table.snapshot().version == log.open().snapshot().version
    log.segment([(b"b", b'{"name":"y"}')])
    assert [one[1] for one in log.left()] == [b"a", b"b"]


def test_a_log_that_holds_no_values_keeps_its_versions(cold_log):
    log = cold_log()
    log.segment([(SECRET, b"v"), (b"a", b"v")])
    assert not erasure(log, Keys(SECRET)).run().history_forgotten
    assert (folder(log) / "_delta_log" / f"{0:020}.json").exists()


def test_who_optimizes_the_same_files_meanwhile_makes_it_plan_again(cold_log):
    log = cold_log()
    log.segment([(SECRET, b"v"), (b"a", b"v")], [(b"b", b"v")])
    log.segment([(b"c", b"v")])
    other = log.open()
    done = []

    def optimize() -> None:
        if not done:
            cold = other.snapshot()
            done.append(other.apply(optimize_change(plan_optimize(log.topic, cold)), cold))

    with armed("erase.after_plan", optimize):
        report = erasure(log, Keys(SECRET)).run()

    assert report.records == 1
    assert [one[0] for one in log.left()] == [1, 2, 3]
    assert not holds_secret(folder(log))


def test_whoever_is_overtaken_each_time_says_so(cold_log):
    log = cold_log()
    log.segment([(SECRET, b"v"), (b"a", b"v")])
    other = log.open()

    def rewrite() -> None:
        cold = other.snapshot()
        files = tuple(cold.files.of_partition(0))
        from lakelog.cold.change import Rewrite

        other.apply(Change((Rewrite(log.topic.partition(0), 0, files),), files), cold)

    with armed("erase.after_plan", rewrite), pytest.raises(CommitConflictError, match="overtaken"):
        erasure(log, Keys(SECRET)).run()


def test_what_lies_below_the_log_start_is_erased_too(cold_log):
    """Retention has hidden it, but the file still has its bytes."""
    log = cold_log()
    log.segment([(SECRET, b"v"), (b"a", b"v"), (b"b", b"v")])
    log.table.apply(Change(registers={LogStart(0): 1}), log.table.snapshot())
    assert erasure(log, Keys(SECRET)).run().records == 1
    assert not holds_secret(folder(log))
