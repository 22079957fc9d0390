"""An export of a topic, and an import of it, against copying the same files.

    python tests/benchmarks/transfer.py

The topic has a gigabyte of incompressible records, all archived, in files of 64 MB. An export reads
each file, takes its checksum, and writes it to the disk for good; so does an import, which also
compares. Beside them stands ``cp -r`` of the table's folder followed by ``sync`` of what it made.
They take turns, and each writes into a folder that is not there; the best of some rounds counts:
whatever else runs on the machine only ever adds.

Prints one Markdown table; exits with 1 when one took more than twice as long as the copy. Needs
four times the data below --dir.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from erase import told

from lakelog import Lakelog

FILES, FILE_BYTES, VALUE_BYTES = 16, 64_000_000, 1000
GOAL = 2.0


def filled(lake: Lakelog, files: int, file_bytes: int) -> int:
    """A topic of so many files; its bytes."""
    lake.topics.create("bench", 1, {"retention.ms": -1, "local.retention.ms": 0})
    count = max(1, file_bytes // VALUE_BYTES)
    for number in range(files):
        data = np.random.default_rng(number).bytes(count * VALUE_BYTES)
        edges = pa.array(np.arange(count + 1, dtype=np.int32) * VALUE_BYTES)
        values = pa.Array.from_buffers(
            pa.binary(), count, [None, edges.buffers()[1], pa.py_buffer(data)]
        )
        with lake.producer() as producer:
            producer.send_batch("bench", values)
        lake.archive("bench")
    return sum(file.size_bytes for file in lake.log("bench").table.snapshot().files)


def copied(source: Path, target: Path) -> None:
    subprocess.run(["cp", "-r", str(source), str(target)], check=True)
    files = [str(path) for path in target.rglob("*") if path.is_file()]
    subprocess.run(["sync", *files], check=True)


def taken(work: Callable[[], object]) -> float:
    began_s = time.perf_counter()
    work()
    return time.perf_counter() - began_s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--scale", type=float, default=1.0, help="of a gigabyte")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dir", type=Path, help="where all of it lies; default: a temporary one")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="lakelog-transfer-", dir=arguments.dir))
    seconds: dict[str, list[float]] = {"export": [], "export, .tar": [], "import": [], "cp": []}
    try:
        lakes = [Lakelog.embedded(directory / name, engine="inline") for name in ("log", "other")]
        lake, other = lakes
        size_bytes = filled(lake, FILES, max(1, round(FILE_BYTES * arguments.scale)))
        source = Path(lake.log("bench").table.where)
        for number in range(arguments.rounds):
            folder, tar, copy = (directory / one for one in ("export", "export.tar", "copy"))
            name = f"bench-{number}"
            seconds["export"].append(taken(partial(lake.export, folder, "bench")))
            seconds["cp"].append(taken(partial(copied, source, copy)))
            seconds["import"].append(taken(partial(other.import_topics, folder, name=name)))
            seconds["export, .tar"].append(taken(partial(lake.export, tar, "bench")))
            other.topics.delete(name)
            other.purge(name)
            shutil.rmtree(folder)
            shutil.rmtree(copy)
            tar.unlink()
        for one in lakes:
            one.close()
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    least_s = min(seconds.pop("cp"))
    rows = [
        {
            "measure": what,
            "MB": round(size_bytes / 1e6),
            "files": FILES,
            "seconds": f"{min(took):.2f}",
            "cp -r and sync, s": f"{least_s:.2f}",
            "ratio": f"{min(took) / least_s:.2f}",
            "goal": GOAL,
            "holds": min(took) <= GOAL * least_s,
        }
        for what, took in seconds.items()
    ]
    return told(rows)


if __name__ == "__main__":
    sys.exit(main())
