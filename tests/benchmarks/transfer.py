"""An export of a topic, and an import of it, against copying the same files.

The topic has a gigabyte of incompressible records, all archived, in files of 64 MB. An export reads
each file, takes its checksum, and writes it to the disk for good; so does an import, which also
compares. Both are measured as a folder and as a ``.tar``. Beside them stands ``cp -r`` of the
table's folder followed by ``sync`` of what it made. Each writes into a folder that is not there.
Needs five times the data on the disk.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from lakelog import Lakelog

from .bench import Bench, timed
from .made_records import fixed
from .measures import OURS, SECONDS, Goal, Row

FILES, FILE_BYTES, VALUE_BYTES = 16, 64_000_000, 1000
COPY = "`cp -r` and `sync` of the files"
GOAL = 2.0  # times the copy
WAYS = ("export as a folder", "export as a .tar", "import of the folder", "import of the .tar")


def rows(bench: Bench) -> Iterator[Row]:
    folder = bench.new_folder()
    with (
        Lakelog.embedded(folder / "log", engine="inline") as lake,
        Lakelog.embedded(folder / "other", engine="inline") as other,
    ):
        size_bytes = filled(lake, bench.scaled(FILE_BYTES))
        found = bench.repeated(lambda: seconds(lake, other, folder))
    of = f"of a topic of {size_bytes / 1e6:,.0f} MB in {FILES} files"
    for way in WAYS:
        samples = {OURS: found[way], COPY: found[COPY]}
        yield Row(f"{way}, {of}", SECONDS, samples, (Goal(1 / GOAL, COPY),))


def filled(lake: Lakelog, file_bytes: int) -> int:
    """A topic of `FILES`; its bytes."""
    lake.topics.create("bench", 1, {"retention.ms": -1, "local.retention.ms": 0})
    count = max(1, file_bytes // VALUE_BYTES)
    for number in range(FILES):
        data = np.random.default_rng(number).bytes(count * VALUE_BYTES)
        with lake.producer() as producer:
            producer.send_batch("bench", pa.table({"value": fixed(data, count, VALUE_BYTES)}))
        lake.archive("bench")
    table = lake.log("bench").table
    assert table is not None
    return sum(file.size_bytes for file in table.snapshot().files)


def seconds(lake: Lakelog, other: Lakelog, folder: Path) -> dict[str, float]:
    exported, tar, copy = (folder / one for one in ("export", "export.tar", "copy"))
    table = lake.log("bench").table
    assert table is not None
    found = {
        "export as a folder": timed(partial(lake.export, exported, "bench")),
        COPY: timed(lambda: copied(Path(table.where), copy)),
        "import of the folder": timed(partial(other.import_topics, exported, name="imported")),
        "export as a .tar": timed(partial(lake.export, tar, "bench")),
    }
    remove(other, "imported")
    found["import of the .tar"] = timed(partial(other.import_topics, tar, name="unpacked"))
    remove(other, "unpacked")
    shutil.rmtree(exported)
    shutil.rmtree(copy)
    tar.unlink()
    return found


def remove(lake: Lakelog, topic: str) -> None:
    lake.topics.delete(topic)
    lake.purge(topic)


def copied(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    files = [str(path) for path in target.rglob("*") if path.is_file()]
    subprocess.run(["sync", *files], check=True)
