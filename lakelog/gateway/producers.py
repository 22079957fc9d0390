"""Ids of idempotent producers, and what partitions know of them."""

from __future__ import annotations

import secrets

from ..errors import LakelogError
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from .session import Session


async def init_producer_id(
    session: Session, request: InitProducerIdRequest, version: int
) -> InitProducerIdResponse:
    """A new id, at random so that no two processes have to agree on it.

    As by a broker, the id that a client gives counts for nothing without a transactional one: some
    give any.
    """
    if request.transactional_id is not None:
        return InitProducerIdResponse(
            error_code=ErrorCode.INVALID_REQUEST, producer_id=-1, producer_epoch=-1
        )
    return InitProducerIdResponse(producer_id=secrets.randbits(62), producer_epoch=0)


async def describe_producers(
    session: Session, request: DescribeProducersRequest, version: int
) -> DescribeProducersResponse:
    """The producers that a partition knows."""
    response = DescribeProducersResponse
    topics = []
    for asked in request.topics:
        topic = await session.log.topic(asked.name)
        partitions = []
        for partition in asked.partition_indexes:
            told = response.PartitionResponse(partition_index=partition, active_producers=[])
            partitions.append(told)
            if topic is None or not topic.has(partition):
                told.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            try:
                calls = await session.log.run(
                    session.log.lake.hot.inspection().producer_calls, topic.partition(partition)
                )
            except LakelogError as error:
                told.error_code, told.error_message = code_of(error, Asked.ADMIN), error.message
                continue
            newest = {call.producer_id: call for call in calls}  # by offset: the last counts
            told.active_producers = [
                response.ProducerState(
                    producer_id=call.producer_id,
                    producer_epoch=call.epoch,
                    last_sequence=call.last_sequence,
                    last_timestamp=call.append_time_ms,
                    coordinator_epoch=-1,
                    current_txn_start_offset=-1,
                )
                for call in newest.values()
            ]
        topics.append(response.TopicResponse(asked.name, partitions))
    return DescribeProducersResponse(topics=topics)
