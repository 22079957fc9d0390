"""What every kind of status table keeps to; no test module."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lakelog.cold.by_path.root_table import PathRootTable
from lakelog.cold.store.storage import Storage
from lakelog.groups.group_values import GroupState
from lakelog.groups.recorded_offset import GroupType
from lakelog.hot.server_info import ServerInfo
from lakelog.jobs.status_rows import STATUS, Effect, RunKey, status_rows
from lakelog.jobs.status_table import DEFINITION, StatusTable
from lakelog.operate.group_lag import GroupLag
from lakelog.operate.status import PartitionStatus, Status
from lakelog.values.offsets import LogOffsets
from lakelog.values.topic_partition import TopicPartition

NOW_MS = int(datetime.now(timezone.utc).timestamp()) * 1000 + 123


def look(*topics: str, now_ms: int = NOW_MS, log_end: int = 120) -> Status:
    offsets = LogOffsets(10, 90, 100, log_end)
    server = ServerInfo("a", "redis", "7", "master", "id", 2**20, 0, "noeviction", True, None, None)
    return Status(
        tuple(
            PartitionStatus(
                TopicPartition(topic, 0), True, offsets, 4096, 1500, (), False, 65_536, 3
            )
            for topic in topics
        ),
        (server,),
        now_ms,
    )


def rows_of(key: RunKey, *topics: str, **more: Any) -> pa.Table:
    asked = {"done": True, **more}
    seen = look(*topics, **{name: asked.pop(name) for name in ("now_ms", "log_end") & asked.keys()})
    return status_rows(key, seen, {TopicPartition("orders", 0): Effect(50, 100, 50)}, 1.25, **asked)


GROUP_COLUMNS = [name for name in STATUS.names if "group" in name or name == "committed_offset"]


def without_groups(rows: pa.Table) -> pa.Table:
    """The rows as a lakelog wrote them that knew nothing of groups."""
    return rows.drop_columns(GROUP_COLUMNS)


def with_seconds(rows: pa.Table) -> pa.Table:
    """As one before that: seconds were a column, milliseconds were none."""
    at = rows.schema.get_field_index("duration_ms")
    seconds = pa.array([ms / 1000 for ms in rows["duration_ms"].to_pylist()], pa.float64())
    return without_groups(rows.set_column(at, "seconds", seconds))


OLDER = [without_groups, with_seconds]


def lag(group_id: str, topic: str = "orders", *, records: int = 20, partition: int = 0) -> GroupLag:
    return GroupLag(
        group_id,
        GroupType.CLASSIC,
        TopicPartition(topic, partition),
        GroupState.STABLE,
        2,
        120 - records,
        120,
        records,
        1000 * records or None,
    )


Make = Callable[[], StatusTable]


def at_path(storage: Storage) -> StatusTable:
    return StatusTable(PathRootTable(storage, DEFINITION))


def an_older_table_is_read_and_goes_on(make: Make, older: pa.Table) -> None:
    """Of a table that holds the older rows of ``rows_of(RunKey("archive", "old"), "orders")``."""
    old, new = RunKey("archive", "old"), RunKey("archive", "new")
    assert make().rows_of(old).equals(older)
    assert make().done_rows(old).equals(older)
    rows = rows_of(new, "orders", now_ms=NOW_MS + 1, groups=[lag("nightly", "clicks")])
    assert make().append(rows, new).sort_by("topic").equals(rows.sort_by("topic"))
    assert make().append(rows, new).num_rows == 2  # done once
    read = make().read()
    assert read["duration_ms"].to_pylist() == [1250] * 3
    assert sorted(read["group_id"].to_pylist(), key=str) == [None, None, "nightly"]
    assert read.schema == STATUS


def rows_come_back_as_they_were(make: Make) -> None:
    key = RunKey("archive", "4711/it's")
    by = [("topic", "ascending"), ("group_id", "ascending")]
    rows = rows_of(key, "orders", "clicks", groups=[lag("nightly"), lag("web", records=0)])
    assert make().read().num_rows == 0
    assert make().append(rows, key) == rows
    read = make().read()
    assert read.schema == STATUS
    assert read.sort_by(by) == rows.sort_by(by)
    nightly, web, orders = read.filter(pc.equal(read["topic"], "orders")).sort_by(by).to_pylist()
    assert {name: nightly[name] for name in [*GROUP_COLUMNS, "partition", "log_end"]} == {
        "group_id": "nightly",
        "group_type": "classic",
        "group_state": "Stable",
        "group_members": 2,
        "committed_offset": 100,
        "group_lag_records": 20,
        "group_lag_ms": 20_000,
        "partition": 0,
        "log_end": 120,
    }
    assert (web["group_lag_records"], web["group_lag_ms"]) == (0, None)
    assert orders["recorded_at"] == datetime.fromtimestamp(NOW_MS / 1000, timezone.utc)
    assert (orders["start_offset"], orders["end_offset"], orders["records"]) == (50, 100, 50)
    assert orders["redis_max_bytes"] is None


def a_run_is_written_once_whoever_writes_first(make: Make) -> None:
    key, other = RunKey("archive", "4711"), RunKey("cleanup", "4711")
    first = rows_of(key, "orders", log_end=120)
    assert make().done_rows(key).num_rows == 0
    make().append(first, key)
    again = rows_of(key, "orders", log_end=140)
    assert make().append(again, key) == first
    assert make().done_rows(key) == first
    assert make().done_rows(other).num_rows == 0
    make().append(rows_of(other, "orders"), other)
    assert make().read().num_rows == 2


def rows_of_a_run_that_goes_on_are_not_its_end(make: Make) -> None:
    key = RunKey("archive", "4711")
    for minute in range(2):
        make().append(rows_of(key, "orders", done=False, now_ms=NOW_MS + 60_000 * minute))
    make().append(rows_of(key, done=False, error="TheError: of Redis", now_ms=NOW_MS + 90_000))
    assert make().done_rows(key).num_rows == 0
    end = rows_of(key, "orders", now_ms=NOW_MS + 120_000)
    make().append(end, key)
    assert make().done_rows(key) == end
    read = make().read().to_pylist()
    assert [row["done"] for row in read] == [False, False, False, True]
    assert [row["error"] for row in read] == [None, None, "TheError: of Redis", None]
    other = RunKey("cleanup", "4711")
    make().append(rows_of(other, "orders"), other)
    assert make().rows_of(key).to_pylist() == read


def only_what_is_asked_for_is_read(make: Make) -> None:
    for hours in (3, 1):
        key = RunKey("archive", str(hours))
        make().append(rows_of(key, "orders", now_ms=NOW_MS - hours * 3_600_000), key)
    since = datetime.fromtimestamp(NOW_MS / 1000, timezone.utc) - timedelta(hours=2)
    assert make().read(since)["run_id"].to_pylist() == ["1"]


CONTRACT = [
    rows_come_back_as_they_were,
    a_run_is_written_once_whoever_writes_first,
    rows_of_a_run_that_goes_on_are_not_its_end,
    only_what_is_asked_for_is_read,
]
