"""Credentials of Unity Catalog: what plans a read has a login, what runs its tasks has none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from deltalake import DeltaTable
from pyspark import cloudpickle
from pyspark.sql.types import StructType
from query_process import finish, start
from spark_log import EPOCH_MS, limited
from workspace import SECRET, TOKEN, Workspace

from lakelog import Lakelog
from lakelog.cold.store import unity_catalog
from lakelog.spark.datasource import InputTask, LakelogDataSource

HERE = Path(__file__).parent


@pytest.fixture
def workspace(monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    found = Workspace()
    monkeypatch.setenv("DATABRICKS_HOST", f"http://127.0.0.1:{found.server.server_port}")
    monkeypatch.setenv("DATABRICKS_TOKEN", "login")
    yield found
    found.stop()


class VendedLog:
    """A log whose cold tier is opened by vended credentials: 60 archived records, 20 hot ones."""

    def __init__(self, redis_url: str, endpoint: str) -> None:
        self.url = redis_url
        self.root = f"s3://lakelog/{uuid4().hex}"
        self.store = {"CREDENTIALS": "unity-catalog", "AWS_ENDPOINT_URL": endpoint}
        self.lakelog = Lakelog.connect(
            redis_url, self.root, engine="inline", storage_options=self.store
        )
        self.lakelog.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": 0})
        self.append(0, 30)
        self.lakelog.archive("orders")
        self.append(30, 40)

    def append(self, start: int, end: int) -> None:
        with self.lakelog.producer() as producer:
            for n in range(start, end):
                for number in (0, 1):
                    producer.send("orders", b"%d" % n, partition=number, timestamp_ms=EPOCH_MS + n)

    def options(self, **more: Any) -> dict[str, str]:
        given = {"redis": self.url, "cold": self.root, "subscribe": "orders", **more}
        given["storageOptions"] = json.dumps(self.store)
        return {name: str(value) for name, value in given.items()}

    def source(self, **options: str) -> LakelogDataSource:
        return LakelogDataSource(self.options(startingOffsets="earliest", **options))

    @staticmethod
    def expected(start: int, end: int) -> list[list[Any]]:
        return [[number, n, str(n)] for number in (0, 1) for n in range(start, end)]


@pytest.fixture
def log(workspace: Workspace, redis_url: str, s3_server: Any) -> Iterator[VendedLog]:
    made = VendedLog(redis_url, s3_server.url)
    yield made
    made.lakelog.close()


def read_without_login(
    folder: Path, reader: bytes, ranges: list[InputTask]
) -> subprocess.CompletedProcess[str]:
    """What a fresh process makes of a pickled reader and its ranges."""
    (folder / "reader").write_bytes(reader)
    (folder / "ranges").write_bytes(cloudpickle.dumps(ranges))
    environment = {n: v for n, v in os.environ.items() if not n.startswith("DATABRICKS_")}
    return subprocess.run(
        [sys.executable, str(HERE / "read_ranges_process.py"), str(folder)],
        env={**environment, "HOME": str(folder)},  # no profile of a login there either
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_tasks_of_a_batch_open_the_store_by_what_its_planner_was_given(log, tmp_path, monkeypatch):
    monkeypatch.setattr(unity_catalog, "_HELD", {})  # as in the process that plans
    source = log.source()
    reader = source.reader(source.schema())
    pickled = cloudpickle.dumps(reader)  # as Spark does, before it asks for partitions
    ranges = reader.partitions()

    done = read_without_login(tmp_path, pickled, ranges)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == log.expected(0, 40)
    assert SECRET.encode() in cloudpickle.dumps(ranges[0])
    assert "vended" not in repr(ranges)

    empty_handed = [replace(one, credentials=None) for one in ranges]
    assert empty_handed == ranges
    refused = read_without_login(tmp_path, pickled, empty_handed)
    assert refused.returncode == 1
    assert "Unity Catalog gives no credentials" in refused.stderr


def test_each_micro_batch_brings_its_own_and_the_checkpoint_none(
    log, workspace, tmp_path, monkeypatch
):
    monkeypatch.setattr(unity_catalog, "_HELD", {})
    workspace.lasts_s = 20 * 60  # too short to be handed on twice
    source = log.source(minPartitions="2")
    reader = source.streamReader(source.schema())
    pickled = cloudpickle.dumps(reader)  # once for all of the stream
    begin = reader.initialOffset()
    middle = reader.latestOffset(begin)
    first = reader.partitions(begin, middle)
    log.append(40, 50)
    log.lakelog.archive("orders")
    end = reader.latestOffset(middle)
    second = reader.partitions(middle, end)

    keys = [dict(one.credentials[0][1].values)["AWS_ACCESS_KEY_ID"] for one in (*first, *second)]
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert int(keys[0].removeprefix("vended-")) < int(keys[2].removeprefix("vended-"))
    done = read_without_login(tmp_path, pickled, second)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == log.expected(40, 50)
    assert "vended" not in json.dumps([begin, middle, end])


@pytest.mark.slow
def test_nothing_that_spark_writes_has_them(log, tmp_path):
    """The frame's cold part has them as options of its reader, its tail and the stream in tasks."""
    events, checkpoint, sink = tmp_path / "events", tmp_path / "checkpoint", tmp_path / "sink"
    events.mkdir()
    wanted = {
        "options": log.options(startingOffsets="earliest", **limited(25)),
        "checkpoint": str(checkpoint),
        "sink": str(sink),
        "mode": "drain frame",
        "object_stores": ["s3"],
        "conf": {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
        },
    }
    output = finish(start("stream_process.py", wanted))
    assert "rows 80" in output
    assert "BatchScan lakelog" in output
    assert len(DeltaTable(str(sink)).to_pyarrow_table()) == 80

    written = [path for folder in (events, checkpoint) for path in folder.rglob("*")]
    texts = [path.read_bytes() for path in written if path.is_file()]
    assert any(b"SparkListenerSQLExecutionStart" in text for text in texts)
    assert any(log.root.encode() in text for text in texts)
    for text in [*texts, output.encode()]:
        assert SECRET.encode() not in text
        assert TOKEN.encode() not in text


RECOVER = """
import pickle, sys
from pathlib import Path
from lakelog.values.topic_partition import TopicPartition

writer, topic = pickle.loads(Path(sys.argv[1]).read_bytes())
writer._recover(topic, TopicPartition("orders", 0), 0)
print("recovered")
"""


@pytest.mark.slow
def test_a_task_of_the_sink_recovers_a_partition_by_what_its_planner_was_given(
    log, tmp_path, monkeypatch
):
    monkeypatch.setattr(unity_catalog, "_HELD", {})
    options = log.options(topic="orders")
    del options["subscribe"]
    schema = StructType().add("value", "binary")
    writer = LakelogDataSource(options).writer(schema, overwrite=False)
    topic = log.lakelog.topics.get("orders")
    environment = {n: v for n, v in os.environ.items() if not n.startswith("DATABRICKS_")}

    def recover() -> subprocess.CompletedProcess[str]:
        (tmp_path / "writer").write_bytes(cloudpickle.dumps((writer, topic)))
        return subprocess.run(
            [sys.executable, "-c", RECOVER, str(tmp_path / "writer")],
            env={**environment, "HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    done = recover()
    assert (done.returncode, done.stdout) == (0, "recovered\n"), done.stderr
    monkeypatch.setattr(unity_catalog, "_HELD", {})
    monkeypatch.setattr(writer, "_credentials", None)
    refused = recover()
    assert refused.returncode == 1
    assert "Unity Catalog gives no credentials" in refused.stderr
