"""How a gateway listens, and what it lets clients take."""

from __future__ import annotations

from msgspec import Struct

from ..base.address import Address
from ..errors import InvalidArgumentError
from ..values.config import MIB

DEFAULT_PORT = 9092

_ABOVE_ZERO = ("max_connections", "max_request_bytes", "max_memory_bytes", "threads", "partitions")


class GatewaySettings(Struct, frozen=True):
    """Of one process."""

    listen: Address = Address("127.0.0.1", DEFAULT_PORT)
    #: What clients are told to connect to; None: where it listens.
    advertise: Address | None = None
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

    def __post_init__(self) -> None:
        if not self.listen.is_loopback:
            raise InvalidArgumentError(
                f"whoever reaches {self.listen.host} could read and write every topic, without a "
                "password: listen at 127.0.0.1, and have clients on other machines come through a "
                "tunnel that knows them (ssh -L, stunnel)"
            )
        for name in _ABOVE_ZERO:
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name}={getattr(self, name)!r} is not above 0")
