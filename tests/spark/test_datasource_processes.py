"""Queries in processes of their own: killed in the middle, and searched for the password."""

from __future__ import annotations

import os
import random
import signal
import time
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from query_process import committed, finish, planned, start
from spark_log import SparkLog, limited

from lakelog.testing.eventually import eventually

PROGRAM = "stream_process.py"


@pytest.mark.slow
@pytest.mark.parametrize("kills", [1, 3])
def test_each_record_is_in_the_sink_once_however_often_the_driver_is_killed(
    make_log, tmp_path, kills
) -> None:
    log = make_log(3, segment_ms=60_000)
    for partition in range(3):
        log.append(2000, partition, batch=250)
    log.archive()
    checkpoint, sink = tmp_path / "checkpoint", tmp_path / "sink"
    wanted: dict[str, Any] = {
        "options": log.options(startingOffsets="earliest", minPartitions=4, **limited(300)),
        "checkpoint": str(checkpoint),
        "sink": str(sink),
        "mode": "follow",
    }
    seed = random.randrange(2**32)
    print("seed", seed)
    moments = random.Random(seed)
    killed_in_the_middle = 0
    for kill in range(kills):
        before = planned(checkpoint)
        process = start(PROGRAM, wanted)
        try:

            def is_far_enough(kill=kill, before=before, process=process) -> bool:
                assert process.poll() is None, process.communicate()[0][-4000:]
                if kill == 0:
                    return any(sink.rglob("*.parquet"))
                return planned(checkpoint) >= before + 2

            # The first time as soon as a file is written, then at any moment of later batches.
            eventually(is_far_enough)
            if kill:
                time.sleep(moments.uniform(0, 0.8))  # the moment is drawn, not waited for
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        killed_in_the_middle += planned(checkpoint) > committed(checkpoint)
        for partition in range(3):
            log.append(300, partition, batch=50)
        if kill % 2:
            log.archive()
    assert killed_in_the_middle

    wanted["options"].pop("maxOffsetsPerTrigger", None)
    finish(start(PROGRAM, {**wanted, "mode": "drain"}))

    columns = ["partition", "offset", "key", "value"]
    found = pa.table(DeltaTable(str(sink)).to_pyarrow_table(columns=columns))
    rows = sorted(tuple(row[name] for name in columns) for row in found.to_pylist())
    assert len(rows) == 3 * (2000 + kills * 300)
    assert rows == log.expected()


@pytest.mark.slow
def test_the_password_is_nowhere_to_be_read(make_redis, tmp_path) -> None:
    secret = "s3cr3t-wörd"
    server = make_redis(requirepass=secret)
    log = SparkLog(server.url, tmp_path / "cold").create(2)
    log.append(50)
    log.archive()
    log.append(20, 1)
    events, checkpoint = tmp_path / "events", tmp_path / "checkpoint"
    events.mkdir()
    wanted: dict[str, Any] = {
        "options": {
            **log.options(startingOffsets="earliest", **limited(40)),
            "redis": f"redis://127.0.0.1:{server.port}",
            "passwordRef": "env:LAKELOG_TEST_PASSWORD",
        },
        "checkpoint": str(checkpoint),
        "sink": str(tmp_path / "sink"),
        "conf": {
            "spark.eventLog.enabled": "true",
            "spark.eventLog.compress": "false",
            "spark.eventLog.dir": events.as_uri(),
        },
    }
    outputs = []
    for mode in ("drain", "frame"):
        process = start(PROGRAM, {**wanted, "mode": mode}, LAKELOG_TEST_PASSWORD=secret)
        outputs.append(finish(process))
    assert "rows 70" in outputs[1]
    assert "BatchScan lakelog" in outputs[1]
    assert len(DeltaTable(str(tmp_path / "sink")).to_pyarrow_table()) == 70

    written = [path for folder in (events, checkpoint) for path in folder.rglob("*")]
    texts = [path.read_bytes() for path in written if path.is_file()]
    assert any(b"SparkListenerSQLExecutionStart" in text for text in texts)
    assert any(b'{"0": 50' in text for text in texts)
    for text in [*texts, *(output.encode() for output in outputs)]:
        assert secret.encode() not in text
        assert b"s3cr3t" not in text

    wrong = start(PROGRAM, {**wanted, "mode": "frame"}, LAKELOG_TEST_PASSWORD="other")
    output, _ = wrong.communicate(timeout=300)
    assert wrong.returncode == 1
    assert "HotTierAccessError" in output
    assert "s3cr3t" not in output
