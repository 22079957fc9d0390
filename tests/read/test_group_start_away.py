"""A group whose offsets cannot be asked for now has them all the same: nobody begins elsewhere."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lakelog import Lakelog
from lakelog.errors import HotTierUnavailableError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.group_values import CommittedOffset
from lakelog.read.consumer import Consumer
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.subscription import SeenTopics
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

TP = TopicPartition("orders", 0)


class AwayAtFirst(GroupCoordinator):
    """As where the group lies on a server of the cluster that is failing over."""

    def __init__(self, log: Lakelog, times: int) -> None:
        super().__init__(log.hot.connections)
        self.left = times

    def committed(
        self, group_id: str, partitions: Iterable[TopicPartition] | None = None
    ) -> dict[TopicPartition, CommittedOffset]:
        if self.left:
            self.left -= 1
            raise HotTierUnavailableError("not now", sent=False, run_id=None)
        return super().committed(group_id, partitions)


@pytest.mark.parametrize("reset", ["earliest", "latest"])
@pytest.mark.parametrize("subscribes", [True, False])
def test_a_consumer_begins_where_its_group_has_come(
    log: Lakelog, reset: str, subscribes: bool
) -> None:
    log.topics.create("orders", 1)
    with log.producer() as producer:
        for number in range(10):
            producer.send("orders", b"%d" % number)
    coordinator = AwayAtFirst(log, times=3)
    topic_id = log.topics.get("orders").topic_id
    coordinator.commit("g", {TP: OffsetAndMetadata(6)}, topic_ids={"orders": topic_id})
    config = ConsumerConfig(group_id="g", auto_offset_reset=reset, enable_auto_commit=False)
    seen = SeenTopics(log.topics.list, log.topics.version)
    with Consumer(log.log, config, seen, coordinator) as consumer:
        if subscribes:
            consumer.subscribe(["orders"])
        else:
            consumer.assign([TP])
        found: list[int] = []
        while not found:
            polled = consumer.poll(1_000).values()
            found = [record.offset for records in polled for record in records]
    assert not coordinator.left
    assert found[0] == 6
