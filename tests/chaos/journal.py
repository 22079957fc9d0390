"""What a process did and saw, a line each, there as soon as it is written down."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """Appends lines to a file: ``[kind, monotonic seconds, …]``.

    Each is one write to the kernel, so a process that is killed leaves all it wrote, and at most a
    torn last line. The monotonic clock is the machine's: times of different journals compare.
    """

    def __init__(self, file: Path) -> None:
        file.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def write(self, kind: str, *fields: Any) -> None:
        line = json.dumps([kind, round(time.monotonic(), 4), *fields], separators=(",", ":"))
        # The newline first too: a line torn by a kill must not swallow the next session's first.
        os.write(self._file, f"\n{line}\n".encode())


def read_journal(file: Path) -> Iterator[list[Any]]:
    """The lines of a journal; torn ones are left out. Nothing if it does not exist."""
    if not file.exists():
        return
    with file.open("rb") as lines:
        for line in lines:
            if line.strip():
                try:
                    yield json.loads(line)
                except ValueError:
                    continue
