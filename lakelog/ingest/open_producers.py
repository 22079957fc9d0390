"""Has what open producers took sent before their log is closed, or the process ends.

A producer may be gone before its records are: its function returned, its name was bound anew. The
thread of its sender goes on until all is sent. So it is senders that are kept in mind here, for as
long as they live.

Nothing can be done for a process that is killed, or that leaves by ``os._exit``.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import time
import weakref
from collections.abc import Sequence

from ..errors import DeliveryError
from ..hot import HotLog
from .accumulator import abandoned_error
from .sender import Sender

logger = logging.getLogger(__name__)

#: How long the end of a log, or of a process, waits for what was not sent yet.
EXIT_TIMEOUT_MS = 10_000

_senders: weakref.WeakSet[Sender] = weakref.WeakSet()
_children: set[int] = set()  # this process's id, if it is multiprocessing's and is watched


def watch(sender: Sender) -> None:
    """Have its records sent before the process ends."""
    _senders.add(sender)
    # Anew with each producer, so that it runs before what stops the producer's embedded Redis.
    atexit.unregister(_end_all)
    atexit.register(_end_all)
    # A child that multiprocessing forked ends by its own exit handlers alone, before Python 3.13.
    if "multiprocessing.process" in sys.modules and os.getpid() not in _children:
        from multiprocessing import parent_process, util

        if parent_process() is not None:
            _children.add(os.getpid())
            util.Finalize(None, _end_all, exitpriority=100)


def close_all_of(hot: HotLog) -> None:
    """Takes no more records for a hot tier that is about to be closed, and sends what is there.

    Raises:
        DeliveryError: some had no answer within `EXIT_TIMEOUT_MS`.
    """
    lost = _end([one for one in tuple(_senders) if one.hot is hot], "its log is closed")
    if lost is not None:
        raise lost


def _end_all() -> None:
    lost = _end(tuple(_senders), "the process ends")
    if lost is not None:
        logger.error("%s", lost)


def _end(senders: Sequence[Sender], why: str) -> DeliveryError | None:
    """Ends them together; the error for what could not be sent in time."""
    until_s = time.monotonic() + EXIT_TIMEOUT_MS / 1000
    left = [one for one in senders if one.refuse(f"this producer is closed: {why}")]
    not_written = unknown = 0
    try:
        for one in left:
            one.flush(max(0.0, until_s - time.monotonic()))
    finally:  # an interrupt ends the waiting; what is not sent by then is told all the same
        said = f"a producer was left open, and {why}"
        for one in left:
            counts = one.abandon(said)
            not_written += counts[0]
            unknown += counts[1]
        lost = abandoned_error(said, not_written, unknown)
        if lost is not None and sys.exc_info()[0] is not None:
            logger.error("%s", lost)
    return lost
