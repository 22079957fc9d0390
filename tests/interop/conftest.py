"""One cold table with everything in it that a reader could get wrong, and what its rows are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # archived_topic.py is no test module

from archived_topic import TOPIC, ArchivedTopic, made_up

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.properties import CHECKPOINT_INTERVAL
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine


@pytest.fixture(scope="session")
def archived(tmp_path_factory: pytest.TempPathFactory) -> ArchivedTopic:
    """A table at a path, with a checkpoint; tests only read it."""
    storage = Storage(str(tmp_path_factory.mktemp("interop")))
    table = PathTable(TOPIC, storage, InlineEngine(), made_up)
    return ArchivedTopic(table, Path(table.path), CHECKPOINT_INTERVAL)
