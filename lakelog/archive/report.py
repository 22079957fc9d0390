"""What an archive run did, as a value and as text."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ..base.text_table import counted
from ..engines.engine import Choice
from ..values.topic_partition import OffsetRange, TopicPartition
from .trouble import Trouble


class PartitionArchived(Struct, frozen=True):
    """One partition's share of a run."""

    topic_partition: TopicPartition
    start_offset: int
    end_offset: int  # exclusive
    records: int  # fewer than the offsets if there is a gap
    size_bytes: int  # of the files
    files: int
    seconds: float  # from the plan to the commit, which partitions share
    unparsed: int = 0  # records whose value did not become columns; value_error says why

    def __str__(self) -> str:
        return (
            f"{self.topic_partition}: [{self.start_offset}, {self.end_offset}) "
            f"{counted(self.records, 'record')}, {self.size_bytes:,} bytes in "
            f"{counted(self.files, 'file')}, "
            f"{self.seconds:.2f} s"
        )


class ArchiveReport(Struct, frozen=True):
    """One run over one topic. False when it found nothing to do."""

    topic: str
    partitions: tuple[PartitionArchived, ...] = ()  # what was committed, in the order of commits
    trimmed: Mapping[int, OffsetRange] = field(default_factory=dict)  # hot records that went
    orphans_removed: int = 0  # files that a failed run had left
    seconds: float = 0.0
    troubles: tuple[Trouble, ...] = ()  # what could not be done once it was archived
    engines: tuple[Choice, ...] = ()  # what the records were copied by, and why

    @property
    def records(self) -> int:
        return sum(partition.records for partition in self.partitions)

    @property
    def unparsed(self) -> int:
        """Records whose value did not become columns (``lakelog.value.columns``)."""
        return sum(partition.unparsed for partition in self.partitions)

    @property
    def size_bytes(self) -> int:
        return sum(partition.size_bytes for partition in self.partitions)

    @property
    def files(self) -> int:
        return sum(partition.files for partition in self.partitions)

    def followed_by(self, other: ArchiveReport) -> ArchiveReport:
        """Joins the report of a later run over the same topic; one report of both."""
        trimmed = dict(self.trimmed)
        for partition, gone in other.trimmed.items():
            start = trimmed.get(partition, gone).start
            trimmed[partition] = OffsetRange(start, gone.end)
        return ArchiveReport(
            self.topic,
            self.partitions + other.partitions,
            trimmed,
            self.orphans_removed + other.orphans_removed,
            self.seconds + other.seconds,
            other.troubles,
            tuple(dict.fromkeys((*self.engines, *other.engines))),
        )

    def __bool__(self) -> bool:
        return bool(self.partitions or self.trimmed or self.orphans_removed)

    def __str__(self) -> str:
        lines = [str(partition) for partition in self.partitions]
        if lines:
            lines.append(
                f"{self.topic}: {counted(self.records, 'record')}, {self.size_bytes:,} bytes in "
                f"{counted(self.files, 'file')}, {self.seconds:.2f} s"
            )
        else:
            lines.append(f"{self.topic}: nothing to archive")
        lines += [
            f"{self.topic}-{partition}: [{gone.start}, {gone.end}) is no longer kept in Redis"
            for partition, gone in sorted(self.trimmed.items())
        ]
        if self.unparsed:
            lines.append(
                f"{self.topic}: {counted(self.unparsed, 'value')} did not become columns; "
                "value_error in the table says why"
            )
        if self.orphans_removed:
            lines.append(
                f"{self.topic}: {counted(self.orphans_removed, 'file')} of failed runs removed"
            )
        lines += [f"{self.topic}: engine {choice}" for choice in self.engines]
        lines += [f"{self.topic}: {trouble}" for trouble in self.troubles]
        return "\n".join(lines)
