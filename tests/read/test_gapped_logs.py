"""Logs with holes of every origin, read in every way, against a plain list of what they hold.

Compaction drops records out of files and empties whole files, retention and delete-records cut the
front off, a lost server tail leaves a gap, somebody's OPTIMIZE forgets the ranges of files, and the
hot tier still holds what compaction dropped from the cold one.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable
from itertools import combinations_with_replacement, groupby, islice
from typing import Any

import pytest
from gapped_story import Story, batch_of, beginnings, happenings
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold.by_path.segment_writer import WrittenFile, write_segment_file
from lakelog.cold.change import Change, HotRange
from lakelog.cold.parquet.segment_reader import SegmentReader
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, app_id
from lakelog.cold.segment import SegmentFile, file_name
from lakelog.cold.store.storage import Storage
from lakelog.errors import MissingFileError, OffsetOutOfRangeError
from lakelog.read.lag import RecordCount, count_records
from lakelog.read.stretches import stretches_between
from lakelog.read.tiers import Tiers
from lakelog.values.config import EntryFormat
from lakelog.values.record import OffsetAndTimestamp, Record, to_records
from lakelog.values.topic_partition import OffsetRange

# -- reading in every way ----------------------------------------------------------------------


class Readers:
    """Compares every answer of a log with what a story says it holds."""

    def __init__(self, story: Story, partition: int) -> None:
        self.story = story
        self.log = story.bench.log
        self.partition = partition
        self.topic_partition = story.bench.topic.partition(partition)
        self.held = story.held(partition)
        self.offsets = self.log.offsets([partition])[partition]

    def check_offsets(self) -> None:
        cold = self.story.in_cold[self.partition]
        log_start = self.story.log_starts[self.partition]
        snapshot = self.story.bench.table.snapshot()
        hot = self.story.bench.hot_offsets(self.partition)
        assert self.offsets.log_start == log_start
        assert self.offsets.local_log_start == max(log_start, hot.local_log_start)
        assert self.offsets.archived_end == snapshot.archived_end(self.partition)
        assert self.offsets.log_end == max(hot.log_end, log_start)
        assert _joined(self.offsets.gaps) == _joined(
            self.story.lost_within(self.partition, 0, self.offsets.log_end)
        )
        assert all(offset < self.offsets.archived_end for offset in cold)

    def check_named_positions(self) -> None:
        log, offsets = self.log, self.offsets
        tiered = offsets.archived_end > offsets.log_start
        assert [
            log.seek(self.partition, name)
            for name in ("earliest", "earliest-local", "latest-tiered", "latest")
        ] == [
            offsets.log_start,
            offsets.local_log_start,
            offsets.archived_end - 1 if tiered else None,
            offsets.log_end,
        ]
        largest = max((record.timestamp_ms for record in self.held), default=-1)
        newest = [r.offset for r in self.held if r.timestamp_ms == largest >= 0]
        assert log.seek(self.partition, "max-timestamp") == next(iter(newest), None)

    def check_timestamps(self) -> None:
        times = {record.timestamp_ms for record in self.story.records[self.partition].values()}
        for target in sorted({time + by for time in times for by in (-1, 0, 1)} | {0}):
            if target >= 0:
                found = next((r for r in self.held if r.timestamp_ms >= target), None)
                expected = found and OffsetAndTimestamp(found.offset, found.timestamp_ms)
                assert self.log.offset_for_timestamp(self.partition, target) == expected, target

    def check_fetches(self) -> None:
        for offset in self.places():
            assert self.log.seek(self.partition, offset) == offset
            for max_bytes in (1, 1 << 20):
                self.check_fetch(offset, max_bytes)
        for offset in {self.offsets.log_start - 1, self.offsets.log_end + 1} - {-1}:
            with pytest.raises(OffsetOutOfRangeError) as refused:
                self.log.fetch(self.partition, offset)
            assert refused.value.log_start == self.offsets.log_start
            assert refused.value.log_end == self.offsets.log_end

    def check_fetch(self, offset: int, max_bytes: int) -> None:
        expected = [record for record in self.held if record.offset >= offset]
        step = self.log.fetch(self.partition, offset, max_bytes=max_bytes)
        records = to_records(self.topic_partition, step.records)
        where = f"at {offset}: {step.next_offset}, {records}"
        assert records == expected[: len(records)], where
        if max_bytes == 1:
            assert len(records) == min(1, len(expected)), where
        assert bool(records) == bool(expected), where
        after = [record.offset for record in expected[len(records) :]]
        low = records[-1].offset + 1 if records else self.offsets.log_end
        assert low <= step.next_offset <= min([*after, self.offsets.log_end]), where
        lost = self.story.lost_within(self.partition, offset, step.next_offset)
        assert _joined(step.gaps) == _joined(lost), where

    def check_ranges(self, chance: random.Random) -> None:
        assert list(self.log.read(self.partition).records()) == self.held
        assert list(self.log.read(self.partition, max_bytes=1).records()) == self.held
        places = self.places()
        for _ in range(8):
            start, end = sorted(chance.choices(places, k=2))
            expected = [record for record in self.held if start <= record.offset < end]
            assert list(self.log.read(self.partition, start, end).records()) == expected

    def check_consumer(self, chance: random.Random) -> None:
        consumer = self.story.bench.consumer(auto_offset_reset="none")
        consumer.assign([self.topic_partition])
        start = chance.choice(self.places())
        consumer.seek(self.topic_partition, start)
        polled: list[Record] = []
        while batch := consumer.poll(max_records=chance.randint(1, 4)):
            polled += batch[self.topic_partition]
            assert consumer.position(self.topic_partition) > polled[-1].offset
        assert polled == [record for record in self.held if record.offset >= start]
        assert consumer.position(self.topic_partition) == self.offsets.log_end

    def check_counts(self, chance: random.Random) -> None:
        """Of every pair of places that a count could stumble at, exactly and without a read."""
        look = Tiers(self.log.topic, self.log.hot, self.log.table).look([self.partition])
        held = [record.offset for record in self.held]
        places = self.places()
        pairs = list(combinations_with_replacement(places, 2))
        for start, end in chance.sample(pairs, min(len(pairs), 200)):
            expected = bisect_left(held, end) - bisect_left(held, start)
            counted = count_records(look, self.partition, start, end, self.log.table)
            assert counted == RecordCount(expected), (start, end)
            unread = count_records(look, self.partition, start, end)
            assert unread.records >= expected, (start, end)
            assert unread.records == expected or not unread.exact, (start, end)
            found = stretches_between(look, self.partition, start, end)
            assert sum(stretch.records for stretch in found) >= expected
            assert all(
                any(stretch.start <= offset < stretch.end for stretch in found)
                for offset in held
                if start <= offset < end
            )
        whole = count_records(look, self.partition, 0, self.offsets.log_end, self.log.table)
        assert whole.records == len(held) == self.log.count(self.partition)
        at = chance.choice(places)
        assert self.log.records_below(self.partition, at) == bisect_left(held, at)

    def places(self) -> list[int]:
        """Where an answer could be wrong: beside records that are or were, files and gaps."""
        files = self.story.bench.table.snapshot().files.of_partition(self.partition)
        edges = {
            *self.story.records[self.partition],
            *(file.start_offset for file in files),
            *(file.end_offset for file in files),
            *(edge for gap in self.story.lost[self.partition] for edge in gap),
            *(gap.start + 7 for gap in self.story.lost[self.partition]),
            self.offsets.log_start,
            self.offsets.log_end,
        }
        near = sorted(edge + by for edge in edges for by in (0, 1))
        near = [one for one, _ in groupby(near)]
        return [at for at in near if self.offsets.log_start <= at <= self.offsets.log_end]


def check_everything(story: Story, chance: random.Random) -> None:
    for partition in range(story.bench.topic.partitions):
        readers = Readers(story, partition)
        readers.check_offsets()
        readers.check_named_positions()
        readers.check_timestamps()
        readers.check_fetches()
        readers.check_ranges(chance)
        readers.check_consumer(chance)
        readers.check_counts(chance)
    check_samples(story, chance)


def check_samples(story: Story, chance: random.Random) -> None:
    everything = {
        (record.partition, record.offset): record
        for partition in range(story.bench.topic.partitions)
        for record in story.held(partition)
    }
    for n in (chance.randint(0, len(everything)), len(everything), 10 * len(everything)):
        table = story.bench.log.sample(n, seed=chance.randint(0, 99))
        sampled = list(
            zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True)
        )
        assert sampled == sorted(set(sampled))
        assert set(sampled) <= set(everything)
        assert len(sampled) <= n
    assert sampled == sorted(everything)


def _joined(ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
    joined: list[OffsetRange] = []
    for one in ranges:
        if joined and joined[-1].end == one.start:
            one = OffsetRange(joined.pop().start, one.end)
        joined.append(one)
    return joined


@given(beginning=beginnings, steps=st.lists(happenings, max_size=10), seed=st.integers(0, 999))
@settings(max_examples=8)
def test_every_reader_agrees_with_a_list(make_bench, beginning, steps, seed):
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
        for partition in range(2):
            Readers(story, partition).check_offsets()
            assert list(story.bench.log.read(partition).records()) == story.held(partition)
    check_everything(story, random.Random(seed))


@given(beginning=beginnings, steps=st.lists(happenings, max_size=8), seed=st.integers(0, 999))
@settings(max_examples=8)
def test_readers_in_the_midst_of_a_change_miss_nothing_that_outlives_it(
    make_bench, beginning, steps, seed
):
    """Each change comes, and its old files go, while a range is half read and a consumer polls."""
    chance = random.Random(seed)
    story = Story(make_bench(partitions=2))
    consumer = story.bench.consumer(auto_offset_reset="earliest")
    assigned = [story.bench.topic.partition(partition) for partition in range(2)]
    consumer.assign(assigned)
    polled: dict[Any, list[Record]] = {one: [] for one in assigned}

    def poll(count: int) -> bool:
        found = consumer.poll(max_records=count)
        for topic_partition, records in found.items():
            polled[topic_partition] += records
        return bool(found)

    for kind, *arguments in [*beginning, *steps]:
        before = story.held(0)
        batches = iter(story.bench.log.read(0, max_bytes=chance.choice([1, 200, 1 << 20])))
        read: list[Record] = []
        for batch in islice(batches, chance.randint(0, 6)):
            read += to_records(assigned[0], batch)
        poll(chance.randint(1, 9))

        getattr(story, kind)(*arguments)
        story.vacuum()

        outlived = [record for record in before if record in story.held(0)]
        refused = None
        try:
            for batch in batches:
                read += to_records(assigned[0], batch)
        except OffsetOutOfRangeError as error:
            refused = error
        if refused:  # deleted before it was read
            assert refused.log_start == story.log_starts[0] > refused.offset
        else:
            assert [record for record in read if record in outlived] == outlived
        assert read == [record for record in before if record in read]

    while poll(9):
        pass
    for partition, records in enumerate(polled.values()):
        known = story.records[partition]
        assert records == [known[offset] for offset in sorted({r.offset for r in records})]
        assert [record for record in records if record in story.held(partition)] == story.held(
            partition
        )


# -- what the stories are about, one by one ----------------------------------------------------


@pytest.fixture
def story(make_bench):
    """One partition of five segments or so, [0, 40), all archived, nothing of it hot."""
    story = Story(make_bench(partitions=1))
    story.append(0, list(range(100, 140)), EntryFormat.FIELDS)
    story.archive(0, 8)
    story.trim(0, 8)
    assert len(story.bench.table.snapshot().files) >= 4
    return story


def everything(offsets):
    return offsets


def test_everything_but_the_last_record_may_go(story):
    story.compact(0, everything, True, True)

    (file,) = story.bench.table.snapshot().files
    assert (file.start_offset, file.end_offset, file.records) == (0, 40, 1)
    assert [record.offset for record in story.held(0)] == [39]
    check_everything(story, random.Random(0))


@pytest.mark.parametrize("end", [1, 5, 20])
def test_a_range_that_ends_where_compaction_emptied_the_log_is_empty(story, end):
    story.compact(0, everything, False, False)

    assert story.bench.log.read(0, 0, end).to_arrow().num_rows == 0


def test_a_search_by_time_gives_the_next_record_that_is_left(story):
    story.compact(0, lambda offsets: [o for o in offsets if o % 10], False, False)

    assert story.bench.log.offset_for_timestamp(0, 101) == (10, 110)
    assert story.bench.log.seek(0, "max-timestamp") == 39


def test_a_superseded_record_is_in_the_log_while_it_is_hot(bench):
    story = Story(bench)
    story.append(0, list(range(100, 140)), EntryFormat.FIELDS)
    story.archive(0, 8)
    story.compact(0, everything, False, False)
    bench.trim(5)

    assert [record.offset for record in bench.log.read(0).records()] == list(range(5, 40))
    assert bench.log.seek(0, "@100") == 5
    assert bench.log.seek(0, "@107") == 7
    check_everything(story, random.Random(0))


def test_what_compaction_removed_of_a_lost_tail_was_not_lost(bench):
    """Hot knows of [0, 6) and then a gap; cold got [6, 9) in time, and compaction removes it."""
    story = Story(bench)
    story.append(0, [1] * 6, EntryFormat.FIELDS)
    story.lose_tail(0, [2, 2, 2])
    (gap,) = story.lost[0]
    story.append(0, [3] * 20, EntryFormat.FIELDS)
    story.archive(0, 8)
    story.compact(0, lambda offsets: [o for o in offsets if 5 <= o < 9], False, False)
    story.trim(0, 8)

    step = bench.log.fetch(0, 5)

    assert gap.start == 9
    assert step.gaps == (gap,)
    assert step.records.column("offset")[0].as_py() == gap.end
    assert bench.log.offsets()[0].gaps == (gap,)


def test_segments_merged_over_a_gap_are_read_over_it(bench):
    """What cold got of the lost tail can then no longer be told from what was lost."""
    story = Story(bench)
    story.append(0, [1] * 6, EntryFormat.FIELDS)
    story.lose_tail(0, [2, 2, 2])
    story.append(0, [3] * 20, EntryFormat.FIELDS)
    story.archive(0, 8)
    story.trim(0, 8)
    (gap,) = story.lost[0]
    files = tuple(story.bench.table.snapshot().files)
    story._apply(Change((story._rewrite(files, [8]),), files, {CleanedEnd(0): gap.end + 20}))
    story.in_cold[0].remove(8)

    assert list(bench.log.read(0).records()) == story.held(0)
    assert bench.log.fetch(0, 0).gaps == (OffsetRange(8, gap.end),)
    assert bench.log.fetch(0, gap.start).gaps == (gap,)


def test_a_search_goes_on_in_the_files_that_replaced_its_own(story):
    """Rewritten and vacuumed between the look and the search."""
    table = story.bench.table

    class Late:
        def __init__(self):
            self.happened = False

        def __getattr__(self, name):
            return getattr(table, name)

        def offset_for_timestamp(self, *args):
            self.happen()
            return table.offset_for_timestamp(*args)

        def max_timestamp(self, *args):
            self.happen()
            return table.max_timestamp(*args)

        def happen(self):
            if not self.happened:
                self.happened = True
                story.compact(0, lambda offsets: offsets[::2], True, False)
                story.vacuum()

    for where, found in (("@0", 1), ("max-timestamp", 39)):
        log = story.bench.open()
        log._tiers.table = log._tiers.rows = Late()
        assert log.seek(0, where) == found


def test_a_search_names_a_file_that_is_missing_for_good(story):
    for file in story.bench.root.rglob("archive-*.parquet"):
        file.unlink()

    for where in ("@0", "max-timestamp"):
        with pytest.raises(MissingFileError):
            story.bench.log.seek(0, where)


@pytest.mark.parametrize("tiered", [True, False], ids=["tiered", "untiered"])
def test_a_log_may_start_inside_a_gap(make_bench, tiered):
    bench = make_bench(tiered=tiered)
    bench.append([1] * 5)
    bench.log.recover(0, 6)
    end = bench.log.offsets()[0].log_end
    bench.append([2])

    assert bench.log.raise_log_start(0, 100) == 100

    for log in (bench.log, bench.open()):
        assert log.offsets()[0].gaps == (OffsetRange(100, end),)
        assert log.seek(0, "earliest") == 100
        step = log.fetch(0, 100)
        assert (step.next_offset, step.gaps) == (end + 1, (OffsetRange(100, end),))
        assert log.seek(0, "@0") == log.seek(0, "max-timestamp") == end
        with pytest.raises(OffsetOutOfRangeError):
            log.fetch(0, 99)


def test_a_consumer_in_a_removed_range_goes_on_with_the_next_record(story):
    (partition,) = story.bench.topic.topic_partitions()
    consumer = story.bench.consumer(auto_offset_reset="none")
    consumer.assign([partition])
    consumer.seek(partition, 3)
    story.compact(0, lambda offsets: [o for o in offsets if o < 30], False, False)
    first = story.held(0)[0]

    assert consumer.position(partition) == 3
    assert consumer.poll(max_records=1) == {partition: [first]}
    assert consumer.position(partition) == first.offset + 1


@pytest.mark.parametrize(
    ("policy", "next_offset"), [("earliest", None), ("latest", 40), ("none", OffsetOutOfRangeError)]
)
def test_a_consumer_below_a_new_log_start_asks_its_policy(story, policy, next_offset):
    (partition,) = story.bench.topic.topic_partitions()
    consumer = story.bench.consumer(auto_offset_reset=policy)
    consumer.assign([partition])
    consumer.seek(partition, 3)
    consumer.poll(max_records=2)
    story.retain(0, 4, True)
    story.vacuum()
    log_start = story.log_starts[0]
    assert 5 < log_start < 40
    consumer.seek(partition, 5)

    if next_offset is OffsetOutOfRangeError:
        with pytest.raises(OffsetOutOfRangeError) as refused:
            consumer.poll()
        assert refused.value.log_start == log_start
        assert consumer.position(partition) == 5
    else:
        consumer.poll(max_records=1)
        expected = log_start + 1 if next_offset is None else next_offset
        assert consumer.position(partition) == expected


# -- ten thousand segments, nearly all of them emptied -------------------------------------------

EMPTIED = 10_000
FIRST, LAST = 40, 40 + 10 * EMPTIED  # the emptied ones lie between, ten offsets each


@pytest.fixture
def emptied(bench, monkeypatch):
    """Records [0, 40) and [LAST, LAST + 40); a counter of the files that are opened.

    The files between are only in the table's log: whoever opens one fails.
    """
    topic_partition = bench.topic.partition(0)
    bench.append(list(range(100, 140)))
    bench.tier(40, 40)
    table, topic = bench.table, bench.topic
    tail = bench.records(LAST, range(200, 240))
    rows = batch_of(tail)
    files = [
        SegmentFile(
            0,
            base,
            f"partition=0/segment={base}/{file_name('clean', base, base + 10, f'{base:032x}')}",
            1000,
            0,
            base,
            base + 10,
            -1,
            -1,
            1,
        )
        for base in range(FIRST, LAST, 10)
    ]
    last = write_segment_file(
        HotRange(topic_partition, topic.topic_id, LAST, LAST, LAST + 40),
        topic=topic,
        storage=Storage(str(bench.root)),
        rows_of=lambda _: iter([rows]),
    )
    table._log.commit(
        "by hand",
        [*(WrittenFile(file, '{"numRecords":0}') for file in files), last],
        [],
        {
            app_id(topic.topic_id, ArchivedEnd(0)): LAST + 40,
            app_id(topic.topic_id, CleanedEnd(0)): LAST,
        },
        data_change=True,
    )
    bench.log.recover(0, 0)
    bench.trim(LAST + 40)
    bench.appended[0] += tail

    opened = []
    parts = SegmentReader._parts

    def counted(reader, stack, file):
        opened.append(file.path)
        return parts(reader, stack, file)

    monkeypatch.setattr(SegmentReader, "_parts", counted)
    bench.opened = opened
    return bench


def read_by_consumer(bench, offset):
    (partition,) = bench.topic.topic_partitions()
    consumer = bench.consumer()
    consumer.assign([partition])
    consumer.seek(partition, offset)
    found = []
    while batch := consumer.poll():
        found += batch[partition]
    return found


@pytest.mark.parametrize(
    ("ask", "answer", "files"),
    [
        (lambda bench: bench.fetched(39), [39], 1),
        (lambda bench: bench.fetched(40, max_bytes=1), [LAST], 1),
        (lambda bench: bench.fetched(LAST // 2, max_bytes=1), [LAST], 1),
        (lambda bench: bench.log.read(0, 50, LAST).records(), [], 0),
        (lambda bench: bench.log.read(0, 38, LAST + 2).records(), [38, 39, LAST, LAST + 1], 2),
        (lambda bench: read_by_consumer(bench, LAST + 37), range(LAST + 37, LAST + 40), 1),
        (lambda bench: read_by_consumer(bench, 39)[:2], [39, LAST], 2),
    ],
)
def test_no_reader_opens_files_that_compaction_emptied(emptied, ask, answer, files):
    assert [record.offset for record in ask(emptied)] == list(answer)
    assert len(emptied.opened) == files


@pytest.mark.parametrize(
    ("where", "offset"),
    [("@139", 39), ("@140", LAST), ("@239", LAST + 39), ("max-timestamp", LAST + 39)],
)
def test_no_search_opens_files_that_compaction_emptied(emptied, where, offset):
    assert emptied.log.seek(0, where) == offset
    assert len(emptied.opened) == 1


def test_a_sample_goes_by_records_not_by_offsets(emptied):
    assert emptied.log.sample(1000).num_rows == 80
    offsets = emptied.log.sample(60)["offset"].to_pylist()
    assert len(offsets) == 60
    assert 20 < sum(offset < FIRST for offset in offsets) < 40
