"""The messages of arrow entries, each without the stream that Arrow expects it in.

`read_record_batch` takes a message by itself, but hands each compressed buffer to a pool of
threads, and to wake them takes longer than to decompress all of an entry. A stream can be told not
to. So there are streams that never end, and the next message is laid into one of them.
"""

from __future__ import annotations

from collections import deque
from functools import cache

import pyarrow as pa

from ..values.record import PRODUCED

_BY_THIS_THREAD = pa.ipc.IpcReadOptions(use_threads=False)


def read_message(message: bytes, compressed_bytes: int) -> pa.RecordBatch:
    """The message's ``PRODUCED`` records; what is not compressed still lies in the message.

    Args:
        compressed_bytes: what its compressed buffers hold; 0: none is compressed.

    Raises:
        ArrowException, EOFError, OSError, ValueError, StopIteration: it is no such message.
    """
    if not compressed_bytes:
        return pa.ipc.read_record_batch(pa.py_buffer(message), PRODUCED)
    try:
        stream = _idle.pop()
    except IndexError:
        stream = _Endless()
    batch = stream.read(message)
    _idle.append(stream)  # not after an error, which leaves it in the middle of a message
    return batch


class _Endless:
    """A stream of messages that are given one by one."""

    def __init__(self) -> None:
        self._bytes = _Bytes(_schema())
        file = pa.PythonFile(self._bytes, "r")
        self._stream = pa.ipc.open_stream(file, options=_BY_THIS_THREAD)

    def read(self, message: bytes) -> pa.RecordBatch:
        self._bytes.left = memoryview(message)
        try:
            return self._stream.read_next_batch()
        finally:
            self._bytes.left = _NOTHING  # the batch holds what it needs


class _Bytes:
    """What a stream reads from: views, so that it copies nothing."""

    closed = False

    def __init__(self, first: bytes) -> None:
        self.left = memoryview(first)

    def read(self, size: int) -> memoryview:
        given, self.left = self.left[:size], self.left[size:]
        return given


_NOTHING = memoryview(b"")


#: Of all threads. As a thread's own they would be let go of while it ends, and Arrow crashes there.
_idle: deque[_Endless] = deque(maxlen=8)


@cache
def _schema() -> bytes:
    """What a stream of ``PRODUCED`` begins with."""
    return bytes(PRODUCED.serialize().to_pybytes())
