"""Searches over partitions, against a plain list of what they hold, whatever happens to a log."""

from __future__ import annotations

import heapq
import math
import random
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pytest
from gapped_story import Story, beginnings, happenings
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold import rows as cold_rows
from lakelog.cold.by_path.path_table import PathTable
from lakelog.errors import InvalidArgumentError, MissingFileError, UnknownTopicOrPartitionError
from lakelog.read import search as searching
from lakelog.read import search_scan
from lakelog.read import seek as seeking
from lakelog.read.found import EDGE, STOPPED, SearchLimit
from lakelog.read.tiers import Tiers
from lakelog.read.topic_log import TopicLog
from lakelog.values.config import EntryFormat
from lakelog.values.record import Record

Row = tuple[int, int]  # partition and offset


def rows(table: pa.Table) -> list[Row]:
    return list(zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True))


def merged(held: list[list[Record]], backward: bool = False) -> list[Row]:
    """All records by rank, said plainly."""
    ranked = []
    for records in held:
        sign = -1 if backward else 1
        in_turn = records[::-1] if backward else records
        times = [sign * r.timestamp_ms if r.timestamp_ms >= 0 else -math.inf for r in in_turn]
        ranks = accumulate(times, max)
        ranked.append(
            [(rank, r.partition, r.offset) for rank, r in zip(ranks, in_turn, strict=True)]
        )
    by = heapq.merge(*ranked, key=lambda one: one[:2])
    found = [(partition, offset) for _, partition, offset in by]
    return found[::-1] if backward else found


def pages(search: Any, sizes: Any, backward: bool = False, **more: Any) -> list[Row]:
    found: list[list[Row]] = []
    after = None
    while True:
        page = search.page(next(sizes), after, backward=backward, **more)
        found.append(rows(page.records))
        after = page.next
        if page.ended == EDGE:
            break
    if backward:
        found.reverse()
    return [row for page in found for row in page]


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "_MOST_STEP_BYTES", 600)
    monkeypatch.setattr(searching, "_LEAST_STEP_BYTES", 600)
    monkeypatch.setattr(search_scan, "_FIRST_STRETCH", 4)
    monkeypatch.setattr(cold_rows, "ROW_GROUP_ROWS", 4)


@given(beginning=beginnings, steps=st.lists(happenings, max_size=8), seed=st.integers(0, 999))
@settings(max_examples=6)
def test_it_finds_what_a_list_says_it_should(make_bench, beginning, steps, seed):
    chance = random.Random(seed)
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    held = [story.held(partition) for partition in range(2)]
    log = story.bench.log
    with pytest.MonkeyPatch.context() as patch:
        if chance.random() < 0.7:  # of many partitions, the indexes say first which to search
            patch.setattr(seeking, "_ASKED_ONE_BY_ONE", 1)
        _check_searches(log, held, chance)


def _check_searches(log: TopicLog, held: list[list[Record]], chance: random.Random) -> None:
    for time_ms in (0, 5, 20, 41):
        assert log.seek_each(f"@{time_ms}") == {n: log.seek(n, f"@{time_ms}") for n in range(2)}

    everything = log.search()
    assert rows(everything.to_arrow()) == merged(held)
    found = list(everything.records())
    assert sorted(found, key=lambda r: (r.partition, r.offset)) == held[0] + held[1]

    def sizes() -> Any:
        while True:
            yield chance.randint(1, 9)

    assert pages(everything, sizes()) == merged(held)
    assert pages(everything, sizes(), backward=True) == merged(held, backward=True)
    limit = SearchLimit(records=chance.randint(1, 40))
    for backward in (False, True):
        each = pages(everything, sizes(), backward, limit=limit)
        assert sorted(each) == sorted(merged(held))

    for low, high in [(0, 20), (15, 15), (30, 60), (-1, 5)]:
        asked = log.search(f'time >= "@{max(low, 0)}" and time <= "@{high}"')
        expected = {
            (r.partition, r.offset)
            for records in held
            for r in records
            if max(low, 0) <= r.timestamp_ms <= high
        }
        for answer in (rows(asked.to_arrow()), pages(asked, sizes()), pages(asked, sizes(), True)):
            assert len(answer) == len(expected)
            assert set(answer) == expected
            for partition in range(2):
                own = [offset for of, offset in answer if of == partition]
                assert own == sorted(own)

    for text, holds in [
        ("v1", lambda r: b"v1" in r.value or b"v1" in r.key),
        ("partition = 1 and offset >= 3", lambda r: r.partition == 1 and r.offset >= 3),
        ('key in ("k3", "k5")', lambda r: r.key in (b"k3", b"k5")),
        ("partition = 9", lambda r: False),
    ]:
        kept = {(r.partition, r.offset) for records in held for r in records if holds(r)}
        expected_rows = [row for row in merged(held) if row in kept]
        search = log.search(text)
        if text == "v1":
            assert rows(search.to_arrow()) == expected_rows
            continue
        # What is not read has no part in ranks.
        for answer in (
            rows(search.to_arrow()),
            pages(search, sizes()),
            pages(search, sizes(), True),
        ):
            assert sorted(answer) == sorted(expected_rows)
            for partition in range(2):
                own = [offset for of, offset in answer if of == partition]
                assert own == sorted(own)


def test_a_search_for_keys_reads_the_row_groups_that_have_them(make_bench):
    bench = make_bench(partitions=2)
    for partition in range(2):
        for hour in range(6):
            bench.append([hour * 100 + n for n in range(20)], partition=partition)
            bench.archive(partition=partition)
        bench.trim(120, partition=partition)
    held = list(bench.log.search().records())
    keys = sorted({record.key for record in held})
    for key in (keys[0], keys[-1], b"nowhere"):
        search = bench.log.search(f"key = 0x{key.hex()}")
        for backward in (False, True):
            page = search.page(1_000, backward=backward)
            assert sorted(rows(page.records)) == sorted(
                (record.partition, record.offset) for record in held if record.key == key
            )
            assert page.progress.read + page.progress.skipped == page.progress.total == 240
            if key == b"nowhere":
                assert page.progress.read == 0


def test_a_file_that_was_rewritten_during_a_search_for_keys_is_read_where_it_is(
    make_bench, monkeypatch
):
    bench = make_bench(partitions=1)
    for _ in range(3):
        bench.append(list(range(20)))
        bench.archive()
    bench.trim(60)
    wanted = next(bench.log.search().records()).key
    search = bench.log.search(f"key = 0x{wanted.hex()}")
    expected = rows(search.to_arrow())

    def gone(*_: object) -> object:
        raise MissingFileError("it was vacuumed", path="it")

    monkeypatch.setattr(PathTable, "with_keys", gone)
    with pytest.raises(MissingFileError):  # nobody rewrote anything
        search.to_arrow()
    monkeypatch.setattr(Tiers, "outdated", lambda *_: True)
    assert rows(search.to_arrow()) == expected


def test_what_cannot_match_is_not_read(make_bench):
    bench = make_bench(partitions=2)
    for partition in range(2):
        for hour in range(6):
            bench.append([hour * 100 + n for n in range(20)], partition=partition, value_bytes=100)
            if hour < 4:
                bench.archive(partition=partition)
        bench.trim(80, partition=partition)
    page = bench.log.search('time >= "@110" and time < "@130"').page(100)
    assert len(rows(page.records)) == 20
    assert page.ended == EDGE
    assert page.progress.read <= 2 * (20 + 40)  # the hot segments say no least timestamp
    assert page.progress.read + page.progress.skipped == page.progress.total == 240
    assert page.progress.share == 1.0
    assert bench.log.search("partition = 1 and offset < 7").page(100).progress.read <= 20


@pytest.mark.parametrize("tail", [False, True], ids=["cold", "with a hot tail"])
def test_a_page_of_many_partitions_reads_those_it_takes_records_from(make_bench, tail):
    """Also where Redis holds their ends, of which it does not say the least timestamp."""
    bench = make_bench(partitions=100)
    for partition in range(100):
        bench.append([1000 * partition + n for n in range(4)], partition=partition)
        bench.archive(4, partition=partition)
        bench.trim(4, partition=partition)
        if tail:
            bench.append([10**6 + partition], partition=partition)
    told = []
    page = bench.log.search().page(10, on_progress=told.append)
    assert rows(page.records) == [(n // 4, n % 4) for n in range(10)]
    assert page.progress.read <= 16
    assert len(told) <= 5
    rest = bench.log.search().page(1000, page.next)
    assert len(rows(rest.records)) == 390 + 100 * tail
    assert rows(rest.records)[0] == (2, 2)


def test_it_can_be_stopped_and_goes_on(make_bench):
    bench = make_bench(partitions=2)
    for partition in range(2):
        bench.append(list(range(200)), partition=partition, value_bytes=100)
    seen = []
    search = bench.log.search("v1")
    page = search.page(1000, on_progress=seen.append, stopped=lambda: len(seen) == 3)
    assert page.ended == STOPPED
    assert len(seen) == 3
    assert 0 < seen[0].share < seen[-1].share < 1
    rest = search.page(1000, page.next)
    assert rest.ended == EDGE
    together = rows(page.records) + rows(rest.records)
    assert sorted(together) == sorted(rows(search.to_arrow()))
    assert len(together) == len(set(together))


def test_offsets_count_where_a_partition_has_them(make_bench):
    bench = make_bench(partitions=3)
    bench.append([1] * 10, partition=0)
    bench.append([2] * 3, partition=1)
    bench.log.raise_log_start(0, 4)
    found = sorted(rows(bench.log.search(start=2, end=7).to_arrow()))
    assert found == [(0, 4), (0, 5), (0, 6), (1, 2)]
    assert bench.log.search(start=7, end=2).to_arrow().num_rows == 0
    assert sorted(rows(bench.log.search(start="@2").to_arrow())) == [(1, 0), (1, 1), (1, 2)]
    assert rows(bench.log.search(partitions=[2]).to_arrow()) == []


def test_wrong_questions_are_refused(make_bench):
    log = make_bench(partitions=2).log
    with pytest.raises(InvalidArgumentError, match=r"\^ expected"):
        log.search("key = ")
    with pytest.raises(UnknownTopicOrPartitionError):
        log.search(partitions=[2])
    with pytest.raises(InvalidArgumentError, match="not a position"):
        log.search(start="soon")
    with pytest.raises(InvalidArgumentError, match="limit of records"):
        SearchLimit(records=0)
    assert 'where key = "a"' in repr(log.search('key="a"'))


def test_an_iteration_goes_on_with_what_is_left_when_a_file_is_thinned_meanwhile(make_bench):
    """It cannot take back what it gave; nothing is left out or comes twice for that."""
    story = Story(make_bench(partitions=2, **{"cleanup.policy": "compact"}))
    bench = story.bench
    for times in ([100, 101, 102], [50, 51, 52]):
        story.append(0, times, EntryFormat.FIELDS)
        story.archive(0, 100)
    story.append(1, [60, 70], EntryFormat.FIELDS)
    for partition in range(2):
        story.archive(partition, 100)
        bench.trim(bench.log.offsets()[partition].log_end, partition=partition)
    found = iter(bench.log.search())
    given = rows(next(found))
    assert given == [(1, 0), (1, 1)]  # nothing of the other was to come before
    story.compact(0, lambda offsets: offsets[:3], True, False)
    story.vacuum()
    story.append(0, [1, 2], EntryFormat.FIELDS)  # beyond the ranges
    given += [row for table in found for row in rows(table)]
    assert given == [(1, 0), (1, 1), (0, 3), (0, 4), (0, 5)]
