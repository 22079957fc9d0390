"""A process of its own that makes all files of partition 0 one, for crashes.

``rewriter_process.py ROOT TOPIC_ID``
"""

from __future__ import annotations

import sys
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).parent))

from contract import rewrite
from made_up import MadeUpRows

from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.topic import Topic


def main(root: str, topic_id: str) -> None:
    topic = Topic("orders", UUID(topic_id), 3)
    table = PathTable(topic, Storage(root), InlineEngine(), MadeUpRows())
    snapshot = table.snapshot()
    table.apply(rewrite(snapshot), snapshot)


if __name__ == "__main__":
    main(*sys.argv[1:])
