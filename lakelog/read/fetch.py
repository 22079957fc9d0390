"""Reading on from an offset, whichever tier holds it, until the log end."""

from __future__ import annotations

import logging
from collections.abc import Generator, Iterable, Iterator
from typing import NoReturn

import pyarrow as pa
from msgspec.structs import replace

from ..base import compute as pc
from ..base.back_off import Tries
from ..errors import (
    ContradictionError,
    CorruptRecordError,
    DecryptionError,
    HotTierUnavailableError,
    MissingFileError,
    TrimmedError,
)
from ..values.config import MIB
from ..values.offsets import LogOffsets
from ..values.record import Fetched, empty_records
from ..values.topic_partition import OffsetRange, TopicPartition
from .tiers import Look, Tiers, out_of_range

#: The most that a step of several records brings.
DEFAULT_MAX_BYTES = 8 * MIB

#: Looks in a row that may find the offset in neither tier. A trim or a rewrite between the look
#: and the read explains one or two; after that the tiers do contradict each other.
_FRUITLESS_LOOKS = 3

logger = logging.getLogger(__name__)


def fetches(
    tiers: Tiers,
    topic_partition: TopicPartition,
    offset: int,
    end: int | None = None,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    lead_bytes: int | None = None,
    seen: Look | None = None,
) -> Iterator[Fetched]:
    """As `stored_fetches`, with the values as they were given.

    Raises:
        DecryptionError: an encrypted value is not what was encrypted there; all records before it
            were given.
        EncryptionKeyError: values are encrypted, and the key cannot be had here.
        LakelogError: see `stored_fetches`.
    """
    steps = stored_fetches(
        tiers,
        topic_partition,
        offset,
        end,
        max_bytes=max_bytes,
        lead_bytes=lead_bytes,
        seen=seen,
    )
    for step in steps:
        try:
            opened = tiers.values.of_step(topic_partition, step)
        except DecryptionError as error:
            if error.row and error.offset is not None:
                yield tiers.values.of_step(topic_partition, _before(step, error.row, error.offset))
            raise
        yield opened


def range_fetches(
    tiers: Tiers,
    topic_partition: TopicPartition,
    offset: int,
    end: int,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    seen: Look | None = None,
) -> Iterator[Fetched]:
    """As `fetches`, of a range that is read as a whole.

    Once it has begun, a Redis that does not answer is asked again for `PATIENCE_S`, as a store is
    by itself: who reads for an hour outlives a restart or a failover. Before, it is told at once.
    """
    tries: Tries | None = None  # nothing failed since the last step
    at = offset
    while at < end:
        try:
            for step in fetches(tiers, topic_partition, at, end, max_bytes=max_bytes, seen=seen):
                at = step.next_offset
                if tries is not None:
                    tries.succeeded()
                    tries = None
                yield step
        except HotTierUnavailableError as error:
            if at == offset:
                raise
            tries = tries or Tries(f"reading {topic_partition}")
            tries.wait(error)
            seen = None


def _before(step: Fetched, row: int, offset: int) -> Fetched:
    """The step up to a record."""
    gaps = tuple(gap for gap in step.gaps if gap.end <= offset)
    return replace(
        step,
        records=step.records.slice(0, row),
        next_offset=offset,
        gaps=gaps,
        at_log_end=False,
    )


def stored_fetches(
    tiers: Tiers,
    topic_partition: TopicPartition,
    offset: int,
    end: int | None = None,
    *,
    max_bytes: int = DEFAULT_MAX_BYTES,
    lead_bytes: int | None = None,
    seen: Look | None = None,
) -> Iterator[Fetched]:
    """Steps that cover [offset, end) or, without an end, [offset, log end) without a hole.

    Each step begins where the one before ended. Trimming, archiving and rewriting of files may
    happen at any time in between. Offsets skipped after an unclean stop are reported as the
    step's gaps (and in the log); those that compaction removed are skipped, once they are no longer
    hot.

    An offset that may be hot is read from the hot tier at once; only if it has no answer, both
    tiers are looked at. So reading one hot record costs one command. This cannot see a log start
    that another process has raised since the last look, unless the hot tier knows of it.

    Args:
        max_bytes: of a step's records; a single larger record is a step of its own.
        lead_bytes: see `HotLog.read`; of cold files it makes no difference.
        seen: a look that covers [offset, end), to begin with.

    Raises:
        OffsetOutOfRangeError: the offset, or one on the way, is not in the log (any more), or the
            log ends before `end`.
        RecoveryNeededError: it lies past the log end of a server that may have lost its tail.
        ContradictionError: offsets that the log should hold are in neither tier.
    """
    at = offset
    looks = 0  # since the last step
    look: Look | None = None  # the one taken since the last step
    hot = tiers.may_be_hot(topic_partition, offset)
    while end is None or at < end:
        before = at
        if hot:
            at, exhausted = yield from _hot(
                tiers, topic_partition, at, end, look, max_bytes, lead_bytes
            )
            if exhausted and end is None and tiers.ends_at(topic_partition, at):
                return
            if at > before:
                looks, look = 0, None
                continue
        is_new = seen is None
        look, seen = seen or tiers.look([topic_partition.partition]), None
        offsets = look.offsets[topic_partition.partition]
        if not offsets.log_start <= at <= offsets.log_end:
            out_of_range(topic_partition, at, offsets)
        if at == offsets.log_end:
            if end is None:
                return
            out_of_range(topic_partition, end, offsets)
        looks += 1
        if looks > _FRUITLESS_LOOKS:
            _refuse_hole(topic_partition, at, look)
        hot = True
        if at < offsets.archived_end:
            at = yield from _cold(tiers, topic_partition, at, end, look, max_bytes)
        if at > before:
            looks, look = 0, None
        elif not is_new:  # what it says may be old: it decides nothing more
            look = None


def _hot(
    tiers: Tiers,
    topic_partition: TopicPartition,
    at: int,
    end: int | None,
    look: Look | None,
    max_bytes: int,
    lead_bytes: int | None,
) -> Generator[Fetched, None, tuple[int, bool]]:
    """Steps of the hot tier; returns where they ended and whether the hot tier ends there too."""
    steps = tiers.hot.read(
        topic_partition,
        at,
        end,
        max_bytes=max_bytes,
        lead_bytes=lead_bytes,
        topic_id=tiers.topic.topic_id,
    )
    try:
        for step in steps:
            gap = step.gaps[0] if step.gaps else None
            if gap is None:
                for cut in _cut(step.records, at, step.next_offset, max_bytes):
                    is_last = step.at_log_end and cut.next_offset == step.next_offset
                    yield replace(cut, at_log_end=True) if is_last else cut
                at, look = step.next_offset, None
            elif gap.start > at:
                rows = step.records.slice(0, gap.start - at)
                yield from _cut(rows, at, gap.start, max_bytes)
                return gap.start, False
            elif look is None or gap not in look.hot[topic_partition.partition].gaps:
                # Cold may hold the first records of a lost tail. Only a look that has seen the gap
                # can tell, since none of the gap's offsets are archived after it was declared.
                return at, False
            else:
                gap_end = min(gap.end, step.next_offset)
                yield _lost(topic_partition, empty_records(), at, gap_end, (gap,))
                return gap_end, False
    except TrimmedError as error:
        tiers.trimmed(topic_partition, error.local_log_start)
        return at, False
    except CorruptRecordError as error:
        if look is not None:  # taken since the last step: cold does not hold this offset
            raise
        logger.warning("%s; trying the cold tier from offset %d on", error, at)
        return at, False
    return at, True


def _cold(
    tiers: Tiers,
    topic_partition: TopicPartition,
    at: int,
    end: int | None,
    look: Look,
    max_bytes: int,
) -> Generator[Fetched, None, int]:
    """Steps of the cold tier at least up to where hot goes on; returns where they ended."""
    assert tiers.rows is not None  # something is archived
    partition = topic_partition.partition
    offsets = look.offsets[partition]
    index = look.cold.files
    limit = min(_hot_again(offsets, at), offsets.archived_end)
    if end is not None:
        limit = min(limit, end)
    try:
        # File by file: listing all that follow would cost more than reading the first record.
        while at < limit and (file := index.file_at(partition, at)) is not None:
            until = min(limit, file.end_offset)
            before = at
            for batch in tiers.rows.read(index.files_between(partition, at, until), at, until):
                for step in _cut(batch, at, None, max_bytes):
                    yield _lost(topic_partition, step.records, at, step.next_offset, offsets.gaps)
                    at = step.next_offset
            if at == before:
                if until == file.end_offset:
                    return at  # the file lacks records that it should hold
                break  # its next record lies beyond the limit
    except MissingFileError:
        if not tiers.outdated(look):
            raise
        return at
    if at < limit:  # what follows the last record was removed by compaction
        yield _lost(topic_partition, empty_records(), at, limit, offsets.gaps)
    return limit


def _hot_again(offsets: LogOffsets, at: int) -> int:
    """Where the hot tier goes on above an offset that it does not hold: trimmed, lost or damaged.

    From there on hot is read, not cold's copy. Otherwise a superseded record that compaction
    removed would be in the log or not, depending on where its reader began.
    """
    if at < offsets.local_log_start:
        return offsets.local_log_start
    return next((gap.end for gap in offsets.gaps if gap.end > at), offsets.archived_end)


def _within(gaps: Iterable[OffsetRange], start: int, end: int) -> Iterator[OffsetRange]:
    for gap in gaps:
        if gap.start < end and gap.end > start:
            yield OffsetRange(max(gap.start, start), min(gap.end, end))


def _cut(
    records: pa.RecordBatch, start: int, next_offset: int | None, max_bytes: int
) -> Iterator[Fetched]:
    """The records in steps of at most `max_bytes`; the last one ends at `next_offset`, None: after
    its last record.
    """
    while records.num_rows:
        rows = records.num_rows
        while rows > 1 and (size_bytes := records.slice(0, rows).nbytes) > max_bytes:
            rows = max(1, min(rows - 1, rows * max_bytes // size_bytes))
        if rows == records.num_rows and next_offset is not None:
            yield Fetched(records, start, next_offset)
            return
        end = records.column("offset")[rows - 1].as_py() + 1
        yield Fetched(records.slice(0, rows), start, end)
        records, start = records.slice(rows), end


def _lost(
    topic_partition: TopicPartition,
    records: pa.RecordBatch,
    start: int,
    end: int,
    gaps: tuple[OffsetRange, ...],
) -> Fetched:
    """The step, with those of its missing offsets that were skipped after an unclean stop."""
    lost = []
    for gap in _within(gaps, start, end):
        # If segments were merged over the gap, only the records still tell what cold got of the
        # lost tail: the skipped offsets follow the last of them.
        below = pc.sum(pc.less(records.column("offset"), gap.end)).as_py() or 0
        held = records.column("offset")[below - 1].as_py() + 1 if below else start
        if max(gap.start, held) < gap.end:
            lost.append(OffsetRange(max(gap.start, held), gap.end))
    for gap in lost:
        logger.warning(
            "%s: offsets [%d, %d) are skipped, after an unclean stop or by `lakelog skip`; reading "
            "goes on above",
            topic_partition,
            gap.start,
            gap.end,
        )
    return Fetched(records, start, end, tuple(lost))


def _refuse_hole(topic_partition: TopicPartition, offset: int, look: Look) -> NoReturn:
    offsets = look.offsets[topic_partition.partition]
    raise ContradictionError(
        f"offset {offset} of {topic_partition} is in neither tier: cold holds "
        f"[{offsets.log_start}, {offsets.archived_end}), hot says [{offsets.local_log_start}, "
        f"{offsets.log_end}) but has no entry for it. Is this the cold root the topic was archived "
        "to? If it is, somebody deleted entries or files by hand: `lakelog segments list --verify` "
        "tells which. Delete the records up to the hole to read on above it",
        topic_partition=topic_partition,
        offset=offset,
        offsets=offsets,
    )
