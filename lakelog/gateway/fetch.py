"""Fetch: record batches out of the log, from whichever tier has them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from ..base import compute as pc
from ..codec import EntryId, decode
from ..codec.kafka_batch import empty_batches, placed
from ..codec.kafka_entry import batches_of, is_kafka, stored_batch
from ..errors import LakelogError, RecoveryNeededError, TrimmedError
from ..hot.asynchronous import Ask
from ..hot.declared import Covered, RawEntry, cover
from ..hot.fetch import EntriesStep
from ..values.config import DATA_KEYS, INT64_MAX, KIB, MIB
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import FetchRequest, FetchResponse
from .protocol.wire import Buffer, Pieces
from .quiet import Quiet
from .session import Session

if TYPE_CHECKING:
    from ..read.topic_log import TopicLog

#: Most that a response brings, whatever is asked: Kafka's ``fetch.max.bytes`` of brokers.
MAX_RESPONSE_BYTES = 55 * MIB
#: Most that the cold tier gives for one partition at a time: a reader holds it decoded as well.
_COLD_BYTES = 4 * MIB
#: More stored bytes than this are made into batches by a thread.
_LARGE_BYTES = 256 * KIB
#: After a wait that brought nothing, as where something foreign lies behind the log end.
_FRUITLESS_S = 0.005

_PartitionData = FetchResponse.PartitionData
_Waiting: TypeAlias = Callable[
    [Mapping[TopicPartition, int], float], Awaitable["set[TopicPartition]"]
]


class Part(Struct):
    """What is wanted of a partition, and what there is of it so far."""

    topic: Topic
    topic_partition: TopicPartition
    offset: int
    max_bytes: int
    buffers: list[Buffer]
    next_offset: int
    end: int = INT64_MAX  # what lies there and above is not wanted
    gaps: list[OffsetRange] = []  # that were read: no record has these offsets
    size_bytes: int = 0
    error: ErrorCode = ErrorCode.NONE
    log_start: int = -1
    log_end: int = -1
    is_at_end: bool = False  # nothing is left to be read of it


async def fetch(session: Session, request: FetchRequest, version: int) -> FetchResponse:
    """Answers once there are ``min_bytes``, or the time is over.

    There are no fetch sessions: a client that asks for one is told that it has none, and asks for
    all its partitions each time.
    """
    deadline_s = time.monotonic() + request.max_wait_ms / 1000
    parts: dict[tuple[int, int], Part] = {}
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if version >= 13 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    for number, asked in enumerate(request.topics):
        topic = await (
            session.log.topic_of_id(asked.topic_id)
            if version >= 13
            else session.log.topic(asked.topic)
        )
        for one in asked.partitions:
            if topic is not None and topic.has(one.partition):
                tp = topic.partition(one.partition)
                part = parts[number, one.partition] = Part(
                    topic, tp, one.fetch_offset, one.partition_max_bytes, [], one.fetch_offset
                )
                if one.fetch_offset < 0:
                    part.error = ErrorCode.OFFSET_OUT_OF_RANGE
    max_bytes = max(1, min(request.max_bytes, MAX_RESPONSE_BYTES))
    wanted = [part for part in parts.values() if not part.error]
    quiet = _quiet(session, wanted)
    await fill(session, wanted, max_bytes, request.min_bytes, deadline_s, quiet)
    for part in wanted:
        if part.is_at_end:
            quiet.read_to_end(
                part.topic_partition, part.topic.topic_id, part.next_offset, part.log_start
            )
    return FetchResponse(
        responses=[
            FetchResponse.FetchableTopicResponse(
                topic=asked.topic,
                topic_id=asked.topic_id,
                partitions=[
                    _data(parts.get((number, one.partition)), one.partition, unknown)
                    for one in asked.partitions
                ],
            )
            for number, asked in enumerate(request.topics)
        ]
    )


def _quiet(session: Session, wanted: Sequence[Part]) -> Quiet:
    """What the connection knows of partitions, of those that are wanted now."""
    hot = session.log.hot
    if session.quiet is None or session.quiet.hot is not hot:  # somebody else logged in on it
        session.forget_quiet()
        session.quiet = Quiet(hot)
    session.quiet.keep(part.topic_partition for part in wanted)
    return session.quiet


def _data(part: Part | None, partition: int, unknown: ErrorCode) -> FetchResponse.PartitionData:
    if part is None:
        return _PartitionData(
            partition_index=partition, error_code=unknown, high_watermark=-1, records=b""
        )
    return _PartitionData(
        partition_index=partition,
        error_code=part.error,
        high_watermark=part.log_end,
        last_stable_offset=part.log_end,
        log_start_offset=part.log_start,
        records=Pieces(part.buffers),
    )


async def fill(
    session: Session,
    parts: Sequence[Part],
    max_bytes: int,
    min_bytes: int = 0,
    deadline_s: float = 0.0,
    quiet: Quiet | None = None,
) -> None:
    """Reads into the parts, and waits for what is appended as long as it is too little.

    Args:
        quiet: what needs not be read; to wait, it takes one.
    """
    reading = [part for part in parts if not _is_quiet(part, quiet)]
    has_waited = False
    while True:
        before_bytes = sum(part.size_bytes for part in parts)
        progress = await _read_within(session, reading, max_bytes - before_bytes, before_bytes)
        if progress is None:
            return  # others wait for memory too, and might for what is held here
        found_bytes = sum(part.size_bytes for part in parts)
        left_s = deadline_s - time.monotonic()
        if found_bytes >= min(max(min_bytes, 0), max_bytes) or left_s <= 0 or quiet is None:
            return
        if any(part.error for part in parts):
            return
        if progress:
            reading = [part for part in reading if part.size_bytes < part.max_bytes]
        else:
            waiting = {
                part.topic_partition: part for part in parts if part.size_bytes < part.max_bytes
            }
            positions = {tp: part.next_offset for tp, part in waiting.items()}
            try:
                news = await wait(quiet.wait, positions, left_s, is_again=has_waited)
            except LakelogError:
                return  # the next request hears why
            if not news:
                return
            reading = [waiting[tp] for tp in news]
        has_waited = not progress


def _is_quiet(part: Part, quiet: Quiet | None) -> bool:
    """Whether the part need not be read; then it has what is to be told of it."""
    if quiet is None:
        return False
    tp, topic_id = part.topic_partition, part.topic.topic_id
    log_start = quiet.log_start(tp, topic_id, part.next_offset)
    if log_start is None:
        return False
    part.log_start, part.log_end = log_start, part.next_offset
    return True


async def _read_within(
    session: Session, parts: Sequence[Part], max_bytes: int, held_bytes: int
) -> bool | None:
    """As `_read`, with memory for it.

    Args:
        held_bytes: that the answer has already.

    Returns:
        None: there is no memory just now.
    """
    if not parts:
        return False
    before_bytes = sum(part.size_bytes for part in parts)
    asked_bytes = sum(max(0, part.max_bytes - part.size_bytes) for part in parts)
    # Never most of all there is: requests hold some of it until they are answered.
    most_bytes = session.memory.limit_bytes // 4
    room_bytes = max(0, min(max_bytes, asked_bytes, most_bytes))
    if not held_bytes:
        await session.memory.take(room_bytes)
    elif not session.memory.take_now(room_bytes):
        return None
    try:
        return await _read(session, parts, max_bytes)
    finally:
        read_bytes = sum(part.size_bytes for part in parts) - before_bytes
        session.answer_bytes += read_bytes
        session.memory.give_back(room_bytes - read_bytes)


async def wait(
    begin: _Waiting,
    positions: Mapping[TopicPartition, int],
    left_s: float,
    *,
    is_again: bool,
) -> set[TopicPartition]:
    """As `AsyncHotLog.wait`, which is `begin`, or that of a follower.

    Args:
        is_again: the wait before it brought nothing, so this one takes some time in any case.

    Raises:
        LakelogError: a server does not answer.
    """
    if is_again:
        await asyncio.sleep(min(_FRUITLESS_S, left_s))
    return await begin(positions, left_s)


async def _read(session: Session, parts: Sequence[Part], max_bytes: int) -> bool:
    """One step of all parts; whether any of them came further."""
    sizes = session.log.entry_sizes
    asks = []
    for part in parts:
        room = min(part.max_bytes - part.size_bytes, max_bytes)
        count = min(sizes.count(part.topic_partition, max(1, room)), part.end - part.next_offset)
        asks.append(Ask(part.topic_partition, part.topic.topic_id, part.next_offset, count))
    steps = await session.log.hot.entries(asks)
    progress = False
    for part, step in zip(parts, steps, strict=True):
        before = part.next_offset
        room = min(part.max_bytes - part.size_bytes, max_bytes)
        if room <= 0 and max_bytes <= 0:
            continue
        try:
            if isinstance(step, LakelogError):
                raise step
            sizes.learn(part.topic_partition, step)
            await _take(session, part, step, room)
        except LakelogError as error:
            part.error = code_of(error, Asked.FETCH)
            session.note(f"fetch of {part.topic_partition}", error)
        max_bytes -= part.size_bytes
        progress |= part.next_offset > before
    return progress


async def _take(session: Session, part: Part, step: EntriesStep, max_bytes: int) -> None:
    """Takes over what a step of the hot tier brought, or asks the cold one."""
    log_end = step.declared.log_end
    part.is_at_end = False
    part.log_start = step.log_start
    part.log_end = max(log_end, session.log.told_end(part.topic_partition))
    if part.next_offset > log_end and not step.recovered:
        # The server lost its tail. Nobody is sent back by that: the log goes on above all offsets
        # that were given out, once the partition is recovered.
        part.log_end = max(part.log_end, part.next_offset)
        session.log.recover_soon(part.topic, part.topic_partition.partition)
    elif not step.log_start <= part.next_offset <= log_end:
        part.error = ErrorCode.OFFSET_OUT_OF_RANGE
    elif part.next_offset < step.local_log_start or part.topic.config.text(DATA_KEYS):
        await _take_read(session, part, max_bytes)
    else:
        session.log.told(part.topic_partition, log_end)
        tp = part.topic_partition
        pieces = _pieces(cover(tp, step.entries, part.next_offset, step.declared))
        stored_bytes = sum(_size(piece) for piece in pieces if isinstance(piece, list))
        given = (pieces, part.next_offset, max_bytes, bool(part.buffers))
        is_short = stored_bytes < _LARGE_BYTES
        found = _converted(*given) if is_short else await session.log.run(_converted, *given)
        part.buffers += found[0]
        part.size_bytes += sum(map(len, found[0]))
        part.next_offset = found[1]
        part.is_at_end = step.recovered and part.next_offset == log_end
        gaps = (piece for piece in pieces if isinstance(piece, OffsetRange))
        part.gaps += [gap for gap in gaps if gap.start < part.next_offset]


#: A stored batch, other entries side by side, or offsets that nothing has.
_Piece = tuple[EntryId, list[bytes]] | list[RawEntry] | OffsetRange


def _pieces(covered: Covered) -> list[_Piece]:
    """What is read, in the order of its offsets."""
    found: list[tuple[int, _Piece]] = [(gap.start, gap) for gap in covered.gaps]
    others: list[RawEntry] = []
    for entry_id, fields in covered.entries:
        if is_kafka(fields):
            others = []
            found.append((entry_id.base_offset, (entry_id, fields)))
            continue
        is_next = bool(others) and others[-1][0].end_offset == entry_id.base_offset
        if not is_next or _size(others) > _LARGE_BYTES:
            others = []
            found.append((entry_id.base_offset, others))
        others.append((entry_id, fields))
    return [piece for _, piece in sorted(found, key=lambda one: one[0])]


def _size(entries: Sequence[RawEntry]) -> int:
    return sum(sum(map(len, fields)) for _, fields in entries)


def _converted(
    pieces: Sequence[_Piece], next_offset: int, max_bytes: int, has_some: bool
) -> tuple[list[Buffer], int]:
    """The pieces as Kafka's batches, as they are where they are such, and where to go on.

    Args:
        max_bytes: after the first batch, if there is none yet.
    """
    found: list[Buffer] = []
    for piece in pieces:
        made, end = _batches(piece, next_offset)
        size = sum(map(len, made))
        if (found or has_some) and size > max_bytes:
            break
        found += made
        max_bytes -= size
        next_offset = end
    return found, next_offset


def _batches(piece: _Piece, next_offset: int) -> tuple[list[Buffer], int]:
    if isinstance(piece, OffsetRange):
        return list(empty_batches(max(piece.start, next_offset), piece.end)), piece.end
    if isinstance(piece, list):
        return list(batches_of(decode(piece))), piece[-1][0].end_offset
    entry_id, fields = piece
    batch, append_time_ms = stored_batch(entry_id, fields)
    return list(placed(batch, entry_id.base_offset, append_time_ms)), entry_id.end_offset


async def _take_read(session: Session, part: Part, max_bytes: int) -> None:
    """Reads below the hot tier, or what is to be decrypted, as lakelog's own readers do."""
    log, partition = session.log.log(part.topic), part.topic_partition.partition
    read_bytes = max(1, min(max_bytes, _COLD_BYTES))
    try:
        found, end, is_gap = await session.log.run(
            _read_batches, log, partition, part.next_offset, part.end, read_bytes
        )
    except (TrimmedError, RecoveryNeededError):
        return  # it asks again
    part.buffers += found
    part.size_bytes += sum(map(len, found))
    if is_gap:
        part.gaps.append(OffsetRange(part.next_offset, end))
    part.next_offset = end


def _read_batches(
    log: TopicLog, partition: int, offset: int, end: int, max_bytes: int
) -> tuple[list[bytes], int, bool]:
    """Batches, where to go on, and whether there are no records up to there."""
    fetched = log.fetch(partition, offset, max_bytes=max_bytes)
    records, next_offset = fetched.records, fetched.next_offset
    if end < next_offset and records.num_rows:
        wanted = records.filter(pc.less(records.column("offset"), end))
        next_offset = end if wanted.num_rows else records.column("offset")[0].as_py()
        records = wanted
    if records.num_rows:
        return batches_of(records), next_offset, False
    return empty_batches(offset, next_offset), next_offset, True
