"""Connections to Redis: one server or a cluster, and which run of the server answered.

lakelog speaks to redis-py's connections directly rather than through its client, for two reasons.
It must know whether a command may have reached the server if no answer came (a client that
resends by itself hides that), and each connection must carry the *run id* it was opened under: the
scripts that append hold that id as a constant, and they are loaded only in the handshake below, so
a server that restarted or was promoted does not know them until a client has made that handshake.
"""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from math import inf
from typing import Any, Protocol, TypeVar

import redis
from hiredis import pack_command
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool, ConnectionPool
from redis.crc import key_slot
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    NoPermissionError,
    NoScriptError,
    ReadOnlyError,
    RedisError,
    ResponseError,
)
from redis.retry import Retry

from ..errors import (
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    LogClosedError,
)
from ..values.config import KIB
from . import scripts
from .foreign import ILLEGIBLE
from .redis_url import MAX_CONNECTIONS, connection_options, mask, of_each_host
from .refusals import (
    access_error,
    moved,
    reason,
    says_demoted,
    translate,
    was_closed,
    why_unreachable,
)
from .scripts import READING, SCRIPTS, Run, script_sha

Command = tuple[Any, ...]

T = TypeVar("T")


class RawConnection(Protocol):
    """What lakelog uses of a redis-py connection."""

    def on_connect(self) -> None: ...
    def send_command(self, *args: Any) -> None: ...
    def send_packed_command(self, command: Any) -> None: ...
    def read_response(self) -> Any: ...
    def connect(self) -> None: ...
    def disconnect(self) -> None: ...


class Wire:
    """One connection to one run of one server, held for one exchange."""

    def __init__(self, connection: RawConnection) -> None:
        self.is_demoted = False  # the server has said that it is a replica
        self._connection = connection
        self._run: Run = connection.lakelog_run  # type: ignore[attr-defined]

    @property
    def run_id(self) -> str:
        return self._run.run_id

    def exchange(self, commands: Sequence[Command]) -> list[Any]:
        """Sends all commands, then returns their replies, errors in place.

        Those that only read are sent once more, on a new connection, where this one turns out to be
        closed: a proxy may notice only then that the server behind it has gone.

        Raises:
            HotTierUnavailableError: no answer; ``sent`` is True, some may have been executed.
        """
        try:
            self.send(commands)
            return self.receive(len(commands))
        except HotTierUnavailableError as error:
            if not was_closed(error) or any(command[0] not in _READS for command in commands):
                raise
            with suppress(RedisError, OSError):  # then the first error tells more
                self._connection.connect()
            if self.fileno() < 0:
                raise
            self._run = self._connection.lakelog_run  # type: ignore[attr-defined]
        self.send(commands)
        return self.receive(len(commands))

    def send(self, commands: Sequence[Command]) -> None:
        """Sends commands, whose replies `receive` returns.

        Raises:
            HotTierUnavailableError: as `exchange`.
        """
        try:
            self._connection.send_packed_command(list(pack(commands)))
        except BaseException as error:
            self._failed(error, is_first=True)
            raise

    def receive(self, count: int) -> list[Any]:
        """So many replies, errors in place; waits for them.

        Raises:
            HotTierUnavailableError: as `exchange`.
        """
        replies: list[Any] = []
        try:
            if self.fileno() < 0:
                raise BrokenPipeError("the connection was closed")
            for _ in range(count):
                try:
                    replies.append(self._connection.read_response())
                except ResponseError as error:
                    replies.append(error)
                    self.is_demoted |= says_demoted(error)
        except BaseException as error:
            self._failed(error, is_first=not replies)
            raise
        if self.is_demoted:
            self.drop()  # a server that steps down keeps it, while its name leads to another one
        return replies

    def fileno(self) -> int:
        """Of the socket, to wait for a reply beside others; -1: the connection was closed."""
        socket = self._connection._sock  # type: ignore[attr-defined]
        return -1 if socket is None else int(socket.fileno())

    def _failed(self, error: BaseException, *, is_first: bool) -> None:
        """Drops the connection, since replies may still be under way on it.

        Raises:
            LakelogError: what the error is one of ours for.
        """
        self._connection.disconnect()
        if isinstance(error, BusyLoadingError) and is_first:
            raise translate(error, "the URL") from error  # a refusal, though of that class
        if isinstance(error, (RedisError, OSError)):
            raise HotTierUnavailableError(
                f"Redis did not answer ({reason(error)}); whether the command was executed "
                "is unknown. Check that it runs and can be reached, then try again",
                sent=True,
                run_id=self.run_id,
            ) from error

    def drop(self) -> None:
        """Closes the connection, so that the next exchange makes a new handshake."""
        self._connection.disconnect()

    def script(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Command:
        """The command that runs a script on this run of the server.

        One that writes nothing says so: for that, the right to read its keys is enough.
        """
        command = "EVALSHA_RO" if name in READING else "EVALSHA"
        return (command, script_sha(name, self._run), len(keys), *keys, *args)


#: Small commands are written together, each write costs a system call; large ones are not copied.
_WRITE_BYTES = 64 * KIB


def pack(commands: Sequence[Command]) -> Iterator[bytes]:
    """The bytes that send commands, in few pieces."""
    small: list[bytes] = []
    for packed in map(pack_command, commands):
        if len(packed) < _WRITE_BYTES:
            small.append(packed)
            continue
        if small:
            yield b"".join(small)
            small = []
        yield packed
    if small:
        yield b"".join(small)


#: Commands that change nothing, whether or not they were executed before.
_READS = frozenset(
    (
        *("EVALSHA_RO", "EXISTS", "GET", "HEXISTS", "HGET", "HGETALL"),
        *("HKEYS", "HLEN", "HMGET", "HRANDFIELD", "HSCAN", "INFO"),
        *("MEMORY", "PING", "TIME", "TYPE", "XINFO", "XRANGE"),
        *("XREVRANGE", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE"),
    )
)


#: redis-py tells each server its name and version, by two commands to which no role of `acl` has
#: the right: each connection of such a user would leave two refusals in the server's ``ACL LOG``.
NO_NAME: dict[str, Any] = (
    {"driver_info": None}
    if "driver_info" in inspect.signature(redis.connection.AbstractConnection).parameters
    else {"lib_name": None, "lib_version": None}
)

#: Before redis-py 5.3 it needed a command's name.
_command_name = inspect.signature(ConnectionPool.get_connection).parameters.get("command_name")
_GET_CONNECTION: tuple[str, ...] = (
    ("_",) if _command_name and _command_name.default is inspect.Parameter.empty else ()
)


@dataclass(eq=False)
class Server:
    """One Redis server behind a pool of connections."""

    options: dict[str, Any] = field(repr=False)
    name: str
    on_unreachable: Callable[[], None] = field(default=lambda: None, repr=False)
    _demoted_s: float = field(default=-inf, init=False)  # when it last said so, monotonic
    _is_closed: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        options = dict(self.options)
        ours: dict[str, Any] = {
            "connection_class": options.pop("connection_class", redis.Connection),
            "retry": Retry(NoBackoff(), 0),
            **NO_NAME,
            **options,
        }
        self._pool = BlockingConnectionPool(  # type: ignore[no-untyped-call]
            max_connections=MAX_CONNECTIONS, timeout=None, redis_connect_func=_handshake, **ours
        )
        # Whoever waits for news holds a connection for as long: many of them must not keep the
        # others from theirs.
        self._waiting = ConnectionPool(max_connections=2**31, redis_connect_func=_greet, **ours)

    @contextmanager
    def wire(self, pool: ConnectionPool | None = None) -> Iterator[Wire]:
        """A connection for one exchange.

        Args:
            pool: of the two; None: the one for short exchanges.

        Raises:
            HotTierUnavailableError: no connection; ``sent`` is False, nothing was executed.
            LogClosedError: no connection either, but it was closed before.
            HotTierAccessError: the server refuses this user.
            InvalidArgumentError: no connection can be made of what the URL says.
        """
        pool = pool or self._pool
        try:
            connection = self._taken(pool)
        except (RedisError, OSError) as error:
            raise self.unreachable(error) from error
        except ILLEGIBLE as error:  # of the host's name, the socket's timeout, an encoding, a reply
            raise self.not_made(error) from error
        wire = Wire(connection)
        try:
            yield wire
        except HotTierUnavailableError:
            self.on_unreachable()
            raise
        finally:
            if wire.is_demoted:
                self._demoted_s = time.monotonic()
            pool.release(connection)

    def unreachable(self, error: Exception) -> LakelogError:
        """What it means that no connection could be opened; nothing was executed."""
        if isinstance(error, (AuthenticationError, AuthorizationError, NoPermissionError)):
            return access_error(error, self.name)
        self.on_unreachable()
        if self._is_closed:
            return LogClosedError(
                "this log was closed, by close() or at the end of its `with`, and its Redis, "
                f"{self.name}, does not answer any more. Open it again, by Lakelog.embedded or "
                "Lakelog.connect"
            )
        why = why_unreachable(self.options, error)
        return HotTierUnavailableError(
            f"cannot reach Redis at {self.name}: {why}{self._what_to_do()}",
            sent=False,
            run_id=None,
        )

    def not_made(self, error: Exception) -> InvalidArgumentError:
        """The error where a connection cannot even be tried."""
        return InvalidArgumentError(
            f"no connection to {self.name} can be made of what its URL and password say, or "
            f"what answers there is no Redis: {reason(error)}. Check the host and the "
            "parameters after '?'"
        )

    def _taken(self, pool: ConnectionPool) -> Any:
        """A connection that was opened since the server was last found to be a replica."""
        connection: Any = pool.get_connection(*_GET_CONNECTION)
        if connection.lakelog_opened_s <= self._demoted_s:
            try:
                connection.disconnect()
                connection.connect()
            except BaseException:
                pool.release(connection)
                raise
        return connection

    def _what_to_do(self) -> str:
        if self.name.startswith("unix:"):  # most often nobody wrote that URL
            return (
                "If it is the Redis of a log in a directory (Lakelog.embedded, --dir), it has "
                "ended: close the log and open the directory again, which starts it. Else check "
                "that the server runs and that this user may use its socket"
            )
        return "Check the URL, and that the server runs and accepts connections from here"

    def run_id(self) -> str:
        """The run id of the server that answers now."""
        with self.wire() as wire:
            return wire.run_id

    def block_ms(self, most_ms: int) -> int:
        """How long a command may block, so that its answer comes before the socket gives up."""
        timeout_s = self.options.get("socket_timeout")
        if timeout_s is None:
            return most_ms
        # An idle server looks only every 100 ms (its hz) which blocked commands are over.
        return max(1, min(most_ms, int(timeout_s * 500), int(timeout_s * 1000) - 150))

    def call(self, *commands: Command) -> list[Any]:
        """Runs plain commands in one round trip; the first error reply is raised, translated."""
        with self.wire() as wire:
            replies = wire.exchange(commands)
        for reply in replies:
            if isinstance(reply, Exception):
                raise translate(reply, self.name) from reply
        return replies

    def wait_for(self, stream: str, after: str, most_ms: int) -> bool:
        """Blocks until the stream has an entry behind that id; False if it has none in time.

        Any number of callers may wait at once.
        """
        block_ms = self.block_ms(max(1, most_ms))
        command = ("XREAD", "COUNT", 1, "BLOCK", block_ms, "STREAMS", stream, after)
        with self.wire(self._waiting) as wire:
            (reply,) = wire.exchange([command])
        if isinstance(reply, Exception):
            raise translate(reply, self.name, stream) from reply
        return bool(reply)

    def begin(self, commands: Sequence[Command]) -> BlockedCommands:
        """Sends commands of which the first blocks, on a connection that is held until the answer
        is taken.

        Raises:
            LakelogError: see `wire`.
        """
        return BlockedCommands(self.wire(self._waiting), commands)

    def run_scripts(
        self,
        calls: Sequence[tuple[str, Sequence[str], Sequence[Any]]],
        then: Sequence[Command] = (),
    ) -> tuple[str, list[Any]]:
        """Runs scripts, then plain commands, in one round trip on one connection.

        A script that the server does not know (a failover behind a proxy, SCRIPT FLUSH) was not
        executed: the connection is opened again, which loads it under the server's run id. One that
        a replica refuses is sent once more on a new connection, which leads to the new primary if
        the name does by now.

        Returns:
            The run id that answered, and the replies, with error replies in their place.
        """
        for attempt in range(3):
            with self.wire() as wire:
                commands = [wire.script(*call) for call in calls]
                replies = wire.exchange([*commands, *then])
                unknown = sum(isinstance(reply, NoScriptError) for reply in replies)
                refused = sum(isinstance(reply, ReadOnlyError) for reply in replies)
                if unknown + refused < len(calls) or attempt == (1 if refused else 2):
                    break
                wire.drop()
        return wire.run_id, replies

    def close(self) -> None:
        self._is_closed = True
        self._pool.disconnect()
        self._waiting.disconnect()


class BlockedCommands:
    """Commands under way on a connection of their own.

    Args:
        wire: opens the connection.
    """

    def __init__(self, wire: AbstractContextManager[Wire], commands: Sequence[Command]) -> None:
        with ExitStack() as opened:
            self._wire = opened.enter_context(wire)
            self._wire.send(commands)
            self._count = len(commands)
            self._held = opened.pop_all()

    def fileno(self) -> int:
        """Readable once there is an answer."""
        return self._wire.fileno()

    def answer(self) -> tuple[str, list[Any]]:
        """As `exchange`: waits for the replies. The connection is free again.

        Raises:
            HotTierUnavailableError: see `Wire.exchange`.
        """
        with self._held:
            return self._wire.run_id, self._wire.receive(self._count)

    def drop(self) -> None:
        """Gives it up, with its connection."""
        with self._held:
            self._wire.drop()


class Servers:
    """Where keys live: on one server, or spread over the primaries of a Redis Cluster by slot.

    Args:
        options: of the server; or of those of a cluster that the URL names.
        name: for errors.
    """

    def __init__(
        self, options: Sequence[dict[str, Any]], name: str, *, is_cluster: bool = False
    ) -> None:
        self.is_cluster = is_cluster
        self._name = name
        self._named = [Server(one, name) for one in options]
        self._is_stale = False  # a server did not answer: another may have taken over its slots
        self._lock = threading.Lock()
        self._primaries: dict[tuple[str, int], Server] = {}
        self._slots: list[tuple[int, int, Server]] = []
        self.refresh()

    def slot(self, key: str) -> int:
        """A command takes keys of one slot; on a server alone, there is but one."""
        return int(key_slot(key.encode())) if self.is_cluster else 0

    def for_key(self, key: str) -> Server:
        if not self.is_cluster:
            return self._named[0]
        slot = self.slot(key)
        if self._is_stale:
            self.refresh()
        found = self._at(slot)
        if found is None:
            self.refresh()
            found = self._at(slot)
        if found is None:
            raise HotTierUnavailableError(
                f"no server of the cluster at {self._name} holds slot {slot} (key {key}); "
                "check CLUSTER INFO",
                sent=False,
                run_id=None,
            )
        return found

    def _at(self, slot: int) -> Server | None:
        return next((one for first, last, one in self._slots if first <= slot <= last), None)

    def all(self) -> list[Server]:
        if not self.is_cluster:
            return self._named
        return list(dict.fromkeys(server for _, _, server in self._slots))

    def refresh(self) -> None:
        """Reads a cluster's slot map again, from any server that answers."""
        if not self.is_cluster:
            return
        self._is_stale = False
        errors: list[HotTierUnavailableError] = []
        for asked in (*self._primaries.values(), *self._named):
            try:
                reply = asked.call(("CLUSTER", "SLOTS"))[0]
            except HotTierUnavailableError as unavailable:
                errors.append(unavailable)
                continue
            with self._lock:
                self._slots = [
                    (int(first), int(last), self._primary(primary, asked))
                    for first, last, primary, *_ in reply
                ]
                self._is_stale = False  # some did not answer, but this one did
            return
        raise errors[-1].changed(
            message=f"{errors[-1].message}. No other server of the cluster answers, or none is "
            "known: the URL may name several, as redis://a:6379,b:6379?cluster=true"
        )

    def _primary(self, node: Sequence[Any], asked: Server) -> Server:
        """A server, as another of its cluster tells of it."""
        # Empty: the address that the other was reached by.
        host, port = text_of(node[0]) or asked.options["host"], int(node[1])
        if (host, port) not in self._primaries:
            options = {**self._named[0].options, "host": host, "port": port}
            self._primaries[host, port] = Server(options, f"{host}:{port}", self._mark_stale)
        return self._primaries[host, port]

    def _mark_stale(self) -> None:
        self._is_stale = True

    def close(self) -> None:
        for server in (*self._named, *self._primaries.values()):
            server.close()


def by_server(
    servers: Servers, items: Iterable[T], key_of: Callable[[T], str]
) -> list[tuple[Server, list[T]]]:
    """The items of each server, in their order; `key_of` gives the key by which one lies there."""
    if not servers.is_cluster:  # of 10,000 partitions, their keys take a while
        all_items = list(items)
        return [(servers.all()[0], all_items)] if all_items else []
    found: dict[int, tuple[Server, list[T]]] = {}
    for item in items:
        server = servers.for_key(key_of(item))
        found.setdefault(id(server), (server, []))[1].append(item)
    return list(found.values())


def connect(url: str, password: str | None = None, user: str | None = None) -> Servers:
    """The servers behind a URL: ``redis://``, ``rediss://`` (TLS) or ``unix://``.

    ``?cluster=true`` says that it is one node of a Redis Cluster, or several with commas between
    them, of which one has to answer; other query parameters are redis-py's (``ssl_ca_certs=…``,
    ``socket_timeout=…``).

    Args:
        password, user: in place of those in the URL.

    Raises:
        InvalidArgumentError: not such a URL.
    """
    urls = of_each_host(url)
    options, is_cluster = connection_options(urls[0], password, user)
    if not is_cluster and len(urls) > 1:
        raise InvalidArgumentError(
            f"{mask(url)!r} names several hosts, which only a Redis Cluster has: add "
            "?cluster=true, or name the primary alone"
        )
    others = [connection_options(one, password, user)[0] for one in urls[1:]]
    return Servers([options, *others], mask(url), is_cluster=is_cluster)


def call_script(servers: Servers, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
    """Runs a script where its keys live; an error reply is raised, translated."""
    return run_script(servers, name, keys, args)[1]


def run_script(
    servers: Servers, name: str, keys: Sequence[str], args: Sequence[Any]
) -> tuple[str, Any]:
    """As `call_script`, with the run id of the server that answered."""
    for attempt in range(3):
        server = servers.for_key(keys[0])
        run_id, (reply,) = server.run_scripts([(name, keys, args)])
        if not moved(reply) or attempt == 2:
            break
        servers.refresh()
    if isinstance(reply, Exception):
        raise translate(reply, server.name, keys[0]) from reply
    return run_id, reply


def exchange(servers: Servers, key: str, commands: Sequence[Command]) -> tuple[str, list[Any]]:
    """Plain commands on the server that has a key, in one round trip.

    Returns:
        The run id that answered, and the replies, errors in place.
    """
    for attempt in range(3):
        with servers.for_key(key).wire() as wire:
            replies = wire.exchange(commands)
        if not moved(replies[0]) or attempt == 2:
            break
        servers.refresh()
    return wire.run_id, replies


def by_name(reply: Any) -> dict[Any, Any]:
    """A reply of names and values, which is a flat list in the older of redis-py's protocols."""
    return reply if isinstance(reply, dict) else dict(zip(reply[::2], reply[1::2], strict=True))


def _handshake(connection: RawConnection) -> None:
    """Opens a connection: asks which run of the server this is and loads the scripts it lacks.

    A failure anywhere fails the connection, so no script is loaded on a run it was not made for. A
    user who may load none goes by those that others have loaded in this run of the server.
    """
    run = _greet(connection)
    lacking = _lacking(connection, run)
    for name in lacking:
        connection.send_command("SCRIPT", "LOAD", scripts.script_text(name, run))
    for _ in lacking:
        with suppress(NoPermissionError):
            connection.read_response()


def _lacking(connection: RawConnection, run: Run) -> list[str]:
    """The scripts that the server does not know; of a user who may not ask, all."""
    connection.send_command("SCRIPT", "EXISTS", *(script_sha(name, run) for name in SCRIPTS))
    try:
        known = connection.read_response()
    except NoPermissionError:
        return [*SCRIPTS]
    return [name for name, is_known in zip(SCRIPTS, known, strict=True) if not is_known]


def _greet(connection: RawConnection) -> Run:
    """Opens a connection for plain commands: asks which run of the server this is."""
    connection.on_connect()
    connection.lakelog_opened_s = time.monotonic()  # type: ignore[attr-defined]
    connection.send_command("INFO", "server", "replication")
    run = Run.of(text_of(connection.read_response()))
    connection.lakelog_run = run  # type: ignore[attr-defined]
    return run


def text_of(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
