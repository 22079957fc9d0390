"""Both tiers of a topic in one look, taken in the order that cannot lose a record; and their values
as they were given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from types import MappingProxyType
from typing import NoReturn

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from ..base import compute as pc
from ..codec.encryption.of_topic import opening
from ..codec.encryption.sealed_values import any_begins_sealed, with_values
from ..cold.committing import deleted_topic
from ..cold.table import NO_TABLE, ColdRows, ColdSnapshot, ColdTable
from ..errors import (
    DecryptionError,
    HotTierUnavailableError,
    OffsetOutOfRangeError,
    RecoveryNeededError,
)
from ..hot.archived_into import check_own
from ..values.config import DATA_KEYS
from ..values.offset_ranges import merged
from ..values.offsets import HotOffsets, HotSegments, LogOffsets
from ..values.record import Fetched
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .hot_tier import HotTier

#: Opens the cold tier of a topic, which must have one.
OpenTable = Callable[[], ColdTable]


class Look(Struct, frozen=True):
    """What both tiers said of some partitions."""

    offsets: Mapping[int, LogOffsets]
    cold: ColdSnapshot  # the one of a table that does not exist when the topic has no cold tier
    hot: Mapping[int, HotOffsets]  # as it was just before the cold tier was looked at


class SegmentedLook(Look, frozen=True):
    """What both tiers said, with the segments of the hot one; it costs more, the more there are."""

    hot: Mapping[int, HotSegments]


class Tiers:
    """The hot and the cold tier of one topic.

    It remembers the newest cold snapshot it saw (the next costs only what was committed since) and
    where each partition's hot records began: a reader whose offset lies above may ask the hot tier
    at once.

    Args:
        table: None for an untiered topic.
        rows: gives snapshots and rows, if not the table itself.
        open_table: opens the table of a topic that was untiered and is archived by now.
        stored_values: give encrypted values as they are stored.
    """

    def __init__(
        self,
        topic: Topic,
        hot: HotTier,
        table: ColdTable | None,
        rows: ColdRows | None = None,
        open_table: OpenTable | None = None,
        *,
        stored_values: bool = False,
    ) -> None:
        self.topic = topic
        self.hot = hot
        self.values = Values(topic, hot.renewed, are_stored=stored_values)
        self.table = table
        self.rows = table if rows is None else rows
        self._open_table = open_table
        self._cold: ColdSnapshot | None = None
        self._local_log_starts: dict[int, int] = {}

    def reading(self, rows: ColdRows) -> Tiers:
        """The same, whose archived rows somebody else gives; values stay as they are stored."""
        made = copy(self)
        made.rows, made.values = rows, self.values.stored()
        return made

    def look(
        self, partitions: Iterable[int], hot: Mapping[TopicPartition, HotOffsets] | None = None
    ) -> Look:
        """The offsets of the partitions, and the cold snapshot that they are based on.

        Args:
            hot: what the hot tier said of them just now, if it was asked already.
        """
        asked = [self.topic.partition(partition) for partition in partitions]
        # Hot first: a trim between the two looks can then only make the tiers overlap, since what
        # it dropped is in the snapshot that comes after.
        if hot is None:
            hot = self._hot_offsets(asked)
        return Look(*self._joined(asked, hot), {tp.partition: hot[tp] for tp in asked})

    def look_at_segments(
        self,
        partitions: Iterable[int],
        hot: Mapping[TopicPartition, HotSegments] | None = None,
        cold: ColdSnapshot | None = None,
    ) -> SegmentedLook:
        """As `look`, also at the segments of the hot tier.

        Args:
            cold: what the cold tier said after `hot`, if it was asked already.
        """
        asked = [self.topic.partition(partition) for partition in partitions]
        if hot is None:
            hot = self._hot_segments(asked)
        joined = self._joined(asked, hot, cold)
        return SegmentedLook(*joined, {tp.partition: hot[tp] for tp in asked})

    def _joined(
        self,
        asked: list[TopicPartition],
        hot: Mapping[TopicPartition, HotOffsets],
        cold: ColdSnapshot | None = None,
    ) -> tuple[dict[int, LogOffsets], ColdSnapshot]:
        """What the partitions are across both tiers, and the cold one, looked at now if need be."""
        self._follow(hot.values())
        if cold is None:
            cold = self.cold()
        if self.table is not None:
            check_is_there(self.topic, self.hot, self.table, cold, hot)
        ahead = [tp for tp in asked if cold.archive_start(tp.partition) > hot[tp].log_end]
        # Either it was appended and archived between the two looks, or the server lost its tail. A
        # log end read after the snapshot tells: it must have reached what the snapshot holds.
        again = self._hot_offsets(ahead) if ahead else {}
        offsets = {}
        for tp in asked:
            lost = tp in again and again[tp].log_end < cold.archive_start(tp.partition)
            joined = join(hot[tp], cold, tp.partition)
            offsets[tp.partition] = replace(joined, recovered=False) if lost else joined
            self._local_log_starts[tp.partition] = joined.local_log_start
        return offsets, cold

    def current_table(self, asked: list[TopicPartition]) -> ColdTable | None:
        """The cold tier that partitions have by now; None if they have none."""
        if self.table is None:
            self._follow(self._hot_offsets(asked).values())
        return self.table

    def cold(self) -> ColdSnapshot:
        """The cold tier as of now."""
        if self.rows is None:
            return ColdSnapshot()
        self._cold = self.rows.snapshot(self._cold)
        return self._cold

    def outdated(self, look: Look) -> bool:
        """Whether a file that the look names may rightly be gone: rewritten or expired since.

        Raises:
            UnknownTopicIdError: the topic was deleted.
        """
        now = self.cold()
        if now.is_deleted:
            raise deleted_topic(self.topic)
        return now.version != look.cold.version

    def _follow(self, hot: Iterable[HotOffsets]) -> None:
        """Open the table if the topic has got one since; the hot tier knows first."""
        if self.rows is None and self._open_table and any(seen.tiered for seen in hot):
            self.table = self.rows = self._open_table()

    def _hot_offsets(self, asked: list[TopicPartition]) -> dict[TopicPartition, HotOffsets]:
        return self.hot.offsets(asked, topic_id=self.topic.topic_id)

    def _hot_segments(self, asked: list[TopicPartition]) -> dict[TopicPartition, HotSegments]:
        return self.hot.segments(asked, topic_id=self.topic.topic_id)

    def may_be_hot(self, topic_partition: TopicPartition, offset: int) -> bool:
        """False if the offset is known to lie below the hot records. Costs nothing."""
        return offset >= self._local_log_starts.get(topic_partition.partition, 0)

    def ends_at(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Whether the log ends at the offset, as far as the hot tier alone can tell.

        It cannot when it may have lost its tail: cold may hold more.
        """
        hot = self._hot_offsets([topic_partition])[topic_partition]
        return hot.recovered and hot.log_end == offset

    def trimmed(self, topic_partition: TopicPartition, local_log_start: int) -> None:
        """Take note of where the hot records begin."""
        self._local_log_starts[topic_partition.partition] = local_log_start


def check_is_there(
    topic: Topic,
    hot: HotTier,
    table: ColdTable,
    cold: ColdSnapshot,
    seen: Mapping[TopicPartition, HotOffsets] = MappingProxyType({}),
) -> None:
    """Refuses that there is no table where the topic is archived into one, which may be away: what
    it holds would look as if it were no more.

    Args:
        cold: the newest snapshot of the table.
        seen: what the hot tier said just before, of some partitions.

    Raises:
        ArchivedElsewhereError: so it is.
    """
    if cold.version != NO_TABLE:
        return
    first = topic.partition(0)
    try:
        one = seen.get(first) or hot.offsets([first], topic_id=topic.topic_id)[first]
    except HotTierUnavailableError:
        return  # another server knows, and does not answer now
    check_own(topic, table, one.archived_into)


def join(hot: HotOffsets, cold: ColdSnapshot, partition: int) -> LogOffsets:
    """One log out of two tiers, `cold` being at least as new as `hot`."""
    archived_end = cold.archived_end(partition)
    log_start = max(cold.log_start(partition), hot.log_start)
    return LogOffsets(
        log_start=log_start,
        local_log_start=max(log_start, hot.local_log_start),
        archived_end=archived_end,
        # All that cold knows of was appended, if only after `hot` was read.
        log_end=max(hot.log_end, archived_end, log_start),
        recovered=hot.recovered,
        gaps=_gaps(hot, cold, partition, log_start),
    )


def _gaps(
    hot: HotOffsets, cold: ColdSnapshot, partition: int, log_start: int
) -> tuple[OffsetRange, ...]:
    lost: list[OffsetRange] = []
    stand_ins = cold.files.stand_ins(partition)
    if not hot.gaps and not stand_ins:
        return ()
    if hot.gaps:
        files = cold.files.rows_of_partition(partition)
        lost = [part for gap in hot.gaps for part in _lost_for_good(gap, files, log_start)]
    held = list(_skipped(stand_ins, hot, log_start))
    return tuple(merged([*lost, *held]) if held else lost)


def _lost_for_good(gap: OffsetRange, files: pa.Table, log_start: int) -> Iterator[OffsetRange]:
    """The lost part of a tail that hot lost; cold may have got its first records.

    Judged by the files' ranges, not by the records they hold: what compaction removed
    since is not lost.
    """
    files = files.filter(pc.invert(pc.match_substring(files["path"], "/quarantine-")))
    files = files.select(["segment", "start_offset", "end_offset"])
    files = files.filter(
        pc.and_(pc.less(files["start_offset"], gap.end), pc.greater(files["end_offset"], gap.start))
    )
    # A file's range begins with the gap before its segment, which is lost, not held.
    firsts = pc.max_element_wise(files["start_offset"], files["segment"]).to_pylist()
    at = max(gap.start, log_start)
    for first, end in zip(firsts, files["end_offset"].to_pylist(), strict=True):
        if first < gap.end <= end:
            continue  # segments on both sides of the gap were merged: what it held is not known
        if at < first:
            yield OffsetRange(at, min(first, gap.end))
        at = max(at, end)
    if at < gap.end:
        yield OffsetRange(at, gap.end)


def _skipped(
    stand_ins: Iterable[OffsetRange], hot: HotOffsets, log_start: int
) -> Iterator[OffsetRange]:
    """The offsets that cold lacks for a skipped file and that hot does not hold."""
    for gap in stand_ins:
        lacking = OffsetRange(max(gap.start, log_start), min(gap.end, hot.local_log_start))
        if lacking.start < lacking.end:
            yield lacking


def out_of_range(
    topic_partition: TopicPartition, offset: int, offsets: LogOffsets, do: str | None = None
) -> NoReturn:
    """Refuse an offset outside [log_start, log_end].

    Args:
        do: what to do instead, as a sentence; default: what a reader does.

    Raises:
        RecoveryNeededError: it lies past the end of a server that may have lost its tail, so it
            may have been legal; it will be again after recovery.
        OffsetOutOfRangeError: otherwise.
    """
    if offset > offsets.log_end and not offsets.recovered:
        raise RecoveryNeededError(
            f"offset {offset} of {topic_partition} lies past the log end {offsets.log_end}, and "
            "the server restarted since the partition was last written, so its tail may be lost. "
            "Wait: the next append or archive run settles it and the log goes on above",
            topic_partition=topic_partition,
            offset=offset,
            log_start=offsets.log_start,
            log_end=offsets.log_end,
        )
    if do is None:
        do = f"Seek to {offsets.log_start} (earliest) or {offsets.log_end} (latest)"
        if offset > offsets.log_end and (at_ms := _as_epoch_ms(offset)) is not None:
            do += f"; if it was meant as a time, write @{at_ms}, in epoch milliseconds"
    raise OffsetOutOfRangeError(
        f"offset {offset} of {topic_partition} is out of range: the log holds "
        f"[{offsets.log_start}, {offsets.log_end}). {do}",
        topic_partition=topic_partition,
        offset=offset,
        log_start=offsets.log_start,
        log_end=offsets.log_end,
    )


def _as_epoch_ms(number: int) -> int | None:
    """The number as milliseconds, if it may count seconds or milliseconds since 2001."""
    if 10**9 <= number < 10**10:
        return number * 1000
    return number if 10**12 <= number < 10**13 else None


#: Says of a row which record it is.
PlaceOf = Callable[[int], tuple[TopicPartition, int]]


class Values:
    """Decrypts the values of a topic that are encrypted; leaves all others as they are.

    The topic's keys are asked for when the first such value comes, and looked up again when one
    comes that none of them opens: a reader may have opened the topic before its key was rotated, or
    before it had one.

    Args:
        topic: as the reader knows it.
        renewed: gives it as it is now.
        are_stored: leave all values as they are stored.
    """

    def __init__(
        self, topic: Topic, renewed: Callable[[Topic], Topic], *, are_stored: bool = False
    ) -> None:
        self._topic = topic
        self._renewed = renewed
        self.are_stored = are_stored

    def stored(self) -> Values:
        """What leaves all values as they are stored."""
        return Values(self._topic, self._renewed, are_stored=True)

    def of_step(self, topic_partition: TopicPartition, step: Fetched) -> Fetched:
        """The step with its values as they were given.

        Raises:
            DecryptionError: one is not what was encrypted there.
            EncryptionKeyError: the key cannot be had here.
        """
        if self.are_stored:
            return step
        offsets = step.records.column("offset")
        records = self._of_records(
            step.records, lambda row: (topic_partition, offsets[row].as_py())
        )
        return step if records is step.records else replace(step, records=records)

    def of_columns(self, keys: pa.Array, values: pa.Array, place: PlaceOf) -> pa.Array:
        """As `of_step`, of two ``pa.binary()`` columns."""
        if self.are_stored or values.null_count == len(values):
            return values
        if not self._topic.config.text(DATA_KEYS) and not (
            any_begins_sealed(values) and self._look_again()
        ):
            return values
        sealed = opening(self._topic)
        if sealed is None:
            return values
        try:
            try:
                return sealed.open(keys, values)
            except DecryptionError:
                if not self._look_again():
                    raise
            sealed = opening(self._topic)
            assert sealed is not None  # data keys are never taken away
            return sealed.open(keys, values)
        except DecryptionError as error:
            raise _located(error, place) from None

    def _of_records(self, records: pa.RecordBatch, place: PlaceOf) -> pa.RecordBatch:
        values = records.column("value")
        opened = self.of_columns(records.column("key"), values, place)
        return records if opened is values else with_values(records, opened)

    def _look_again(self) -> bool:
        """Whether the topic has other data keys by now."""
        known = self._topic.config.text(DATA_KEYS)
        self._topic = self._renewed(self._topic)
        return self._topic.config.text(DATA_KEYS) != known


def _located(error: DecryptionError, place: PlaceOf) -> DecryptionError:
    """The error of a row, saying which record that is."""
    topic_partition, offset = place(error.row or 0)
    message = error.message.replace(
        f"record {error.row} ", f"{topic_partition} at offset {offset} ", 1
    )
    return error.changed(message=message, topic_partition=topic_partition, offset=offset)
