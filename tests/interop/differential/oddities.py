"""The three things that Kafka answers and lakelog, on purpose, does not.

=====================================  ============================================================
``time below the log start``           none: its first segment that reaches the time does so only
                                       with records below the log start; later ones match
``time in an emptied segment``         none: compaction emptied its first segment, which counts as
                                       young as its file
``max-timestamp below the log start``  a record that can no longer be read
=====================================  ============================================================

Each is told from what was done to the log, not from the answers' being different: anything else is
a difference that nobody can explain.

Source: apache/kafka ``TopicLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .answers import Answer
from .workload import Append, Compact, Retain, Step, Workload

TIME_BELOW = "time below the log start"
TIME_EMPTIED = "time in an emptied segment"
MAX_BELOW = "max-timestamp below the log start"


@dataclass(frozen=True, slots=True)
class KafkaSegment:
    """One of the broker's segments, as its rules for rolling make them."""

    base_offset: int
    first_age_ms: int | None  # the youngest record of its first batch
    ages: tuple[tuple[int, int], ...] = ()  # offset and age of all that were ever in it
    cleaned: bool = False

    def reaches(self, age_ms: int) -> bool:
        return any(age <= age_ms for _, age in self.ages)


@dataclass(frozen=True, slots=True)
class Taken:
    """A step, what Kafka answered, and where its log began and ended after it."""

    step: Step
    answer: Answer
    earliest: int
    latest: int


def segments(workload: Workload, taken: Sequence[Taken]) -> list[KafkaSegment]:
    """The segments after these steps; deleted ones included."""
    limit_ms = int(workload.settings["segment.ms"])
    found = [KafkaSegment(0, None)]
    for one in taken:
        step, answer = one.step, one.answer
        if isinstance(step, Append) and isinstance(answer, int):
            ages = [row.age_ms for row in step.rows if row.age_ms is not None]
            young = min(ages, default=None)
            first = found[-1].first_age_ms
            if first is not None and young is not None and first - young > limit_ms:
                found.append(KafkaSegment(answer, young))
            offsets = ((answer + n, row.age_ms) for n, row in enumerate(step.rows))
            more = tuple((offset, age) for offset, age in offsets if age is not None)
            open_segment = found[-1]
            found[-1] = replace(
                open_segment,
                first_age_ms=young if not open_segment.ages else open_segment.first_age_ms,
                ages=open_segment.ages + more,
            )
        elif isinstance(step, Compact) and len(found) > 1:
            *closed, last = found  # small ones become one
            together = tuple(pair for segment in closed for pair in segment.ages)
            found = [KafkaSegment(closed[0].base_offset, None, together, cleaned=True), last]
        elif isinstance(step, Retain) and one.earliest == one.latest:
            found.append(KafkaSegment(one.latest, None))  # rolled before all was deleted
    return found


def oddity(
    question: str,
    kafka: Answer,
    lakelog: Answer,
    records: Answer,
    earliest: int,
    found: Sequence[KafkaSegment],
) -> str | None:
    """Which of the three explains that the answers differ; None: none does.

    Args:
        records, earliest: what both say is there.
        found: `segments`.
    """
    what, _, number = question.partition(" ")
    if what == "max-timestamp":
        return MAX_BELOW if kafka is not None and kafka[0] < earliest else None
    if what != "time" or kafka is not None or lakelog is None:
        return None
    age_ms = int(number)
    for segment, end in zip(found, _ends(found), strict=True):
        if segment.base_offset > lakelog[0] or segment.base_offset <= lakelog[0] < end:
            return None
        left = [one for one in records if segment.base_offset <= one[0] < end]
        if segment.cleaned and not left:
            return TIME_EMPTIED
        if segment.base_offset < earliest and segment.reaches(age_ms):
            return TIME_BELOW
    return None


def _ends(found: Sequence[KafkaSegment]) -> Iterable[float]:
    return [*(segment.base_offset for segment in found[1:]), float("inf")]
