"""An HTTP server that tells metrics to Prometheus, at ``/metrics``."""

from __future__ import annotations

import errno
import ipaddress

from msgspec import Struct

from ...base.metrics.every import METRICS
from ...errors import InvalidArgumentError
from .exposition import Collector, registry_of, start_http_server
from .scrapes import Scrapes


class Address(Struct, frozen=True):
    """Where to listen."""

    host: str
    port: int  # 0: a free one

    @classmethod
    def parse(cls, text: str) -> Address:
        """Reads ``HOST:PORT``, ``[::1]:PORT``, or a port alone, which is on this machine only.

        Raises:
            InvalidArgumentError: it is something else.
        """
        host, colon, port = text.rpartition(":")
        if not colon:
            host = "127.0.0.1"
        host = host.removeprefix("[").removesuffix("]")
        if not host or not port.isdecimal() or int(port) > 65_535:
            raise InvalidArgumentError(
                f"{text!r} is no place to listen: give HOST:PORT, such as 127.0.0.1:9464, or "
                "0.0.0.0:9464 for all of this machine's addresses",
                value=text,
            )
        return cls(host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class MetricsServer:
    """Listens from when it is made until it is closed; answers in threads that delay no exit.

    Raises:
        InvalidArgumentError: the address is taken, or none of this machine's.
    """

    def __init__(self, address: Address, scrapes: Scrapes) -> None:
        registry = registry_of(Collector(scrapes.measured, METRICS))
        try:
            self._server, _ = start_http_server(address.port, address.host, registry)
        except OSError as error:
            raise _cannot_listen(address, error) from error
        self.address = Address(address.host, self._server.server_port)

    def close(self) -> None:
        """Takes no more requests."""
        self._server.shutdown()
        self._server.server_close()


def _cannot_listen(address: Address, error: OSError) -> InvalidArgumentError:
    if error.errno == errno.EADDRINUSE:
        why = "something listens there already. Stop it, or give another port"
    elif error.errno in (errno.EACCES, errno.EPERM):
        why = "this user may not. Give a port above 1023"
    else:
        why = f"{error.strerror or error}. Give an address of this machine's, such as 127.0.0.1"
    return InvalidArgumentError(f"cannot listen at {address}:\n{why}", value=str(address))
