"""Queries in processes of their own: killed in the middle, and searched for the password."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable
from spark_log import SparkLog, limited

KILLS = 3

PROCESS = Path(__file__).with_name("stream_process.py")


def start(wanted: dict[str, Any], **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(PROCESS), json.dumps(wanted)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # so that the JVM that it starts is killed with it
    )


def finish(process: subprocess.Popen[str]) -> str:
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output[-4000:]
    return output


def planned(checkpoint: Path) -> int:
    """How many micro-batches were ever begun."""
    offsets = checkpoint / "offsets"
    return sum(path.name.isdigit() for path in offsets.iterdir()) if offsets.exists() else 0


def test_each_record_is_in_the_sink_once_however_often_the_driver_is_killed(
    make_log, tmp_path
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
    for kill in range(KILLS):
        before = planned(checkpoint)
        process = start(wanted)
        try:
            deadline = time.monotonic() + 240
            # The first time in the first batch, then in some later one, at any moment of it.
            while planned(checkpoint) < before + (1 if kill == 0 else 2):
                assert process.poll() is None, process.communicate()[0][-4000:]
                assert time.monotonic() < deadline, "no micro-batch was planned"
                time.sleep(0.01)
            time.sleep(moments.uniform(0, 0.8))
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
        commits = checkpoint / "commits"
        done = sum(p.name.isdigit() for p in commits.iterdir()) if commits.exists() else 0
        killed_in_the_middle += planned(checkpoint) > done
        for partition in range(3):
            log.append(300, partition, batch=50)
        if kill % 2:
            log.archive()
    assert killed_in_the_middle

    wanted["options"].pop("maxOffsetsPerTrigger", None)
    finish(start({**wanted, "mode": "drain"}))

    columns = ["partition", "offset", "key", "value"]
    found = pa.table(DeltaTable(str(sink)).to_pyarrow_table(columns=columns))
    rows = sorted(tuple(row[name] for name in columns) for row in found.to_pylist())
    assert len(rows) == 3 * (2000 + KILLS * 300)
    assert rows == log.expected()


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
        process = start({**wanted, "mode": mode}, LAKELOG_TEST_PASSWORD=secret)
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

    wrong = start({**wanted, "mode": "frame"}, LAKELOG_TEST_PASSWORD="other")
    output, _ = wrong.communicate(timeout=300)
    assert wrong.returncode == 1
    assert "HotTierAccessError" in output
    assert "s3cr3t" not in output
