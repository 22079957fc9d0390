"""The least client: a request of any version, and what comes back."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.wire import API, ApiMessage

_API_VERSIONS = 18


class RawClient:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._number = 0

    def send(self, request: ApiMessage, version: int) -> int:
        """Sends it; returns its correlation id."""
        self._number += 1
        key = next(key for key, api in API.items() if isinstance(request, api.request))
        header = struct.pack(">hhih4s", key, version, self._number, 4, b"test")
        tags = b"\0" if API[key].is_flexible(version) else b""
        frame = header + tags + request.encode(version)
        self.connection.sendall(struct.pack(">i", len(frame)) + frame)
        return self._number

    def take(self, request: type[ApiMessage], version: int) -> tuple[int, Any]:
        """The next answer, to a request of that kind, behind its correlation id."""
        key = next(key for key, api in API.items() if api.request is request)
        (length,) = struct.unpack(">i", self._bytes(4))
        frame = self._bytes(length)
        has_tags = API[key].is_flexible(version) and key != _API_VERSIONS
        (number,) = struct.unpack_from(">i", frame)
        return number, API[key].response.decode(version, frame, 5 if has_tags else 4)

    def ask(self, request: ApiMessage, version: int) -> Any:
        """What it answers."""
        sent = self.send(request, version)
        number, response = self.take(type(request), version)
        assert number == sent
        return response

    def is_closed(self) -> bool:
        """Whether the gateway ends the connection, which it does soon or never."""
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True

    def _bytes(self, count: int) -> bytes:
        found = b""
        while len(found) < count:
            part = self.connection.recv(count - len(found))
            if not part:
                raise ConnectionError(f"closed after {len(found)} of {count} bytes")
            found += part
        return found


@contextmanager
def connected(gateway: Gateway) -> Iterator[RawClient]:
    """A client of a gateway."""
    host, _, port = gateway.bootstrap_servers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        yield RawClient(connection)
