"""Several processes make the same table at the same moment: it is made once.

delta-rs puts the commit of whoever comes second behind the first one, so that the table has another
id, which Redis does not know as the topic's: nobody could archive it any more.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import Barrier

from made_up import MadeUpRows, archive

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.errors import LakelogError
from lakelog.jobs.status_rows import RunKey
from lakelog.values.topic import Topic
from tests.jobs.status_contract import at_path, rows_of

MAKERS = 4
TRIES = 5


def metadata_actions(log: Path) -> int:
    """How often a table's log says what its id is."""
    lines = [line for one in log.glob("*.json") for line in one.read_text().splitlines()]
    return sum("metaData" in json.loads(line) for line in lines)


def at_once(work: Callable[[], object]) -> None:
    barrier = Barrier(MAKERS)

    def one(_: int) -> None:
        barrier.wait()
        with suppress(LakelogError):
            work()

    with ThreadPoolExecutor(MAKERS) as pool:
        list(pool.map(one, range(MAKERS)))


def test_a_topics_table(topic: Topic, root: Path) -> None:
    for number in range(TRIES):
        place = root / str(number)

        def work(place: Path = place) -> None:
            table = PathTable(topic, Storage(str(place)), InlineEngine(), MadeUpRows())
            before = table.snapshot()
            table.apply(archive(topic, before, 10), before)

        at_once(work)
        (log,) = place.rglob("_delta_log")
        assert metadata_actions(log) == 1


def test_a_table_under_the_root(tmp_path: Path) -> None:
    for number in range(TRIES):
        place = tmp_path / str(number)

        def work(place: Path = place) -> None:
            key = RunKey("archive", "run")
            at_path(Storage(str(place))).append(rows_of(key, "orders"), key)

        at_once(work)
        (log,) = place.rglob("_delta_log")
        assert metadata_actions(log) == 1
