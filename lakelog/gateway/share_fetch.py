"""Records of share groups: taken from the queue, and what became of them (KIP-932).

Who holds what lies in Redis, and is the same for lakelog's own consumers. A connection only knows
which partitions its client takes from: its *share session*, which a client begins anew elsewhere.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TypeAlias
from uuid import UUID

from msgspec import Struct

from ..errors import InvalidArgumentError, LakelogError
from ..groups.share.share_values import (
    ANY_EPOCH,
    Acknowledgement,
    AcquiredRange,
    Acquisition,
    Outcome,
)
from ..values.config import MIB
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .fetch import MAX_RESPONSE_BYTES, Part, fill, wait
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
)
from .protocol.wire import Pieces
from .session import Session
from .share_session import BEGINS, ENDS, Place, ShareSession

#: Partitions that one session may have.
_MAX_PARTITIONS = 100_000
#: What others release is news that nobody sends: who waits looks this often.
_LOOK_S = 0.5
#: What one answer brings of one partition, if that is more than a batch: the others wait for it.
_PARTITION_BYTES = 4 * MIB

#: By ``AcknowledgeType``; 0 is an offset at which the client found no record.
_OUTCOMES = (Outcome.ACCEPT, Outcome.ACCEPT, Outcome.RELEASE, Outcome.REJECT)

_Refusal: TypeAlias = tuple[ErrorCode, str | None]
_Data = ShareFetchResponse.PartitionData
_AckData = ShareAcknowledgeResponse.PartitionData
_AckTopics: TypeAlias = Sequence[
    ShareFetchRequest.FetchTopic | ShareAcknowledgeRequest.AcknowledgeTopic
]


class _Taken(Struct):
    """What was acquired in a partition, and read of it."""

    acquired: Acquisition
    part: Part

    def goes_on(self) -> bool:
        """Has the part want the next range; False if there is nothing more to read."""
        part = self.part
        for one in self.acquired.delivered:
            if one.end > part.next_offset:
                part.next_offset, part.end = max(part.next_offset, one.start), one.end
                return not part.error and part.size_bytes < part.max_bytes
        return False

    def settled(self) -> tuple[list[AcquiredRange], list[Acknowledgement]]:
        """What was read and may hold records, and what becomes of the rest."""
        read_end, found = self.part.next_offset, []
        said: list[Acknowledgement] = []
        gaps = [gap for gap in self.part.gaps if gap.start < gap.end]
        at = 0
        for gap in gaps:
            said.append(Acknowledgement(max(at, gap.start), gap.end, ANY_EPOCH, Outcome.GAP))
            at = gap.end
        for one in self.acquired.delivered:
            at, end = one.start, min(one.end, read_end)
            for gap in gaps:
                if at < min(gap.start, end):
                    found.append(
                        AcquiredRange(at, min(gap.start, end), one.delivery_count, one.epoch)
                    )
                at = max(at, gap.end)
            if at < end:
                found.append(AcquiredRange(at, end, one.delivery_count, one.epoch))
            if read_end < one.end:
                start = max(one.start, read_end)
                said.append(Acknowledgement(start, one.end, one.epoch, Outcome.UNREAD))
        return found, said


# -- taking ----------------------------------------------------------------------------------------


async def share_fetch(
    session: Session, request: ShareFetchRequest, version: int
) -> ShareFetchResponse:
    """Takes what was acknowledged, then answers once there are records, or the time is over."""
    deadline_s = time.monotonic() + request.max_wait_ms / 1000
    epoch = request.share_session_epoch
    says_something = any(p.acknowledgement_batches for t in request.topics for p in t.partitions)
    if epoch == BEGINS and says_something:
        why: str | None = "a new share session has nothing to acknowledge yet"
        code = ErrorCode.INVALID_REQUEST
    else:
        code, why = await _enter(session, request)
    if code:
        return ShareFetchResponse(error_code=code, error_message=why)
    share = session.share
    assert share is not None
    data = {
        place: _Data(place[1], acknowledge_error_code=code, acknowledge_error_message=why)
        for place, (code, why) in (await _acknowledge(session, share, request.topics)).items()
    }
    if epoch == ENDS:
        await end_share_session(session)
    else:
        share.partitions |= {
            (asked.topic_id, one.partition_index): None
            for asked in request.topics
            for one in asked.partitions
        }
        for forgotten in request.forgotten_topics_data:
            for number in forgotten.partitions:
                share.partitions.pop((forgotten.topic_id, number), None)
        if len(share.partitions) > _MAX_PARTITIONS:
            session.share = None
            return ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_LIMIT_REACHED)
        max_bytes = max(1, min(request.max_bytes, MAX_RESPONSE_BYTES))
        await _take(session, share, data, request.max_records, max_bytes, deadline_s)
    return ShareFetchResponse(
        acquisition_lock_timeout_ms=share.shares.settings.record_lock_duration_ms,
        responses=[
            ShareFetchResponse.ShareFetchableTopicResponse(
                topic_id, [data[place] for place in places]
            )
            for topic_id, places in _by_topic(data)
        ],
    )


def _by_topic(places: Iterable[Place]) -> Iterable[tuple[UUID, Iterable[Place]]]:
    return groupby(sorted(places), key=lambda place: place[0])


async def _take(
    session: Session,
    share: ShareSession,
    data: dict[Place, ShareFetchResponse.PartitionData],
    max_records: int,
    max_bytes: int,
    deadline_s: float,
) -> None:
    """Adds what there is to take to the answer, and waits for it."""
    is_waiting, has_waited = True, False
    while is_waiting:
        places = {}
        for place in share.partitions:
            found = await _topic(session, *place)
            if isinstance(found, ErrorCode):
                _told(data, place).error_code = found
            else:
                places[place] = found
        acquired = await session.log.run(_acquire, session, share, places, max_records)
        positions: dict[TopicPartition, int] = {}
        due_s, taken = _LOOK_S, {}
        for place, one in acquired.items():
            share.partitions[place] = share.partitions.pop(place)  # others have their turn first
            tp, told = places[place].partition(place[1]), _told(data, place)
            if isinstance(one, LakelogError):
                session.note(f"share fetch of {tp}", one)
                told.error_code, told.error_message = code_of(one, Asked.FETCH), one.message
                continue
            told.error_code, told.error_message = ErrorCode.NONE, None
            if not one.is_full:
                positions[tp] = one.end_offset
            due_s = min(due_s, (one.due_in_ms or 1000 * _LOOK_S) / 1000)
            if one.delivered:
                start = one.delivered[0].start
                part = Part(places[place], tp, start, min(max_bytes, _PARTITION_BYTES), [], start)
                taken[place] = _Taken(one, part)
        await _read(session, list(taken.values()), max_bytes)
        for place, of_it in taken.items():
            is_waiting &= not await _give(session, share, _told(data, place), of_it)
        left_s = deadline_s - time.monotonic()
        is_waiting &= left_s > 0
        if is_waiting and not any(one.part.gaps for one in taken.values()):
            try:
                await wait(session.log.hot.wait, positions, min(left_s, due_s), is_again=has_waited)
            except LakelogError:
                return  # the next request hears why
            has_waited = True
    for place in [place for place, one in data.items() if one == _Data(place[1])]:
        del data[place]  # nothing is to be told of it


def _told(
    data: dict[Place, ShareFetchResponse.PartitionData], place: Place
) -> ShareFetchResponse.PartitionData:
    return data.setdefault(place, _Data(place[1]))


def _acquire(
    session: Session, share: ShareSession, places: dict[Place, Topic], max_records: int
) -> dict[Place, Acquisition | LakelogError]:
    """Takes from one partition after the other, until that is enough."""
    found: dict[Place, Acquisition | LakelogError] = {}
    left = max(1, max_records)
    for (topic_id, number), topic in places.items():
        tp = topic.partition(number)
        try:
            acquired = share.shares.acquire(tp, topic_id, share.member_id, left)
            if acquired is None:
                reset = session.log.group_settings().share_auto_offset_reset
                begin = session.log.log(topic).seek(number, reset) or 0
                acquired = share.shares.acquire(tp, topic_id, share.member_id, left, begin)
            assert acquired is not None, "it said where to begin"
            found[topic_id, number] = acquired
            left -= sum(one.end - one.start for one in acquired.delivered)
        except LakelogError as error:
            found[topic_id, number] = error
        if left <= 0:
            break
    return found


async def _read(session: Session, taken: Sequence[_Taken], max_bytes: int) -> None:
    """Reads what was acquired, as far as there is room."""
    has_moved = True
    while has_moved:
        left_bytes = max_bytes - sum(one.part.size_bytes for one in taken)
        parts = [one.part for one in taken if one.goes_on()]
        if not parts or left_bytes <= 0:
            return
        before = [part.next_offset for part in parts]
        await fill(session, parts, left_bytes + sum(part.size_bytes for part in parts))
        has_moved = before != [part.next_offset for part in parts]


async def _give(
    session: Session,
    share: ShareSession,
    data: ShareFetchResponse.PartitionData,
    taken: _Taken,
) -> bool:
    """Puts records into the answer, and gives back what was not read; whether that is an answer."""
    part = taken.part
    found, said = taken.settled()
    if said:
        tp, topic_id = part.topic_partition, part.topic.topic_id
        try:
            await session.log.run(share.shares.acknowledge, tp, topic_id, share.member_id, said)
        except LakelogError as error:  # the locks end by themselves
            session.note(f"giving back of {tp}", error)
    if found:
        data.records = Pieces(part.buffers)
        data.acquired_records = [
            ShareFetchResponse.AcquiredRecords(one.start, one.end - 1, one.delivery_count)
            for one in found
        ]
    elif part.error and part.error is not ErrorCode.OFFSET_OUT_OF_RANGE:  # deleted meanwhile
        data.error_code = part.error
    return bool(found or part.error)


# -- what became of it -----------------------------------------------------------------------------


async def share_acknowledge(
    session: Session, request: ShareAcknowledgeRequest, version: int
) -> ShareAcknowledgeResponse:
    """Takes what became of records."""
    epoch = request.share_session_epoch
    code, why = ErrorCode.INVALID_SHARE_SESSION_EPOCH, None
    if epoch != BEGINS:
        code, why = await _enter(session, request)
    if code:
        return ShareAcknowledgeResponse(error_code=code, error_message=why)
    assert session.share is not None
    results = await _acknowledge(session, session.share, request.topics)
    if epoch == ENDS:
        await end_share_session(session)
    return ShareAcknowledgeResponse(
        responses=[
            ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse(
                topic_id, [_AckData(place[1], *results[place]) for place in places]
            )
            for topic_id, places in _by_topic(results)
        ]
    )


async def _topic(session: Session, topic_id: UUID, number: int) -> Topic | ErrorCode:
    """The topic of a partition, or why there is none."""
    topic = await session.log.topic_of_id(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return topic if topic.has(number) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


async def _acknowledge(
    session: Session, share: ShareSession, topics: _AckTopics
) -> dict[Place, _Refusal]:
    """Takes what is said of each partition; why it was not taken, if so."""
    results: dict[Place, _Refusal] = {}
    for asked in topics:
        for one in asked.partitions:
            if not one.acknowledgement_batches:
                continue
            place, number = (asked.topic_id, one.partition_index), one.partition_index
            topic = await _topic(session, *place)
            if isinstance(topic, ErrorCode):
                results[place] = topic, None
                continue
            tp, results[place] = topic.partition(number), (ErrorCode.NONE, None)
            try:
                taken = await session.log.run(
                    share.shares.acknowledge,
                    tp,
                    topic.topic_id,
                    share.member_id,
                    _said(one.acknowledgement_batches),
                )
                if not all(taken):
                    results[place] = (
                        ErrorCode.INVALID_RECORD_STATE,
                        f"{share.member_id} does not hold all of these records of {tp} (any more): "
                        "their lock ended, or something was said of them before",
                    )
            except LakelogError as error:
                session.note(f"acknowledgement of {tp}", error)
                results[place] = code_of(error), error.message
    return results


def _said(
    batches: Sequence[
        ShareFetchRequest.AcknowledgementBatch | ShareAcknowledgeRequest.AcknowledgementBatch
    ],
) -> list[Acknowledgement]:
    """What batches say, neighbours of one kind together.

    Raises:
        InvalidArgumentError: they are out of order, or their types are none or not as many.
    """
    said: list[Acknowledgement] = []
    at = 0
    for batch in batches:
        start, count = batch.first_offset, batch.last_offset + 1 - batch.first_offset
        kinds = list(batch.acknowledge_types)
        if start < at or count < 1 or len(kinds) not in (1, count):
            raise InvalidArgumentError(
                f"a batch [{start}, {start + count}) after {at} with {len(kinds)} types: batches "
                "come in the order of their offsets, with one type for all offsets or for each"
            )
        for kind, run in groupby(kinds):
            if not 0 <= kind < len(_OUTCOMES):
                raise InvalidArgumentError(f"{kind} is no type of acknowledgement")
            at = start + (count if len(kinds) == 1 else len(list(run)))
            said.append(Acknowledgement(start, at, ANY_EPOCH, _OUTCOMES[kind]))
            start = at
    return said


# -- share sessions --------------------------------------------------------------------------------


async def _enter(
    session: Session, request: ShareFetchRequest | ShareAcknowledgeRequest
) -> _Refusal:
    """Makes `session.share` the one that a request is of, or says why it is of none."""
    group_id, member_id = request.group_id, request.member_id
    epoch = request.share_session_epoch
    if epoch == BEGINS:
        if not member_id:
            return ErrorCode.INVALID_REQUEST, "a share session is of a member, which has an id"
        try:
            shares = await session.log.run(session.log.shares, group_id or "")
        except LakelogError as error:
            return code_of(error, Asked.GROUP), error.message
        if session.share is not None and not session.share.is_of(group_id, member_id):
            await end_share_session(session)
        session.share = ShareSession(shares, member_id)
    share = session.share
    if share is None or not share.is_of(group_id, member_id):
        return ErrorCode.SHARE_SESSION_NOT_FOUND, None
    is_next = share.go_on(epoch)
    return ErrorCode.NONE if is_next else ErrorCode.INVALID_SHARE_SESSION_EPOCH, None


async def end_share_session(session: Session) -> None:
    """Has others get what the member holds, as the client ended its session or is gone.

    Source: ``SharePartition.releaseAcquiredRecords``: such a delivery does not count.
    """
    share, session.share = session.share, None
    if share is None:
        return
    for topic_id, number in list(share.partitions):
        try:
            topic = await _topic(session, topic_id, number)
            if isinstance(topic, Topic):
                tp = topic.partition(number)
                await session.log.run(share.shares.release, tp, topic_id, share.member_id)
        except LakelogError as error:  # the locks end by themselves
            session.note("end of a share session", error)
