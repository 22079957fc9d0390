"""Every reader of a log, Spark's too, against a plain list, over logs that much has happened to.

Files that share a segment, tiers that overlap, deletes, compaction, lost tails and somebody's
OPTIMIZE; ranges from and to all the places where an answer could be wrong. More of it:
``pytest -m slow tests/spark/test_every_reader.py``.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from bench import Bench
from gapped_story import Story, beginnings, happened
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test
from mutants import FRAME_MUTANT
from named_story import NamedBench, NamedStory
from support.machine import LogMachine, log_machine
from support.readers import Readers
from support.spark_readers import NamedReaders, SparkReaders

from lakelog.cold import rows as cold_rows
from lakelog.cold.store.storage import Storage
from lakelog.hot.hot_log import HotSource
from lakelog.place import LogPlace, NamedRoot, PathRoot
from lakelog.spark.catalog.registration import register_topic
from lakelog.testing.model import Difference
from lakelog.values.config import EntryFormat

ROW_GROUP_ROWS = 3

#: A Spark job takes seconds: what fails is shown as it was found, not made smaller.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]


@pytest.fixture
def make_bench(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Bench]]:
    """As tests/read's; its files have row groups of three rows."""
    monkeypatch.setattr(cold_rows, "ROW_GROUP_ROWS", ROW_GROUP_ROWS)
    benches = []

    def make(*, partitions: int = 1, tiered: bool = True) -> Bench:
        settings = {"remote.storage.enable": tiered}
        benches.append(Bench(redis_url, tmp_path / "cold", partitions, settings))
        return benches[-1]

    yield make
    for bench in benches:
        bench.hot.close()


def place_of(bench: Bench) -> LogPlace:
    return LogPlace(HotSource(bench.url), PathRoot(Storage(str(bench.root))))


def ranges_of(readers: Readers, partition: int, chance: random.Random, count: int) -> Any:
    """All of it, what starts and ends it, and others from place to place."""
    places = readers.places(partition)
    drawn = [tuple(sorted(chance.choices(places, k=2))) for _ in range(count)]
    return [(places[0], places[-1]), *drawn]


def tell(bench: Bench, beginning: Any, steps: Any) -> Story:
    return played(Story(bench), beginning, steps)


def played(story: Story, beginning: Any, steps: Any) -> Story:
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    return story


def check_near(story: Story, low: int, high: int) -> None:
    """Without Spark: all ranges between the places near some offsets, and the ends of the log."""
    held = story.held(0)
    readers = Readers(story.bench.log, place_of(story.bench))
    places = readers.places(0)
    near = [one for one in places if low <= one <= high] + [places[0], places[-1]]
    ranges = [(start, end) for start in near for end in near if start <= end]
    readers.compare(0, held, ranges)
    readers.compare_frames(0, held)
    readers.compare_archived(0, held, ranges)


def check_with_spark(spark: Any, schema: str, story: Story, chance: random.Random) -> None:
    bench = story.bench
    view = None
    if bench.table is not None and bench.table.snapshot().version >= 0:
        view = register_topic(spark, place_of(bench).cold, schema, bench.topic, bench.table).view
    readers = SparkReaders(bench.log, place_of(bench), spark, view=view)
    readers.compare_stream({one: story.held(one) for one in range(bench.topic.partitions)})
    for partition in range(bench.topic.partitions):
        held = story.held(partition)
        ranges = ranges_of(readers, partition, chance, 5)
        Readers.compare(readers, partition, held, ranges)
        readers.compare_sparks(partition, held, ranges)
        if bench.table is not None:
            readers.compare_frames(partition, held)
        if view is not None:
            stored = story.records[partition]
            rows = [stored[offset] for offset in sorted(story.in_cold[partition])]
            readers.compare_view(partition, rows, ranges)


@pytest.mark.slow
@given(beginning=beginnings, steps=happened(10), seed=st.integers(0, 999))
@settings(max_examples=4)
def test_every_reader_that_needs_no_session_agrees_with_a_list(make_bench, beginning, steps, seed):
    chance = random.Random(seed)
    story = tell(make_bench(partitions=2), beginning, steps)
    readers = Readers(story.bench.log, place_of(story.bench))
    for partition in range(2):
        held = story.held(partition)
        readers.compare_frames(partition, held)
        ranges = ranges_of(readers, partition, chance, 3)
        readers.compare(partition, held, ranges)
        readers.compare_archived(partition, held, ranges)


@pytest.mark.slow
@pytest.mark.parametrize("is_vacuumed", [True, False], ids=["vacuumed", "there"])
@pytest.mark.parametrize("is_kept", [True, False], ids=["kept", "cleaned"])
def test_what_hot_lost_is_read_as_cold_has_it_now(make_bench, is_kept, is_vacuumed):
    """Not as it was archived: compaction may have removed it, a vacuum its first file."""
    every_other: Any = lambda offsets: offsets[::2]  # noqa: E731
    lost: Any = lambda offsets: [] if is_kept else [one for one in offsets if one == 32]  # noqa: E731
    story = tell(
        make_bench(partitions=1),
        [("append", 0, list(range(32)), EntryFormat.ARROW), ("archive", 0, 8)],
        [
            ("compact", 0, every_other, False, True),
            ("lose_tail", 0, [40, 41]),  # 32 and 33
            ("append", 0, [50, 51], EntryFormat.ARROW),
            ("archive", 0, 8),
            ("append", 0, [60], EntryFormat.ARROW),
            ("compact", 0, lost, True, True),
            *([("vacuum",)] if is_vacuumed else []),
        ],
    )
    held = {record.offset for record in story.held(0)}
    assert {32, 33} & held == ({32, 33} if is_kept else {33})
    check_near(story, 30, 40)


@pytest.mark.parametrize(
    "trimmed",
    [pytest.param(0, id="hot"), pytest.param(4, id="half trimmed", marks=pytest.mark.slow)],
)
def test_what_hot_lost_before_recovery_is_read_as_cold_has_it_now(make_bench, trimmed):
    """The first file of what hot lost is merged and vacuumed before anybody recovers hot."""
    keep: Any = lambda offsets: offsets[::2]  # noqa: E731
    story = tell(
        make_bench(partitions=1),
        [("append", 0, list(range(32)), EntryFormat.ARROW), ("archive", 0, 8)],
        [
            ("trim", 0, trimmed),
            ("lose_tail", 0, [40, 41, 42], False),  # 32, 33 and 34
            ("compact", 0, keep, True, True),
            ("vacuum",),
        ],
    )
    check_near(story, 30, 36)


@given(beginning=beginnings, steps=happened(8), seed=st.integers(0, 999))
@settings(max_examples=1, phases=PHASES)
def test_every_reader_agrees_with_a_list(make_bench, spark, schema, beginning, steps, seed):
    story = tell(make_bench(partitions=2), beginning, steps)
    check_with_spark(spark, schema, story, random.Random(seed))


@pytest.mark.slow
@given(beginning=beginnings, steps=happened(12), seed=st.integers(0, 999))
@settings(max_examples=40, phases=PHASES)
def test_every_reader_agrees_with_a_list_in_many_logs(
    make_bench, spark, schema, beginning, steps, seed
):
    story = tell(make_bench(partitions=2), beginning, steps)
    check_with_spark(spark, schema, story, random.Random(seed))


# -- by name -----------------------------------------------------------------------------------


@pytest.fixture
def make_named_story(
    redis_url: str, spark: Any, schema: str, tables_at: str
) -> Iterator[Callable[..., Story]]:
    """As `tell`, of a log whose table has a name."""
    benches = []

    def make(beginning: Any = (), steps: Any = ()) -> Story:
        benches.append(NamedBench(redis_url, spark, schema, tables_at, partitions=2))
        return played(NamedStory(benches[-1]), beginning, steps)

    yield make
    for bench in benches:
        bench.hot.close()


def named_readers(bench: NamedBench, view: str | None = None) -> NamedReaders:
    source = HotSource(bench.url)
    return NamedReaders(bench.log, source, bench.schema, bench.tables_at, bench.spark, view)


def check_by_name(story: Story, chance: random.Random, count: int) -> None:
    bench = story.bench
    view = None
    if bench.table.snapshot().version >= 0:
        view = register_topic(
            bench.spark, NamedRoot(bench.schema), bench.schema, bench.topic, bench.table
        ).view
    readers = named_readers(bench, view)
    readers.compare_stream({one: story.held(one) for one in range(bench.topic.partitions)})
    for partition in range(bench.topic.partitions):
        held = story.held(partition)
        readers.compare_frames(partition, held)
        ranges = ranges_of(readers, partition, chance, 3)
        readers.compare_sparks(partition, held, ranges)
        # Each page and each poll is a query of its own.
        Readers.compare(readers, partition, held, ranges[:count])
        readers.compare_archived(partition, held, ranges[:1])
        if view is not None:
            stored = story.records[partition]
            rows = [stored[offset] for offset in sorted(story.in_cold[partition])]
            readers.compare_view(partition, rows, ranges)


#: Files that share a segment, a deleted part of one, compaction, a lost tail, somebody's OPTIMIZE,
#: a hot tail.
ALL_AT_ONCE = (
    ("archive", 0, 8),
    ("append", 0, [1, 2], EntryFormat.FIELDS),
    ("archive", 0, 8),
    ("append", 0, [4, 3], EntryFormat.ARROW),
    ("archive", 0, 8),
    ("trim", 0, 6),
    ("delete", 0, 1),
    ("compact", 0, lambda offsets: offsets[1:3], False, False),
    ("lose_tail", 0, [5]),
    ("append", 0, [6, 7, 8], EntryFormat.FIELDS),
    ("archive", 0, 4),
    ("optimize_by_a_stranger",),
    ("append", 1, [1, 2, 3], EntryFormat.ARROW),
    ("switch", True),
    ("append", 0, [9], EntryFormat.FIELDS),
    ("archive", 0, 6),
)
BEGINNING = (("append", 0, [*range(20)], EntryFormat.FIELDS), ("archive", 0, 5))


@pytest.mark.slow
@given(beginning=beginnings, steps=happened(6), seed=st.integers(0, 999))
@example(BEGINNING, ALL_AT_ONCE, 0)
@example((), (("lose_tail", 1, [16, 1, 39, 18]),), 0)  # what cold has lies in a gap of hot's
@settings(phases=[Phase.explicit])
def test_every_reader_by_name_agrees_with_a_list(make_named_story, beginning, steps, seed):
    check_by_name(make_named_story(beginning, steps), random.Random(seed), 1)


@pytest.mark.slow
@given(beginning=beginnings, steps=happened(12), seed=st.integers(0, 999))
@settings(max_examples=8, phases=PHASES)
def test_every_reader_by_name_agrees_with_a_list_in_many_logs(
    make_named_story, beginning, steps, seed
):
    check_by_name(make_named_story(beginning, steps), random.Random(seed), 3)


@pytest.mark.slow
def test_the_readers_by_name_notice_a_frame_that_leaves_the_offsets_unsaid(make_named_story):
    story = make_named_story(
        [
            step
            for _ in range(2)
            for step in (("append", 0, [1, 2], EntryFormat.FIELDS), ("archive", 0, 8))
        ]
    )
    bench = story.bench
    readers = named_readers(bench)
    held = story.held(0)
    with FRAME_MUTANT.applied():
        with pytest.raises(Difference, match="frame of partition 0"):
            readers.compare_frames(0, held)
        with pytest.raises(Difference, match="a frame by Spark of"):
            readers.compare_sparks(0, held, [(0, 2)])
    readers.compare_frames(0, held)


# -- by path -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_an_untiered_log_is_the_same_to_every_reader(make_bench, spark, schema):
    story = Story(make_bench(tiered=False))
    story.append(0, [1] * 30, EntryFormat.FIELDS)
    story.bench.log.raise_log_start(0, 11)
    story.log_starts[0] = 11
    check_with_spark(spark, schema, story, random.Random(0))


@pytest.mark.slow
def test_a_log_that_is_archived_no_more_is_the_same_to_every_reader(make_bench, spark, schema):
    story = Story(make_bench())
    story.append(0, [1] * 30, EntryFormat.FIELDS)
    story.archive(0, 6)
    story.trim(0, 4)
    starts = story.bench.untier()
    story.log_starts = [starts[0]]
    assert 0 < starts[0] < 30
    check_with_spark(spark, schema, story, random.Random(0))  # its table is still full
    story.bench.empty(starts)
    story.in_cold = [set()]
    check_with_spark(spark, schema, story, random.Random(1))
    story.bench.tier_again()
    story.archive(0, 8)
    story.trim(0, 8)
    story.append(0, [2, 3], EntryFormat.ARROW)
    check_with_spark(spark, schema, story, random.Random(2))


def test_the_readers_notice_a_frame_that_leaves_the_offsets_unsaid(make_bench, spark):
    story = Story(make_bench())
    for _ in range(2):
        story.append(0, [1, 2], EntryFormat.FIELDS)
        story.archive(0, 8)
    readers = SparkReaders(story.bench.log, place_of(story.bench), spark)
    held = story.held(0)
    with FRAME_MUTANT.applied():
        with pytest.raises(Difference, match="frame of partition 0"):
            readers.compare_frames(0, held)
        with pytest.raises(Difference, match="a frame by Spark of"):
            readers.compare_sparks(0, held, [(0, 2)])
    readers.compare_frames(0, held)


@pytest.mark.slow
def test_the_state_machine_reads_with_spark_too(tmp_path: Path, spark) -> None:
    class SparkMachine(LogMachine):
        session: ClassVar[Any] = spark

        def _readers(self) -> Readers:
            plain = super()._readers()
            return SparkReaders(plain.log, plain.place, self.session, self._delta_files)

    with log_machine(tmp_path, SparkMachine) as machine:
        run_state_machine_as_test(
            machine,
            settings=settings(max_examples=10, stateful_step_count=20, phases=PHASES),
        )
