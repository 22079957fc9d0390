"""The files of a Delta log by their names, and the checkpoint to begin with. Pure.

Source: Delta's protocol, "Delta Log Entries", "Checkpoints".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

LOG = "_delta_log"

#: The file of the log that names its newest checkpoint.
LAST_CHECKPOINT = "_last_checkpoint"

_COMMIT = re.compile(r"(\d{20})\.json", re.ASCII)
_CHECKPOINT = re.compile(
    r"(\d{20})\.checkpoint(?:\.(\d{10})\.(\d{10}))?(?:\.[0-9a-f-]{36})?\.(parquet|json)", re.ASCII
)


def commit_name(version: int) -> str:
    return f"{version:020}.json"


def checkpoint_names(version: int, parts: int | None = None) -> list[str]:
    """The files of a checkpoint that is not named by an id."""
    if parts is None:
        return [f"{version:020}.checkpoint.parquet"]
    return [
        f"{version:020}.checkpoint.{part:010}.{parts:010}.parquet" for part in range(1, parts + 1)
    ]


def commit_versions(names: Iterable[str]) -> set[int]:
    """The versions whose commits are among these files."""
    return {int(found[1]) for name in names if (found := _COMMIT.fullmatch(name))}


def newest_checkpoint(names: Iterable[str], most: int | None = None) -> tuple[int, list[str]]:
    """The version of the newest whole checkpoint, and its files; -1 and none if there is none.

    Args:
        most: the newest version that will do.
    """
    kinds: dict[tuple[int, str | None], dict[str, int | None]] = {}
    for name in names:
        found = _CHECKPOINT.fullmatch(name)
        if found and (most is None or int(found[1]) <= most):
            # Of several that are whole in themselves, any will do.
            of = found[3] if found[3] else name
            kinds.setdefault((int(found[1]), of), {})[name] = int(found[3]) if found[3] else None
    best: tuple[int, list[str]] = (-1, [])
    for (version, _), files in kinds.items():
        wanted = next(iter(files.values()))
        if (wanted is None or len(files) == wanted) and version > best[0]:
            best = version, sorted(files)
    return best
