"""What an archive run did, and what an archiver fails at, as values and as text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from ..base.text_table import counted
from ..engines.engine import Choice
from ..values.topic_partition import OffsetRange, TopicPartition


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


# -- troubles ------------------------------------------------------------------------------------

#: The states of a topic in trouble. One that is not shown is archived, but the catalog lacks its
#: name or its views. What groups have committed is not recorded: that is no topic's trouble, but
#: has the name of the table that it should be in.
NOT_ARCHIVED = "not archived"
NOT_SHOWN = "not shown in the catalog"
NOT_RECORDED = "groups not recorded"

_AGAIN = {
    NOT_SHOWN: "next try when more is archived",
    NOT_RECORDED: "next try by whoever archives next",
}


class Trouble(Struct, frozen=True):
    """One topic's trouble, as an archiver sees it. Times are the archiver's clock, epoch ms."""

    topic: str
    since_ms: int  # the first failure since it last went well
    why: str  # of the last failure
    tries: int  # failures in a row; 0: the first call has not returned
    next_try_ms: int | None  # None: a call is under way, or the next archive run tries
    state: str = NOT_ARCHIVED

    def __str__(self) -> str:
        tries = f"{self.tries} {'try' if self.tries == 1 else 'tries'}"
        if self.next_try_ms is not None:
            again = f"next try {_time(self.next_try_ms)}"
        else:
            again = _AGAIN.get(self.state, "being tried")
        return f"{self.state} since {_time(self.since_ms)} ({tries}, {again}): {self.why}"

    def to_json(self) -> dict[str, Any]:
        """As a beat carries it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trouble:
        """Reads what `to_json` gave, even in an older or newer release.

        Raises:
            ValueError: it is something else.
        """
        next_try_ms = value.get("next_try_ms")
        try:
            found = cls(
                str(value.get("topic", "")),
                int(value.get("since_ms", 0)),
                str(value.get("why", "")),
                int(value.get("tries", 0)),
                None if next_try_ms is None else int(next_try_ms),
                str(value.get("state", NOT_ARCHIVED)),
            )
            str(found)  # its times are some
        except (TypeError, OverflowError, OSError) as error:
            raise ValueError(f"{value!r} is no trouble") from error
        return found


def reported(beats: Iterable[Mapping[str, Any]]) -> Iterator[Trouble]:
    """The troubles that archivers report; anything else in their place is ignored."""
    for beat in beats:
        said = beat.get("troubles", ())
        for one in said if isinstance(said, list) else ():
            if isinstance(one, dict):
                with suppress(ValueError):
                    yield Trouble.from_json(one)


def why(error: BaseException) -> str:
    """An error as a reason: lakelog's by its message, any other with its type."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _time(epoch_ms: int) -> str:
    time = datetime.fromtimestamp(epoch_ms / 1000, timezone.utc)
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
