"""Topics: made, deleted, given more partitions; their records deleted up to an offset."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from uuid import UUID

from ..base.text_table import counted
from ..errors import LakelogError, TopicExistsError, UnknownTopicIdError
from ..hot.topic_definition import checked_partitions
from ..values.config import TopicConfig
from ..values.topic import Topic, check_new_topic_name
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from .protocol.primitives import ZERO_UUID
from .session import Session

#: Of topics that are made here, so that what clients produce is stored as it is.
OWN_SETTINGS: Mapping[str, str] = {"lakelog.entry.format": "kafka"}


async def create_topics(
    session: Session, request: CreateTopicsRequest, version: int
) -> CreateTopicsResponse:
    """Makes topics; replication and where replicas lie mean nothing here."""
    results = []
    for asked in request.topics:
        result = CreateTopicsResponse.CreatableTopicResult(
            name=asked.name, num_partitions=-1, replication_factor=-1
        )
        results.append(result)
        partitions = len(asked.assignments) or asked.num_partitions
        if partitions == -1:
            partitions = session.settings.partitions
        settings = {**OWN_SETTINGS, **{one.name: one.value for one in asked.configs}}
        try:
            given = {name: value for name, value in settings.items() if value is not None}
            topic = await _made(session, asked.name, partitions, given, request.validate_only)
        except LakelogError as error:
            result.error_code, result.error_message = code_of(error, Asked.ADMIN), error.message
            session.note(f"making topic {asked.name!r}", error)
            continue
        result.num_partitions = partitions
        result.replication_factor = 1
        if topic is not None:
            result.topic_id = topic.topic_id
            result.configs = [
                CreateTopicsResponse.CreatableTopicConfigs(
                    name=name, value=topic.config.text(name), config_source=1
                )
                for name, _ in topic.config.overrides
            ]
    await session.log.topics(fresh=True)
    return CreateTopicsResponse(topics=results)


async def _made(
    session: Session, name: str, partitions: int, settings: dict[str, str], validate_only: bool
) -> Topic | None:
    """The topic, or None where it is only asked whether it could be made."""
    registry = session.log.lake.topics
    if not validate_only:
        made: Topic = await session.log.run(registry.create, name, partitions, settings)
        return made
    check_new_topic_name(name)
    checked_partitions(partitions)
    TopicConfig.of(settings)
    if await session.log.topic(name) is not None:
        raise TopicExistsError(f"there is a topic {name!r}", topic=name)
    return None


async def delete_topics(
    session: Session, request: DeleteTopicsRequest, version: int
) -> DeleteTopicsResponse:
    """Deletes topics, by name or by id; they can be brought back for a while (`undelete`)."""
    results = []
    asked: list[tuple[str | None, UUID]] = (
        [(one.name, one.topic_id) for one in request.topics]
        if version >= 6
        else [(name, ZERO_UUID) for name in request.topic_names]
    )
    for name, topic_id in asked:
        result = DeleteTopicsResponse.DeletableTopicResult(name=name, topic_id=topic_id)
        results.append(result)
        try:
            if name is None:
                topic = await session.log.topic_of_id(topic_id)
                if topic is None:
                    raise UnknownTopicIdError(
                        f"there is no topic of id {topic_id}", topic="", topic_id=topic_id
                    )
                result.name = name = topic.name
            await session.log.run(session.log.lake.topics.delete, name)
        except LakelogError as error:
            result.error_code, result.error_message = code_of(error, Asked.ADMIN), error.message
    await session.log.topics(fresh=True)
    return DeleteTopicsResponse(responses=results)


async def create_partitions(
    session: Session, request: CreatePartitionsRequest, version: int
) -> CreatePartitionsResponse:
    """Gives topics more partitions."""
    results = []
    for asked in request.topics:
        result = CreatePartitionsResponse.CreatePartitionsTopicResult(name=asked.name)
        results.append(result)
        try:
            topic = await session.log.topic(asked.name)
            if request.validate_only or topic is None or asked.count <= topic.partitions:
                result.error_code, result.error_message = _count_flaw(
                    topic, asked.name, asked.count
                )
            else:
                registry = session.log.lake.topics
                await session.log.run(registry.add_partitions, asked.name, asked.count)
        except LakelogError as error:
            result.error_code, result.error_message = code_of(error, Asked.ADMIN), error.message
    await session.log.topics(fresh=True)
    return CreatePartitionsResponse(results=results)


def _count_flaw(topic: Topic | None, name: str, count: int) -> tuple[ErrorCode, str | None]:
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name!r}"
    if count > topic.partitions:
        return ErrorCode.NONE, None
    has = f"topic {name!r} has {counted(topic.partitions, 'partition')}"
    if count == topic.partitions:
        return ErrorCode.INVALID_PARTITIONS, f"{has} already"
    return ErrorCode.INVALID_PARTITIONS, f"{has}, more than {count}; they only grow"


async def delete_records(
    session: Session, request: DeleteRecordsRequest, version: int
) -> DeleteRecordsResponse:
    """Raises log starts; -1 for the log end."""
    topics = []
    for asked in request.topics:
        topic = await session.log.topic(asked.name)
        partitions = []
        for one in asked.partitions:
            result = DeleteRecordsResponse.DeleteRecordsPartitionResult(
                partition_index=one.partition_index, low_watermark=-1
            )
            partitions.append(result)
            if topic is None or not topic.has(one.partition_index):
                result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            try:
                raise_start = _raising(session, topic, one.partition_index, one.offset)
                result.low_watermark = await session.log.run(raise_start)
            except LakelogError as error:
                result.error_code = code_of(error, Asked.ADMIN)
                session.note(f"deleting records of {topic.partition(one.partition_index)}", error)
        topics.append(DeleteRecordsResponse.DeleteRecordsTopicResult(asked.name, partitions))
    return DeleteRecordsResponse(topics=topics)


def _raising(session: Session, topic: Topic, partition: int, offset: int) -> Callable[[], int]:
    def raise_start() -> int:
        log = session.log.log(topic)
        end = log.offsets([partition])[partition].log_end if offset == -1 else offset
        return log.raise_log_start(partition, end)

    return raise_start
