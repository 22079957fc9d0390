"""The README lists every metric as it is."""

from __future__ import annotations

from pathlib import Path

import lakelog
from lakelog.base.metrics import OF_PROCESS, Metric
from lakelog.operate.metrics.of_log import OF_LOG

README = (Path(lakelog.__file__).parent / "operate" / "metrics" / "README.md").read_text("utf-8")


def row(metric: Metric) -> str:
    kafka = f"`{metric.kafka}`" if metric.kafka else ""
    cells = (f"`{metric.name}`", metric.kind.value, ", ".join(metric.labels), metric.help, kafka)
    return f"| {' | '.join(cells)} |"


def listed(heading: str) -> list[str]:
    section = README.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [line for line in section.splitlines() if line.startswith("| `")]


def test_each_metric_has_its_row() -> None:
    assert listed("What is measured of a log") == list(map(row, OF_LOG))
    assert listed("What a process counts") == list(map(row, OF_PROCESS))
