"""Where a server listens: ``HOST:PORT``."""

from __future__ import annotations

import ipaddress

from msgspec import Struct

from ..errors import InvalidArgumentError


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

    @property
    def is_every(self) -> bool:
        """Whether it stands for all addresses of a machine, so that nobody can connect to it."""
        try:
            return ipaddress.ip_address(self.host).is_unspecified
        except ValueError:
            return False

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"
