"""Whether work is done here or on Spark: decided from what it takes and what there is. Pure.

Spark pays where the work takes longer here than there, its start included. `python -m
tests.benchmarks engines` measures the constants, and prints what it finds beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add

from msgspec import Struct

from ..base.text_table import counted

#: Copying a record from Redis, or from Parquet files, into a Parquet file takes this process so
#: long, and each of its stored bytes so much more: 1.4 s for a million records of 100 bytes, 5 s
#: for a million of 1 KiB.
COPY_RECORD_S = 1.0e-6
COPY_BYTE_S = 4.0e-9

#: Reading a record of a Parquet file: 0.3 s for a million of 100 bytes, 1 s of 1 KiB.
READ_RECORD_S = 0.2e-6
READ_BYTE_S = 0.8e-9

#: From nothing to the end of the first job: Java, its jars and the first Python workers. 15 s on
#: two idle cores, 33 s on two that others use as well.
START_S = 20.0

#: What a job takes beside its work, once Spark is up: 0.3 to 1 s.
JOB_S = 0.5

#: A Spark of this process: 2 GiB of heap (`spark.driver.memory`), Java's own half of a GiB, and a
#: Python worker of about 310 MiB on each of two cores.
SPARK_BYTES = 2 * 2**30 + 2**29 + 2 * 310 * 2**20


class Work(Struct, frozen=True):
    """How much a task does; of several, their sum."""

    records: int = 0
    size_bytes: int = 0  # as stored
    seconds: float = 0.0  # about what it takes this process

    @classmethod
    def copying(cls, records: int, size_bytes: int) -> Work:
        """Records that are read, and written to a file."""
        return cls(records, size_bytes, records * COPY_RECORD_S + size_bytes * COPY_BYTE_S)

    @classmethod
    def rewriting(cls, records: int, size_bytes: int, kept: int) -> Work:
        """Records of files that are read, so many of which are written to a file again."""
        read = cls.reading(records, size_bytes)
        share = min(1.0, max(0, kept) / records) if records else 0.0
        write_s = cls.copying(records, size_bytes).seconds - read.seconds
        return cls(records, size_bytes, read.seconds + share * write_s)

    @classmethod
    def reading(cls, records: int, size_bytes: int) -> Work:
        """Records of files that are read."""
        return cls(records, size_bytes, records * READ_RECORD_S + size_bytes * READ_BYTE_S)

    @classmethod
    def of(cls, tasks: Iterable[object]) -> list[Work]:
        """What each task says of itself in `work`; nothing of one that says nothing."""
        return [getattr(task, "work", NOTHING) for task in tasks]

    @classmethod
    def sum(cls, works: Iterable[Work]) -> Work:
        """All of them together."""
        return reduce(add, works, NOTHING)

    def __add__(self, other: Work) -> Work:
        return Work(
            self.records + other.records,
            self.size_bytes + other.size_bytes,
            self.seconds + other.seconds,
        )

    def __str__(self) -> str:
        return f"{counted(self.records, 'record')} in {_size(self.size_bytes)}"


NOTHING = Work()


class SparkFacts(Struct, frozen=True):
    """What is known of Spark where the work is to be done."""

    cores: int  # tasks that it runs at once
    is_up: bool = False  # the process has a session, or the platform gives it one
    missing: str | None = None  # why none can be started; None: not known of any reason
    free_bytes: int | None = None  # memory that this machine or container has left; None: unknown


class Choice(Struct, frozen=True):
    """What does some work, and why."""

    engine: str  # inline or spark
    why: str

    def __str__(self) -> str:
        return f"{self.engine}: {self.why}"


INLINE, SPARK = "inline", "spark"

#: Whatever engine was asked for.
BY_NAME = Choice(SPARK, "tables by name are written by Spark alone")


def choose(tasks: Sequence[Work], spark: SparkFacts, whole: Work | None = None) -> Choice:
    """What does the tasks.

    Args:
        tasks: what is to be done now.
        whole: what they are a part of; None: they are all there is to do.
    """
    these = Work.sum(tasks)
    work = these if whole is None else whole
    # No faster than its largest task alone.
    largest_s = max((task.seconds for task in tasks), default=0.0)
    shares = min(spark.cores, these.seconds / largest_s) if largest_s else 1.0
    start_s = 0.0 if spark.is_up else START_S
    spark_s = start_s + JOB_S + work.seconds / shares
    here = f"{work}, {_time(work.seconds)} of work here"
    if spark_s >= work.seconds:
        cost = "costs as much" if spark.is_up else f"takes {_time(START_S)} to start"
        return Choice(INLINE, f"{here}; Spark {cost}")
    there = f"{_time(spark_s)} on Spark"
    if spark.is_up:
        return Choice(SPARK, f"{here}, {there}, which is up already")
    if spark.missing is not None:
        return Choice(INLINE, f"{here}, {there}, which cannot be started: {spark.missing}")
    if spark.free_bytes is not None and spark.free_bytes < SPARK_BYTES:
        return Choice(
            INLINE,
            f"{here}, {there}, which takes {_size(SPARK_BYTES)} of memory, and "
            f"{_size(spark.free_bytes)} is free",
        )
    return Choice(SPARK, f"{here}, {there} with its start")


def _time(seconds: float) -> str:
    if seconds < 0.1:
        return "less than 0.1 s"
    return f"about {seconds:.1f} s" if seconds < 10 else f"about {seconds:,.0f} s"


def _size(size_bytes: int) -> str:
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if size_bytes >= factor:
            return f"{size_bytes / factor:.1f} {unit}"
    return f"{size_bytes} B"
