"""Writing to a store that is slow to answer: not waited for here, and in bounded memory."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import Any

import pyarrow as pa

from ...engines.workers import Workers
from ...values.config import MIB

#: So much waits to be written; whoever gives more waits, too.
HELD_BYTES = 8 * MIB

#: After so much, what was sent is waited for: Arrow keeps each part (10 MiB) until the store has
#: taken it, however many these are, but its threads send no more than eight at a time.
SENT_BYTES = 80 * MIB


class WriteBehind:
    """A file whose bytes go to an object store in a thread of its own, in their order.

    What that raises is raised by a later call, `close` at the latest. However slowly the store
    answers, no more than `HELD_BYTES` wait here and `SENT_BYTES` for the store's answers.

    Args:
        out: `pa.NativeFile`, open for writing; it is closed with this one.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._held_bytes = 0
        self._given_bytes = 0
        self._is_closed = False  # nothing more is given
        self._has_failed = False
        workers = Workers("lakelog-write-behind")
        self._written = workers.ask(self._write)
        workers.end()

    def write(self, data: Any) -> int:
        content = bytes(data)  # a buffer of Arrow's may be used again
        with self._changed:
            while self._held_bytes >= HELD_BYTES and not self._has_failed:
                self._changed.wait()
            self._waiting.append(content)
            self._held_bytes += len(content)
            self._given_bytes += len(content)
            self._changed.notify_all()
        if self._has_failed:
            self._written.result()
        return len(content)

    def tell(self) -> int:
        return self._given_bytes

    def close(self) -> None:
        """Return once the store has all of it."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._written.result()

    def _write(self) -> None:
        try:
            sent_bytes = 0  # since the store was waited for
            while (content := self._following()) is not None:
                self._out.write(content)
                sent_bytes += len(content)
                if sent_bytes >= SENT_BYTES:
                    self._out.flush()
                    sent_bytes = 0
            self._out.close()
        except BaseException:
            with self._changed:
                self._has_failed = True
                self._changed.notify_all()
            with suppress(OSError, pa.ArrowException):  # the first error says more
                self._out.close()
            raise

    def _following(self) -> bytes | None:
        """What is to be written next; None: the end."""
        with self._changed:
            while not self._waiting and not self._is_closed:
                self._changed.wait()
            if not self._waiting:
                return None
            content = self._waiting.popleft()
            self._held_bytes -= len(content)
            self._changed.notify_all()
            return content
