"""`PathTable` against the contract of every cold table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from contract import ColdTableContract, offsets, rewrite
from made_up import archive

from lakelog.base import failpoints
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.cold.table import Orphans
from lakelog.engines.engine import InlineEngine
from lakelog.testing.later_clock import LaterClock
from lakelog.values.topic import Topic


class TestPathTable(ColdTableContract):
    @pytest.fixture
    def make_fresh_table(self, topic: Topic, tmp_path: Path) -> Callable[..., PathTable]:
        """A table of its own at each call."""
        numbers = count()
        return lambda rows_of: PathTable(
            topic,
            Storage(str(tmp_path / str(next(numbers)))),
            InlineEngine(),
            rows_of,
            store_clock=LaterClock(),
        )

    def test_a_rewrite_under_way_is_no_orphan_and_one_that_lost_its_sources_deletes_its_file(
        self, table, make_table, topic: Topic
    ):
        before = table.apply(archive(topic, table.snapshot(), 50, 100), table.snapshot()).snapshot
        other = make_table()
        seen = []

        def meanwhile() -> None:
            if not seen:  # the other one passes here too
                snapshot = other.snapshot()
                seen.append(other.remove_orphans())
                other.apply(rewrite(snapshot), snapshot)

        with failpoints.armed("cold.after_files", meanwhile):
            applied = table.apply(rewrite(before), before)

        assert seen == [Orphans()]  # its sources were active
        assert applied.superseded == {0}
        assert table.orphans() == Orphans()
        assert offsets(table, table.snapshot()) == list(range(100))
