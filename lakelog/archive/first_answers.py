"""What Redis says of many topics, asked at once.

A topic that has nothing to archive costs little but its round trips, so that a run over a thousand
of them is made of those.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from uuid import UUID

from ..cold.table import ColdSnapshot
from ..errors import LakelogError
from ..hot.hot_log import HotLog
from ..record import TopicPartition
from ..topic import Topic
from .archiver import Archiver, HotAnswer
from .plan import archive_start

#: So many of a partition's oldest segments are told; where all of them go, the archiver asks for
#: more.
_OLDEST = 2


def first_answers(
    hot: HotLog, asked: Sequence[tuple[Topic, Archiver]], calls: int
) -> Mapping[UUID, HotAnswer]:
    """An answer for each topic, by id, in three round trips a server.

    Topics of which a table or Redis tells an error have none: asked alone, they tell it themselves.

    Args:
        asked: topics as they are now, and their archivers.
        calls: see `producer_calls.last_calls`.
    """
    started_ns = time.time_ns()
    known: dict[UUID, tuple[Topic, ColdSnapshot]] = {}
    starts: dict[TopicPartition, int] = {}
    for topic, archiver in asked:
        try:
            planned_from = archiver.planned_from()
        except LakelogError:
            continue
        known[topic.topic_id] = topic, planned_from
        for topic_partition in topic.topic_partitions():
            starts[topic_partition] = archive_start(planned_from, topic_partition.partition)
    try:
        now_ms = hot.now_ms()
        memory_percent = hot.memory_percent(starts)
        found = hot.segments(
            starts,
            start=starts,
            oldest=_OLDEST,
            topic_id={topic.name: topic_id for topic_id, (topic, _) in known.items()},
            calls=calls,
        )
    except LakelogError:
        return {}
    return {
        topic_id: HotAnswer(
            topic,
            planned_from,
            started_ns,
            now_ms,
            {tp.partition: found[tp] for tp in topic.topic_partitions()},
            {tp: memory_percent[tp] for tp in topic.topic_partitions()},
        )
        for topic_id, (topic, planned_from) in known.items()
    }
