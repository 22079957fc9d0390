"""What runs Delta in this process: which delta-rs, and whose, as its threads survive no fork."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from importlib import metadata

from ...errors import ColdTierRefusedError, ForkedProcessError

#: 1.6.4 is the first deltalake whose commits carry removals and txn versions together: older ones
#: silently drop the registers. 1.6.4 and 1.6.5 were withdrawn by their makers.
DELTALAKE_FLOOR = (1, 6, 6)

_pid: int | None = None  # of the process that used it first


def check_not_forked() -> None:
    """Note that this process uses delta-rs, which must not be the fork of one that did.

    There it would end in a panic, which is no `Exception`.

    Raises:
        ForkedProcessError: it is.
    """
    global _pid
    pid = os.getpid()
    if _pid is None:
        _pid = pid
    elif _pid != pid:
        raise ForkedProcessError(
            f"process {pid} was forked from {_pid}, which has used Delta tables, and cannot use "
            "them itself. Start processes with multiprocessing.get_context('spawn') (or "
            "'forkserver'), or fork before the first table is used"
        )


def check_deltalake(version: str | None = None) -> None:
    """Refuse a deltalake that would lose registers.

    Args:
        version: default: that of the one which is installed.

    Raises:
        ColdTierError: it is older than `DELTALAKE_FLOOR`.
    """
    version = _deltalake_version() if version is None else version
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:3])
    if numbers < DELTALAKE_FLOOR:
        floor = ".".join(map(str, DELTALAKE_FLOOR))
        raise ColdTierRefusedError(
            f"deltalake {version} is too old: its commits drop what lakelog needs in them. "
            f"pip install 'deltalake>={floor}'",
        )


@lru_cache(maxsize=1)
def _deltalake_version() -> str:
    """As its wheel says, without importing it: what is hot alone does without delta-rs."""
    return metadata.version("deltalake")
