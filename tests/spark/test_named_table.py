"""`NamedTable` against the contract of every cold table, in Spark's own catalog."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlparse
from uuid import UUID

import pytest
from contract import ColdTableContract
from hypothesis import settings
from spark_log import SPARKS_OWN

from lakelog.cold.by_name.named_table import NamedTable
from lakelog.values.topic import Topic

TOPIC = Topic("orders", UUID("11111111-2222-3333-4444-555555555555"), partitions=3)


@pytest.mark.slow
class TestNamedTable(ColdTableContract):
    dry_vacuum_tells_bytes = False
    knows_file_sizes = False
    #: What takes longest over Spark's jobs; a table at a path keeps the same rules each time.
    slow_rules = frozenset(
        {
            "test_vacuum_deletes_what_was_removed_longer_ago_than_the_retention",
            "test_a_vacuum_keeps_what_files_were_made_of_that_somebody_deleted",
            "test_seeks_agree_with_a_list",
            "test_an_older_config_version_never_comes_back",
            "test_changed_settings_are_a_commit_and_the_same_ones_are_not",
            "test_cleaning_and_reserving_leave_what_producers_had_sent",
            "test_what_producers_had_sent_last_moves_with_the_archived_end",
            "test_a_rewrite_that_loses_its_sources_meanwhile_is_superseded",
            "test_no_two_reserve_the_same_offsets",
            "test_what_began_with_few_offsets_reserves_as_many_again",
            "test_who_reserves_while_another_does_gets_what_follows",
            "test_what_does_not_land_tells_nothing_of_producers",
            "test_a_file_that_took_anothers_place_meanwhile_is_not_missing",
        }
    )

    @pytest.fixture(autouse=True)
    def _of_catalog(self, catalog: str) -> None:
        self.can_vacuum = catalog == SPARKS_OWN

    def delete(self, table: NamedTable, path: str) -> None:
        """See `ColdTableContract.delete`."""
        detail = table.spark.sql(f"DESCRIBE DETAIL {table.name}").collect()[0]
        Path(urlparse(detail.location).path, path).unlink()

    @pytest.fixture
    def topic(self) -> Topic:
        return TOPIC

    @pytest.fixture
    def make_table(self, make_named: Callable[..., NamedTable]) -> Callable[..., NamedTable]:
        """Each call opens the same table anew, as another process would."""

        def make(*rows_of: Any, topic: Topic = TOPIC) -> NamedTable:
            return make_named(topic, *rows_of)

        return make

    @pytest.fixture
    def make_fresh_table(self, make_named: Callable[..., NamedTable]) -> Callable[..., NamedTable]:
        """A table of its own at each call."""
        numbers = count()
        return lambda rows_of: make_named(TOPIC, rows_of, table=f"orders_{next(numbers)}")

    # Each example is a dozen Spark jobs.
    test_seeks_agree_with_a_list = settings(max_examples=4)(
        ColdTableContract.test_seeks_agree_with_a_list
    )


@pytest.mark.slow
class TestThroughSpark(TestNamedTable):
    """Where a table cannot be read where it lies."""

    shows_files = False

    @pytest.fixture(autouse=True)
    def _through_spark(self, through_spark: None) -> None:
        pass
