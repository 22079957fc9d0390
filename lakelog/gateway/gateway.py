"""The gateway: Kafka's protocol in front of a log."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType

from ..base.address import Address
from ..errors import InvalidArgumentError, LogClosedError
from .connection import ClientConnection
from .logins import Authentication, Logins
from .memory import Budget
from .nodes import Nodes
from .served_log import Log, ServedLog
from .session import Session
from .settings import GatewaySettings
from .tls import TlsServer, tls_context

logger = logging.getLogger(__name__)

#: How often idle connections are looked for.
_SWEEP_S = 10.0
#: How long clients have to take what they were answered, once the gateway is closed.
_DRAIN_S = 5.0


class Gateway:
    """Serves a log to Kafka's clients, on an event loop in a thread of its own.

    Everything lies in Redis and the cold tier: any number of processes may serve the same log, and
    one that is killed takes nothing along but what clients send again.

    Args:
        lake: the log; it stays open for as long as the gateway is.
    """

    def __init__(self, lake: Log, settings: GatewaySettings | None = None) -> None:
        self.settings = settings or GatewaySettings()
        self._lake = lake
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._connections: set[ClientConnection] = set()
        self._memory = Budget(self.settings.max_memory_bytes)
        self._address: Address | None = None
        self._thread = threading.Thread(target=self._run, name="lakelog-gateway", daemon=True)

    def start(self) -> Gateway:
        """Listens from here on, if it does not yet.

        Raises:
            InvalidArgumentError: the address cannot be listened on, or a file of TLS is none.
            LakelogError: Redis does not answer, or does not let the gateway look users up.
        """
        if not self._thread.is_alive():
            self._thread.start()
        self._ready.wait()
        if self._failure is not None:
            self._thread.join()
            raise self._failure
        return self

    @property
    def bootstrap_servers(self) -> str:
        """What a client on this machine gives as ``bootstrap.servers``."""
        if self._address is None:
            raise LogClosedError("the gateway does not listen: start() it first")
        return str(self._address)

    @property
    def is_serving(self) -> bool:
        """Whether it listens; it has ended, or failed, otherwise."""
        return self._address is not None

    @property
    def connection_count(self) -> int:
        """Clients' connections that are open."""
        return len(self._connections)

    @property
    def memory_taken_bytes(self) -> int:
        """What requests and responses under way take."""
        return self._memory.taken_bytes

    def close(self) -> None:
        """Takes no more requests, answers those under way, and ends."""
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None and self._thread.is_alive():
            with contextlib.suppress(RuntimeError):  # it has just ended
                loop.call_soon_threadsafe(stop.set)
            self._thread.join()

    def wait(self, timeout_s: float | None = None) -> None:
        """Returns once the gateway has ended."""
        self._thread.join(timeout_s)

    def __enter__(self) -> Gateway:
        return self.start()

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        where = "closed" if self._address is None else self.bootstrap_servers
        return f"<Gateway {where}, {self.connection_count} connections>"

    # -- its thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            loop = _new_loop()
            try:
                loop.run_until_complete(self._serve())
            finally:
                loop.close()
        except BaseException as error:
            self._failure = error
            if self._ready.is_set():
                logger.exception("the gateway ended")
        finally:
            self._address = None
            self._ready.set()

    async def _serve(self) -> None:
        loop = self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        with ThreadPoolExecutor(self.settings.threads, "lakelog-gateway") as threads:
            loop.set_default_executor(threads)
            log = ServedLog(self._lake, threads)
            logins = Logins(log) if self.settings.sasl_mechanisms else None
            try:
                context = tls_context(self.settings)
                await log.topics(fresh=True)
                keyspace_id = await log.run(self._lake.hot.topics().keyspace_id)
                if logins is not None:
                    await logins.check()
                listener = self._listening()
                assert self._address is not None
                told = self.settings.advertise or self._address
                nodes = Nodes(log, told, str(keyspace_id or "lakelog"))
                await nodes.begin()
                server = await self._server(log, nodes, logins, context, listener)
                keeping = [
                    asyncio.ensure_future(one) for one in (self._sweep(logins), nodes.keep())
                ]
                self._ready.set()
                await self._stop.wait()
                for task in keeping:
                    task.cancel()
                await nodes.leave()
                server.close()
                await self._drained()
            finally:
                if logins is not None:
                    logins.close()
                log.close()
                await _end_tasks()

    def _listening(self) -> socket.socket:
        wanted = self.settings.listen
        try:
            found = socket.getaddrinfo(
                wanted.host, wanted.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )
            family, kind, _, _, address = found[0]
            listener = socket.socket(family, kind)
            try:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if wanted.port and hasattr(socket, "SO_REUSEPORT"):
                    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
                listener.bind(address)
            except BaseException:
                listener.close()
                raise
        except OSError as error:
            raise InvalidArgumentError(
                f"cannot listen on {wanted}: {error.strerror or error}. Stop what listens there, "
                "or give another address"
            ) from error
        name = listener.getsockname()
        self._address = Address(name[0], name[1])
        return listener

    async def _server(
        self,
        log: ServedLog,
        nodes: Nodes,
        logins: Logins | None,
        context: ssl.SSLContext | None,
        listener: socket.socket,
    ) -> asyncio.AbstractServer | TlsServer:
        def opened(client_host: str) -> Session:
            authentication = None
            if logins is not None:
                authentication = Authentication(logins, self.settings.sasl_mechanisms)
            return Session(log, nodes, self.settings, self._memory, client_host, authentication)

        most = self.settings.max_connections

        def connected() -> asyncio.Protocol:
            if len(self._connections) >= most:
                return _OneTooMany(most)
            return ClientConnection(opened, self._connections)

        def entered(entering: int) -> ClientConnection | None:
            has_room = len(self._connections) + entering < most
            return ClientConnection(opened, self._connections) if has_room else None

        if context is not None:
            return TlsServer(listener, context, entered)
        loop = asyncio.get_running_loop()
        return await loop.create_server(connected, sock=listener, backlog=512)

    async def _sweep(self, logins: Logins | None) -> None:
        while True:
            await asyncio.sleep(min(_SWEEP_S, self.settings.max_idle_s))
            for connection in list(self._connections):
                connection.check_time(time.monotonic())
            if logins is not None:
                await logins.sweep()

    async def _drained(self) -> None:
        """Waits for what is under way, and closes the connections."""
        deadline_s = time.monotonic() + _DRAIN_S
        for connection in list(self._connections):
            if connection.is_idle:
                connection.close()
        while self._connections and time.monotonic() < deadline_s:
            await asyncio.sleep(0.01)
            for connection in list(self._connections):
                if connection.is_idle:
                    connection.close()
        for connection in list(self._connections):
            connection.close()


class _OneTooMany(asyncio.Protocol):
    """A client that finds no room."""

    def __init__(self, max_connections: int) -> None:
        self._max_connections = max_connections

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        peer = transport.get_extra_info("peername")
        logger.warning(
            "%s: closed: there are max_connections=%d already",
            peer[0] if peer else "",
            self._max_connections,
        )
        transport.close()


async def _end_tasks() -> None:
    """Cancels what is still under way on this loop, and waits for it to end."""
    left = asyncio.all_tasks() - {asyncio.current_task()}
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)


def _new_loop() -> asyncio.AbstractEventLoop:
    """That of uvloop where it is installed: it takes a third less of a core."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()  # type: ignore[no-any-return]
