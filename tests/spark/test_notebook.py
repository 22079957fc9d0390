"""The notebook that archives, on Spark."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "notebooks"))  # notebook_run.py

from notebook_run import run_plain

from lakelog.engines.spark import SparkEngine

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession


def test_archiving_runs_on_spark(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_DIRECTORY", str(tmp_path / "log"))
    monkeypatch.setenv("LAKELOG_ENGINE", "spark")
    jobs: list[str] = []
    collect = SparkEngine.collect

    def watched(self: SparkEngine, answers: DataFrame, description: str) -> list[Row]:
        jobs.append(description)
        return collect(self, answers, description)

    monkeypatch.setattr(SparkEngine, "collect", watched)
    result = json.loads(run_plain("20"))

    assert result["job"] == "archive"
    assert any(one["archived_end"] > 0 for one in result["partitions"])
    assert jobs
    assert spark.range(3).count() == 3  # the session is not the notebook's to end
