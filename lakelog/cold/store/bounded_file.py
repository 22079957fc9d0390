"""Writing to a store that is slow to answer, in bounded memory."""

from __future__ import annotations

from typing import Any

from ...values.config import MIB

#: After so much, what was sent is waited for: Arrow keeps each part (10 MiB) until the store has
#: taken it, however many these are, but its threads send no more than eight at a time.
SENT_BYTES = 80 * MIB


class BoundedFile:
    """A file of an object store, of which no more than `SENT_BYTES` wait for the store's answers.

    Args:
        out: `pa.NativeFile`, open for writing; it is closed with this one.
    """

    def __init__(self, out: Any) -> None:
        self._out = out
        self._sent_bytes = 0  # since the store was waited for

    def write(self, data: Any) -> int:
        content = bytes(data)  # a buffer that is given may be used again
        size_bytes = len(content)
        self._out.write(content)
        self._sent_bytes += size_bytes
        if self._sent_bytes >= SENT_BYTES:
            self._out.flush()
            self._sent_bytes = 0
        return size_bytes

    def close(self) -> None:
        """Return once the store has all of it."""
        self._out.close()
