"""``lakelog.change.data.feed``: what Delta's change data feed says of a topic's table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from deltalake import DeltaTable
from spark_log import SparkLog

from lakelog.cold.properties import FEED_PROPERTY
from lakelog.errors import InvalidConfigError
from lakelog.values.config import TopicConfig

pytestmark = pytest.mark.slow

COMPACTED = {
    "cleanup_policy": "compact,delete",
    "min_cleanable_dirty_ratio": 0,
    "internal_segment_bytes": 4_000,
}
FEED = "lakelog.change.data.feed"


def events(spark: Any, table: str, since: int = 0) -> list[tuple[str, int]]:
    """What happened to which offset."""
    options = {"readChangeFeed": "true", "startingVersion": str(since)}
    feed = spark.read.options(**options).table(table)
    return [(row["_change_type"], row["offset"]) for row in feed.collect()]


def net(found: list[tuple[str, int]]) -> Counter[int]:
    """How often each offset is there after all of it."""
    counts: Counter[int] = Counter()
    for kind, offset in found:
        assert kind in {"insert", "delete"}
        counts[offset] += 1 if kind == "insert" else -1
    return +counts


def version(spark: Any, table: str) -> int:
    return int(spark.sql(f"DESCRIBE HISTORY {table} LIMIT 1").collect()[0]["version"])


@pytest.fixture(params=["by path", "by name"])
def place(request: Any, make_log: Any, redis_url: str, schema: str) -> Callable[..., Any]:
    """``place(**settings)``: a log of a topic, and the SQL name of what will be its table."""

    def make(**settings: Any) -> tuple[SparkLog, Callable[[], str]]:
        if request.param == "by path":
            log = make_log(**settings)
            return log, lambda: f"delta.`{log.lakelog.log('orders').table.path}`"
        made = SparkLog(redis_url, schema)  # type: ignore[arg-type]
        opened.append(made)
        return made.create(**settings), lambda: f"{schema}.orders"

    opened: list[SparkLog] = []
    yield make
    for log in opened:
        log.lakelog.close()


def test_the_feed_adds_up_to_the_table_whatever_cleanup_does(place, spark) -> None:
    log, name = place(lakelog_change_data_feed="true", **COMPACTED)
    log.append(200, keys=5, batch=20)
    log.archive()
    assert sorted(events(spark, name())) == [("insert", offset) for offset in range(200)]

    (report,) = log.lakelog.cleanup("orders")
    assert report.compacted[0].records_dropped > 0
    left = Counter(row["offset"] for row in spark.table(name()).collect())
    assert 0 < len(left) < 200
    assert net(events(spark, name())) == left

    log.lakelog.topics.alter("orders", {"retention.bytes": 1})
    log.lakelog.cleanup("orders", steps=("retain",))
    expired = Counter(row["offset"] for row in spark.table(name()).collect())
    assert len(expired) < len(left)
    assert net(events(spark, name())) == expired


def test_merged_files_are_no_change(place, spark) -> None:
    log, name = place(lakelog_change_data_feed="true", internal_segment_bytes=1_000_000)
    for _ in range(3):
        log.append(20)
        log.archive()
    log.lakelog.cleanup("orders", steps=("optimize",))
    assert sorted(events(spark, name())) == [("insert", offset) for offset in range(60)]


def test_it_is_turned_on_and_off_and_one_that_somebody_turned_on_stays(place, spark) -> None:
    def said() -> str | None:
        return {
            row["key"]: row["value"] for row in spark.sql(f"SHOW TBLPROPERTIES {name()}").collect()
        }.get(FEED_PROPERTY)

    log, name = place()
    log.append(10)
    log.archive()
    assert said() is None
    if name().startswith(
        "delta."
    ):  # Spark would turn on more, which a table at a path must not have
        path = log.lakelog.log("orders").table.path
        DeltaTable(path).alter.set_table_properties({FEED_PROPERTY: "true"})
    else:
        spark.sql(f"ALTER TABLE {name()} SET TBLPROPERTIES ({FEED_PROPERTY} = true)")
    log.lakelog.topics.alter("orders", {"retention.bytes": 10_000_000})
    log.append(10)
    log.archive()
    assert said() == "true"

    log.lakelog.topics.alter("orders", {FEED: "true"})
    since = version(spark, name())
    log.append(10)
    log.archive()
    assert said() == "true"
    assert sorted(events(spark, name(), since + 1)) == [("insert", n) for n in range(20, 30)]
    log.lakelog.topics.alter("orders", {FEED: "false"})
    log.append(10)
    log.archive()
    assert said() == "false"
    assert spark.table(name()).count() == 40


def test_a_column_that_a_feed_has_itself_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="'_Change_type' do not go together"):
        TopicConfig.of({FEED: "true", "lakelog.value.columns": "_Change_type int"})
    TopicConfig.of({"lakelog.value.columns": "_Change_type int"})
