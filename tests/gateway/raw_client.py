"""A client that sends what it is told to, byte by byte."""

from __future__ import annotations

import socket
import ssl
import struct
from types import TracebackType
from typing import Any

from lakelog.base.address import Address
from lakelog.gateway.protocol.wire import API, ApiMessage

TIMEOUT_S = 30.0
_KEYS = {api.request: key for key, api in API.items()}


def frame(request: ApiMessage, version: int, client_id: bytes = b"raw") -> bytes:
    """A request in its frame."""
    key = _KEYS[type(request)]
    tags = b"\0" if API[key].is_flexible(version) else b""
    header = struct.pack(">hhih", key, version, 7, len(client_id)) + client_id + tags
    return framed(header + request.encode(version))


def framed(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


class RawClient:
    """One connection to a gateway.

    Args:
        tls: what TLS is agreed on by; None: none is.
    """

    def __init__(self, bootstrap_servers: str, tls: ssl.SSLContext | None = None) -> None:
        where = Address.parse(bootstrap_servers)
        self.socket: Any = socket.create_connection((where.host, where.port), TIMEOUT_S)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=where.host)

    def __enter__(self) -> RawClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def ask(self, request: ApiMessage, version: int) -> Any:
        """What a request is answered."""
        self.send(frame(request, version))
        api = API[_KEYS[type(request)]]
        answer = self.answer()
        has_tags = api.is_flexible(version) and api.name != "ApiVersions"
        return api.response.decode(version, answer, 5 if has_tags else 4)

    def answer(self) -> bytes:
        """The next frame, without its length."""
        (length,) = struct.unpack(">i", self._exactly(4))
        return self._exactly(length)

    def is_closed(self) -> bool:
        """Whether the gateway has closed it; waits for that, or for something else to come."""
        try:
            return self.socket.recv(1) == b""
        except (ConnectionError, ssl.SSLError):
            return True

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            part = self.socket.recv(count - len(data))
            if not part:
                raise ConnectionError(f"closed after {len(data)} of {count} bytes")
            data += part
        return data
