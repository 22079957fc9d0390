"""What the metrics tell of a cleanup run. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ..base.metrics import of_process as m
from ..base.metrics.metric import Metric
from .report import CleanupReport


class Figures(Struct, frozen=True):
    """Of one topic."""

    more: Mapping[Metric, int]  # so much more was counted
    now: Mapping[Metric, float]  # how it is since
    seconds: float


def figures_of(report: CleanupReport) -> Figures:
    """The figures of one run."""
    failed = {failure.topic_partition for failure in report.failures}
    now: dict[Metric, float] = {m.CLEANER_FAILED: len(failed)}
    if report.compacted:
        read = sum(one.bytes_read for one in report.compacted)
        kept = sum(one.bytes_kept for one in report.compacted)
        now[m.RECOPY_RATIO] = kept / read if read else 0.0
        now[m.MAX_CLEAN_SECONDS] = max(one.seconds for one in report.compacted)
    more = {m.CLEANER_RUNS: 1, m.CLEANER_FAILURES: len(report.failures)}
    return Figures(more, now, report.seconds)
