"""An HTTP server that tells metrics to Prometheus, at ``/metrics``."""

from __future__ import annotations

import errno
import ipaddress
import socket
import socketserver
import threading
from collections.abc import Callable, Iterable
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from msgspec import Struct

from ...base.metrics.every import METRICS
from ...errors import InvalidArgumentError
from .exposition import Collector, make_wsgi_app, registry_of
from .scrapes import Scrapes

#: Of a client that sends or takes nothing.
_CLIENT_TIMEOUT_S = 10.0


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
        collector = Collector(scrapes.measured, METRICS)
        metrics = make_wsgi_app(registry_of(collector))

        def answer(environ: dict[str, Any], start: Callable[..., Any]) -> Iterable[bytes]:
            path = environ["PATH_INFO"]
            if path == "/metrics":
                found: Iterable[bytes] = metrics(environ, start)
                return found
            said = f"failed: {scrapes.error}" if scrapes.error else "went well"
            text = f"lakelog: see /metrics\nthe last look {said}\n"
            start(
                "200 OK" if path == "/" else "404 Not Found",
                [("Content-Type", "text/plain; charset=utf-8")],
            )
            return [text.encode()]

        class Bound(_Server):
            address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET

        try:
            self._server = Bound((address.host, address.port), _Handler)
        except OSError as error:
            raise _cannot_listen(address, error) from error
        self._server.set_app(answer)
        self.address = Address(address.host, self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="lakelog-metrics-server", daemon=True
        )
        self._thread.start()

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


class _Server(socketserver.ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def server_bind(self) -> None:
        # Not HTTPServer's, which asks a name server for this machine's name.
        socketserver.TCPServer.server_bind(self)
        host, port, *_ = self.server_address
        self.server_name, self.server_port = str(host), int(port)
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a client went away."""


class _Handler(WSGIRequestHandler):
    timeout = _CLIENT_TIMEOUT_S

    def address_string(self) -> str:
        return str(self.client_address[0])

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: it is asked every few seconds."""
