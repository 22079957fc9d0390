"""What a run did to each partition, by the reports of its stages. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..archive.report import ArchiveReport, Trouble
from ..cleanup.report import CleanupReport
from ..values.topic_partition import TopicPartition


class Appended(Struct, frozen=True):
    """What an ingest run added to a partition."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int  # exclusive
    records: int


Report = ArchiveReport | CleanupReport | Appended


class Effect(Struct, frozen=True):
    """The offsets that a run appended, archived or cleaned, and the number of their records."""

    start_offset: int
    end_offset: int  # exclusive
    records: int

    def __or__(self, other: Effect) -> Effect:
        return Effect(
            min(self.start_offset, other.start_offset),
            max(self.end_offset, other.end_offset),
            self.records + other.records,
        )


def effects_of(reports: Iterable[Report]) -> Mapping[TopicPartition, Effect]:
    """The effect on each partition that was changed."""
    found: dict[TopicPartition, Effect] = {}
    for report in reports:
        for topic_partition, done in _parts(report):
            before = found.get(topic_partition)
            found[topic_partition] = done if before is None else before | done
    return found


def troubles_of(reports: Iterable[Report], beside: Iterable[Trouble]) -> list[Trouble]:
    """What could not be done beside the work, by the newest report of each topic.

    Args:
        beside: those that no report of a topic has.
    """
    newest = {one.topic: one for one in reports if isinstance(one, ArchiveReport)}
    return [*(trouble for report in newest.values() for trouble in report.troubles), *beside]


def _parts(report: Report) -> Iterable[tuple[TopicPartition, Effect]]:
    if isinstance(report, Appended):
        did = Effect(report.start_offset, report.end_offset, report.records)
        yield report.topic_partition, did
        return
    if isinstance(report, ArchiveReport):
        for part in report.partitions:
            yield part.topic_partition, Effect(part.start_offset, part.end_offset, part.records)
        return
    for kept in report.retained:
        yield kept.topic_partition, Effect(kept.log_start_before, kept.log_start, kept.records)
    for one in report.compacted:
        yield one.topic_partition, Effect(0, one.cleaned_end, one.records_dropped)
