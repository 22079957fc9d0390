"""How a gateway listens, and what it lets clients take."""

from __future__ import annotations

from msgspec import Struct

from ..base.address import Address
from ..errors import InvalidArgumentError
from ..values.config import MIB
from .sasl import MECHANISMS

DEFAULT_PORT = 9092

_ABOVE_ZERO = ("max_connections", "max_request_bytes", "max_memory_bytes", "threads", "partitions")


class GatewaySettings(Struct, frozen=True):
    """Of one process."""

    listen: Address = Address("127.0.0.1", DEFAULT_PORT)
    #: What clients are told to connect to; None: where it listens.
    advertise: Address | None = None
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
    #: A file in PEM: the certificate that is shown, with those it was signed by. None: no TLS.
    tls_cert: str | None = None
    #: A file in PEM; None: the key stands with the certificate.
    tls_key: str | None = None
    #: Where the password of the key is; see `secret_reference`.
    tls_key_password_ref: str | None = None
    #: A file in PEM: who signs the certificates that clients have to show. None: they need none.
    tls_client_ca: str | None = None
    #: Kafka's ``sasl.enabled.mechanisms``. Empty: nobody is asked who they are.
    sasl_mechanisms: tuple[str, ...] = ()
    #: Whether passwords and records may come from other machines without TLS.
    allows_plaintext: bool = False

    def __post_init__(self) -> None:
        unknown = [one for one in self.sasl_mechanisms if one not in MECHANISMS]
        if unknown:
            raise InvalidArgumentError(
                f"{', '.join(map(repr, unknown))} is no SASL mechanism that there is here: "
                f"{', '.join(MECHANISMS)} are"
            )
        if self.tls_cert is None and (self.tls_key or self.tls_client_ca):
            raise InvalidArgumentError(
                "a key or an authority of clients is named, but no certificate, so there would be "
                "no TLS: give tls_cert (--tls-cert), too"
            )
        if not self.listen.is_loopback:
            self._check_guarded()
        told = self.advertise or self.listen
        if told.is_every:
            raise InvalidArgumentError(
                f"clients would be told to connect to {told}, which is no address of a machine: "
                "give the one by which they reach this one, as advertise (--advertise HOST:PORT)"
            )
        for name in _ABOVE_ZERO:
            if getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name}={getattr(self, name)!r} is not above 0")

    def _check_guarded(self) -> None:
        """Refuses to let in anybody who reaches this machine, or to be told secrets in clear."""
        host = self.listen.host
        if not self.sasl_mechanisms and self.tls_client_ca is None:
            raise InvalidArgumentError(
                f"whoever reaches {host} could read and write every topic, without a password: "
                "have clients say who they are, by sasl_mechanisms (--sasl) or by certificates of "
                "their own (--tls-client-ca), or listen at 127.0.0.1"
            )
        if self.tls_cert is None and not self.allows_plaintext:
            raise InvalidArgumentError(
                f"passwords and records would come to {host} in clear: give tls_cert and tls_key "
                "(--tls-cert, --tls-key). Where the network itself encrypts, or TLS ends before "
                "the gateway, say so by allows_plaintext (--allow-plaintext)"
            )
