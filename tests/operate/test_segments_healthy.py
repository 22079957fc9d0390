"""Logs to which nothing but life happened: nothing is found."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from lakelog.cold.change import Change, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.parquet.file_scan import scan_file
from lakelog.cold.registers import CleanedEnd
from lakelog.values.config import Compression, EntryFormat


def counted(bench: Any, **more: Any) -> int:
    """How many records were read, of a log in which nothing is found."""
    seen = 0

    def progress(count: int) -> None:
        nonlocal seen
        seen += count

    assert bench.findings(progress=progress, **more) == []
    return seen


def test_nothing_was_appended_yet(bench):
    assert counted(bench) == 0


@pytest.mark.parametrize("entry_format", [EntryFormat.ARROW, EntryFormat.FIELDS, EntryFormat.KAFKA])
@pytest.mark.parametrize("compression", list(Compression))
def test_hot_alone(bench, entry_format, compression):
    bench.appends(20, entry_format=entry_format, compression=compression)
    assert counted(bench) == 400


def test_untiered_with_its_retention(make_bench):
    bench = make_bench(
        **{"remote.storage.enable": False, "retention.bytes": 9_000, "retention.ms": -1}
    )
    bench.appends(40)
    assert bench.offsets.log_start > 0
    assert counted(bench) > 0
    bench.log.raise_log_start(0, 777)
    assert counted(bench) == 23 + 17  # the entry that holds 777 is whole


def test_both_tiers_overlapping(full):
    assert counted(full) == 300 + 200


def test_trimmed_in_the_middle_of_an_entry(full):
    full.trim(291)
    assert counted(full) == 300 + 120


def test_trimmed_to_the_end(full):
    full.archive()
    full.trim(400)
    assert counted(full) == 400
    full.append(5)
    assert counted(full) == 405


def test_times_that_go_back_and_records_without_one(full):
    full.appends(10, times=lambda offset: -1 if offset % 7 == 0 else 10**12 - offset)
    full.appends(3, times=lambda _: -1)
    full.archive()
    assert counted(full) == 660 + 460


def test_append_time(make_bench):
    bench = make_bench(**{"message.timestamp.type": "LogAppendTime"})
    bench.appends(10, entry_format=EntryFormat.FIELDS)
    bench.appends(10)
    bench.archive(300)
    assert counted(bench) == 700


def test_a_recovery_gap_in_every_place_it_can_have(full):
    full.lose_tail()
    assert counted(full) == 300 + 200  # hot alone
    full.appends(5)
    assert counted(full) == 300 + 300
    full.archive()
    assert counted(full) == 500 + 300  # in the name of a file
    full.trim(full.offsets.log_end - 30)
    assert counted(full) == 500 + 40  # trimmed from the hot tier
    full.lose_tail()
    full.lose_tail()  # one after the other
    full.append(20)
    assert counted(full) == 500 + 60


def compact(bench: Any) -> int:
    """Two neighbours become one, less two thirds of their records; how many that leaves."""
    snapshot = bench.table.snapshot()
    files = tuple(f for s in snapshot.files.segments(0)[:2] for f in s.files)
    end = files[-1].end_offset
    without = OffsetSet.of(at for at in range(end) if at % 3)
    change = Change(
        (Rewrite(bench.tp, files[0].segment, files, without, 1_800_000_000_000),),
        files,
        {CleanedEnd(0): end},
    )
    assert not bench.table.apply(change, snapshot).superseded
    return len(range(0, end, 3)) + 300 - end


def test_compacted_while_hot_still_holds_all(bench):
    bench.appends(20)
    bench.archive(300)
    left = compact(bench)
    assert counted(bench) == left + 400


def optimize(bench: Any) -> None:
    DeltaTable(bench.table.path).optimize.z_order(["value"])
    tasks = bench.files()
    assert any("part-" in file.path for file in tasks)


def test_optimized_by_somebody_after_compaction_and_a_gap(full):
    full.lose_tail()
    full.appends(10)
    full.archive()
    left = compact(full)
    optimize(full)
    assert counted(full) == left + 300 + 400


def test_several_files_of_a_segment_made_one(full):
    for end in (310, 330, 350):
        full.archive(end)
    snapshot = full.table.snapshot()
    files = snapshot.files.segments(0)[-1].files
    assert len(files) > 1
    rewrite = Rewrite(full.tp, files[0].segment, files)
    full.table.apply(Change((rewrite,), files, data_change=False), snapshot)
    assert counted(full) == 350 + 200


@pytest.mark.parametrize(
    ("start", "end", "read"), [(0, 10, None), (210, 220, None), (255, None, None), (500, 600, 0)]
)
def test_a_part_of_the_log(full, start, end, read):
    seen = counted(full, start_offset=start, end_offset=end)
    assert read is None or seen == read


@pytest.mark.parametrize("tier", ["hot", "cold"])
def test_one_tier(full, tier):
    assert counted(full, tiers=(tier,)) == {"hot": 200, "cold": 300}[tier]


# -- beside others -------------------------------------------------------------------------------


def test_what_is_appended_archived_and_trimmed_meanwhile_is_no_finding(full, monkeypatch):
    inspection = full.hot.inspection()
    pages = type(inspection).pages

    def busy(self: Any, *args: Any, **more: Any) -> Any:
        for number, page in enumerate(pages(self, *args, **more)):
            if number == 1:
                full.appends(3)
                full.archive()
                full.trim(350)
            yield page

    monkeypatch.setattr(type(inspection), "pages", busy)
    assert full.findings() == []


@pytest.mark.parametrize("moment", ["scan", "compare"])
def test_a_file_that_was_rewritten_and_vacuumed_meanwhile_is_looked_for_again(
    full, monkeypatch, moment
):
    happened = []

    def rewrite() -> None:
        if happened:
            return
        happened.append(True)
        snapshot = full.table.snapshot()
        for segment in snapshot.files.segments(0):
            files = segment.files
            change = Change((Rewrite(full.tp, segment.base_offset, files),), files)
            snapshot = full.table.apply(change, snapshot).snapshot
            for file in files:
                full.path(file).unlink()

    if moment == "scan":

        def scan(reader: Any, task: Any) -> Any:
            rewrite()
            return scan_file(reader, task)

        monkeypatch.setattr("lakelog.cold.by_path.path_table.scan_file", scan)
    else:
        read = full.table.read

        def reading(*args: Any) -> Any:
            rewrite()
            return read(*args)

        monkeypatch.setattr(full.table, "read", reading)
    assert full.findings() == []
    assert happened


def test_memory_holds_a_slice_not_the_log(make_bench):
    """Only what a page or a row group brings: measured as what Arrow held at most."""
    bench = make_bench(**{"internal.segment.bytes": 2**22})
    for _ in range(6):
        bench.append(20_000, times=lambda offset: offset)
    bench.archive()
    pool = pa.default_memory_pool()
    before = pool.bytes_allocated()
    most = 0

    def progress(_: int) -> None:
        nonlocal most
        most = max(most, pool.bytes_allocated() - before)

    assert bench.findings(progress=progress) == []
    assert most < 64 * 1024 * 1024
