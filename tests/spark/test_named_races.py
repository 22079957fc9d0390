"""Tables by name that several write at once, or that somebody dies over: each record once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest
from made_up import archive
from spark_log import SparkLog, rows_of

from lakelog import Lakelog
from lakelog.archive.archiver import Archiver, Flushed
from lakelog.base import failpoints
from lakelog.base.back_off import patiently
from lakelog.cold.by_name.commit import NamedCommit
from lakelog.cold.by_name.either_view import EitherView
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.change import Change, Rewrite
from lakelog.cold.offset_set import OffsetSet
from lakelog.cold.registers import CleanedEnd
from lakelog.errors import ColdTierError, CommitUnknownError
from lakelog.place import LogPlace
from lakelog.values.record import to_records
from lakelog.values.topic import Topic
from tests.support.unity_catalog import UnityCatalogServer


def offsets(table: NamedTable, topic: Topic) -> list[int]:
    files = table.snapshot().files.of_partition(0)
    batches = table.read(files, 0, 2**53)
    return [record.offset for b in batches for record in to_records(topic.partition(0), b)]


@pytest.mark.slow
def test_two_archivers_and_a_producer_at_once_archive_each_record_once(log: SparkLog, spark):
    log.create(2, lakelog_flush_rows=40, internal_segment_bytes=20_000)
    topic = log.lakelog.topics.get("orders")
    name = log.lakelog.log("orders").table.name
    stop = threading.Event()
    flushed: list[Flushed] = []

    def archive_until_told() -> None:
        session = spark.newSession()
        place = LogPlace.of(log.url, str(log.cold), spark=lambda: session)
        hot = place.source.connect()
        archiver = Archiver(topic, hot, place.table(topic))
        while not stop.is_set():
            flushed.append(patiently("archiving", archiver.flush))
        flushed.append(patiently("archiving", archiver.drain))
        hot.close()

    with ThreadPoolExecutor(2) as threads:
        archivers = [threads.submit(archive_until_told) for _ in range(2)]
        for _ in range(6):
            for partition in (0, 1):
                log.append(25, partition)
        stop.set()
        for one in archivers:
            one.result()
    assert rows_of(spark.table(name)) == log.expected()
    reports = [one.report for one in flushed if one.report is not None]
    assert sum(report.records for report in reports) == len(log.rows)


@pytest.mark.slow
def test_who_archives_a_new_topic_at_once_with_another_makes_one_table_and_its_views(
    redis_url: str, spark, schema
):
    together = threading.Barrier(2)

    def archive_all() -> list[object]:
        with Lakelog.connect(redis_url, schema) as mine:
            together.wait()
            return [trouble for report in mine.archive() for trouble in report.troubles]

    for number in range(3):
        log = SparkLog(redis_url, schema, f"orders{number}").create()
        log.append(20)
        with ThreadPoolExecutor(2) as threads:
            both = [threads.submit(archive_all) for _ in range(2)]
        assert [one.result() for one in both] == [[], []]
        table, view = f"{schema}.{log.name}", f"{schema}.{log.name}_view"
        assert rows_of(spark.table(table)) == rows_of(spark.table(view)) == log.expected()
        log.lakelog.close()


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The kinds of commits that are tried, in order."""
    tried: list[str] = []
    commit_of = NamedTable._commit_of

    def counting(self: NamedTable, *given: Any) -> NamedCommit:
        commit = commit_of(self, *given)
        tried.append(commit.note.kind)
        return commit

    monkeypatch.setattr(NamedTable, "_commit_of", counting)
    return tried


@pytest.mark.slow
def test_an_archiver_never_makes_a_cleanup_start_again(make_named, monkeypatch):
    topic = Topic("orders", uuid4(), 1)
    table, other = make_named(topic), make_named(topic)
    before = table.apply(archive(topic, table.snapshot(), 50), table.snapshot()).snapshot
    before = table.apply(archive(topic, before, 100, segment=50), before).snapshot
    tried = counted(monkeypatch)
    first = before.files.of_partition(0)[0]
    compaction = Change(
        adds=(Rewrite(topic.partition(0), 0, (first,), OffsetSet.of(range(10))),),
        removes=(first,),
        registers={CleanedEnd(0): 50},
    )

    passed: list[bool] = []

    def meanwhile() -> None:
        if not passed:  # the other one passes here too
            passed.append(True)
            snapshot = other.snapshot()
            other.apply(archive(topic, snapshot, 130, segment=50), snapshot)

    with failpoints.armed("cold.before_commit", meanwhile):
        applied = table.apply(compaction, before)

    assert tried == ["archive", "cleanup"]
    assert applied.superseded == frozenset()
    assert applied.snapshot.cleaned_end(0) == 50
    assert offsets(make_named(topic), topic) == list(range(10, 130))


@pytest.mark.slow
def test_a_commit_whose_reply_is_lost_is_found_in_the_history(make_named, monkeypatch, catalog):
    topic = Topic("orders", uuid4(), 1)
    # Tasks get a store's keys for a table that is read where it lies.
    table = make_named(topic, directly=catalog == UnityCatalogServer.CATALOG_ON_S3)
    lost: list[str] = []
    commit = NamedTable._commit

    def lose_the_reply(self: Any, *given: Any) -> None:
        commit(self, *given)
        lost.append(self.name)
        raise ConnectionError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(NamedTable, "_commit", lose_the_reply)
        applied = table.apply(archive(topic, table.snapshot(), 30), table.snapshot())
    assert lost == [table.name]
    assert [file.records for file in applied.files] == [30]

    def refuse(self: Any, *given: Any) -> None:
        raise ConnectionError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(NamedTable, "_commit", refuse)
        with pytest.raises(ColdTierError, match="takes no commit"):
            table.apply(archive(topic, table.snapshot(), 60), table.snapshot())

    def away(*_: object) -> Sequence[object]:
        raise ConnectionError("the server is away")

    def lose_all(self: Any, *given: Any) -> None:
        commit(self, *given)
        patched.setattr(EitherView, "news", away)
        raise ConnectionError("the server went away")

    with monkeypatch.context() as patched:
        patched.setattr(NamedTable, "_commit", lose_all)
        with pytest.raises(CommitUnknownError):
            table.apply(archive(topic, table.snapshot(), 60), table.snapshot())
    assert table.snapshot().archived_end(0) == 60  # it had landed
    assert offsets(table, topic) == list(range(60))
