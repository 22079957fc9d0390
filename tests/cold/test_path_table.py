"""`PathTable` against the contract of every cold table."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest
from contract import ColdTableContract

from lakelog.cold.path_table import PathTable
from lakelog.cold.storage import Storage
from lakelog.engine import InlineEngine
from lakelog.topic import Topic


class TestPathTable(ColdTableContract):
    @pytest.fixture
    def make_fresh_table(self, topic: Topic, tmp_path: Path) -> Callable[..., PathTable]:
        """A table of its own at each call."""
        numbers = count()
        return lambda rows_of: PathTable(
            topic, Storage(str(tmp_path / str(next(numbers)))), InlineEngine(), rows_of
        )
