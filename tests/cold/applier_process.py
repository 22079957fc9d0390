"""A process of its own that archives made-up records, for races.

``applier_process.py ROOT TOPIC_ID PARTITION END STEP``: partition by partition up to END in steps.
"""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent))

from made_up import MadeUpRows, archive

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.values.topic import Topic


def main(root: str, topic_id: str, partition: int, end: int, step: int) -> None:
    topic = Topic("orders", UUID(topic_id), 3)
    table = PathTable(topic, Storage(root), InlineEngine(), MadeUpRows())
    snapshot = table.snapshot()
    while (at := snapshot.archived_end(partition)) < end:
        change = archive(topic, snapshot, min(at + step, end), partition=partition)
        snapshot = table.apply(change, snapshot).snapshot


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
