"""`PathTable` against the contract of every cold table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from contract import ColdTableContract, archive_and_close, offsets, rewrite, settings
from deltalake import DeltaTable
from made_up import archive

from lakelog.base import failpoints
from lakelog.cold.answers import Orphans
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock


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

    def test_a_vacuum_finds_what_a_checkpoint_has_forgotten(self, table, make_table, topic: Topic):
        """A checkpoint has no file that was removed longer ago than the table's own retention."""
        before = archive_and_close(table, topic, 50, 100)
        table.mirror(settings(topic, 2, file_delete_delay_ms=0))
        snapshot = table.snapshot()
        table.apply(rewrite(snapshot), snapshot)
        DeltaTable(table.path).create_checkpoint()
        assert before.version < table.snapshot().version
        assert make_table().vacuum().files == 2

    def test_a_vacuum_beside_an_archiver_misses_no_file(self, table, make_table, topic: Topic):
        """What was committed after the files were listed is there, though it is not listed."""
        before = archive_and_close(table, topic, 50, 100)
        after = table.apply(rewrite(before), before).snapshot
        table.mirror(settings(topic, 2, file_delete_delay_ms=0))
        vacuuming, end = make_table(), after.archived_end(0)
        passed = []

        def meanwhile() -> None:
            if passed:
                return
            passed.append(True)
            seen = table.snapshot()
            table.apply(archive(topic, seen, end + 10), seen)

        with failpoints.armed("cold.after_list", meanwhile):
            assert vacuuming.vacuum().files == 2
        assert passed
        assert offsets(table, table.snapshot()) == list(range(end + 10))
