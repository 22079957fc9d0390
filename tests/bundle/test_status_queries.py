"""The alerts' and the dashboard's SQL, on rows made up for it and on those of a real run."""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import bundle_files
import pyarrow as pa
import pytest
from bundle_files import ROOT, resources, variables

from lakelog import Lakelog, TopicPartition
from lakelog.jobs import JobRun
from lakelog.jobs.status_rows import STATUS

pytestmark = pytest.mark.slow

SCHEMA = "status_queries"
GB = 10**9
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS

Write = Callable[..., None]
COMPARE = {"GREATER_THAN": operator.gt, "LESS_THAN": operator.lt}
AGGREGATE = {"MAX": max, "MIN": min}


def row(topic: str | None = "orders", partition: int | None = 0, **more: Any) -> dict[str, Any]:
    """One row as an archive run writes it: half a minute ago, nothing waits, Redis half full."""
    whole: dict[str, Any] = {
        "minutes_ago": 0.5,
        "run_id": "1",
        "job": "archive",
        "topic": topic,
        "partition": partition,
        "state": "ok",
        "log_start": 0,
        "local_log_start": 900,
        "archived_end": 1000,
        "log_end": 1000,
        "archive_lag_records": 0,
        "lost_offsets": 0,
        "hot_size_bytes": GB,
        "cold_size_bytes": 4 * GB,
        "cold_segments": 3,
        "redis_used_bytes": 5 * GB,
        "redis_max_bytes": 10 * GB,
        "redis_headroom_bytes": 5 * GB,
        "duration_ms": 1000,
        "done": False,
    }
    return {**whole, **more}


def cold_only(**more: Any) -> dict[str, Any]:
    """As a cleanup that never opens Redis leaves it."""
    unknown = ("local_log_start", "log_end", "archive_lag_records", "lost_offsets")
    redis = ("redis_used_bytes", "redis_max_bytes", "redis_headroom_bytes", "hot_size_bytes")
    return row(**dict.fromkeys(unknown + redis), job="cleanup", state="cold only", **more)


def group(group_id: str = "nightly", partition: int = 0, **more: Any) -> dict[str, Any]:
    """A group's row as a run writes it: it has read all but ten records of the last minute."""
    whole: dict[str, Any] = {
        "minutes_ago": 0.5,
        "run_id": "1",
        "job": "archive",
        "topic": "orders",
        "partition": partition,
        "log_end": 1000,
        "redis_used_bytes": 5 * GB,
        "redis_max_bytes": 10 * GB,
        "redis_headroom_bytes": 5 * GB,
        "duration_ms": 1000,
        "done": False,
        "group_id": group_id,
        "group_type": "classic",
        "group_state": "Stable",
        "group_members": 2,
        "committed_offset": 990,
        "group_lag_records": 10,
        "group_lag_ms": MINUTE_MS,
    }
    return {**whole, **more}


@pytest.fixture
def write(spark: Any) -> Iterator[Write]:
    """Makes rows what ``_lakelog_status`` is: a view of its columns, quick to make and to read."""

    def view(*rows: dict[str, Any], now: datetime | None = None) -> None:
        now = now or datetime.now(timezone.utc)
        timed = [
            {**one, "recorded_at": now - timedelta(minutes=one["minutes_ago"])} for one in rows
        ]
        table = pa.Table.from_pylist(timed, STATUS)
        spark.createDataFrame(table).createOrReplaceTempView("_lakelog_status")

    try:
        yield view
    finally:
        spark.catalog.dropTempView("_lakelog_status")


# -- alerts ---------------------------------------------------------------------------------------


SCHEMA_OF_BUNDLE = (
    "`"
    + "`.`".join(f"${{resources.schemas.lakelog.{field}}}" for field in ("catalog_name", "name"))
    + "`."
)


def state_of(spark: Any, key: str, schema: str = "") -> str:
    """OK or TRIGGERED, by what the alert says of the rows that its query gives.

    Args:
        schema: where the table is, with a dot; "" for the view.
    """
    alert = resources("prod")["alerts"][key]
    evaluation = alert["evaluation"]
    source = evaluation["source"]
    assert SCHEMA_OF_BUNDLE + "_lakelog_status" in alert["query_text"]
    query = alert["query_text"].replace(SCHEMA_OF_BUNDLE, schema)
    values = [found[source["name"]] for found in spark.sql(query).collect()]
    if not values:
        return str(evaluation["empty_result_state"])
    compared = COMPARE[evaluation["comparison_operator"]](
        AGGREGATE[source["aggregation"]](values), evaluation["threshold"]["value"]["double_value"]
    )
    return "TRIGGERED" if compared else "OK"


LAG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "nothing waits": ([row(), row(partition=1)], "OK"),
    "what waits has not waited long": ([row(archive_lag_ms=10 * MINUTE_MS)], "OK"),
    "one partition lags": ([row(), row(partition=1, archive_lag_ms=2 * HOUR_MS)], "TRIGGERED"),
    "it lagged once": ([row(archive_lag_ms=9 * HOUR_MS, minutes_ago=30), row()], "OK"),
    "the archiver is silent": (
        [row(minutes_ago=300), row(partition=1, minutes_ago=301)],
        "TRIGGERED",
    ),
    "cleanup is no sign of the archiver's life": (
        [row(minutes_ago=300), cold_only(minutes_ago=1)],
        "TRIGGERED",
    ),
    "a look by another job is none either": (
        [row(minutes_ago=300), row(job="cleanup", minutes_ago=1)],
        "TRIGGERED",
    ),
    "nothing could ever be looked at": (
        [row(None, None, error="no Redis", minutes_ago=ago) for ago in (90, 60, 1)],
        "TRIGGERED",
    ),
    "a first run failed, which is tried again": (
        [row(None, None, error="no", minutes_ago=5)],
        "OK",
    ),
    "it failed once, and then went well": (
        [row(None, None, error="no Redis", minutes_ago=90), row()],
        "OK",
    ),
    "one topic cannot be looked at any more": (
        [row(), row("bad", minutes_ago=200), row("bad", None, error="damaged", minutes_ago=1)],
        "TRIGGERED",
    ),
    "one topic could not be looked at for a while": (
        [row(), row("bad", None, error="damaged", minutes_ago=100), row("bad")],
        "OK",
    ),
    "a topic that could not be looked at was deleted": (
        [row(), row("bad", None, error="damaged", minutes_ago=180)],
        "OK",
    ),
    "a topic was deleted": (
        [row(), row(topic="old", archive_lag_ms=9 * HOUR_MS, minutes_ago=180)],
        "OK",
    ),
    "a run failed before it saw anything": (
        [row(), row(topic=None, partition=None, log_end=None, error="HotTierUnavailableError: …")],
        "OK",
    ),
    "no topic yet": ([cold_only()], "OK"),
    "a partition lags, and a group reads it": (
        [row(archive_lag_ms=2 * HOUR_MS), group(minutes_ago=0.4), group("web")],
        "TRIGGERED",
    ),
    "only a group lags": ([row(), group(group_lag_ms=9 * HOUR_MS)], "OK"),
    "a group's row is no sign of the archiver's life": (
        [row(minutes_ago=300), group(minutes_ago=1)],
        "TRIGGERED",
    ),
    "a topic cannot be looked at, though a group is": (
        [
            row(),
            row("bad", None, error="damaged", minutes_ago=100),
            group(topic="bad"),
            row("bad", None, error="damaged"),
        ],
        "TRIGGERED",
    ),
    "groups are not recorded": (
        [row()]
        + [
            row("_lakelog_groups", None, state="groups not recorded", error="no", minutes_ago=ago)
            for ago in (100, 50, 0.5)
        ],
        "OK",
    ),
}
GROUP_LAG: dict[str, tuple[list[dict[str, Any]], str]] = {
    "no group yet": ([row(archive_lag_ms=9 * HOUR_MS)], "OK"),
    "it keeps up": ([row(), group()], "OK"),
    "it is behind in one partition": (
        [group(), group(partition=1, group_lag_ms=2 * HOUR_MS)],
        "TRIGGERED",
    ),
    "one of two groups is behind": ([group(), group("web", group_lag_ms=2 * HOUR_MS)], "TRIGGERED"),
    "a share group of the same name is behind": (
        [group(), group(group_type="share", group_lag_ms=2 * HOUR_MS, minutes_ago=0.6)],
        "TRIGGERED",
    ),
    "it was behind, and caught up": (
        [
            group(group_lag_ms=2 * HOUR_MS, minutes_ago=10),
            group(group_lag_records=0, group_lag_ms=None),
        ],
        "OK",
    ),
    "it keeps up since long ago": (
        [group(group_lag_records=0, group_lag_ms=None, minutes_ago=59), group("web")],
        "OK",
    ),
    "it was deleted": ([group("web"), group(group_lag_ms=9 * HOUR_MS, minutes_ago=180)], "OK"),
    "another job saw it last": (
        [
            group(minutes_ago=10),
            group(job="cleanup", group_lag_ms=2 * HOUR_MS),
        ],
        "TRIGGERED",
    ),
    "how old it is, is not known": ([group(group_lag_ms=None)], "OK"),
    "how many there are has no limit": ([group(group_lag_records=10**12)], "OK"),
}
#: What a limit is set to, and what a group is behind.
GROUP_LIMITS: dict[str, tuple[dict[str, str], dict[str, Any], str]] = {
    "as many records as are allowed": ({"records": "1000"}, {"records": 1000}, "OK"),
    "more records": ({"records": "1000"}, {"records": 1001}, "TRIGGERED"),
    "few records, but old ones": (
        {"records": "1000"},
        {"records": 1, "ms": 2 * HOUR_MS},
        "TRIGGERED",
    ),
    "old ones, of which only the number counts": (
        {"records": "1000", "minutes": "0"},
        {"records": 1, "ms": 2 * HOUR_MS},
        "OK",
    ),
    "nothing counts": (
        {"records": "0", "minutes": "0"},
        {"records": 10**12, "ms": 99 * HOUR_MS},
        "OK",
    ),
}
HEADROOM: dict[str, tuple[list[dict[str, Any]], str]] = {
    "half is free": ([row()], "OK"),
    "a tenth is free": ([row(redis_used_bytes=9 * GB)], "TRIGGERED"),
    "it was full once": ([row(redis_used_bytes=10 * GB, minutes_ago=60), row()], "OK"),
    "it is full now": ([row(minutes_ago=60), row(redis_used_bytes=10 * GB)], "TRIGGERED"),
    "cleanup looked last": ([row(redis_used_bytes=9 * GB), cold_only(minutes_ago=0)], "TRIGGERED"),
    "one server of a cluster is fuller": ([row(redis_headroom_percent=9.0)], "TRIGGERED"),
    "one server of a cluster has no limit": (
        [row(redis_max_bytes=None, redis_headroom_percent=9.0)],
        "TRIGGERED",
    ),
    "there is no limit": ([row(redis_max_bytes=None, redis_headroom_bytes=None)], "OK"),
}


@pytest.mark.parametrize(("rows", "state"), LAG.values(), ids=LAG)
def test_the_alert_on_archive_lag(
    rows: list[dict[str, Any]], state: str, spark: Any, write: Write
) -> None:
    write(*rows)
    assert state_of(spark, "archive_lag") == state


@pytest.mark.parametrize(("rows", "state"), HEADROOM.values(), ids=HEADROOM)
def test_the_alert_on_redis_headroom(
    rows: list[dict[str, Any]], state: str, spark: Any, write: Write
) -> None:
    write(*rows)
    assert state_of(spark, "redis_headroom") == state


FILLS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "there are hours": ([row(redis_headroom_hours=3.0)], "OK"),
    "there is not an hour": ([row(redis_headroom_hours=0.9)], "TRIGGERED"),
    "there was not": ([row(redis_headroom_hours=0.9, minutes_ago=60), row()], "OK"),
    "nothing comes": ([row()], "OK"),
    "cleanup looked last": (
        [row(redis_headroom_hours=0.9), cold_only(minutes_ago=0)],
        "TRIGGERED",
    ),
}


@pytest.mark.parametrize(("rows", "state"), FILLS.values(), ids=FILLS)
def test_the_alert_on_a_redis_that_fills(
    rows: list[dict[str, Any]], state: str, spark: Any, write: Write
) -> None:
    write(*rows)
    assert state_of(spark, "redis_fills") == state


@pytest.mark.parametrize(("rows", "state"), GROUP_LAG.values(), ids=GROUP_LAG)
def test_the_alert_on_the_lag_of_groups(
    rows: list[dict[str, Any]], state: str, spark: Any, write: Write
) -> None:
    write(*rows)
    assert state_of(spark, "group_lag") == state


@pytest.mark.parametrize(("limits", "lag", "state"), GROUP_LIMITS.values(), ids=GROUP_LIMITS)
def test_the_alert_on_the_lag_of_groups_goes_by_minutes_and_records(
    limits: dict[str, str],
    lag: dict[str, Any],
    state: str,
    spark: Any,
    write: Write,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {f"group_lag_alert_{name}": value for name, value in limits.items()}
    monkeypatch.setattr(bundle_files, "variables", lambda target: variables(target) | given)
    write(group(), group("web", **{f"group_lag_{name}": value for name, value in lag.items()}))
    assert state_of(spark, "group_lag") == state


# -- the dashboard --------------------------------------------------------------------------------

_BOARD_FILE = ROOT / "conf" / "watching" / "dashboards" / "lakelog.lvdash.json"
BOARD = json.loads(_BOARD_FILE.read_text("utf-8"))
DATASETS = {one["name"]: "".join(one["queryLines"]) for one in BOARD["datasets"]}
LAYOUT = [one for page in BOARD["pages"] for one in page["layout"]]
WIDGETS = [one["widget"] for one in LAYOUT if "queries" in one["widget"]]

#: What Databricks draws; a widget of another version is not shown.
VERSIONS = {"counter": 2, "table": 2, "line": 3, "bar": 3}


def rows_of(spark: Any, name: str) -> list[dict[str, Any]]:
    """A dataset of what is called ``_lakelog_status`` where no schema is named."""
    return [found.asDict() for found in spark.sql(DATASETS[name]).collect()]


#: Orders with two partitions, one of which lags; clicks with one; an hour and more of rows.
TWO_TOPICS = [
    row(log_end=1000, minutes_ago=90, duration_ms=1000, records=1000),
    row(partition=1, log_end=1000, minutes_ago=90, duration_ms=1000),
    row(topic="clicks", log_end=0, minutes_ago=90, duration_ms=1000),
    row(log_end=6400, duration_ms=9000, done=True, records=5400),
    row(
        partition=1,
        log_end=1000,
        archive_lag_records=70,
        archive_lag_ms=30 * MINUTE_MS,
        lost_offsets=7,
        duration_ms=9000,
        done=True,
    ),
    row(topic="clicks", log_end=0, duration_ms=9000, done=True),
    cold_only(run_id="3", minutes_ago=2, records=12),
    # a run that failed before it saw anything, and one that goes on
    cold_only(topic=None, partition=None, run_id="2", error="ColdTierError: full", minutes_ago=5),
    row(run_id="4", log_end=6400, minutes_ago=4),
]

#: Two groups that read them, one of which is behind; nothing else is to change by their rows.
TWO_GROUPS = [
    group(minutes_ago=90, log_end=900, group_lag_ms=HOUR_MS),
    group(log_end=9000, duration_ms=9000, done=True),
    group(partition=1, log_end=9000, duration_ms=9000, done=True, group_lag_ms=3 * MINUTE_MS),
    group("web", topic="clicks", log_end=9000, duration_ms=9000, done=True, group_lag_records=0)
    | {"group_lag_ms": None, "group_members": 0, "group_state": "Empty"},
]


def test_figures_of_now(spark: Any, write: Write) -> None:
    write(*TWO_TOPICS, *TWO_GROUPS)
    (now,) = rows_of(spark, "now")
    assert now["lag_minutes"] == pytest.approx(30)
    assert now["lost_offsets"] == 7
    assert float(now["cold_gb"]) == pytest.approx(12)
    assert now["redis_headroom"] == pytest.approx(0.5)
    assert now["redis_headroom_hours"] is None


def test_partitions_and_sizes_are_those_of_the_newest_rows(spark: Any, write: Write) -> None:
    write(*TWO_TOPICS, *TWO_GROUPS)
    partitions = rows_of(spark, "partitions")
    assert [
        (p["topic"], p["partition"], p["log_end"], p["waiting_records"]) for p in partitions
    ] == [
        ("clicks", 0, 0, 0),
        ("orders", 0, 6400, 0),
        ("orders", 1, 1000, 70),
    ]
    assert [p["lag_minutes"] for p in partitions] == [0, 0, 30]
    sizes = {(one["topic"], one["tier"]): float(one["gb"]) for one in rows_of(spark, "sizes")}
    assert sizes == {
        ("clicks", "cold"): 4,
        ("clicks", "hot"): 1,
        ("orders", "cold"): 8,
        ("orders", "hot"): 2,
    }


def test_rates_lag_and_redis_over_time(spark: Any, write: Write) -> None:
    an_hour_ago = datetime.now(timezone.utc) - timedelta(hours=1)
    write(
        *TWO_TOPICS, *TWO_GROUPS, now=an_hour_ago.replace(minute=45)
    )  # where no hour begins within minutes
    rates = {one["topic"]: one["records_per_second"] for one in rows_of(spark, "rates")}
    # 5,400 records of partition 0 within 89.5 minutes, none of the others
    assert rates == {"orders": pytest.approx(5400 / (89.5 * 60), rel=0.01), "clicks": 0}
    lags = [(one["topic"], one["lag_minutes"]) for one in rows_of(spark, "lag")]
    assert sorted(lags) == [("clicks", 0)] * 2 + [("orders", 0)] * 2 + [("orders", 30)]
    memory = rows_of(spark, "redis")
    assert [(float(one["used_gb"]), float(one["limit_gb"])) for one in memory] == [(5, 10)] * 3


def test_runs_say_how_they_ended(spark: Any, write: Write) -> None:
    write(*TWO_TOPICS, *TWO_GROUPS)
    runs = {one["run_id"]: one for one in rows_of(spark, "runs")}
    assert {run: (one["job"], one["outcome"], one["records"]) for run, one in runs.items()} == {
        "1": ("archive", "done", 6400),
        "2": ("cleanup", "failed", 0),
        "3": ("cleanup", "running, or killed", 12),
        "4": ("archive", "running, or killed", 0),
    }
    assert runs["1"]["seconds"] == 9.0
    assert runs["2"]["error"] == "ColdTierError: full"


def test_groups_are_those_of_the_newest_rows(spark: Any, write: Write) -> None:
    write(*TWO_TOPICS, *TWO_GROUPS)
    groups = [
        tuple(one[name] for name in ("group_id", "topic", "state", "members", "waiting_records"))
        for one in rows_of(spark, "groups")
    ]
    assert groups == [("nightly", "orders", "Stable", 2, 20), ("web", "clicks", "Empty", 0, 0)]
    assert [one["lag_minutes"] for one in rows_of(spark, "groups")] == [3, 0]
    lags = [(one["group_id"], one["lag_minutes"]) for one in rows_of(spark, "group_lag")]
    assert sorted(lags) == [("nightly", 3), ("nightly", 60), ("web", 0)]


def test_what_each_widget_asks_of_its_dataset_is_there(spark: Any, write: Write) -> None:
    write(*TWO_TOPICS, *TWO_GROUPS)
    for widget in WIDGETS:
        (asked,) = widget["queries"]
        fields = asked["query"]["fields"]
        shown = ", ".join(f"{one['expression']} AS `{one['name']}`" for one in fields)
        group = "" if asked["query"]["disaggregated"] else " GROUP BY ALL"
        dataset = DATASETS[asked["query"]["datasetName"]]
        frame = spark.sql(f"SELECT {shown} FROM ({dataset}){group}")
        assert frame.columns == [one["name"] for one in fields]
        assert frame.take(1), widget["name"]


def test_a_widget_shows_fields_that_it_asks_for() -> None:
    for widget in WIDGETS:
        asked = {one["name"] for one in widget["queries"][0]["query"]["fields"]}
        named = re.findall(r'"fieldName": "([^"]+)"', json.dumps(widget["spec"]["encodings"]))
        assert named
        assert set(named) == asked, widget["name"]
        assert widget["spec"]["version"] == VERSIONS[widget["spec"]["widgetType"]]


def test_widgets_lie_beside_each_other_on_a_grid_of_six() -> None:
    taken: set[tuple[int, int]] = set()
    for one in LAYOUT:
        at = one["position"]
        assert at["x"] + at["width"] <= 6
        cells = {
            (at["x"] + x, at["y"] + y) for x in range(at["width"]) for y in range(at["height"])
        }
        assert not cells & taken, one["widget"]["name"]
        taken |= cells
    rows = {y for _, y in taken}
    assert len(taken) == 6 * len(rows)  # nothing is left open either
    names = [one["widget"]["name"] for one in LAYOUT]
    assert len(names) == len(set(names))


def test_what_a_real_run_leaves_is_what_the_queries_read(
    spark: Any, redis_url: str, tmp_path: Path
) -> None:
    spark.sql(f"CREATE SCHEMA {SCHEMA}")
    try:
        place = {"location": tmp_path / "cold", "engine": "inline"}
        with Lakelog.connect(redis_url, f"spark_catalog.{SCHEMA}", **place) as log:
            log.topics.create("orders", 2)
            with log.producer() as producer:
                for number in range(100):
                    producer.send("orders", f"order {number}", partition=number % 2)
            with log.consumer(group_id="nightly") as consumer:
                consumer.assign([TopicPartition("orders", 0)])
                consumer.seek(TopicPartition("orders", 0), 20)
                consumer.commit()
            JobRun(log, "archive", "1").once(lambda: log.archive("orders"))
        table = f"spark_catalog.{SCHEMA}."
        assert state_of(spark, "archive_lag", table) == "OK"
        assert state_of(spark, "redis_headroom", table) == "OK"
        assert state_of(spark, "group_lag", table) == "OK"
        spark.table(f"{table}_lakelog_status").createOrReplaceTempView("_lakelog_status")
        partitions = rows_of(spark, "partitions")
        assert [(one["topic"], one["archived_end"]) for one in partitions] == [("orders", 50)] * 2
        (group,) = rows_of(spark, "groups")
        assert (group["group_id"], group["waiting_records"]) == ("nightly", 30)
        (run,) = rows_of(spark, "runs")
        assert (run["outcome"], run["records"]) == ("done", 100)
    finally:
        spark.catalog.dropTempView("_lakelog_status")
        spark.sql(f"DROP SCHEMA {SCHEMA} CASCADE")
