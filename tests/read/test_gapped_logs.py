"""Logs with holes of every origin, counted, sampled and read amid a change, against a plain list.

Compaction drops records out of files and empties whole files, retention and delete-records cut the
front off, a lost server tail leaves a gap, somebody's OPTIMIZE forgets the ranges of files, and the
hot tier still holds what compaction dropped from the cold one.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from itertools import combinations_with_replacement, groupby, islice
from typing import Any

import pytest
from gapped_story import Story, batch_of, beginnings, happenings
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold.by_path.segment_writer import WrittenFile, write_segment_file
from lakelog.cold.change import HotRange
from lakelog.cold.parquet.segment_reader import SegmentReader
from lakelog.cold.registers import ArchivedEnd, CleanedEnd, app_id
from lakelog.cold.segment import SegmentFile, file_name
from lakelog.cold.store.storage import Storage
from lakelog.errors import OffsetOutOfRangeError
from lakelog.read.lag import RecordCount, count_records
from lakelog.read.stretches import stretches_between
from lakelog.read.tiers import Tiers
from lakelog.values.config import EntryFormat
from lakelog.values.record import Record, to_records
from lakelog.values.topic_partition import OffsetRange

# -- counting ------------------------------------------------------------------------------------


class Counts:
    """Compares what a log counts with what a story says it holds."""

    def __init__(self, story: Story, partition: int) -> None:
        self.story = story
        self.log = story.bench.log
        self.partition = partition
        self.topic_partition = story.bench.topic.partition(partition)
        self.held = story.held(partition)
        self.offsets = self.log.offsets([partition])[partition]

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


@given(beginning=beginnings, steps=st.lists(happenings, max_size=10), seed=st.integers(0, 999))
@settings(max_examples=8)
def test_counts_and_samples_agree_with_a_list(make_bench, beginning, steps, seed):
    chance = random.Random(seed)
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    for partition in range(2):
        Counts(story, partition).check_counts(chance)
    check_samples(story, chance)


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


@pytest.mark.parametrize("end", [1, 5, 20])
def test_a_range_that_ends_where_compaction_emptied_the_log_is_empty(story, end):
    story.compact(0, everything, False, False)

    assert story.bench.log.read(0, 0, end).to_arrow().num_rows == 0


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
