"""Queries in processes of their own, in which the password is looked for."""

from __future__ import annotations

from typing import Any

import pytest
from deltalake import DeltaTable
from query_process import finish, start
from spark_log import SparkLog, limited

PROGRAM = "stream_process.py"


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
