"""This process does what takes it seconds, Spark what pays its start."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from lakelog.engines.choice import (
    INLINE,
    JOB_S,
    NOTHING,
    SPARK,
    SPARK_BYTES,
    START_S,
    SparkFacts,
    Work,
    choose,
)

DOWN = SparkFacts(cores=2)
UP = SparkFacts(cores=2, is_up=True)


def tasks(records: int, count: int = 4, value_bytes: int = 100) -> list[Work]:
    """Equal tasks that copy so many records together."""
    return count * [Work.copying(records // count, records // count * value_bytes)]


def test_a_hundred_thousand_records_are_archived_here() -> None:
    choice = choose(tasks(100_000), DOWN)
    assert choice.engine == INLINE
    assert choice.why == (
        "100,000 records in 9.5 MiB, about 0.1 s of work here; Spark takes about 20 s to start"
    )


@pytest.mark.parametrize(("cores", "pays_at"), [(2, 30_000_000), (8, 17_000_000)])
def test_spark_is_started_for_what_it_does_sooner_with_its_start(cores: int, pays_at: int) -> None:
    facts = replace(DOWN, cores=cores)
    assert choose(tasks(pays_at * 9 // 10, 16), facts).engine == INLINE
    choice = choose(tasks(pays_at * 11 // 10, 16), facts)
    assert choice.engine == SPARK
    assert choice.why.endswith(" on Spark with its start")


def test_a_session_that_is_up_costs_a_job() -> None:
    assert choose(tasks(100_000), UP).engine == INLINE  # it would take longer to ask for
    choice = choose(tasks(1_000_000), UP)
    assert choice.engine == SPARK
    assert choice.why.endswith(", which is up already")


def test_one_task_is_no_faster_on_many_cores() -> None:
    facts = replace(UP, cores=64)
    assert choose(tasks(100_000_000, count=1), facts).engine == INLINE
    assert choose(tasks(100_000_000, count=64), facts).engine == SPARK
    uneven = [Work.copying(99_000_000, 99_00_000_000), Work.copying(1_000, 100_000)]
    assert choose(uneven, facts).engine == INLINE


def test_reading_takes_less_than_copying() -> None:
    read = [Work.reading(10_000_000, 1_000_000_000)] * 4
    copied = [Work.copying(10_000_000, 1_000_000_000)] * 4
    assert (choose(read, DOWN).engine, choose(copied, DOWN).engine) == (INLINE, SPARK)


def test_what_a_rewrite_drops_is_read_alone() -> None:
    none, half, every = (Work.rewriting(1_000_000, 100_000_000, n * 500_000) for n in range(3))
    assert none.seconds == Work.reading(1_000_000, 100_000_000).seconds
    assert every == Work.copying(1_000_000, 100_000_000)
    assert half.seconds == pytest.approx((none.seconds + every.seconds) / 2)
    assert Work.rewriting(0, 0, 0).seconds == 0


def test_a_part_is_done_by_what_does_the_whole() -> None:
    whole = Work.sum(tasks(100_000_000))
    assert choose(tasks(100_000), DOWN, whole).engine == SPARK
    assert choose(tasks(100_000_000), DOWN, Work.sum(tasks(100_000))).engine == INLINE


def test_a_spark_that_cannot_be_started_is_missed_in_words() -> None:
    facts = replace(DOWN, missing="there is no Java")
    choice = choose(tasks(100_000_000), facts)
    assert choice.engine == INLINE
    assert choice.why.endswith("which cannot be started: there is no Java")
    assert "no Java" not in choose(tasks(1_000), facts).why


def test_a_spark_is_not_started_where_it_has_no_room() -> None:
    assert choose(tasks(100_000_000), replace(DOWN, free_bytes=SPARK_BYTES)).engine == SPARK
    small = choose(tasks(100_000_000), replace(DOWN, free_bytes=SPARK_BYTES - 1))
    assert small.engine == INLINE
    assert "of memory, and 3.1 GiB is free" in small.why
    up = replace(UP, free_bytes=0)  # its memory is taken already
    assert choose(tasks(100_000_000), up).engine == SPARK


def test_tasks_that_say_nothing_are_done_here() -> None:
    assert Work.of([1, "two"]) == [NOTHING, NOTHING]
    assert choose(Work.of([1, "two"]), DOWN).engine == INLINE
    assert choose([], UP).engine == INLINE


def test_the_constants_are_those_the_readme_tells() -> None:
    million, kib = Work.copying(1_000_000, 100_000_000), Work.copying(1_000_000, 1 << 30)
    assert (million.seconds, kib.seconds) == pytest.approx((1.4, 5.3), abs=0.05)
    assert Work.reading(1_000_000, 100_000_000).seconds == pytest.approx(0.28)
    assert (START_S, JOB_S) == (20.0, 0.5)
