"""The four things that Kafka answers and lakelog, on purpose, does not.

=====================================  ============================================================
``time below the log start``           none: its first segment that reaches the time does so only
                                       with records below the log start; later ones match
``time in an emptied segment``         none: compaction emptied its first segment, which counts as
                                       young as its file; or a producer's last batch, which stays
                                       without its records, and as young as it was
``max-timestamp below the log start``  a record that can no longer be read
``sequence before records``            what is wrong with the records, which it looks at first;
                                       lakelog looks at the producer and its sequence first
=====================================  ============================================================

Each is told from what was done to the log, not from the answers' being different: anything else is
a difference that nobody can explain.

Source: apache/kafka ``TopicLog.fetchOffsetByTimestamp``, ``LogSegment.findOffsetByTimestamp``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf

from .answers import Answer
from .workload import Append, Compact, Numbered, Retain, Step, Workload

TIME_BELOW = "time below the log start"
TIME_EMPTIED = "time in an emptied segment"
MAX_BELOW = "max-timestamp below the log start"
SEQUENCE_FIRST = "sequence before records"

#: Answers to a numbered batch.
_OF_RECORDS = ("INVALID_TIMESTAMP", "INVALID_RECORD")
_OF_SEQUENCE = ("INVALID_PRODUCER_EPOCH", "OUT_OF_ORDER_SEQUENCE_NUMBER", "there already")


@dataclass(frozen=True, slots=True)
class KafkaSegment:
    """One of the broker's segments, as its rules for rolling make them."""

    base_offset: int
    first_age_ms: int | None  # the youngest record of its first batch
    ages: tuple[tuple[int, int], ...] = ()  # offset and age of all that were ever in it
    cleaned: bool = False
    youngest_numbered_ms: float = inf  # record of an idempotent producer

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
                youngest_numbered_ms=min(
                    open_segment.youngest_numbered_ms,
                    *(ages if isinstance(step, Numbered) else ()),
                    inf,
                ),
            )
        elif isinstance(step, Compact) and len(found) > 1:
            *closed, last = found  # small ones become one
            together = tuple(pair for segment in closed for pair in segment.ages)
            numbered_ms = min(segment.youngest_numbered_ms for segment in closed)
            found = [
                KafkaSegment(closed[0].base_offset, None, together, True, numbered_ms),
                last,
            ]
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
    """Which of them explains that the answers differ; None: none does.

    Args:
        records, earliest: what both say is there.
        found: `segments`.
    """
    what, _, number = question.partition(" ")
    if what == "step":
        is_of_records = isinstance(kafka, list) and kafka[0] in _OF_RECORDS
        is_of_sequence = isinstance(lakelog, list) and lakelog[0] in _OF_SEQUENCE
        return SEQUENCE_FIRST if is_of_records and is_of_sequence else None
    if what == "max-timestamp":
        return MAX_BELOW if kafka is not None and kafka[0] < earliest else None
    if what != "time" or kafka is not None or lakelog is None:
        return None
    age_ms = int(number)
    for segment, end in zip(found, _ends(found), strict=True):
        if segment.base_offset > lakelog[0] or segment.base_offset <= lakelog[0] < end:
            return None
        left = [one for one in records if segment.base_offset <= one[0] < end]
        if segment.cleaned and (not left or segment.youngest_numbered_ms <= age_ms):
            return TIME_EMPTIED
        if segment.base_offset < earliest and segment.reaches(age_ms):
            return TIME_BELOW
    return None


def _ends(found: Sequence[KafkaSegment]) -> Iterable[float]:
    return [*(segment.base_offset for segment in found[1:]), float("inf")]
