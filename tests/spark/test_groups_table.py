"""The recordings of groups in a catalog, by name through Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
import redis
from groups_contract import CONTRACT, KEYSPACE, Make

from lakelog import Lakelog, TopicPartition
from lakelog.cold.by_name.root_table import NamedRootTable
from lakelog.errors import ForeignTableError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.operate.groups_table import DEFINITION, GroupsTable
from lakelog.values.record import OffsetAndMetadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def by_name(spark: SparkSession, schema: str) -> GroupsTable:
    return GroupsTable(NamedRootTable(schema, DEFINITION, lambda: spark))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rule",
    [CONTRACT[0], *(pytest.param(rule, marks=pytest.mark.slow) for rule in CONTRACT[1:])],
    ids=lambda rule: rule.__name__,
)
def test_a_table_by_name_keeps_the_contract(
    rule: Callable[[Make], None], spark: SparkSession, schema: str
) -> None:
    rule(lambda: by_name(spark, schema))


def test_what_is_no_table_of_groups_is_refused(spark: SparkSession, schema: str) -> None:
    spark.sql(f"CREATE TABLE {schema}._lakelog_groups (a INT) USING delta")
    with pytest.raises(ForeignTableError, match="Move it away"):
        by_name(spark, schema).read(KEYSPACE)


@pytest.mark.slow
def test_groups_come_back_by_name(
    redis_url: str, redis_client: redis.Redis, spark: SparkSession, schema: str
) -> None:
    with Lakelog.connect(redis_url, schema) as lake:
        topic = lake.topics.create("orders", 1)
        with lake.producer() as producer:
            producer.send("orders", "one")
        place = TopicPartition("orders", 0)
        GroupCoordinator(lake.hot.connections).commit(
            "nightly", {place: OffsetAndMetadata(1, "done")}, topic_ids={"orders": topic.topic_id}
        )
        lake.archive()
        redis_client.flushall()
        restored = lake.restore()
        assert [one.topic.name for one in restored] == ["orders"]
        (group,) = restored.groups
        assert group.offsets[0].committed == OffsetAndMetadata(1, "done")
        found = GroupCoordinator(lake.hot.connections).committed("nightly")
        assert found[place].committed == OffsetAndMetadata(1, "done")
        assert [topic.name for topic in lake.topics.list()] == ["orders"]
