"""Who works on logs by name in a process of its own, with a Spark of its own, and is held up.

``named_paused.py JSON``, with ``conf`` of the session. Each line that comes in is JSON too: ``url``
of Redis, ``schema``, and ``folder``, where its tables lie in Spark's own catalog; ``topic``, and
``mode``, what to do. For each, one line goes out: `DONE`, and what went wrong.
"""

from __future__ import annotations

import json
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))

from named_process import register
from paused import Party, work

from lakelog.archive.copy import HotRows
from lakelog.cold.by_name.named_table import NamedTable
from lakelog.hot.hot_log import HotSource
from lakelog.spark import session
from lakelog.spark.place import NamedRoot

DONE = "done:"


@dataclass
class NamedParty(Party):
    """As `Party`; its root is a schema of Spark's catalog."""

    spark: Any

    def opened_table(self) -> NamedTable:
        root = NamedRoot(self.root, lambda: self.spark)
        rows_of = HotRows(HotSource(self.url))
        return root.table(self.topic, rows_of, newest_config=lambda: self.renewed().config_version)


def main(text: str) -> None:
    conf = json.loads(text)["conf"]
    spark = session("lakelog-paused", cores=2, object_stores=["s3"], conf=conf)
    for line in sys.stdin:
        wanted = json.loads(line)
        error = ""
        try:
            register(spark, wanted["schema"], Path(wanted["folder"]))
            party = NamedParty(wanted["url"], wanted["schema"], wanted["topic"], spark)
            work(party, wanted["mode"])
            party.close()
        except Exception:
            error = traceback.format_exc()
        print(DONE, json.dumps(error), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
