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


def frame(
    request: ApiMessage, version: int, client_id: bytes = b"raw", correlation_id: int = 7
) -> bytes:
    """A request in its frame."""
    key = _KEYS[type(request)]
    tags = b"\0" if API[key].is_flexible(version) else b""
    header = struct.pack(">hhih", key, version, correlation_id, len(client_id)) + client_id + tags
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
        self._begun = 0
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
        begun = self.begin(request, version)
        correlation_id, response = self.take(type(request), version)
        assert correlation_id == begun
        return response

    def begin(self, request: ApiMessage, version: int) -> int:
        """Sends a request, and waits for nothing; its correlation id."""
        self._begun += 1
        self.send(frame(request, version, correlation_id=self._begun))
        return self._begun

    def take(self, request: type[ApiMessage], version: int) -> tuple[int, Any]:
        """The next answer, to a request of that kind, behind its correlation id."""
        api = API[_KEYS[request]]
        answer = self.answer()
        has_tags = api.is_flexible(version) and api.name != "ApiVersions"
        (correlation_id,) = struct.unpack_from(">i", answer)
        return correlation_id, api.response.decode(version, answer, 5 if has_tags else 4)

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
