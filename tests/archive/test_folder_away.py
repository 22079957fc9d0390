"""The folder of a topic's table is away: nothing makes another there, and nothing is lost by it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cold.by_path.delta_log import DeltaLog
from lakelog.cold.reserve import reserve
from lakelog.cold.schema import table_properties
from lakelog.cold.store.storage import Storage
from lakelog.errors import ArchivedElsewhereError, LakelogError, RestoreFailedError
from lakelog.hot.archived_into import ArchivedInto

SETTINGS = {"retention.ms": -1, "local.retention.ms": -1}


Connect = Callable[[], Lakelog]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cold"


@pytest.fixture
def connect(redis_url: str, root: Path) -> Iterator[Connect]:
    """Opens the log as another process would: ten records are archived, five are not."""
    with ExitStack() as opened:

        def connect() -> Lakelog:
            return opened.enter_context(Lakelog.connect(redis_url, root, engine="inline"))

        lake = connect()
        lake.topics.create("orders", 2, SETTINGS)
        send(lake, 10)
        lake.archive("orders")
        send(lake, 5, first=10)
        yield connect


def send(lake: Lakelog, count: int, first: int = 0) -> None:
    """One entry a record."""
    with lake.producer(linger_ms=0) as producer:
        for n in range(first, first + count):
            producer.send("orders", f"v{n}", key=f"k{n}", partition=0).result()


def values(lake: Lakelog) -> list[bytes]:
    return list(lake.log("orders").read(0).to_arrow().column("value").to_pylist())


@contextmanager
def away(root: Path) -> Iterator[Path]:
    """Another place has the folder, whose mount point is empty; what is made there is told."""
    elsewhere = root.with_name("away")
    root.rename(elsewhere)
    root.mkdir()
    try:
        yield root
        assert list(root.iterdir()) == []
    finally:
        shutil.rmtree(root)
        elsewhere.rename(root)


def hot(lake: Lakelog) -> object:
    return lake.hot.segments(lake.topics.get("orders").topic_partitions())


CHANGES: dict[str, Callable[[Lakelog], object]] = {
    "delete-records": lambda lake: lake.log("orders").raise_log_start(0, 12),
    "all records": lambda lake: lake.log("orders").raise_log_start(0, -1),
    "recover": lambda lake: lake.log("orders").recover(0, 0),
    "quarantine": lambda lake: lake.quarantine("orders", 0).add_entry("12-1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_records_is_refused(connect: Connect, root: Path, change: str) -> None:
    before = hot(connect())
    with away(root), pytest.raises(LakelogError, match="it is not there now; nothing was"):
        CHANGES[change](connect())
    assert hot(connect()) == before
    assert connect().archive("orders")[0].records == 5
    assert values(connect()) == [b"v%d" % n for n in range(15)]


def test_an_entry_stays_in_quarantine_that_the_archive_has_gone_past(
    connect: Connect, root: Path
) -> None:
    """Back in its place it would be dropped from Redis, as if the table had it."""
    lake = connect()
    topic = lake.topics.get("orders")
    aside = lake.hot.quarantine(topic.partition(0), topic.topic_id)
    aside.add("12-1", "", "me", 5, whatever=True)
    lake.archive("orders")
    before = hot(lake)
    with away(root):
        for dry_run in (True, False):
            with pytest.raises(ArchivedElsewhereError, match="it is not there now"):
                connect().quarantine("orders", 0).release_entry("12-1", dry_run=dry_run)
    assert [one.entry_id for one in aside.held()] == ["12-1"]
    assert hot(lake) == before


def test_a_restore_that_is_repeated_reserves_in_no_other_table(
    connect: Connect, root: Path, redis_url: str, tmp_path: Path
) -> None:
    """Offsets that it gave out, the topic's own table would give out again."""
    with Lakelog.connect(redis_url, tmp_path / "two", engine="inline") as other:
        other.archive("orders", adopt=True)
    before = hot(connect())
    version = connect().place.table(connect().topics.get("orders")).snapshot().version
    with pytest.raises(RestoreFailedError, match=r"here it would be another one, at .*cold/orders"):
        connect().restore("orders")
    assert hot(connect()) == before
    assert connect().place.table(connect().topics.get("orders")).snapshot().version == version


def test_a_table_is_known_before_anything_is_reserved_in_it(
    connect: Connect, redis_url: str, tmp_path: Path
) -> None:
    """A producer's recovery may be the first who makes it."""
    lake = connect()
    topic = lake.topics.create("sales", 1)
    table = lake.place.table(topic)
    reserve(table, {0: 0})
    assert lake.hot.archived_into().said(topic) == ArchivedInto(table.table_id() or "", table.where)
    with Lakelog.connect(redis_url, tmp_path / "two", engine="inline") as other:
        with pytest.raises(ArchivedElsewhereError, match="cold/sales"):
            reserve(other.place.table(topic), {0: 0})
        with pytest.raises(ArchivedElsewhereError, match="cold/sales"):
            other.archive("sales")
    assert not (tmp_path / "two" / "sales").exists()


def test_of_two_that_make_a_table_at_once_one_is_refused(
    connect: Connect, root: Path, redis_url: str, tmp_path: Path
) -> None:
    topic = connect().topics.create("sales", 1)
    register = connect().hot.archived_into()
    own = connect().place.table(topic)
    with Lakelog.connect(redis_url, tmp_path / "two", engine="inline") as other:
        another = other.place.table(topic)

        def make() -> None:
            with register.making(topic, own):
                reserve(another, {0: 0})
                DeltaLog(Storage(str(root)), topic).create(table_properties(topic))

        with pytest.raises(ArchivedElsewhereError, match="two/sales"):
            make()
    assert register.said(topic) == ArchivedInto(another.table_id() or "", another.where)
