"""The way from a process to Redis, hop by hop, to name the hop that fails.

| hop      | passes when                                                                        |
|----------|------------------------------------------------------------------------------------|
| name     | the host has an address here                                                       |
| TCP      | the port takes a connection                                                        |
| TLS      | (``rediss://``) a certificate is shown that this process trusts                    |
| password | (with a reference) the reference names a secret here                               |
| AUTH     | the server lets this user in                                                       |
| PING     | it answers, and the user may do what every lakelog connection begins with          |
| cluster  | (``?cluster=true``) it names the servers of its cluster, each another target       |

Runs on: driver|executor.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import redis
from msgspec import Struct
from redis.backoff import NoBackoff
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError
from redis.retry import Retry

from ..errors import LakelogError
from .connection import Server, connect
from .foreign import ILLEGIBLE
from .hot_log import HotSource
from .redis_url import CERTIFICATE_FILES, CONNECT_TIMEOUT_S, connection_options
from .refusals import SHOW_CERTIFICATE, access_error, may_want_certificate


class Way(Struct, frozen=True):
    """How far a process came on the way to one target."""

    target: str  # never with a password
    passed: tuple[str, ...]  # hops, in order
    failed: str | None = None  # the hop that failed; None: all passed
    found: str = ""  # why it did not
    do: str = ""

    @property
    def passes(self) -> bool:
        return self.failed is None


def ways_to_redis(source: HotSource) -> list[Way]:
    """From this process to the server of a URL; in a cluster, also to each primary.

    Opens connections of its own and closes them.

    Raises:
        InvalidArgumentError: the URL is not valid.
    """
    no_password: LakelogError | None = None
    password = None
    try:
        password = source.password()
    except LakelogError as error:
        no_password = error  # it is still worth knowing how far the network goes
    options, is_cluster = connection_options(source.url, password)
    first = Walk(options, no_password).way()
    if not (is_cluster and first.passes):
        return [first]
    try:
        servers = connect(source.url, password)
    except LakelogError as error:
        return [Way(first.target, first.passed, "cluster", error.message, _SEE)]
    try:
        others = [server.options for server in servers.all()]
    finally:
        servers.close()
    ways = [first, *(Walk(one).way() for one in others)]
    return list({way.target: way for way in ways}.values())


@dataclass(eq=False)
class Walk:
    """One try of each hop to one server."""

    options: dict[str, Any]
    no_password: LakelogError | None = None
    _connection: Any = field(init=False, default=None)
    _refusal: NoPermissionError | None = field(init=False, default=None)  # of PING

    @property
    def target(self) -> str:
        path = self.options.get("path")
        return path or f"{self.options['host']}:{self.options['port']}"

    def way(self) -> Way:
        passed: list[str] = []
        try:
            for hop, try_it in self._hops():
                try:
                    try_it()
                except (RedisError, OSError, LakelogError, *ILLEGIBLE) as error:
                    found, do = self._explain(hop, error)
                    return Way(self.target, tuple(passed), hop, found, do)
                passed.append(hop)
        finally:
            if self._connection is not None:
                self._connection.disconnect()
        return Way(self.target, tuple(passed))

    def _hops(self) -> Iterator[tuple[str, Callable[[], None]]]:
        if "path" not in self.options:
            yield "name", self._resolve
            yield "TCP", self._reach
        yield ("TLS" if self.is_tls else "connection"), self._connect
        if self.no_password is not None:
            yield "password", self._complain
        yield "AUTH", self._authenticate
        yield "PING", self._ping

    @property
    def is_tls(self) -> bool:
        return issubclass(self._class, redis.SSLConnection)

    @property
    def _class(self) -> Any:
        return self.options.get("connection_class", redis.Connection)

    # -- the hops ------------------------------------------------------------------------------

    def _resolve(self) -> None:
        socket.getaddrinfo(self.options["host"], self.options["port"], type=socket.SOCK_STREAM)

    def _reach(self) -> None:
        timeout_s = self.options.get("socket_connect_timeout") or CONNECT_TIMEOUT_S
        address = (self.options["host"], self.options["port"])
        socket.create_connection(address, timeout_s).close()

    def _connect(self) -> None:
        for name in CERTIFICATE_FILES:
            file = self.options.get(name)
            if file and not Path(file).exists():
                raise FileNotFoundError(f"{name}={file}: there is no such file on this machine")
        options = {name: one for name, one in self.options.items() if name != "connection_class"}
        self._connection = self._class(
            **options,
            redis_connect_func=lambda _: None,  # what comes after TLS is a hop of its own
            retry=Retry(NoBackoff(), 0),
        )
        self._connection.connect()

    def _complain(self) -> None:
        assert self.no_password is not None
        raise self.no_password

    def _authenticate(self) -> None:
        """Log in and ask for an answer: a server that wants a password says so only then."""
        self._connection.on_connect()
        self._connection.send_command("PING", check_health=False)
        try:
            self._connection.read_response()
        except NoPermissionError as error:
            self._refusal = error

    def _ping(self) -> None:
        if self._refusal is not None:
            raise access_error(self._refusal, self.target)
        server = Server(self.options, self.target)
        try:
            server.call(("PING",))
        finally:
            server.close()

    # -- what failed ---------------------------------------------------------------------------

    def _explain(self, hop: str, error: Exception) -> tuple[str, str]:
        """Why a hop failed, and what to do."""
        if isinstance(error, LakelogError):
            return error.message, _SEE
        cause = _cause(error)
        found = " ".join(str(cause).split()).rstrip(".") or type(cause).__name__
        if hop == "name":
            return f"{self.options['host']} has no address here ({found})", _DO_NAME
        if hop == "TCP":
            return found, self._do_tcp(cause)
        if hop == "TLS":
            return found, self._do_tls(cause)
        if may_want_certificate(self.options, error):
            return found, SHOW_CERTIFICATE
        if hop == "connection":
            return found, "check that Redis runs"
        if isinstance(error, AuthenticationError):
            return found, _DO_AUTH
        if not self.is_tls and isinstance(error, (redis.ConnectionError, OSError)):
            return found, "if the port speaks TLS, write rediss://; else look at the server's log"
        return found, "look at the server's log"

    def _do_tcp(self, error: Exception) -> str:
        port = self.options["port"]
        if isinstance(error, ConnectionRefusedError):
            return (
                f"nothing listens on port {port} there: check the port, that Redis runs, and that "
                "its bind and protected-mode let other machines in"
            )
        if isinstance(error, TimeoutError):
            return (
                f"packets get no answer: let this machine's network in to port {port} in the "
                "security group or firewall of Redis, and check the route there (peering, private "
                "link)"
            )
        return "there is no route: check peering or private link, and the network of this machine"

    def _do_tls(self, error: Exception) -> str:
        if isinstance(error, FileNotFoundError):
            return "put the file there on every machine, the driver's and the executors' alike"
        if isinstance(error, ssl.SSLCertVerificationError):
            if error.verify_code in _OTHER_NAME:
                return "connect by the name that the certificate was issued for"
            if error.verify_code == _EXPIRED:
                return "renew the server's certificate"
            return (
                "its authority is not trusted here: name it with ?ssl_ca_certs=/path/to/ca.pem in "
                "the URL, a file that is on every machine"
            )
        if "alert" in str(error).lower():
            return SHOW_CERTIFICATE
        port = self.options["port"]
        return f"port {port} does not speak TLS: write redis://, or give the port that does"


def _cause(error: Exception) -> Exception:
    """The error that redis-py wrapped."""
    inner = error.__cause__ or error.__context__
    return inner if isinstance(error, RedisError) and isinstance(inner, OSError) else error


_OTHER_NAME = (62, 64)  # X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH
_EXPIRED = 10  # X509_V_ERR_CERT_HAS_EXPIRED

_SEE = "see the message"
_DO_NAME = (
    "check the spelling. A private name resolves only within its network: attach its private DNS "
    "zone to this one (or peer with DNS resolution on), or write the address"
)
_DO_AUTH = (
    "check the user in the URL and the password that the reference names (ACL LIST on the server "
    "shows users); a server without users wants no password"
)
