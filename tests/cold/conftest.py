"""What the cold tier's tests share: a topic, tables on a folder, and rows made up from offsets."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import RowsOf
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock

sys.path.insert(0, str(Path(__file__).parent))  # contract.py and made_up.py are no test modules
pytest.register_assert_rewrite("contract")

from made_up import MadeUpRows  # noqa: E402

TOPIC = Topic("orders", UUID("11111111-2222-3333-4444-555555555555"), partitions=3)


@pytest.fixture
def topic() -> Topic:
    return TOPIC


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "cold root"  # a blank in the path, as people have them


@pytest.fixture
def make_table(root: Path) -> Callable[..., PathTable]:
    """Each call opens the same table anew, as another process would."""

    def make(rows_of: RowsOf = MadeUpRows(), topic: Topic = TOPIC) -> PathTable:  # noqa: B008
        return PathTable(
            topic, Storage(str(root)), InlineEngine(), rows_of, store_clock=LaterClock()
        )

    return make
