"""Two cold roots over one keyspace: a topic is archived into one table, whoever archives."""

from __future__ import annotations

import re
import shutil
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from lakelog import Lakelog
from lakelog.base import failpoints
from lakelog.cli.main import main
from lakelog.errors import (
    ArchivedElsewhereError,
    ArchiveUnfinishedError,
    DeliveryError,
    LakelogError,
)
from lakelog.testing.eventually import eventually

SETTINGS = {"retention.ms": -1, "local.retention.ms": -1, "lakelog.flush.interval.ms": 1000}


@pytest.fixture
def connect(redis_url, tmp_path):
    opened = []

    def connect(root: str | Path = "one") -> Lakelog:
        log = Lakelog.connect(redis_url, tmp_path / root, engine="inline")
        opened.append(log)
        return log

    yield connect
    for log in opened:
        log.close()


def send(log: Lakelog, *values: str) -> None:
    with log.producer() as producer:
        for value in values:
            producer.send("orders", value)


@pytest.fixture
def one(connect):
    """Archives into the first root, in which one record is."""
    log = connect()
    log.topics.create("orders", 2, SETTINGS)
    send(log, "a")
    log.archive("orders")
    return log


def rows(root: Path) -> int:
    (table,) = (root / "orders").iterdir()
    return len(DeltaTable(str(table)).to_pyarrow_table(columns=["offset"]))


def test_another_root_is_refused_before_it_holds_or_trims_anything(connect, one, tmp_path):
    send(one, "b")
    other = connect("two")
    with pytest.raises(ArchivedElsewhereError, match=r"is archived into the table at .*one/orders"):
        other.archive("orders")
    with pytest.raises(ArchivedElsewhereError, match="keyspace of its own"):
        other.archiver("orders").trim()
    assert not (tmp_path / "two" / "orders").exists()
    one.archive("orders")
    assert rows(tmp_path / "one") == 2


def test_of_two_that_begin_at_once_one_is_refused(connect, one, tmp_path):
    """Both have found no table, and committed."""
    one.topics.create("sales", 1, SETTINGS)
    with one.producer() as producer:
        producer.send("sales", "a")
    other = connect("two")
    begun = []

    def meanwhile() -> None:
        if not begun:
            begun.append(other)
            other.archive("sales")

    with (
        failpoints.armed("archive.after_plan", meanwhile),
        pytest.raises(ArchivedElsewhereError) as failed,
    ):
        one.archive("sales")
    assert "two/sales" in str(failed.value)
    assert not one.archive("orders")[0]  # the others are archived as before
    with pytest.raises(ArchivedElsewhereError):
        one.archive("sales")
    other.archive("sales")


def test_the_same_table_under_another_path_is_the_same(connect, one, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "one")
    for root in ("link", "one"):
        log = connect(root)
        send(log, "b")
        assert log.archive("orders")[0].records == 1
    assert rows(tmp_path / "one") == 3


@pytest.mark.parametrize("root", ["one", "two"])
def test_where_a_log_goes_on_is_asked_of_the_topics_own_table(make_redis, tmp_path, root):
    """A producer's recovery reserves offsets there: not in a new table, while its own is away."""
    server = make_redis(appendonly="yes")
    with Lakelog.connect(server.url, tmp_path / "one", engine="inline") as log:
        log.topics.create("orders", 2, SETTINGS)
        send(log, "a")
        log.archive("orders")
    (tmp_path / "one").rename(tmp_path / "away")
    server.restart(clean=False)
    now = {"one": "it is not there now", "two": "here it would be another one, at .*two/orders"}
    told = f"archived into the table at .*one/orders.* {now[root]}"
    with Lakelog.connect(server.url, tmp_path / root, engine="inline") as log:
        producer = log.producer(delivery_timeout_ms=5_000, linger_ms=0)
        for partition in range(2):
            error = producer.send("orders", "lost", partition=partition).exception()
            assert isinstance(error, DeliveryError)
            assert (error.not_written, error.unknown) == (1, 0)
            assert re.search(told, str(error.last_error))
        producer.close()
        assert not (tmp_path / root / "orders").exists()
    shutil.rmtree(tmp_path / "one", ignore_errors=True)
    (tmp_path / "away").rename(tmp_path / "one")
    with Lakelog.connect(server.url, tmp_path / "one", engine="inline") as log:
        send(log, "b")
        assert log.archive("orders")[0].records == 1


def test_a_table_that_was_dropped_is_made_again_where_it_was_once_it_is_adopted(
    connect, one, tmp_path
):
    one.close()
    shutil.rmtree(tmp_path / "one" / "orders")
    anew = connect()
    with pytest.raises(ArchivedElsewhereError, match="lakelog archive orders --adopt"):
        anew.archive("orders")
    assert anew.archive("orders", adopt=True)[0].records == 1  # Redis has it still
    assert rows(tmp_path / "one") == 1
    shutil.rmtree(tmp_path / "one" / "orders")
    other = connect("two")
    other.archive("orders", adopt=True)
    shutil.copytree(tmp_path / "two" / "orders", tmp_path / "one" / "orders")
    assert connect().archive("orders")[0].records == 0  # the same table, moved
    shutil.rmtree(tmp_path / "one" / "orders")
    copy = connect("three")
    copy.archive("orders", adopt=True)
    shutil.rmtree(tmp_path / "three" / "orders")
    shutil.move(tmp_path / "two" / "orders", tmp_path / "three")
    with pytest.raises(ArchivedElsewhereError, match="another one lies there now"):
        connect("three").archive("orders")


def test_a_table_that_is_gone_for_good_is_adopted_elsewhere(connect, one, tmp_path, capsys):
    shutil.rmtree(tmp_path / "one")
    with pytest.raises(ArchivedElsewhereError, match="lakelog archive orders --adopt"):
        connect("two").archive("orders")
    url = one.place.source.url
    told = ["--redis", url, "--cold", str(tmp_path / "two"), "--engine", "inline", "archive"]
    assert main([*told, "--adopt"]) == 1
    assert "names of topics" in capsys.readouterr().err
    assert main([*told, "orders", "--adopt"]) == 0
    assert rows(tmp_path / "two") == 1
    with pytest.raises(ArchivedElsewhereError, match="two/orders"):
        connect("one").archive("orders")
    assert connect("two").archive("orders", adopt=True)[0].records == 0


def test_whoever_archives_on_stops_once_another_table_was_adopted(connect, one, tmp_path):
    """Both would trim what the other does not have."""
    old = one.archiver("orders")
    send(one, "b")
    old.run_once()
    connect("two").archive("orders", adopt=True)
    send(one, "c")
    for going_on in (old.run_once, lambda: one.archive("orders"), one.archive):
        with pytest.raises(LakelogError, match="two/orders"):
            going_on()
    assert rows(tmp_path / "one") == 2
    assert connect("two").archive("orders")[0].records == 1


def test_a_continuous_run_says_so_and_archives_the_rest(connect, one):
    other = connect("two")
    other.topics.create("sales", 1, {**SETTINGS, "lakelog.flush.rows": 1})
    send(one, "b")
    stop = threading.Event()
    run = other.archive_continuously(stop=stop, max_duration=timedelta(minutes=2))
    with other.producer() as producer:
        producer.send("sales", "a")
    assert next(run).topic == "sales"
    eventually(lambda: any("keyspace of its own" in str(trouble) for trouble in run.troubles()))
    eventually(lambda: any("one/orders" in str(trouble) for trouble in one.status().troubles))
    stop.set()
    with pytest.raises(ArchiveUnfinishedError, match="orders"):
        list(run)
