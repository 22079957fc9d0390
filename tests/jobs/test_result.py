"""How a job answers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from IPython.core.interactiveshell import InteractiveShell
from status_contract import rows_of

from lakelog.hot.server_info import ServerInfo
from lakelog.jobs import finish
from lakelog.jobs.looks import JobResult
from lakelog.jobs.status_rows import RunKey
from lakelog.operate.log_figures import RedisMemory, redis_memory

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
    two = redis_memory((server(10, 50), server(70, 100)), {"b": 3.0, "a": 2.0})
    assert two == RedisMemory(80, 150, 30, 30.0, 2.0)
    one = redis_memory((server(10, 0), server(70, 100)), {})
    assert one == RedisMemory(80, None, 30, 30.0, None)
    assert redis_memory((server(10, 0),), {}) == RedisMemory(10, None, None, None, None)
