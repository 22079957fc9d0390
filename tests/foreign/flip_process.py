"""Reads a damaged file in children of its own: ``flip_process.py ROOT FILE < FLIPS``.

``FLIPS`` is JSON: places and masks. For each the byte at that place is changed, and the file is
read by all that read files. Prints, as JSON, what became of each: ``read``, ``named``, or how else
it ended.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from pathlib import Path

from lakelog.cold.parquet.file_scan import scan_file
from lakelog.cold.parquet.segment_reader import SegmentReader
from lakelog.cold.scan import ScanTask
from lakelog.cold.segment import SegmentFile
from lakelog.cold.store.storage import Storage
from lakelog.errors import ColdTierError, CorruptRecordError
from lakelog.values.record import MAX_OFFSET

RECORDS = 200
CPU_S = 60
#: A child that stands them takes a second or two.
FLIPS_OF_A_CHILD = 50
MEMORY_BYTES = 8 << 30


def read_all(root: str, path: str, size_bytes: int) -> str:
    file = SegmentFile(0, 0, path, size_bytes, RECORDS, 0, RECORDS, 0, 2**62)
    outcome = "read"
    for use in (
        lambda reader: list(reader.read([file], 0, MAX_OFFSET)),
        lambda reader: reader.first_at_or_after([file], 0, 0),
        lambda reader: reader.newest([file], 0),
        lambda reader: reader.tombstones(file),
        lambda reader: scan_file(reader, ScanTask(file)),
    ):
        try:
            use(SegmentReader(Storage(root), root))
        except CorruptRecordError as error:
            if path not in str(error):
                return f"an error without the path: {error}"
            outcome = "named"
        except ColdTierError as error:
            return f"the store is blamed: {error}"
        except BaseException as error:
            return f"{type(error).__name__}: {error}"
    return outcome


def outcomes_of(root: str, path: str, flips: list[tuple[int, int]]) -> list[str]:
    """What became of the first flips: of all, or up to the one that ended the child."""
    file = Path(root) / path
    sound = file.read_bytes()
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
        for place, mask in flips:
            damaged = bytearray(sound)
            damaged[place] ^= mask
            file.write_bytes(damaged)
            outcome = read_all(root, path, len(sound))
            os.write(writable, json.dumps(outcome[:4000]).encode() + b"\n")
        os._exit(0)
    os.close(writable)
    with os.fdopen(readable, "rb") as said:
        outcomes = [str(json.loads(line)) for line in said]
    _, status = os.waitpid(child, 0)
    file.write_bytes(sound)
    if os.WIFSIGNALED(status):
        outcomes.append(f"ended by {signal.Signals(os.WTERMSIG(status)).name}")
    return outcomes


def main(root: str, path: str) -> None:
    flips = json.load(sys.stdin)
    outcomes: list[str] = []
    while len(outcomes) < len(flips):
        outcomes += outcomes_of(root, path, flips[len(outcomes) :][:FLIPS_OF_A_CHILD])
    print(json.dumps(outcomes))


if __name__ == "__main__":
    main(*sys.argv[1:])
