"""Reading the answer to XRANGE: large messages go from the socket straight to where they stay.

hiredis collects a reply in a buffer of its own and then makes bytes of it. Of entries of 256 KiB,
these copies and the fresh memory took as long as all else that reading them takes. So the messages
of large arrow entries are received here. Everything else is hiredis's: from the first entry on that
is none of those, it is given what was received, and reads on.

Source: Redis serialization protocol, "Arrays" and "Bulk strings".
"""

from __future__ import annotations

from collections import deque
from typing import Any

import pyarrow as pa
from redis import exceptions

from ..codec.decoded_size import MESSAGE_FIELD
from ..values.config import KIB

#: A smaller message is read sooner by hiredis, as its fields take as many calls here.
LARGE_BYTES = 16 * KIB

_RECEIVED_BYTES = 64 * KIB

#: With a message comes no more than what stands around the next one: what lies in it is copied.
_AROUND_BYTES = 512

#: A longer field is none that lakelog writes beside a message.
_MOST_FIELD_BYTES = 64


def read_entries(connection: Any) -> Any:
    """The reply to an XRANGE that was sent, as redis-py gives it.

    The message of a large arrow entry is a `pa.Buffer` instead of bytes. What was received of later
    replies is left to the connection.

    Args:
        connection: redis-py's; no other reply is to come before this one.

    Raises:
        RedisError, OSError: as ``connection.read_response``.
    """
    reader = _reader(connection)
    if reader is None:
        return connection.read_response()
    received = _idle.pop() if _idle else _Received()
    received.begin(connection._sock)
    entries = _entries(connection, reader, received)
    _idle.append(received)  # not after an error: who sees that may still look at what came
    return entries


def _reader(connection: Any) -> Any:
    """hiredis's, if it has nothing that is still to be read; None: another one reads."""
    reader: Any = getattr(getattr(connection, "_parser", None), "_reader", None)
    if not hasattr(reader, "feed") or connection.encoder.decode_responses:
        return None
    return None if reader.has_data() else reader


def _entries(connection: Any, reader: Any, received: _Received) -> Any:
    count = received.number(b"*")
    if count is None:
        reader.feed(received.taken_back())
        return connection.read_response()
    entries: list[list[Any]] = []
    while len(entries) < count:
        received.keep()
        head = _head(received)
        if head is None:
            reader.feed(b"*%d\r\n" % (count - len(entries)))
            reader.feed(received.taken_back())
            return entries + connection.read_response()
        entry_id, others, length = head
        fields = [MESSAGE_FIELD, received.message(length)]
        received.keep()
        found = [received.field() for _ in range(others)]
        if None in found:
            reader.feed(b"*%d\r\n" % others)
            reader.feed(received.taken_back())
            entries.append([entry_id, fields + connection.read_response()])
            return entries + [connection.read_response() for _ in range(count - len(entries))]
        entries.append([entry_id, fields + found])
    received.keep()
    reader.feed(received.taken_back())
    return entries


def _head(received: _Received) -> tuple[bytes, int, int] | None:
    """The next entry's id, how many names and values follow its message, and the message's length.

    Returns:
        None: the entry is no large one, or not lakelog's.
    """
    if received.number(b"*") != 2 or (entry_id := received.field()) is None:
        return None
    fields = received.number(b"*")
    if fields is None or fields < 2 or received.field() != MESSAGE_FIELD:
        return None
    length = received.number(b"$")
    return None if length is None or length < LARGE_BYTES else (entry_id, fields - 2, length)


class _Received:
    """What was received: nothing is waited for that the protocol does not promise."""

    def __init__(self) -> None:
        self._bytes = bytearray(_RECEIVED_BYTES)
        self._view = memoryview(self._bytes)
        self._socket: Any = None
        self._kept = self._at = self._end = 0

    def begin(self, socket: Any) -> None:
        """Read the next reply."""
        self._socket = socket
        self._kept = self._at = self._end = 0

    def keep(self) -> None:
        """What was read so far is done with."""
        self._kept = self._at

    def taken_back(self) -> bytes:
        """All that was received since `keep`."""
        return bytes(self._view[self._kept : self._end])

    def number(self, kind: bytes) -> int | None:
        """Read a line of this kind; None: it is of another one."""
        self._await(1)
        if self._bytes[self._at] != kind[0]:
            return None
        while (line_end := self._bytes.find(b"\r\n", self._at, self._end)) < 0:
            self._await(self._end - self._at + 1)
        number = self._bytes[self._at + 1 : line_end]
        self._at = line_end + 2
        return int(number) if number.isdigit() else None

    def field(self) -> bytes | None:
        """Read a short name or value; None: it is no short one."""
        length = self.number(b"$")
        if length is None or length > _MOST_FIELD_BYTES:
            return None
        self._await(length + 2)
        start, self._at = self._at, self._at + length + 2
        return bytes(self._view[start : start + length])

    def message(self, length: int) -> pa.Buffer:
        """Read so many bytes, and the end of their line."""
        message = pa.allocate_buffer(length)
        into = memoryview(message).cast("B")
        done = min(length, self._end - self._at)
        into[:done] = self._view[self._at : self._at + done]
        self._at += done
        while done < length:
            done += self._receive(into[done:])
        self._await(2)
        self._at += 2
        return message

    def _await(self, count: int) -> None:
        """Receive until so many bytes are there."""
        missing = count - (self._end - self._at)
        if missing <= 0:
            return
        if self._end + max(missing, _AROUND_BYTES) > len(self._bytes):
            held = self._bytes[self._kept : self._end]
            self._bytes[: len(held)] = held
            self._at, self._end, self._kept = self._at - self._kept, len(held), 0
        first = not self._end
        while self._end - self._at < count:
            most = len(self._bytes) if first else _AROUND_BYTES
            self._end += self._receive(self._view[self._end : self._end + most])

    def _receive(self, into: memoryview) -> int:
        count = int(self._socket.recv_into(into))
        if not count:
            raise exceptions.ConnectionError("Connection closed by server.")
        return count


#: Of all threads.
_idle: deque[_Received] = deque(maxlen=8)
