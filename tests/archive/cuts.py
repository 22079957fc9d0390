"""Cuts the append-only file of a server, and reads what is left.

A script's effects are a transaction in the file. Cut within a command of one, Redis 7.0 shortens
the file to the command before, not to before the ``MULTI``, and appends to that: the start after
the next runs what there is of it, as if somebody had written an entry without its ``:state``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


def commands(data: bytes) -> Iterator[int]:
    """Where each command of an append-only file ends; lines of annotations are none."""
    at = 0
    while at < len(data):
        line_end = data.index(b"\r\n", at)
        if data[at : at + 1] == b"#":
            at = line_end + 2
            continue
        assert data[at : at + 1] == b"*"
        count, at = int(data[at + 1 : line_end]), line_end + 2
        for _ in range(count):
            line_end = data.index(b"\r\n", at)
            at = line_end + 2 + int(data[at + 1 : line_end]) + 2
        yield at


@dataclass
class Cuts:
    """One server whose file is cut at one place after the other, each time from the same state."""

    server: object
    kept: Path

    @classmethod
    def of(cls, server, after_size: int) -> tuple[Cuts, list[int]]:
        """Kept as it is now, and all places to cut it at from a size on: at each command's end, and
        within each.
        """
        server.stop()
        kept = server.directory / "kept"
        shutil.copytree(server.directory / "appendonlydir", kept)
        (file,) = kept.glob("*.incr.aof")
        ends = [end for end in commands(file.read_bytes()) if end >= after_size]
        return cls(server, kept), sorted({*ends, *(end - 1 for end in ends[1:])})

    @staticmethod
    def some(places: list[int], most: int | None) -> list[int]:
        """So many of them at most, spread over all; first and last are among them."""
        if most is None or len(places) <= most:
            return places
        return [places[n * (len(places) - 1) // (most - 1)] for n in range(most)]

    def start(self, size: int) -> None:
        self.server.kill()
        shutil.rmtree(self.server.directory / "appendonlydir")
        shutil.copytree(self.kept, self.server.directory / "appendonlydir")
        self.server.cut_append_only_file(to_size=size)
        self.server.start()


def values_of(log, partition=0, start=0):
    """(offset, value) of all there is, read as a reader would; each step begins where one ended."""
    found, at = [], start
    for step in log.fetches(partition, start):
        assert step.start_offset == at
        at = step.next_offset
        records = step.records
        found += zip(
            records.column("offset").to_pylist(), records.column("value").to_pylist(), strict=True
        )
    assert at == log.offsets()[partition].log_end
    return found
