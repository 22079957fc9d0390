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
from ..values.topic import Topic
from .archiver import HotAnswer

#: So many of a partition's oldest segments are told; where all of them go, the archiver asks for
#: more.
_OLDEST = 2


def first_answers(
    hot: HotLog, asked: Sequence[tuple[Topic, ColdSnapshot]], calls: int
) -> Mapping[UUID, HotAnswer]:
    """An answer for each topic, by id, in three round trips a server.

    There are none if Redis tells an error of one: asked alone, each topic tells its own.

    Args:
        asked: topics as they are now, and what of each is archived already.
        calls: see `producer_calls.last_calls`.
    """
    started_ns = time.time_ns()
    starts = {
        topic_partition: planned_from.archive_start(topic_partition.partition)
        for topic, planned_from in asked
        for topic_partition in topic.topic_partitions()
    }
    try:
        now_ms = hot.now_ms()
        memory_percent = hot.memory_percent(starts)
        found = hot.segments(
            starts,
            start=starts,
            oldest=_OLDEST,
            topic_id={topic.name: topic.topic_id for topic, _ in asked},
            calls=calls,
        )
    except LakelogError:
        return {}
    return {
        topic.topic_id: HotAnswer(
            topic,
            planned_from,
            started_ns,
            now_ms,
            {tp.partition: found[tp] for tp in topic.topic_partitions()},
            {tp: memory_percent[tp] for tp in topic.topic_partitions()},
        )
        for topic, planned_from in asked
    }
