"""Whatever call of Spark fails, for a reason that only Spark knows, ends in an error of lakelog's.

A catalog that stops answering shows at any call that Spark makes: of a session, its catalog, or of
a frame that is only planned. Each call in turn fails, of each thing that is done with a table.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest
from contract import ORDERS_0, ROWS, read
from made_up import archive

from lakelog.cold.change import Change, Rewrite
from lakelog.cold.table import ColdTable
from lakelog.errors import LakelogError
from lakelog.values.topic import Topic

TOPIC = Topic("orders", UUID("11111111-2222-3333-4444-555555555555"), partitions=3)

#: Of Java's objects, those in which a catalog may be asked or rows may be read.
ASKING = {
    *("sql", "table", "tableExists", "schema", "collectToPython", "collectAsArrowToPython"),
    *("toLocalIterator", "toPythonIterator", "mapInArrow", "select", "selectExpr", "where"),
    *("filter", "agg", "repartition", "append", "overwrite", "overwritePartitions", "saveAsTable"),
}

SAID = "java.io.IOException: Failed to load table (HTTP 0): null"


class Calls:
    """Counts the calls of Java, and fails one."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, spark: Any) -> None:
        client = spark._jvm._gateway_client
        self.count, self.failing = 0, -1
        really = client.send_command

        def send_command(command: str, *arguments: Any, **more: Any) -> Any:
            parts = command.split("\n", 3)
            if parts[0] == "c" and parts[2] in ASKING:
                self.count += 1
                if self.count == self.failing:
                    raise OSError(f"{SAID}, asked for {parts[2]}")
            return really(command, *arguments, **more)

        monkeypatch.setattr(client, "send_command", send_command)

    def fail(self, number: int) -> None:
        self.count, self.failing = 0, number


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch, spark: Any) -> Calls:
    return Calls(monkeypatch, spark)


def count_rows(reader: Any, task: int) -> int:
    return task


def mapped(table: ColdTable, _: Topic) -> None:
    files = list(table.snapshot().files)
    done = table.map(count_rows, [1, 2], files_of=lambda _: files, columns=["offset"])
    assert sorted(done) == [1, 2]


def archived(table: ColdTable, topic: Topic) -> None:
    snapshot = table.snapshot()
    end = snapshot.archived_end(0)
    table.apply(archive(topic, snapshot, end + 5), snapshot)


def rewritten(table: ColdTable, _: Topic) -> None:
    snapshot = table.snapshot()
    files = tuple(snapshot.files.segments(0)[0].files)
    table.apply(
        Change((Rewrite(ORDERS_0, files[0].segment, files),), files, data_change=False), snapshot
    )


def read_all(table: ColdTable, _: Topic) -> None:
    snapshot = table.snapshot()
    end = snapshot.archived_end(0)
    assert read(table, snapshot, 0, end) == ROWS.records(ORDERS_0, 0, end)


DONE: dict[str, Callable[[Any, Topic], object]] = {
    "look": lambda table, _: table.snapshot(),
    "id": lambda table, _: table.table_id(),
    "read": read_all,
    "time": lambda table, _: table.offset_for_timestamp(table.snapshot(), 0, 1, 0),
    "newest": lambda table, _: table.max_timestamp(table.snapshot(), 0, 0),
    "map": mapped,
    "calls": lambda table, _: table.last_calls([0]),
    "settings": lambda table, topic: table.mirror(topic),
    "mirrored": lambda table, _: table.mirrored(),
    "archive": archived,
    "rewrite": rewritten,
    "vacuum": lambda table, _: table.vacuum(),
    "purge": lambda table, _: table.purge(decided=True),
}


def failures(calls: Calls, do: Callable[[], object]) -> Iterator[Exception]:
    """What `do` raises as its calls fail in turn, until it has no more of them."""
    number = 1
    while True:
        calls.fail(number)
        try:
            do()
        except Exception as error:
            yield error
        done, calls.failing = calls.count, -1
        if done < number:
            return
        number += 1


@pytest.mark.slow
@pytest.mark.parametrize("through", ["where it lies", "through Spark"])
@pytest.mark.parametrize("what", DONE)
def test_a_call_of_spark_that_fails_is_told_as_ours(
    what: str, through: str, make_named: Any, calls: Calls
) -> None:
    def opened() -> ColdTable:
        return make_named(TOPIC, directly=through == "where it lies")

    archived(opened(), TOPIC)
    archived(opened(), TOPIC)
    strange = [
        error
        for error in failures(calls, lambda: DONE[what](opened(), TOPIC))
        if not isinstance(error, LakelogError)
    ]
    assert not strange
    if what != "purge":
        read_all(opened(), TOPIC)
