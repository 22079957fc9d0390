"""Tables by name of which a file is damaged or gone: everything beside it goes on."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from uuid import uuid4

import pytest
from made_up import archive

from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.change import Change
from lakelog.cold.registers import LogStart
from lakelog.cold.store.storage import Storage
from lakelog.errors import CorruptRecordError, MissingFileError
from lakelog.values.record import to_records
from lakelog.values.topic import Topic
from tests.support.object_store import s3_options

pytestmark = pytest.mark.slow

KINDS: dict[str, Callable[[Storage, str], object]] = {
    "missing": Storage.delete_file,
    "damaged": lambda storage, path: storage.write_bytes(path, b"PAR1" + bytes(300)),
}


@pytest.fixture
def topic() -> Topic:
    return Topic("orders", uuid4(), 1)


@pytest.fixture
def filled(make_named: Any, topic: Topic) -> NamedTable:
    """[0, 30) in one segment, [30, 60) and [60, 90) in the next, each a commit."""
    table = make_named(topic)
    for end, segment in ((30, 0), (60, 30), (90, 30)):
        snapshot = table.snapshot()
        table.apply(archive(topic, snapshot, end, segment=segment), snapshot)
    return table


def hurt(kind: str, table: NamedTable, offset: int) -> None:
    """Delete or damage the file where Spark put the row."""
    (row,) = table.spark.sql(
        f"SELECT _metadata.file_path FROM {table.name} WHERE offset = {offset}"
    ).collect()
    place = urlsplit(row[0])
    if place.scheme == "file":
        path = unquote(place.path)
        storage = Storage(str(Path(path).parent))
    else:
        path = f"s3://{place.netloc}{unquote(place.path)}"
        storage = Storage(f"s3://{place.netloc}", s3_options(os.environ["AWS_ENDPOINT_URL"]))
    KINDS[kind](storage, path)


def offsets(table: NamedTable, topic: Topic, start: int, end: int) -> list[int]:
    batches = table.read(table.snapshot().files.of_partition(0), start, end)
    return [record.offset for b in batches for record in to_records(topic.partition(0), b)]


@pytest.mark.parametrize(
    ("at", "kind"),
    [
        pytest.param(10, "missing", id="old-missing", marks=pytest.mark.slow),
        pytest.param(70, "damaged", id="newest-damaged"),
        pytest.param(10, "damaged", id="old-damaged", marks=pytest.mark.slow),
        pytest.param(70, "missing", id="newest-missing", marks=pytest.mark.slow),
    ],
)
def test_archive_and_reads_beside_a_file_go_on_in_new_processes_too(
    make_named, filled, topic, kind, at
):
    hurt(kind, filled, at)
    low = at // 30 * 30
    for end in (100, 110):
        table = make_named(topic)  # knows no more than the history says
        snapshot = table.snapshot()
        assert snapshot.archived_end(0) == end - 10
        table.apply(archive(topic, snapshot, end, segment=30), snapshot)
    table = make_named(topic)
    with pytest.raises((MissingFileError, CorruptRecordError), match=r"partition=0/segment="):
        offsets(table, topic, at, at + 1)
    assert offsets(table, topic, 0, low) == list(range(low))
    assert offsets(table, topic, low + 30, 110) == list(range(low + 30, 110))


@pytest.mark.parametrize("kind", ["damaged", pytest.param("missing", marks=pytest.mark.slow)])
def test_somebody_elses_commit_stops_nobody_while_a_file_cannot_be_read(
    make_named, filled, topic, kind
):
    hurt(kind, filled, 40)
    filled.spark.sql(f"UPDATE {filled.name} SET value = NULL WHERE segment = 0 AND offset < 5")
    for table in (filled, make_named(topic)):
        snapshot = table.snapshot()
        assert [(f.start_offset, f.end_offset, f.records) for f in snapshot.files] == [
            (0, 30, 30),
            (30, 60, 30),
            (60, 90, 30),
        ]
        assert offsets(table, topic, 60, 90) == list(range(60, 90))


@pytest.mark.parametrize("kind", ["damaged", pytest.param("missing", marks=pytest.mark.slow)])
def test_retention_takes_the_segment_of_such_a_file_out_unread(make_named, filled, topic, kind):
    hurt(kind, filled, 10)
    table = make_named(topic)
    snapshot = table.snapshot()
    removes = tuple(file for file in snapshot.files if file.segment == 0)
    table.apply(Change(removes=removes, registers={LogStart(0): 30}), snapshot)
    table = make_named(topic)
    assert table.snapshot().log_start(0) == 30
    assert offsets(table, topic, 30, 90) == list(range(30, 90))
    assert len(table.spark.table(table.name).collect()) == 60  # and SQL reads all of it again
