"""`lakelog skip` of a topic whose table has a name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis
from spark_log import SparkLog, rows_of

import lakelog.spark
from lakelog.cli import main as cli
from lakelog.errors import CorruptRecordError
from lakelog.values.topic_partition import OffsetRange

pytestmark = pytest.mark.slow

ADD = ("skip", "add", "orders", "-p", "0")


@pytest.fixture
def log(redis_url: str, schema: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[SparkLog]:
    monkeypatch.setenv("LAKELOG_REDIS", redis_url)
    monkeypatch.setenv("LAKELOG_COLD", schema)
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    named = SparkLog(redis_url, schema)
    yield named
    named.lakelog.close()


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.main(words)
    said = capsys.readouterr()
    return code, said.out + said.err


def test_a_skipped_entry_lets_the_archive_by_name_go_on(
    log: SparkLog, spark: Any, schema: str, redis_client: redis.Redis, capsys: Any, tmp_path: Path
) -> None:
    log.create()
    for _ in range(3):
        log.append(20)
        if not log.lakelog.log("orders").offsets()[0].archived_end:
            log.archive()  # the first of them
    redis_client.xdel("lakelog:stream:orders:0", "39-20")
    assert rows_of(log.lakelog.dataframe("orders", 0, 20)) == log.expected(0, 20)
    code, said = run(capsys, "archive", "orders")
    assert code == 1
    assert "lakelog skip add orders -p 0 --entry 39-20" in said
    with pytest.raises(CorruptRecordError):
        list(log.lakelog.log("orders").read(0).records())

    code, said = run(capsys, *ADD, "--entry", "39-20", "--save-to", str(tmp_path / "saved.json"))
    assert (code, "its offsets 20..39" in said) == (0, True)
    code, said = run(capsys, "skip", "list", "orders", "--output", "json")
    assert [(row["tier"], row["id"]) for row in json.loads(said)] == [("hot", "39-20")]

    gap = OffsetRange(20, 40)
    left = [row for row in log.expected() if not gap.start <= row[1] < gap.end]
    unified = log.lakelog.log("orders")
    for archived in (False, True):
        if archived:
            assert run(capsys, "archive", "orders")[0] == 0
            assert unified.offsets()[0].archived_end == 60
            assert rows_of(spark.table(f"{schema}.orders")) == left
            assert rows_of(lakelog.spark.read(spark, None, schema, "orders")) == left
        assert [record.offset for record in unified.read(0).records()] == [row[1] for row in left]
        assert rows_of(log.lakelog.dataframe("orders")) == left
        assert gap in unified.offsets()[0].gaps
        code, said = run(capsys, "status", "orders")
        assert (code, "20..39" in said) == (0, True)
    log.append(5)
    log.archive()
    assert unified.offsets()[0].archived_end == 65


def test_a_file_by_name_stays_where_it_is(log: SparkLog, capsys: Any) -> None:
    log.create()
    log.append(5)
    log.archive()
    code, said = run(capsys, *ADD, "--file", "part-00000.parquet")
    assert code == 1
    assert "raise the log start above it" in said
    assert run(capsys, "skip", "list", "orders")[1] == "nothing was skipped\n"
