"""Connections to Redis: one server or a cluster, and which run of the server answered.

lakelog speaks to redis-py's connections directly rather than through its client, for two reasons.
It must know whether a command may have reached the server if no answer came (a client that
resends by itself hides that), and each connection must carry the *run id* it was opened under: the
scripts that append hold that id as a constant, and they are loaded only in the handshake below, so
a server that restarted or was promoted does not know them until a client has made that handshake.
"""

from __future__ import annotations

import hashlib
import inspect
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from importlib import resources
from math import inf
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import SplitResult, parse_qs, urlencode, urlsplit

import redis
from msgspec import Struct
from redis.backoff import NoBackoff
from redis.connection import BlockingConnectionPool, ConnectionPool, parse_url
from redis.crc import key_slot
from redis.exceptions import (
    AskError,
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    MasterDownError,
    MovedError,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)
from redis.retry import Retry

from ..errors import (
    ForeignEntryError,
    HotTierAccessError,
    HotTierFullError,
    HotTierUnavailableError,
    InvalidArgumentError,
    LakelogError,
    LogClosedError,
)
from .foreign import ILLEGIBLE

Command = tuple[Any, ...]

T = TypeVar("T")

SOCKET_TIMEOUT_S = 10.0
CONNECT_TIMEOUT_S = 5.0
MAX_CONNECTIONS = 32  # a server; a caller above it waits for one to come back

#: script, by its file in this folder or below lakelog → the flags it needs. `allow-oom`: making
#: room must work when Redis is full, and so must reading in a group.
SCRIPTS = {
    "append": "",
    "init": "",
    "delete": "allow-oom",
    "offsets": "no-writes,allow-oom",
    "inspect": "no-writes,allow-oom",
    "find_timestamp": "no-writes,allow-oom",
    "trim": "allow-oom",
    "retain": "allow-oom",
    "recover": "allow-oom",
    "roll": "allow-oom",
    "pause": "allow-oom",
    "skip": "allow-oom",
    "mend": "allow-oom",
    "rebuild": "allow-oom",
    "registry": "",
    "restore": "",
    "defaults": "",
    "undefine": "allow-oom",
    "redefine": "",
    "purge": "allow-oom",
    "lock": "allow-oom",
    "archived_into": "allow-oom",
    "allow": "allow-oom",
    "quota": "allow-oom",
    "tenant": "allow-oom",
    "cold_bytes": "allow-oom",
    "groups/join": "allow-oom",
    "groups/attend": "allow-oom",
    "groups/commit": "allow-oom",
    "groups/look": "allow-oom",
    "groups/remove": "allow-oom",
    "groups/listing": "allow-oom",
    "groups/record": "allow-oom",
    "groups/bring_back": "",
    "groups/share/acquire": "allow-oom",
    "groups/share/acknowledge": "allow-oom",
    "groups/share/look": "no-writes,allow-oom",
    "groups/share/forget": "allow-oom",
    "groups/share/move": "allow-oom",
    "groups/share/starts": "no-writes,allow-oom",
    "groups/share/bring_back": "",
}
_ALONE = {"registry", "restore", "defaults", "undefine", "redefine", "purge", "lock", "tenant"}
_ALONE |= {"quota", "cold_bytes"}
_ALONE |= {"groups/listing", "groups/record"}  # of no partition and no group
#: Of some of these: what stands in front, in `hot`.
_BEFORE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("registry", "redefine", "restore"), ("registry_version", "topics_quota")),
    **dict.fromkeys(("defaults", "undefine"), ("registry_version",)),
}
#: folder → what stands in front of its other scripts.
_SHARED = {"groups/share/": "groups/share/share", "groups/": "groups/group", "hot/": "hot/common"}


class RawConnection(Protocol):
    """What lakelog uses of a redis-py connection."""

    def on_connect(self) -> None: ...
    def send_command(self, *args: Any) -> None: ...
    def pack_commands(self, commands: Iterable[Command]) -> Any: ...
    def send_packed_command(self, command: Any) -> None: ...
    def read_response(self) -> Any: ...
    def connect(self) -> None: ...
    def disconnect(self) -> None: ...


class Run(Struct, frozen=True):
    """A stretch of a server's life in which it cannot have lost anything unnoticed.

    It ends with the process, and when the server takes over from another one: a server that was
    demoted, filled anew and promoted again is the same process with other data.
    """

    process: str  # the server's run id
    took_over: str  # its replication id if it has taken over from another since it started, or ""

    @property
    def run_id(self) -> str:
        return f"{self.process}/{self.took_over}" if self.took_over else self.process

    @classmethod
    def of(cls, info: str) -> Run:
        """The run that INFO describes.

        Raises:
            RedisError: INFO does not say enough.
        """
        fields = dict(line.split(":", 1) for line in info.splitlines() if ":" in line)
        try:
            took_over = fields["master_replid2"].strip("0") != ""
            return cls(fields["run_id"], fields["master_replid"] if took_over else "")
        except KeyError as missing:
            raise RedisError(f"its INFO has no {missing}, which lakelog goes by") from None


@lru_cache(maxsize=64)
def script_text(name: str, run: Run) -> str:
    """The text of a script as loaded on the server in that run."""
    flags = SCRIPTS[name]
    header = f"#!lua flags={flags}\n" if flags else "#!lua\n"
    path = name if "/" in name else f"hot/{name}"
    if name in _ALONE:
        before = (f"hot/{one}" for one in _BEFORE.get(name, ()))
        return header + "".join(map(_file_text, (*before, path)))
    shared = next(of for folder, of in _SHARED.items() if path.startswith(folder))
    run_ids = f"local RUN_ID, REPLICATION_ID = '{run.run_id}', '{run.took_over}'\n"
    return "".join((header, run_ids, *map(_file_text, ("hot/run", shared, path))))


@lru_cache(maxsize=16)  # what scripts share is read once
def _file_text(path: str) -> str:
    return (resources.files("lakelog") / f"{path}.lua").read_text("utf-8")


@lru_cache(maxsize=64)
def script_sha(name: str, run: Run) -> str:
    return hashlib.sha1(script_text(name, run).encode(), usedforsecurity=False).hexdigest()


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
            return self._exchange(commands)
        except HotTierUnavailableError as error:
            if not was_closed(error) or any(command[0] not in _READS for command in commands):
                raise
            with suppress(RedisError, OSError):  # then the first error tells more
                self._connection.connect()
            if self.fileno() < 0:
                raise
            self._run = self._connection.lakelog_run  # type: ignore[attr-defined]
        return self._exchange(commands)

    def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        connection = self._connection
        replies: list[Any] = []
        try:
            connection.send_packed_command(connection.pack_commands(commands))
            for _ in commands:
                try:
                    replies.append(connection.read_response())
                except ResponseError as error:
                    replies.append(error)
                    self.is_demoted |= _says_demoted(error)
        except BaseException as error:
            self._failed(error, is_first=not replies)
            raise
        if self.is_demoted:
            self.drop()  # a server that steps down keeps it, while its name leads to another one
        return replies

    def begin(self, command: Command) -> None:
        """Sends a command; `finish` returns its reply.

        Raises:
            HotTierUnavailableError: as `exchange`.
        """
        try:
            self._connection.send_command(*command)
        except BaseException as error:
            self._failed(error, is_first=True)
            raise

    def finish(self) -> Any:
        """The reply to what was begun, an error as a value; waits for it.

        Raises:
            HotTierUnavailableError: as `exchange`.
        """
        try:
            if self.fileno() < 0:
                raise BrokenPipeError("the connection was closed")
            return self._connection.read_response()
        except ResponseError as error:
            self.is_demoted |= _says_demoted(error)
            return error
        except BaseException as error:
            self._failed(error, is_first=True)
            raise

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
                f"Redis did not answer ({_reason(error)}); whether the command was executed "
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
        command = "EVALSHA_RO" if "no-writes" in SCRIPTS[name] else "EVALSHA"
        return (command, script_sha(name, self._run), len(keys), *keys, *args)


#: Commands that change nothing, whether or not they were executed before.
_READS = frozenset(
    (
        *("EVALSHA_RO", "EXISTS", "GET", "HEXISTS", "HGET", "HGETALL"),
        *("HKEYS", "HLEN", "HMGET", "HRANDFIELD", "HSCAN", "INFO"),
        *("MEMORY", "PING", "TIME", "TYPE", "XINFO", "XRANGE"),
        *("XREVRANGE", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGEBYSCORE"),
    )
)


def was_closed(error: HotTierUnavailableError) -> bool:
    """Whether the connection ended before an answer came; not: none came in time."""
    return isinstance(error.__cause__, (redis.ConnectionError, ConnectionError, EOFError))


def _says_demoted(error: ResponseError) -> bool:
    """Whether a server that refuses is a replica, perhaps since just now."""
    return isinstance(error, ReadOnlyError) or _code(error) == "UNBLOCKED"


#: redis-py tells each server its name and version, by two commands to which no role of `acl` has
#: the right: each connection of such a user would leave two refusals in the server's ``ACL LOG``.
_UNNAMED: dict[str, Any] = (
    {"driver_info": None}
    if "driver_info" in inspect.signature(redis.connection.AbstractConnection).parameters
    else {"lib_name": None, "lib_version": None}
)


#: Before redis-py 5.3 it needed a command's name.
_GET_CONNECTION: tuple[str, ...] = (
    ("_",)
    if getattr(
        inspect.signature(ConnectionPool.get_connection).parameters.get("command_name"),
        "default",
        None,
    )
    is inspect.Parameter.empty
    else ()
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
            **_UNNAMED,
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
        except (AuthenticationError, AuthorizationError, NoPermissionError) as error:
            raise access_error(error, self.name) from error
        except (RedisError, OSError) as error:
            self.on_unreachable()
            if self._is_closed:
                raise LogClosedError(
                    "this log was closed, by close() or at the end of its `with`, and its Redis, "
                    f"{self.name}, does not answer any more. Open it again, by Lakelog.embedded or "
                    "Lakelog.connect"
                ) from error
            raise HotTierUnavailableError(
                f"cannot reach Redis at {self.name}: {self._why_not(error)}{self._what_to_do()}",
                sent=False,
                run_id=None,
            ) from error
        except ILLEGIBLE as error:  # of the host's name, the socket's timeout, an encoding, a reply
            raise InvalidArgumentError(
                f"no connection to {self.name} can be made of what its URL and password say, or "
                f"what answers there is no Redis: {_reason(error)}. Check the host and the "
                "parameters after '?'"
            ) from error
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

    def _why_not(self, error: BaseException) -> str:
        """Why there is no connection, and what to do besides looking at the server."""
        for name in CERTIFICATE_FILES:
            file = self.options.get(name)
            if file and not Path(file).exists():
                return f"the file of {name}, {file}, is not on this machine. "
        said = f"{_reason(error)}. "
        if "HELLO" in said or "NOPROTO" in said:
            said += f"{_WITHOUT_HELLO}. "
        elif "compiling script" in said or "unknown command" in said:
            said += "It is no Redis 7 or newer, or a proxy that takes fewer commands. "
        if may_want_certificate(self.options, error):
            said += f"{SHOW_CERTIFICATE[0].upper()}{SHOW_CERTIFICATE[1:]}. "
        return said

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

    def begin(self, command: Command) -> BlockedCommand:
        """Sends a command that blocks, on a connection that is held until the answer is taken.

        Raises:
            LakelogError: see `wire`.
        """
        return BlockedCommand(self.wire(self._waiting), command)

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
                scripts = [wire.script(*call) for call in calls]
                replies = wire.exchange([*scripts, *then])
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


class BlockedCommand:
    """A command under way on a connection of its own.

    Args:
        wire: opens the connection.
    """

    def __init__(self, wire: AbstractContextManager[Wire], command: Command) -> None:
        with ExitStack() as opened:
            self._wire = opened.enter_context(wire)
            self._wire.begin(command)
            self._held = opened.pop_all()

    def fileno(self) -> int:
        """Readable once there is an answer."""
        return self._wire.fileno()

    def answer(self) -> Any:
        """The reply, an error as a value; waits for it. The connection is free again.

        Raises:
            HotTierUnavailableError: see `Wire.exchange`.
        """
        with self._held:
            return self._wire.finish()

    def drop(self) -> None:
        """Gives it up, with its connection."""
        with self._held:
            self._wire.drop()


class Servers(Protocol):
    """Where keys live."""

    def for_key(self, key: str) -> Server: ...
    def slot(self, key: str) -> int: ...
    def all(self) -> list[Server]: ...
    def refresh(self) -> None: ...
    def close(self) -> None: ...


def by_server(
    servers: Servers, items: Iterable[T], key_of: Callable[[T], str]
) -> list[tuple[Server, list[T]]]:
    """The items of each server, in their order; `key_of` gives the key by which one lies there."""
    if isinstance(servers, SingleServer):  # of 10,000 partitions, their keys take a while
        all_items = list(items)
        return [(servers.all()[0], all_items)] if all_items else []
    found: dict[int, tuple[Server, list[T]]] = {}
    for item in items:
        server = servers.for_key(key_of(item))
        found.setdefault(id(server), (server, []))[1].append(item)
    return list(found.values())


class SingleServer:
    """Every key is on one server."""

    def __init__(self, options: dict[str, Any], name: str) -> None:
        self._server = Server(options, name)

    def for_key(self, key: str) -> Server:
        return self._server

    def slot(self, key: str) -> int:
        """A command takes keys of one slot; here, there is but one."""
        return 0

    def all(self) -> list[Server]:
        return [self._server]

    def refresh(self) -> None:
        pass

    def close(self) -> None:
        self._server.close()


Address = tuple[str, int]


class ClusterServers:
    """Keys are spread over the primaries of a Redis Cluster by slot.

    Args:
        seeds: the options of those servers of it that the URL names.
        name: of the cluster, for errors.
    """

    def __init__(self, seeds: Sequence[dict[str, Any]], name: str) -> None:
        self._options = seeds[0]
        self._name = name
        self._seeds = [Server(options, name) for options in seeds]
        self._is_stale = False  # a server did not answer: another may have taken over its slots
        self._lock = threading.Lock()
        self._servers: dict[tuple[str, int], Server] = {}
        self._slots: list[tuple[int, int, Server]] = []
        self.refresh()

    def slot(self, key: str) -> int:
        """A command takes keys of one slot."""
        found: int = key_slot(key.encode())
        return found

    def for_key(self, key: str) -> Server:
        slot = self.slot(key)
        if self._is_stale:
            self.refresh()
        for first, last, server in self._slots:
            if first <= slot <= last:
                return server
        self.refresh()
        for first, last, server in self._slots:
            if first <= slot <= last:
                return server
        raise HotTierUnavailableError(
            f"no server of the cluster at {self._name} holds slot {slot} (key {key}); "
            "check CLUSTER INFO",
            sent=False,
            run_id=None,
        )

    def all(self) -> list[Server]:
        return list(dict.fromkeys(server for _, _, server in self._slots))

    def refresh(self) -> None:
        """Reads the slot map again, from any server that answers."""
        self._is_stale = False
        errors: list[HotTierUnavailableError] = []
        for seed in (*self._servers.values(), *self._seeds):
            try:
                reply = seed.call(("CLUSTER", "SLOTS"))[0]
            except HotTierUnavailableError as unavailable:
                errors.append(unavailable)
                continue
            with self._lock:
                self._slots = [
                    (int(first), int(last), self._server(_told(primary, seed)))
                    for first, last, primary, *_ in reply
                ]
                self._is_stale = False  # some seeds did not answer, but this one did
            return
        raise errors[-1].changed(
            message=f"{errors[-1].message}. No other server of the cluster answers, or none is "
            "known: the URL may name several, as redis://a:6379,b:6379?cluster=true"
        )

    def _mark_stale(self) -> None:
        self._is_stale = True

    def _server(self, address: Address) -> Server:
        if address not in self._servers:
            host, port = address
            options = {**self._options, "host": host, "port": port}
            self._servers[address] = Server(options, f"{host}:{port}", self._mark_stale)
        return self._servers[address]

    def close(self) -> None:
        for server in (*self._seeds, *self._servers.values()):
            server.close()


def _told(node: Sequence[Any], seed: Server) -> Address:
    """Where a server is, as another of its cluster says."""
    # Empty: the address that the other was reached by.
    return _text(node[0]) or seed.options["host"], int(node[1])


def connect(url: str, password: str | None = None) -> Servers:
    """The servers behind a URL: ``redis://``, ``rediss://`` (TLS) or ``unix://``.

    ``?cluster=true`` says that it is one node of a Redis Cluster, or several with commas between
    them, of which one has to answer; other query parameters are redis-py's (``ssl_ca_certs=…``,
    ``socket_timeout=…``).

    Raises:
        InvalidArgumentError: not such a URL.
    """
    urls = _of_each_host(url)
    options, is_cluster = connection_options(urls[0], password)
    name = mask(url)
    if is_cluster:
        return ClusterServers([connection_options(one, password)[0] for one in urls], name)
    if len(urls) > 1:
        raise InvalidArgumentError(
            f"{name!r} names several hosts, which only a Redis Cluster has: add ?cluster=true, or "
            "name the primary alone"
        )
    return SingleServer(options, name)


def connection_options(url: str, password: str | None = None) -> tuple[dict[str, Any], bool]:
    """The arguments for redis-py, and whether the URL says that it is a Redis Cluster.

    Of one that names several hosts, those of the first.

    Raises:
        InvalidArgumentError: see `connect`.
    """
    url = _of_each_host(url)[0]
    parts = _split(url)
    if parts is None or parts.scheme not in {"redis", "rediss", "unix"}:
        raise InvalidArgumentError(
            f"{mask(url)!r} is not a Redis URL; write redis://host:6379/0, rediss://… for "
            "TLS, unix:///path, and add ?cluster=true for a Redis Cluster"
        )
    query = parse_qs(parts.query)
    is_cluster = query.pop("cluster", ["false"])[-1].lower() in {"true", "1", "yes"}
    if is_cluster and parts.scheme == "unix":
        raise InvalidArgumentError(
            f"{mask(url)!r} is a socket of one server, and the others of a Redis Cluster are not "
            "reached by it; give redis://host:port?cluster=true"
        )
    for name in sorted(_OURS.keys() & query.keys()):
        raise InvalidArgumentError(
            f"{mask(url)!r} has the parameter {name}, which is lakelog's to choose: {_OURS[name]}. "
            "Leave it out",
            name=name,
        )
    plain = f"{url.partition('?')[0]}?{urlencode(query, doseq=True)}"
    try:
        given = dict(parse_url(plain))  # type: ignore[no-untyped-call]
        options: dict[str, Any] = {
            "socket_timeout": SOCKET_TIMEOUT_S,
            **({} if parts.scheme == "unix" else _TCP_OPTIONS),
            **given,
        }
        if parts.scheme == "rediss":
            # Without this, redis-py before version 6 accepts a certificate for another name.
            options.setdefault("ssl_check_hostname", given.get("ssl_cert_reqs") != "none")
        if parts.scheme != "unix" and parts.path.strip("/"):
            int(parts.path.strip("/"))  # redis-py reads any other database as 0
        if password is not None:
            options["password"] = password
        _check_options(options)
    except (*ILLEGIBLE, RedisError):
        # The error may quote a password that was not percent-encoded.
        raise InvalidArgumentError(
            f"{mask(url)!r} is not a Redis URL: its port, database or a parameter after '?' is "
            "none that redis-py takes. Percent-encode special characters in the password"
        ) from None
    return options, is_cluster


def _of_each_host(url: str) -> list[str]:
    """A URL that names several hosts, as one for each."""
    scheme, slashes, rest = url.partition("://") if isinstance(url, str) else ("", "", "")
    network = re.split(r"[/?#]", rest, maxsplit=1)[0]
    credentials, at, hosts = network.rpartition("@")
    if not slashes or "," not in hosts:
        return [url]
    path = rest[len(network) :]
    return [f"{scheme}://{credentials}{at}{host}{path}" for host in hosts.split(",")]


_TCP_OPTIONS = {
    "host": "localhost",
    "port": 6379,
    "socket_connect_timeout": CONNECT_TIMEOUT_S,
    "socket_keepalive": True,
}


#: What of redis-py's parameters is lakelog's to choose, and why.
_OURS = {
    "decode_responses": "records are bytes, and stay so",
    "max_connections": "it opens as many as its readers wait on, and others at most "
    f"{MAX_CONNECTIONS} a server",
    "timeout": "a caller waits until a connection is free",
    "retry": "it tries again itself, where nothing is done twice",
    "redis_connect_func": "it loads its scripts when it connects",
}


def _check_options(options: dict[str, Any]) -> None:
    """Raises unless a connection can be made with them. Does not connect."""
    rest = dict(options)
    rest.pop("connection_class", redis.Connection)(**rest)


def call_script(servers: Servers, name: str, keys: Sequence[str], args: Sequence[Any]) -> Any:
    """Runs a script where its keys live; an error reply is raised, translated."""
    for attempt in range(3):
        server = servers.for_key(keys[0])
        _, (reply,) = server.run_scripts([(name, keys, args)])
        if not moved(reply) or attempt == 2:
            break
        servers.refresh()
    if isinstance(reply, Exception):
        raise translate(reply, server.name, keys[0]) from reply
    return reply


_WITHOUT_HELLO = (
    "It does not take HELLO, by which the protocol is agreed on, as some proxies and any Redis "
    "before version 6 do not: add ?protocol=2 to the URL. A Redis must be of version 7 or newer"
)

SHOW_CERTIFICATE = (
    "where it lets in only those who show a certificate that it trusts, name yours with "
    "?ssl_certfile=/path/to/cert.pem&ssl_keyfile=/path/to/key.pem in the URL, files that are on "
    "every machine"
)


#: The parameters of a URL that name files.
CERTIFICATE_FILES = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile")


def may_want_certificate(options: Mapping[str, Any], error: BaseException | None) -> bool:
    """Whether a connection by TLS ended as it does where the client's certificate is not taken: by
    an alert, or by the server's closing it.
    """
    if not issubclass(options.get("connection_class", redis.Connection), redis.SSLConnection):
        return False
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return False  # it was the server's that was not taken
        if isinstance(error, (ssl.SSLError, ConnectionResetError, BrokenPipeError, EOFError)):
            return True
        if "closed by server" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def mask(url: object) -> str:
    """The URL without its password and parameters."""
    text = str(url)
    scheme, slashes, rest = text.partition("://") if "://" in text else ("", "", text)
    # Up to the last @, so that nothing is left of a password with odd characters.
    credentials, at, place = rest.rpartition("@")
    if "?" in credentials:
        return f"{scheme}{slashes}…"  # a parameter or a password; it cannot be told
    user, colon, _ = credentials.partition(":")
    return "".join((scheme, slashes, user, ":***" if colon else "", at, place.partition("?")[0]))


def _split(url: object) -> SplitResult | None:
    try:
        return urlsplit(url) if isinstance(url, str) else None
    except ValueError:  # such as a bracket of an IPv6 address that nothing closes
        return None


def _handshake(connection: RawConnection) -> None:
    """Opens a connection: asks which run of the server this is and loads the scripts it lacks.

    A failure anywhere fails the connection, so no script is loaded on a run it was not made for. A
    user who may load none goes by those that others have loaded in this run of the server.
    """
    run = _greet(connection)
    lacking = _lacking(connection, run)
    for name in lacking:
        connection.send_command("SCRIPT", "LOAD", script_text(name, run))
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
    run = Run.of(_text(connection.read_response()))
    connection.lakelog_run = run  # type: ignore[attr-defined]
    return run


_STRIPPED = {
    MovedError: "MOVED",
    AskError: "ASK",
    TryAgainError: "TRYAGAIN",
    MasterDownError: "MASTERDOWN",
    ClusterDownError: "CLUSTERDOWN",
    BusyLoadingError: "LOADING",
    NoScriptError: "NOSCRIPT",
}
#: What XADD says where the stream has, or had, an entry above the one that is to be added.
_ABOVE_THE_END = (
    "equal or smaller than the target stream top item",
    "has exhausted the last possible ID",
)
#: UNBLOCKED: it waited for news while the server became a replica.
_NOT_NOW = {"BUSY", "MISCONF", "NOREPLICAS", "UNBLOCKED", *_STRIPPED.values()}


def moved(error: object) -> bool:
    """Whether a cluster node says that the key is elsewhere; nothing was executed."""
    return isinstance(error, Exception) and _code(error) in {"ASK", "MOVED"}


def translate(error: Exception, where: str, key: str | None = None) -> LakelogError:
    """An error reply of Redis as lakelog's error. After such a reply, nothing was written.

    Args:
        where: the server.
        key: the first key of the command, of a partition its stream.
    """
    code = _code(error)
    if isinstance(error, OutOfMemoryError):
        return HotTierFullError(
            f"Redis at {where} is full (maxmemory reached); nothing was written. Archive and trim "
            "(lakelog archive), shorten local.retention.ms, or raise maxmemory",
            where=where,
        )
    if isinstance(error, (AuthenticationError, NoPermissionError)) or _is_missing_right(error):
        return access_error(error, where)
    if isinstance(error, ReadOnlyError):
        return HotTierUnavailableError(
            f"Redis at {where} is a read-only replica ({_reason(error)}); nothing was written. Try "
            "again: after a failover its name leads to the new primary. If it goes on, connect to "
            "the primary",
            sent=False,
            run_id=None,
        )
    if code == "NOSCRIPT":
        return HotTierUnavailableError(
            f"Redis at {where} has started, taken over or lost its scripts since somebody who may "
            "load lakelog's was connected, and this user may not (SCRIPT LOAD); nothing was "
            "written. It goes on once an archiver or admin of this version of lakelog connects "
            "(`lakelog help acl`)",
            sent=False,
            run_id=None,
        )
    if code in _NOT_NOW or "access a non local key" in str(error):  # it is gone from a moving slot
        return HotTierUnavailableError(
            f"Redis at {where} cannot take the command now ({_reason(error)}); nothing was "
            "written. Try again, and check the server if it goes on",
            sent=False,
            run_id=None,
            moved=moved(error),
        )
    if code == "WRONGTYPE" or any(one in str(error) for one in _ABOVE_THE_END):
        return ForeignEntryError(
            f"{key or 'a key of lakelog'} at {where}, or a key beside it, was written by somebody "
            f"else ({_reason(error)}); nothing was written. Find out who uses the keyspace, and "
            "give one of you another. `lakelog segments list TOPIC --verify` names an entry that "
            "stands in the way, `lakelog skip add` takes it out",
            key=key,
        )
    if "user_script" in str(error) or "not an integer" in str(error):
        # The scripts check their values before they write.
        return ForeignEntryError(
            f"{key or 'a key of lakelog'} at {where}, or a key beside it, holds what no lakelog "
            f"wrote ({_reason(error)}). Find out who uses the keyspace, and give one of you "
            "another. `lakelog segments list TOPIC --verify` says what is damaged",
            key=key,
        )
    return LakelogError(f"Redis at {where} refused the command: {_reason(error)}")


def access_error(error: Exception, where: str) -> HotTierAccessError:
    if isinstance(error, NoPermissionError) or _is_missing_right(error):
        advice = (
            "the user lacks a right. `lakelog acl ROLE --topic TOPIC` prints what a producer, "
            "consumer, reader, archiver or admin needs"
        )
    else:
        advice = "check user and password"
    return HotTierAccessError(
        f"Redis at {where} refuses the connection or command ({_reason(error)}): {advice}",
        where=where,
    )


def _is_missing_right(error: Exception) -> bool:
    """Whether a script lacked a right: that has no code, only words (Redis's, Valkey's)."""
    text = str(error)
    return "The user executing the script can't" in text or "ACL failure in script" in text


def _code(error: Exception) -> str:
    """The error's code. redis-py strips the codes it has classes for; newer versions have more."""
    return _STRIPPED.get(type(error)) or str(error).partition(" ")[0]


def _reason(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".") or type(error).__name__


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
