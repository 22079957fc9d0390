"""Logs to read with Spark."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # spark_log.py is no test module
sys.path.insert(0, str(Path(__file__).parents[1] / "cold"))  # nor are contract.py, made_up.py
sys.path.insert(0, str(Path(__file__).parents[1] / "cleanup"))  # nor is cleanup_process.py
sys.path.insert(0, str(Path(__file__).parents[1] / "read"))  # nor are bench.py, gapped_story.py
sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))  # nor is paused.py
sys.path.insert(0, str(Path(__file__).parents[1] / "jobs"))  # nor is status_contract.py
sys.path.insert(0, str(Path(__file__).parents[1] / "operate"))  # groups_contract, dead_letters
sys.path.insert(0, str(Path(__file__).parents[1] / "model"))  # nor is mutants.py

from spark_log import SparkLog

from lakelog.cold.by_name.delta_actions import NotDirectError
from lakelog.cold.by_name.location import TableLocation
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.cold.by_name.names import TableName
from lakelog.cold.change import RowsOf
from lakelog.values.topic import Topic
from tests.support.unity_catalog import SPARKS_OWN, UnityCatalogServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest.register_assert_rewrite("contract", "status_contract", "groups_contract")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Rules of a contract that one of its classes has among the slow tests alone."""
    if getattr(item, "originalname", None) in getattr(item.parent.obj, "slow_rules", ()):
        item.add_marker("slow")


@pytest.fixture
def make_log(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., SparkLog]]:
    """``make_log(partitions=1, name="orders", **settings)``: a new topic in a log of the test's."""
    made: list[SparkLog] = []

    def make(partitions: int = 1, *, name: str = "orders", **settings: object) -> SparkLog:
        made.append(SparkLog(redis_url, tmp_path / "cold", name).create(partitions, **settings))
        return made[-1]

    yield make
    for log in made:
        log.lakelog.close()


@pytest.fixture
def log(redis_url: str, schema: str) -> Iterator[SparkLog]:
    """A log whose topics have tables by name."""
    named = SparkLog(redis_url, schema)
    yield named
    named.lakelog.close()


@pytest.fixture
def through_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables by name cannot be read where they lie."""

    def find(self: TableLocation) -> NoReturn:
        raise NotDirectError("the test does not want it")

    monkeypatch.setattr(TableLocation, "find", find)


@pytest.fixture
def tables_at(
    schema: str, catalog: str, tmp_path: Path, unity_server: UnityCatalogServer | None
) -> str:
    """Says where the tables of `schema` are to those who have no session."""
    if catalog == SPARKS_OWN:
        return f"{tmp_path}/{schema.split('.')[1]}"
    assert unity_server is not None
    return unity_server.front.url


@pytest.fixture
def make_named(spark: SparkSession, schema: str) -> Iterator[Callable[..., NamedTable]]:
    """``make_named(topic, rows_of)``: each call opens the same table by name anew.

    ``spark=`` has another session do it, ``table=`` names another table, ``directly=False`` reads
    it through Spark alone.
    """
    import cleanup_process
    import made_up
    from pyspark import cloudpickle

    shared = spark
    modules = (made_up, cleanup_process)
    for module in modules:  # executors have no tests to import
        cloudpickle.register_pickle_by_value(module)

    def make(
        topic: Topic,
        rows_of: RowsOf | None = None,
        *,
        table: str = "orders",
        spark: SparkSession | None = None,
        directly: bool = True,
    ) -> NamedTable:
        name = TableName(*schema.split("."), table)
        rows_of = rows_of or made_up.MadeUpRows()

        def session() -> SparkSession:
            return spark or shared

        location = TableLocation(name, session) if directly else None
        return NamedTable(topic, session, str(name), rows_of, location=location)

    yield make
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)
