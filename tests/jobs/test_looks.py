"""What notebooks show: tables, and sentences where there is nothing to tell; how a job answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from status_contract import rows_of

from lakelog import Lakelog, TopicPartition
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.hot.server_info import ServerInfo
from lakelog.jobs import add_readings, failures, finish, group_lags, servers, warnings
from lakelog.jobs.looks import Failures, JobResult
from lakelog.jobs.status_rows import RunKey, redis_columns
from lakelog.jobs.table_rows import TableRows
from lakelog.values.record import OffsetAndMetadata

RESULT = JobResult.of("archive", rows_of(RunKey("archive", "4711"), "orders", "clicks"))


def test_a_result_is_of_partitions_in_order_and_says_nothing_of_the_run() -> None:
    assert [part["topic"] for part in RESULT["partitions"]] == ["clicks", "orders"]
    other = JobResult.of("archive", rows_of(RunKey("archive", "4712"), "clicks", "orders"))
    assert other == RESULT


def test_a_result_shows_a_line_a_partition() -> None:
    heading, _, *lines = repr(RESULT).splitlines()
    assert heading.split()[:2] == ["topic", "partition"]
    assert [line.split()[0] for line in lines] == ["clicks", "orders"]
    assert repr(JobResult(job="archive", partitions=[])) == "archive: no partitions"


def test_elsewhere_the_result_is_the_cells() -> None:
    line = finish(RESULT)
    assert repr(line) == line
    assert json.loads(line) == RESULT


@pytest.fixture
def exits() -> Iterator[list[str]]:
    """What `dbutils.notebook.exit` of this notebook was called with."""
    said: list[str] = []
    shell = InteractiveShell.instance()
    shell.user_ns["dbutils"] = SimpleNamespace(notebook=SimpleNamespace(exit=said.append))
    yield said
    del shell.user_ns["dbutils"]
    InteractiveShell.clear_instance()


def test_on_databricks_the_result_is_the_tasks(exits: list[str]) -> None:
    line = finish(RESULT)
    assert exits == [str(line)]


def server(used: int, limit: int) -> ServerInfo:
    return ServerInfo(
        "a", "redis", "7", "master", "id", used, limit, "noeviction", True, None, None
    )


def test_the_headroom_of_a_cluster_is_that_of_its_fullest_server() -> None:
    two = redis_columns((server(10, 50), server(70, 100)), {"b": 3.0, "a": 2.0})
    assert [*two.values()] == [80, 150, 30, 30.0, 2.0]
    one = redis_columns((server(10, 0), server(70, 100)), {})
    assert [*one.values()] == [80, None, 30, 30.0, None]
    assert [*redis_columns((server(10, 0),), {}).values()] == [10, None, None, None, None]


# -- a log's state and groups ---------------------------------------------------------------------


def test_rows_are_a_table_and_none_are_a_sentence() -> None:
    told = TableRows([{"topic": "<b>", "records": 1234}], "Nothing is there.")
    assert repr(told).splitlines()[-1].split() == ["<b>", "1,234"]
    html = told._repr_html_()
    assert "&lt;b&gt;" in html
    assert re.search(r'<td style="text-align:right[^>]*>1,234</td>', html)
    none = TableRows([], "Nothing is there.")
    assert repr(none) == "Nothing is there."
    assert none._repr_html_() == "<p>Nothing is there.</p>"


def test_a_failure_is_said_and_none_is_said_too() -> None:
    assert repr(Failures()) == "The state of every topic can be told."
    failed = Failures(orders="its table is damaged")
    assert "its table is damaged" in failed._repr_html_()
    assert json.loads(json.dumps(failed)) == {"orders": "its table is damaged"}


def test_a_result_is_a_table_and_its_line_one_with_the_json_folded_away() -> None:
    assert "<td" in RESULT._repr_html_()
    html = finish({**RESULT, "failures": {}})._repr_html_()
    table, _, rest = html.partition("<details>")
    assert "orders" in table
    assert "&quot;failures&quot;:{}" in rest


@pytest.fixture
def lake(tmp_path: Path) -> Lakelog:
    with Lakelog.embedded(tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1)
        yield lake


def test_a_log_that_is_well_says_so_in_sentences(lake: Lakelog) -> None:
    assert repr(failures(lake)) == "The state of every topic can be told."
    assert repr(warnings(lake)) == "Nothing is wrong that stays so."
    (server,) = servers(lake)
    assert server["program"].split()[0] in {"redis", "valkey"}
    assert server["append-only file"] == "everysec"
    assert "MiB" in server["memory"]


def test_groups_are_told_furthest_behind_first(redis_url: str, tmp_path: Path) -> None:
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as log:
        assert repr(group_lags(log)) == "No group has committed anything of these topics."
        add_readings(log, "readings", 80)
        for group_id, offsets in {"even": (30, 50), "late": (1, 50), "later": (0, 0)}.items():
            GroupCoordinator(log.hot.connections).commit(
                group_id,
                {
                    TopicPartition("readings", n): OffsetAndMetadata(at)
                    for n, at in enumerate(offsets)
                },
            )
        told = group_lags(log, ["readings"])
    assert [
        (row["group"], row["state"], row["members"], row["partitions"], row["lag_records"])
        for row in told
    ] == [("later", "Empty", 0, 2, 80), ("late", "Empty", 0, 2, 29), ("even", "Empty", 0, 2, 0)]
    assert [row["lag_ms"] is None for row in told] == [False, False, True]
