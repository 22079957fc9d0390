"""Several keyspaces on one cold root: each has its own topics, and no name is guessed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.errors import AmbiguousTopicError, CleanupFailedError
from tests.support.servers import RedisServer

RECORDS = {"sales": 30, "lab": 7}


@pytest.fixture
def cold(redis_url: str, tmp_path: Path) -> Path:
    """Where two keyspaces have archived their orders; records of `lab` are expired."""
    for keyspace, records in RECORDS.items():
        with Lakelog.connect(
            redis_url, tmp_path / "cold", keyspace=keyspace, engine="inline"
        ) as lake:
            settings = {
                "retention.ms": 1 if keyspace == "lab" else -1,
                "internal.segment.bytes": 300,
                "lakelog.entry.format": "fields",
                "file.delete.delay.ms": 0,
            }
            lake.topics.create("orders", 1, settings)
            lake.topics.create(f"{keyspace}.own")
            with lake.producer() as producer:
                for number in range(records):
                    value = f"{keyspace} {number}".encode()
                    for name in ("orders", f"{keyspace}.own"):
                        producer.send(name, value=value, timestamp_ms=1)
            lake.archive()
    return tmp_path / "cold"


@pytest.fixture
def both(cold: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(None, cold, engine="inline") as log:
        yield log


def test_a_name_that_both_have_is_refused_and_the_others_are_read(both: Lakelog) -> None:
    assert [topic.name for topic in both.topics.list()] == ["lab.own", "sales.own"]
    assert both.log("lab.own").read(0).to_arrow().num_rows == RECORDS["lab"]
    for ask in (both.log, both.cleanup, both.status, lambda name: both.dataframe(name)):
        with pytest.raises(AmbiguousTopicError, match=r"keyspace 'sales'.*keyspace 'lab'.*--key"):
            ask("orders")


@pytest.mark.parametrize("keyspace", RECORDS)
def test_each_keyspace_reads_its_own(cold: Path, redis_url: str, keyspace: str) -> None:
    with (
        Lakelog.connect(None, cold, keyspace=keyspace, engine="inline") as alone,
        Lakelog.connect(redis_url, cold, keyspace=keyspace, engine="inline") as lake,
    ):
        for log in (alone, lake.archived):
            assert {topic.name for topic in log.topics.list()} == {"orders", f"{keyspace}.own"}
            values = log.log("orders").read(0).to_arrow().column("value").to_pylist()
            assert values == [f"{keyspace} {n}".encode() for n in range(RECORDS[keyspace])]


def test_cleanup_touches_no_table_that_it_cannot_tell(both: Lakelog, cold: Path) -> None:
    there = set((cold / "orders").rglob("*.parquet"))
    with pytest.raises(CleanupFailedError, match=r"2 topics under .* are named 'orders'") as caught:
        both.cleanup()
    reports = {report.topic: report for report in caught.value.reports}
    assert {"lab.own", "sales.own"} <= reports.keys()
    assert set((cold / "orders").rglob("*.parquet")) == there

    with Lakelog.connect(None, cold, keyspace="lab", engine="inline") as lab:
        lab.cleanup()
    with Lakelog.connect(None, cold, keyspace="sales", engine="inline") as sales:
        assert sales.log("orders").read(0).to_arrow().num_rows == RECORDS["sales"]


def test_two_redises_whose_keyspaces_have_one_name_are_not_mixed_up(
    cold: Path, redis_url: str, make_redis: Callable[..., RedisServer]
) -> None:
    with Lakelog.connect(make_redis().url, cold, keyspace="sales", engine="inline") as other:
        other.topics.create("orders", anew=True)
        with other.producer() as producer:
            producer.send("orders", value=b"of the other")
        other.archive()
        assert other.log("orders").read(0).to_arrow().num_rows == 1
    with Lakelog.connect(redis_url, cold, keyspace="sales", engine="inline") as lake:
        assert lake.log("orders").read(0).to_arrow().num_rows == RECORDS["sales"]
        with pytest.raises(AmbiguousTopicError, match=r"with id .* keyspaces of different names"):
            lake.archived.log("orders")


def test_the_command_line_says_which(cold: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--cold", str(cold), "--output", "json", "consume", "orders"]
    assert main(command) == 1
    assert "keyspace=… (--keyspace)" in capsys.readouterr().err
    assert main([*command, "--keyspace", "lab"]) == 0
    values = [json.loads(line)["value"] for line in capsys.readouterr().out.splitlines()]
    assert values[:1] == ["lab 0"]
