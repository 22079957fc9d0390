"""`PathTable` on a real S3-speaking server, against the contract of every cold table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from contract import ColdTableContract
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import MadeUpRows

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import RowsOf
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock


class TestPathTableOnS3(ColdTableContract):
    # Each example makes a table, which takes half a second here; the folder's run has the others.
    test_seeks_agree_with_a_list = settings(max_examples=5)(
        given(data=st.data())(ColdTableContract.test_seeks_agree_with_a_list.hypothesis.inner_test)
    )

    @pytest.fixture
    def make_table(self, topic: Topic, s3_storage: Storage) -> Callable[..., PathTable]:
        def make(rows_of: RowsOf = MadeUpRows(), topic: Topic = topic) -> PathTable:  # noqa: B008
            return PathTable(topic, s3_storage, InlineEngine(), rows_of, store_clock=LaterClock())

        return make

    @pytest.fixture
    def make_fresh_table(self, topic: Topic, s3_storage: Storage) -> Callable[..., PathTable]:
        """A table of its own at each call."""
        numbers = count()
        return lambda rows_of: PathTable(
            topic,
            Storage(f"{s3_storage.root}/{next(numbers)}", s3_storage.store_options),
            InlineEngine(),
            rows_of,
            store_clock=LaterClock(),
        )
