"""TLS before Kafka's protocol: the certificate, and how a client comes in by it."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from pathlib import Path

from ..base.secret_reference import resolve_secret
from ..errors import InvalidArgumentError
from .connection import ClientConnection
from .settings import GatewaySettings

logger = logging.getLogger(__name__)

#: How long a client has to agree on TLS.
_HANDSHAKE_S = 30.0
_BACKLOG = 512
#: How long no connections are taken after none could be.
_PAUSE_S = 1.0

#: What OpenSSL calls it where the bytes are none of TLS, in one of its versions or another.
_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG", "RECORD_LAYER_FAILURE")


def tls_context(settings: GatewaySettings) -> ssl.SSLContext | None:
    """What TLS is agreed on by; None: none is.

    Raises:
        InvalidArgumentError: a file is away or is none of its kind, or certificate, key and its
            password do not belong together.
    """
    if settings.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    cert = _file(settings.tls_cert, "tls_cert")
    key = cert if settings.tls_key is None else _file(settings.tls_key, "tls_key")
    _load(context, cert, key, settings.tls_key_password_ref)
    if settings.tls_client_ca is not None:
        authority = _file(settings.tls_client_ca, "tls_client_ca")
        try:
            context.load_verify_locations(authority)
        except ssl.SSLError as error:
            raise InvalidArgumentError(
                f"tls_client_ca={str(authority)!r} holds no certificate in PEM ({_said(error)}): "
                "give that of the authority that signs those of clients",
                name="tls_client_ca",
                value=str(authority),
            ) from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _load(context: ssl.SSLContext, cert: Path, key: Path, password_ref: str | None) -> None:
    asked: list[bool] = []

    def password() -> str:
        """Without it, OpenSSL would ask whoever sits at the terminal."""
        asked.append(True)
        given = password_ref is not None
        return resolve_secret(password_ref or "", "tls_key_password_ref") if given else ""

    try:
        context.load_cert_chain(cert, key, password)
    except ssl.SSLError as error:
        if asked and password_ref is None:
            why = "the key has a password: say where it is, by tls_key_password_ref"
        elif asked:
            why = f"tls_key_password_ref={password_ref!r} is not the password of the key"
        elif error.reason == "KEY_VALUES_MISMATCH":
            why = "they do not belong together: give the key that the certificate was made for"
        else:
            why = "give both in PEM, the server's certificate first and those it was signed by next"
        raise InvalidArgumentError(
            f"TLS cannot be served with certificate {str(cert)!r} and key {str(key)!r} "
            f"({_said(error)}): {why}"
        ) from error


def _file(name: str, setting: str) -> Path:
    path = Path(name)
    try:
        with path.open("rb"):
            return path
    except OSError as error:
        raise InvalidArgumentError(
            f"{setting}={name!r} cannot be read ({error.strerror or error}): give a file in PEM",
            name=setting,
            value=name,
        ) from error


def _said(error: ssl.SSLError) -> str:
    return (error.reason or "no PEM").lower().replace("_", " ")


class TlsServer:
    """Takes connections on a socket, agrees on TLS with each client, and has it served then.

    A server of asyncio would do the same, but says nothing where it fails: here one line in the log
    says why a client did not get in. Those that go away by themselves, as who only looks whether
    the port is open does, are no warning.

    Args:
        make: makes what is to serve a client, given with how many others TLS is being agreed on;
            None: there is no room for it.
    """

    def __init__(
        self,
        listener: socket.socket,
        context: ssl.SSLContext,
        make: Callable[[int], ClientConnection | None],
    ) -> None:
        self._listener = listener
        self._context = context
        self._make = make
        self._entering: set[asyncio.Task[None]] = set()
        listener.setblocking(False)
        listener.listen(_BACKLOG)
        self._accepting = asyncio.ensure_future(self._accept())

    def close(self) -> None:
        """Takes no more connections."""
        self._accepting.cancel()
        self._listener.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(self._listener)
            except OSError as error:  # such as: too many open files
                logger.warning("no connection can be taken now: %s", error)
                await asyncio.sleep(_PAUSE_S)
                continue
            task = asyncio.ensure_future(self._enter(client, address[0]))
            self._entering.add(task)
            task.add_done_callback(self._entering.discard)

    async def _enter(self, client: socket.socket, host: str) -> None:
        protocol = self._make(len(self._entering) - 1)
        if protocol is None:
            client.close()
            logger.warning("%s: closed: there are max_connections already", host)
            return
        try:
            client.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, client, ssl=self._context, ssl_handshake_timeout=_HANDSHAKE_S
            )
        except ssl.SSLError as error:
            logger.warning("%s: closed: %s", host, _why(error))
        except OSError as error:
            logger.info("%s: gone before TLS was agreed on: %s", host, error)


def _why(error: ssl.SSLError) -> str:
    if error.reason in _NO_TLS:
        return (
            "it does not speak TLS, without which nobody gets in here: its security.protocol "
            "should be SSL or SASL_SSL"
        )
    if error.reason and "UNKNOWN_CA" in error.reason:
        return "it does not trust the certificate that is shown here: see its ssl.ca.location"
    if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it shows no certificate of its own, without which nobody gets in here"
    return f"TLS was not agreed on ({_said(error)})"
