"""Which process delta-rs runs in: its threads do not survive a fork."""

from __future__ import annotations

import os

from ...errors import ForkedProcessError

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
