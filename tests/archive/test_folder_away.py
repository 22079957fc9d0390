"""The folder of a topic's table is away: nothing makes another there, and nothing is lost by it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.base import compute as pc
from lakelog.cli.main import main
from lakelog.cold.reserve import reserve
from lakelog.errors import (
    ArchivedElsewhereError,
    LakelogError,
)
from lakelog.hot.archived_into import ArchivedInto
from lakelog.operate.check.finding import Kind
from lakelog.operate.segments import segments
from lakelog.values.reservation import Wanted

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


def folder(lake: Lakelog) -> Path:
    return Path(str(lake.place.cold))


def hot(lake: Lakelog) -> object:
    return lake.hot.segments(lake.topics.get("orders").topic_partitions())


CHANGES: dict[str, Callable[[Lakelog], object]] = {
    "delete-records": lambda lake: lake.log("orders").raise_log_start(0, 12),
    "all records": lambda lake: lake.log("orders").raise_log_start(0, -1),
    "recover": lambda lake: lake.log("orders").recover(0, 0),
    "skip": lambda lake: lake.skips("orders", 0).skip_entry("12-1"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_changes_records_is_refused(connect: Connect, root: Path, change: str) -> None:
    before = hot(connect())
    with away(root), pytest.raises(LakelogError, match="it is not there now; nothing was"):
        CHANGES[change](connect())
    assert hot(connect()) == before
    assert connect().archive("orders")[0].records == 5
    assert values(connect()) == [b"v%d" % n for n in range(15)]


LOOKS: dict[str, Callable[[Lakelog], object]] = {
    "read": lambda lake: lake.log("orders").read(0, 12).to_arrow(),
    "seek": lambda lake: lake.log("orders").seek(0, "2001-01-01T00:00:00Z"),
    "offsets": lambda lake: lake.log("orders").offsets(),
    "segments": lambda lake: segments(lake.log("orders")),
    "erase": lambda lake: lake.erase("orders", "k1", dry_run=True),
    "cleanup plan": lambda lake: lake.cleanup_plan(),
    "export": lambda lake: lake.export(folder(lake).with_name("export")),
    "groups": lambda lake: lake.record_groups(),
    "import": lambda lake: lake.import_topics(folder(lake).with_name("exported")),
}


@pytest.mark.parametrize("local_retention_ms", [-1, 0])
@pytest.mark.parametrize("look", LOOKS)
def test_what_goes_by_the_table_says_that_it_is_away(
    connect: Connect, root: Path, look: str, local_retention_ms: int
) -> None:
    """Else what it holds would look as if it had never been, or were no more."""
    lake = connect()
    lake.topics.alter("orders", {"local.retention.ms": local_retention_ms})
    lake.archive("orders", until=12)
    with lake.consumer("orders", group_id="readers", auto_offset_reset="earliest") as consumer:
        consumer.poll(timeout_ms=60_000)
        consumer.commit()
    lake.export(root.with_name("exported"))
    with away(root), pytest.raises(ArchivedElsewhereError, match="it is not there now"):
        LOOKS[look](connect())
    assert values(connect()) == [b"v%d" % n for n in range(15)]


def test_what_tells_of_many_topics_tells_of_it_and_the_others(connect: Connect, root: Path) -> None:
    connect().topics.create("hot", 1, {"remote.storage.enable": False})
    connect().topics.create("sales", 1)
    with away(root):
        lake = connect()
        seen = lake.status()
        assert {one.topic_partition.topic for one in seen.partitions} == {"hot", "sales"}
        assert [type(one.error) for one in seen.failures] == [ArchivedElsewhereError]
        found = lake.check()
        assert {(one.topic, one.kind) for one in found.findings} == {("orders", Kind.TABLE)}
        assert all("it is not there now" in one.what for one in found.findings)
        assert lake.check("sales").findings == ()
        failed = lake.metrics().filter(pc.equal(lake.metrics()["metric"], "lakelog_topic_failed"))
        assert failed.num_rows == 1
        cold_bytes = [one for one in lake.quotas() if one.quota == "lakelog.quota.cold.bytes"]
        assert [one.used for one in cold_bytes] == [None]


def test_cleanup_changes_no_other_table_and_says_so(
    connect: Connect, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = connect()
    lake.topics.create("sales", 1)
    source = lake.place.source.url
    given = ["--redis", source, "--cold", str(root), "--engine", "inline"]
    with away(root):
        for command in (["cleanup", "run"], ["cleanup", "plan"], ["archive"], ["status"]):
            assert main([*given, *command]) == 1
            assert "it is not there now" in capsys.readouterr().err
        for command in (["cleanup", "run", "sales"], ["archive", "sales"], ["check", "sales"]):
            assert main([*given, *command]) == 0
        assert main([*given, "segments", "list", "orders"]) == 1
        assert "it is not there now" in capsys.readouterr().err
        assert main([*given, "segments", "list", "orders", "--tier", "hot"]) == 0


def test_another_topics_first_table_is_not_made_in_an_empty_mount_point(
    connect: Connect, root: Path
) -> None:
    """Once the disk is back, it would be hidden, with all that was trimmed for it."""
    lake = connect()
    lake.topics.create("sales", 1, {"local.retention.ms": 0})
    with lake.producer() as producer:
        producer.send("sales", "a").result()
    with (
        away(root),
        pytest.raises(ArchivedElsewhereError, match="'sales' has no table yet, and none is"),
    ):
        connect().archive("sales")
    assert connect().archive("sales")[0].records == 1


def test_all_that_is_gone_for_good_is_adopted_topic_by_topic(connect: Connect, root: Path) -> None:
    lake = connect()
    lake.topics.create("sales", 1, SETTINGS)
    with lake.producer() as producer:
        producer.send("sales", "a").result()
    lake.archive()
    shutil.rmtree(root)
    lake = connect()
    with pytest.raises(ArchivedElsewhereError, match="lakelog archive sales --adopt"):
        lake.archive("orders", adopt=True)
    assert lake.archive("sales", adopt=True)[0].records == 1
    assert lake.archive("orders")[0].records == 15


def test_a_deleted_topic_is_kept_until_its_table_is_there(connect: Connect, root: Path) -> None:
    """Its table would be a lost topic's, which a restore brings back."""
    lake = connect()
    lake.topics.delete("orders")
    topic = lake.deleted()[0]
    for key in lake.hot.connections.all()[0].call(("KEYS", "*deleted*"))[0]:
        lake.hot.connections.all()[0].call(("UNLINK", key))  # file.delete.delay.ms is over
    with away(root):
        for act in (connect().purge, connect().undelete):
            with pytest.raises(ArchivedElsewhereError, match=r"If it is gone for good: .* --gone"):
                act("orders")
        assert [one.topic_id for one in connect().deleted()] == [topic.topic_id]
    purged = connect().purge("orders")
    assert purged.cold is not None
    assert purged.cold.left == ()
    assert connect().deleted() == connect().restorable() == []


def test_what_is_kept_of_a_topic_whose_table_is_gone_comes_back_or_goes(
    connect: Connect, root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = connect()
    lake.topics.delete("orders")
    shutil.rmtree(root)
    assert connect().undelete("orders", gone=True).kept_hot
    assert connect().archive("orders")[0].records == 15
    connect().topics.delete("orders")
    shutil.rmtree(root)
    given = ["--redis", lake.place.source.url, "--cold", str(root), "topics", "purge", "orders"]
    assert main(given) == 1
    assert "lakelog topics purge orders --gone" in capsys.readouterr().err
    assert main([*given, "--gone"]) == 0
    assert connect().deleted() == []


def test_no_key_is_made_while_the_table_may_have_one_that_redis_lost(
    connect: Connect, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two keys of one number would be the end of what the first has encrypted."""
    monkeypatch.setenv("LAKE_KEY", "33" * 32)
    lake = connect()
    sealed = lake.topics.create("sealed", 1, {"lakelog.encryption.key": "env:LAKE_KEY"})
    with lake.producer() as producer:
        producer.send("sealed", "a").result()
    lake.archive("sealed")
    with away(root), pytest.raises(ArchivedElsewhereError, match="it is not there now"):
        connect().topics.rotate_key("sealed")
    assert connect().topics.get("sealed") == sealed
    assert connect().topics.rotate_key("sealed").config_version > sealed.config_version


def test_no_tenant_is_made_in_an_empty_mount_point(connect: Connect, root: Path) -> None:
    with away(root), pytest.raises(ArchivedElsewhereError, match="it is not there now"):
        connect().tenants.create("acme")
    assert connect().tenants.list() == []
    assert connect().tenants.create("acme").name == "acme"


def test_a_table_is_known_before_anything_is_reserved_in_it(
    connect: Connect, redis_url: str, tmp_path: Path
) -> None:
    """A producer's recovery may be the first who makes it."""
    lake = connect()
    topic = lake.topics.create("sales", 1)
    table = lake.place.table(topic)
    reserve(table, {0: Wanted(0)})
    assert lake.hot.archived_into().said(topic) == ArchivedInto(table.table_id() or "", table.where)
    with Lakelog.connect(redis_url, tmp_path / "two", engine="inline") as other:
        with pytest.raises(ArchivedElsewhereError, match="cold/sales"):
            reserve(other.place.table(topic), {0: Wanted(0)})
        with pytest.raises(ArchivedElsewhereError, match="cold/sales"):
            other.archive("sales")
    assert not (tmp_path / "two" / "sales").exists()
