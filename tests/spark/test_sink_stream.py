"""Streams and frames written while drivers are killed and tasks fail; passwords are nowhere."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from query_process import committed, finish, planned, start
from sink_process import MEET_AFTER, MET, PIPE
from spark_cluster import SparkCluster
from spark_log import SparkLog, limited

from lakelog.testing.eventually import eventually
from lakelog.values.record import Record, to_records

PARTITIONS = 3
PROGRAM = "sink_process.py"


def wanted(log: SparkLog, tmp_path: Path, *modes: str, **more: Any) -> dict[str, Any]:
    return {
        "read": log.options(startingOffsets="earliest", **more),
        "write": {"redis": log.url, "topic": "copy"},
        "checkpoint": str(tmp_path / "checkpoint"),
        "modes": modes,
    }


def copied(log: SparkLog) -> list[Record]:
    topic = log.lakelog.topics.get("copy")
    hot = log.lakelog.hot
    return [
        record
        for tp in topic.topic_partitions()
        for step in hot.read(tp, 0, topic_id=topic.topic_id)
        for record in to_records(tp, step.records)
    ]


def appended(log: SparkLog) -> int:
    topic = log.lakelog.topics.get("copy")
    offsets = log.lakelog.hot.offsets(topic.topic_partitions())
    return sum(one.log_end for one in offsets.values())


def check_copies(log: SparkLog, times: int = 1) -> None:
    """Each record so many times, and those of a key and a source partition in their order."""
    found = copied(log)
    assert sorted(r.value for r in found) == sorted(times * [row[3] for row in log.rows])
    offsets: dict[tuple[bytes | None, bytes], list[int]] = {}
    for record in found:
        partition, offset = record.value.split(b"-")[0].split(b"/")
        offsets.setdefault((record.key, partition), []).append(int(offset))
    for of_key in offsets.values():
        assert of_key == times * sorted(set(of_key))


@pytest.fixture
def spark_cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    (tmp_path / "cluster").mkdir()
    cluster = SparkCluster(tmp_path / "cluster")
    yield cluster
    cluster.stop()


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 3])
def test_each_record_is_appended_once_however_often_the_driver_is_killed(
    make_log, tmp_path, kills
) -> None:
    log = make_log(PARTITIONS)
    log.lakelog.topics.create("copy", 2)
    for partition in range(PARTITIONS):
        log.append(3000, partition, padding=b"-" + bytes(2000))
    checkpoint = tmp_path / "checkpoint"
    follow = wanted(log, tmp_path, "follow", **limited(1500))
    seed = random.randrange(2**32)
    print("seed", seed)
    moments = random.Random(seed)
    killed_in_the_middle = 0
    for kill in range(kills):
        before, had = planned(checkpoint), appended(log)
        process = start(PROGRAM, follow)
        try:

            def is_far_enough(kill=kill, before=before, had=had, process=process) -> bool:
                assert process.poll() is None, process.communicate()[0][-4000:]
                return appended(log) != had if kill == 0 else planned(checkpoint) >= before + 2

            # The first time as soon as something is appended, then at any moment of later batches.
            eventually(is_far_enough)
            if kill:
                time.sleep(moments.uniform(0, 0.8))  # the moment is drawn, not waited for
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        killed_in_the_middle += planned(checkpoint) > committed(checkpoint)
        for partition in range(PARTITIONS):
            log.append(300, partition, padding=b"-" + bytes(2000))
    assert killed_in_the_middle

    finish(start(PROGRAM, {**follow, "modes": ["drain"]}))
    check_copies(log)


@pytest.mark.slow
def test_tasks_that_fail_halfway_append_each_record_once_and_write_no_password_down(
    make_redis, tmp_path
) -> None:
    secret = "s3cr3t-wörd"
    server = make_redis(requirepass=secret)
    log = SparkLog(server.url, tmp_path / "cold").create(PARTITIONS)
    log.lakelog.topics.create("copy", 2)
    for partition in range(PARTITIONS):
        log.append(12_000, partition, padding=b"-" + bytes(1000))
    events = tmp_path / "events"
    events.mkdir()
    place = {
        "redis": f"redis://127.0.0.1:{server.port}",
        "passwordRef": "env:LAKELOG_TEST_PASSWORD",
    }
    given = wanted(log, tmp_path, "batch", "drain")
    given["read"].update(place)
    given["write"].update(place)
    given["fail_after"] = 10_000
    given["conf"] = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": events.as_uri(),
    }
    output = finish(start(PROGRAM, given, LAKELOG_TEST_PASSWORD=secret))
    assert output.count("the first attempt fails") >= 2 * PARTITIONS
    check_copies(log, 2)

    folders = (events, tmp_path / "checkpoint")
    texts = [p.read_bytes() for folder in folders for p in folder.rglob("*") if p.is_file()]
    assert any(b"SparkListenerSQLExecutionStart" in text for text in texts)
    assert any(b'"streaming.sql.batchId"' in text for text in texts)
    assert "WriteToMicroBatchDataSource" in output
    for text in [*texts, output.encode()]:
        assert secret.encode() not in text
        assert b"s3cr3t" not in text


@pytest.mark.slow
def test_speculative_copies_of_a_task_append_each_record_once(
    make_log, spark_cluster, tmp_path
) -> None:
    """Spark starts a copy of a task that is behind; both have written when both go on."""
    log = make_log(2)
    log.lakelog.topics.create("copy", 2)
    for partition in range(2):
        log.append(MEET_AFTER + 2000, partition, padding=b"-" + bytes(1000))
    os.mkfifo(tmp_path / PIPE)
    given = wanted(log, tmp_path, "batch", "drain")
    given["meet"] = str(tmp_path)
    given["conf"] = {
        "spark.master": spark_cluster.master,
        "spark.executor.memory": "512m",
        "spark.speculation": "true",
        "spark.speculation.quantile": "0.5",  # once the other task is done
        "spark.speculation.multiplier": "1",
        "spark.task.maxFailures": "1",  # so that a second attempt is no repeat of a failed one
    }
    finish(start(PROGRAM, given))
    assert sorted((tmp_path / MET).read_text().split()) == ["0", "0", "1", "1"]
    check_copies(log, 2)
