"""What a frame asks Delta for, held against the rows of many layouts; no Spark and no table."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutants import FRAME_MUTANT
from support.layouts import ColdLayout, LaidFile, RowTable, cold_layouts

from lakelog.cold.registers import CleanedEnd
from lakelog.cold.segment import SegmentIndex, file_name
from lakelog.cold.table import ColdSnapshot
from lakelog.read.tiers import Look
from lakelog.spark.dataframe import condition, divide
from lakelog.values.offsets import HotOffsets, LogOffsets
from lakelog.values.topic_partition import OffsetRange

pytestmark = pytest.mark.slow


def check(layout: ColdLayout, several: Iterable[dict[int, OffsetRange]]) -> None:
    files = layout.index()
    with RowTable(layout.rows()) as table:
        for ranges in several:
            asked = condition(files, ranges)
            assert table.where(asked) == layout.held(ranges), (ranges, asked)


def every_range(layout: ColdLayout) -> Iterator[dict[int, OffsetRange]]:
    """Of each partition, from each place to each other."""
    for partition in layout.log_starts:
        for start, end in combinations_with_replacement(layout.places(partition), 2):
            yield {partition: OffsetRange(start, end)}


def some_ranges(layout: ColdLayout, count: int, seed: int) -> Iterator[dict[int, OffsetRange]]:
    """Of one partition or several, from and to such places."""
    chance = random.Random(seed)
    places = {partition: layout.places(partition) for partition in layout.log_starts}
    for _ in range(count):
        chosen = chance.sample(sorted(places), chance.randint(1, len(places)))
        yield {
            partition: OffsetRange(*sorted(chance.choices(places[partition], k=2)))
            for partition in chosen
        }


@st.composite
def looks(draw: st.DrawFn) -> Look:
    """Of one partition, with the ends of the tiers and gaps anywhere."""
    log_start, cleaned, local, archived, log_end = sorted(
        draw(st.tuples(*[st.integers(0, 30)] * 5))
    )
    local, archived = draw(st.permutations((local, archived)))
    gaps, at = [], 0
    for size, after in draw(st.lists(st.tuples(st.integers(1, 8), st.integers(1, 8)), max_size=3)):
        gaps.append(OffsetRange(at + after, at + after + size))
        at = gaps[-1].end
    cold = ColdSnapshot(3, SegmentIndex(), {CleanedEnd(0): cleaned})
    log = LogOffsets(log_start, max(local, log_start), archived, max(log_end, local), True)
    # Until it is recovered, a server that lost its tail ends below what is archived.
    hot_end = draw(st.integers(local, max(log_end, local)))
    hot = HotOffsets(local, hot_end, -1, 0, gaps=tuple(gaps))
    return Look({0: log}, cold, {0: hot})


@given(looks(), st.tuples(st.integers(0, 30), st.integers(0, 30)))
@settings(max_examples=500)
def test_each_offset_of_a_range_is_read_once_and_what_hot_lost_from_cold(look, ends) -> None:
    start, end = sorted(ends)
    cold, hot = divide(look, {0: OffsetRange(start, end)})
    from_cold = [offset for part in cold for offset in range(*part[0])]
    from_hot = [offset for part in hot for offset in range(*part[0])]
    assert sorted(from_cold + from_hot) == list(range(start, end))
    lost = {offset for gap in look.hot[0].gaps for offset in range(*gap)}
    archived_end = look.offsets[0].archived_end
    lost |= set(range(look.hot[0].log_end, archived_end))
    assert not [one for one in from_hot if one in lost and one < archived_end]
    assert not [one for one in from_cold if one >= archived_end]
    assert all(part[0].start < part[0].end for part in (*cold, *hot))


@given(cold_layouts(), st.integers(0, 999))
@settings(max_examples=300)
def test_a_condition_takes_the_rows_of_its_ranges_and_no_other(layout, seed) -> None:
    check(layout, some_ranges(layout, 16, seed))


@pytest.mark.slow
@given(cold_layouts(partitions=3), st.integers(0, 999))
@settings(max_examples=500)
def test_a_condition_takes_the_rows_of_every_range_and_no_other(layout, seed) -> None:
    check(layout, every_range(layout))
    check(layout, some_ranges(layout, 50, seed))


@given(cold_layouts(partitions=1), st.integers(0, 999))
@settings(max_examples=200)
def test_offsets_are_asked_for_only_where_files_and_segments_cannot_tell(layout, seed) -> None:
    """Else a count would read columns, or open files."""
    files = layout.index()
    filled = [file for file in layout.files if file.offsets]
    for ranges in some_ranges(layout, 16, seed):
        start, end = ranges[0]
        bases = {f.segment for f in filled if any(start <= one < end for one in f.offsets)}
        if not bases:
            continue
        chosen = [file for file in filled if min(bases) <= file.segment <= max(bases)]
        whole = all(start <= one < end for file in chosen for one in file.offsets)
        asked = condition(files, ranges)
        assert ("offset" in (asked or "")) != whole, (start, end, asked)
        assert (asked is None) == (whole and len(chosen) == len(filled)), (start, end, asked)


def laid(segment: int, *ranges: tuple[int, int], partition: int = 0) -> list[LaidFile]:
    """A segment of full files."""
    folder = f"partition={partition}/segment={segment}"
    return [
        LaidFile(
            partition,
            segment,
            f"{folder}/{file_name('archive', start, end, f'{start:032x}')}",
            start,
            end,
            tuple(range(max(start, segment), end)),
        )
        for start, end in ranges
    ]


def asked_for(files: list[LaidFile], start: int, end: int, partition: int = 0) -> str | None:
    layout = ColdLayout(tuple(files), {}, {})
    return condition(layout.index(), {partition: OffsetRange(start, end)})


def test_files_that_share_a_segment_are_told_apart_by_offset() -> None:
    files = laid(0, (0, 100), (100, 200), (200, 300))
    assert asked_for(files, 0, 300) is None
    for start, end in ((0, 100), (100, 200), (0, 200), (100, 300)):
        asked = asked_for(files, start, end)
        assert asked == f"((partition = 0 AND offset >= {start} AND offset < {end}))"


def test_whole_segments_need_no_offset() -> None:
    files = [*laid(0, (0, 10)), *laid(10, (10, 20), (20, 30)), *laid(30, (30, 40))]
    assert asked_for(files, 10, 30) == "((partition = 0 AND segment BETWEEN 10 AND 10))"
    assert asked_for(files, 0, 30) == "((partition = 0 AND segment BETWEEN 0 AND 10))"
    other = laid(0, (0, 10), partition=1)
    assert asked_for([*files, *other], 0, 40) == "((partition = 0))"
    assert asked_for([*files, *other], 0, 10, 1) == "((partition = 1))"


def test_a_segment_behind_a_gap_begins_with_its_first_record() -> None:
    """The range in its file's name begins with the gap, in which a log start may lie."""
    files = [*laid(0, (0, 10)), *laid(1000, (10, 1010))]
    assert asked_for(files, 500, 1010) == "((partition = 0 AND segment BETWEEN 1000 AND 1000))"
    assert asked_for(files, 10, 999) == "false"
    assert asked_for(files, 5, 999) == (
        "((partition = 0 AND segment BETWEEN 0 AND 0)) AND "
        "((partition = 0 AND offset >= 5 AND offset < 999))"
    )


def test_the_property_notices_a_condition_that_looks_at_the_ranges_files_alone() -> None:
    layout = ColdLayout(tuple(laid(0, (0, 1), (1, 2))), {0: 0}, {0: 2})
    check(layout, every_range(layout))
    with FRAME_MUTANT.applied(), pytest.raises(AssertionError):
        check(layout, every_range(layout))
