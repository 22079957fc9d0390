"""The metrics of cleanups, told by all processes through Redis."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable

from ...base.metrics import of_process as m
from ...base.metrics.metric import Histogram, Measured, Metric, Sample
from ...cleanup.report import CleanupReport, figures_of
from ...errors import HotTierAccessError
from ...hot.cleanups import Cleanups
from ...values.topic import Topic

#: With the topic as label.
_OF_TOPICS = (
    m.CLEANER_RUNS,
    m.CLEANER_FAILURES,
    m.CLEANER_FAILED,
    m.RECOPY_RATIO,
    m.MAX_CLEAN_SECONDS,
)
_BUCKETS = range(len(m.CLEANER_SECONDS.buckets) + 1)


def tell(cleanups: Cleanups, topic: Topic, report: CleanupReport) -> None:
    """Has whoever watches the log know of a run.

    Raises:
        LakelogError: Redis does not answer, refuses, or is full.
    """
    figures = figures_of(report)
    bucket = bisect_left(m.CLEANER_SECONDS.buckets, figures.seconds)
    cleanups.tell(
        topic.topic_id,
        {
            **{metric.name: amount for metric, amount in figures.more.items()},
            _bucket(bucket): 1,
            _MS: round(1000 * figures.seconds),
        },
        {metric.name: value for metric, value in figures.now.items()},
    )


def told(cleanups: Cleanups, topics: Iterable[Topic]) -> list[Measured]:
    """The metrics that runs over these topics have told; none that no run has.

    Raises:
        HotTierUnavailableError: Redis does not answer.
    """
    try:
        read = cleanups.read()
    except HotTierAccessError:  # this user has a role that an older lakelog made
        return []
    of = [(topic.name, read[key]) for topic in topics if (key := str(topic.topic_id)) in read]
    samples: dict[Metric, list[Sample]] = {
        metric: [((name,), one[metric.name]) for name, one in of if metric.name in one]
        for metric in _OF_TOPICS
    }
    measured = [Measured(metric, sorted(found)) for metric, found in samples.items() if found]
    if of:
        counts = [int(sum(one.get(_bucket(at), 0) for _, one in of)) for at in _BUCKETS]
        seconds = sum(one.get(_MS, 0) for _, one in of) / 1000
        histogram = Histogram(tuple(counts), seconds)
        measured.append(Measured(m.CLEANER_SECONDS, histograms=[((), histogram)]))
    return measured


#: What the runs took together.
_MS = f"{m.CLEANER_SECONDS.name}:ms"


def _bucket(at: int) -> str:
    """How many runs were in a bucket."""
    return f"{m.CLEANER_SECONDS.name}:{at}"
