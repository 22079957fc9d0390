"""Spark's own source and sink for Kafka, of frames and of streams.

``pytest -m slow tests/gateway/clients/test_spark_kafka.py --kafka PATH``
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.gateway.clients.programs import run

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).with_name("spark_program.py")


def test_spark(kafka_folder: Path, servers: str, topic: str, tmp_path: Path) -> None:
    copy = f"{topic}-copy"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(copy, 1, 1)])[copy].result(30)
    jars = run([kafka_folder / "spark-jars"]).strip()
    printed = run([sys.executable, PROGRAM, servers, topic, jars, tmp_path / "stream"])
    assert json.loads(printed.splitlines()[-1]) == {
        "all": [1_000, 1_000, 0, 499, 1],
        "between offsets": [600, 600, 100, 499, 1],
        "since 1970": [1_000, 1_000, 0, 499, 1],
        "in splits": 8,
        "streamed": [500, 500],
        "streamed on": [500, 500],
        "copied": [2_000, 2_000, 0, 1_999, 1],
    }
