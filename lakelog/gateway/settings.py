"""How a gateway listens, and what it lets clients take."""

from __future__ import annotations

import uuid

from msgspec import Struct, field

from ..errors import InvalidArgumentError
from ..values.config import MIB

DEFAULT_PORT = 9092
#: Addresses that only this machine reaches.
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


class GatewaySettings(Struct, frozen=True):
    """Of one process."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT  # 0: one that is free
    #: ``HOST:PORT`` that clients are told to connect to; None: where it listens.
    advertise: tuple[str, int] | None = None
    node_id: int = 1  # equal in processes that share an address
    max_connections: int = 2_000
    #: Kafka's ``socket.request.max.bytes``.
    max_request_bytes: int = 100 * MIB
    #: What requests and responses under way may take together.
    max_memory_bytes: int = 512 * MIB
    #: Kafka's ``connections.max.idle.ms``.
    max_idle_s: float = 600.0
    #: Kafka's ``auto.create.topics.enable``, which its brokers have on.
    creates_topics: bool = False
    #: Of topics that a client makes without saying: Kafka's ``num.partitions``.
    partitions: int = 1
    #: Threads that ask Redis and the cold tier for what is rare.
    threads: int = 64
    #: Of this process among those that share an address.
    process_id: str = field(default_factory=lambda: uuid.uuid4().hex[:8])

    def __post_init__(self) -> None:
        if not 0 <= self.port < 65_536:
            raise InvalidArgumentError(
                f"port {self.port} is none: give 1..65535, or 0 for one that is free"
            )
        for name in ("max_connections", "max_request_bytes", "max_memory_bytes", "threads"):
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name}={getattr(self, name)!r} is not above 0")

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine reaches it."""
        return self.host in _LOOPBACK


def parse_address(text: str, default_port: int = DEFAULT_PORT) -> tuple[str, int]:
    """``HOST:PORT``, ``HOST`` or ``:PORT``; an IPv6 address in brackets.

    Raises:
        InvalidArgumentError: it is neither.
    """
    host, colon, port = text.rpartition(":")
    if not colon or (host.count(":") and not host.endswith("]")):
        host, port = text, str(default_port)
    if not port.isdecimal() or int(port) >= 65_536:
        raise InvalidArgumentError(
            f"{text!r} is no address: write HOST:PORT, such as 127.0.0.1:{default_port}"
        )
    return host.strip("[]") or "127.0.0.1", int(port)
