"""Connections to Redis for one event loop: exchanges follow each other without waiting.

They are opened as `connection` opens its own, with the same handshake, so that each knows the run
of the server that answers on it. What may have been executed is known here as it is there.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, cast

import hiredis
import redis
import redis.asyncio
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.connection import DefaultParser
from redis.exceptions import (
    BusyLoadingError,
    NoPermissionError,
    NoScriptError,
    RedisError,
    ResponseError,
)

from ..errors import HotTierUnavailableError
from . import scripts
from .connection import NO_NAME, Command, Server, pack, text_of
from .foreign import ILLEGIBLE
from .refusals import reason, says_demoted
from .scripts import Run, script_sha
from .waits import LATE_S, MAX_BLOCK_MS

#: Those that are run over a pipeline; all others are left to the connections of threads.
_SCRIPTS = ("append",)

_CLASSES = {
    redis.Connection: redis.asyncio.Connection,
    redis.SSLConnection: redis.asyncio.SSLConnection,
    redis.UnixDomainSocketConnection: redis.asyncio.UnixDomainSocketConnection,
}


#: What a server says unasked, under the newer of the protocols.
_PUSHED = getattr(hiredis, "PushNotification", ())


class Pipeline(asyncio.Protocol):
    """One connection to one run of one server.

    Args:
        opened: from `open_pipeline`; it is this object's from here on.
        timeout_s: how long an answer may take; None: for ever.
    """

    def __init__(self, opened: Any, run: Run, timeout_s: float | None) -> None:
        self.run = run
        self.is_open = True
        self._opened = opened  # closes the socket where nobody refers to it
        self._timeout_s = timeout_s
        self._reader = hiredis.Reader(
            protocolError=redis.InvalidResponse, replyError=DefaultParser.parse_error
        )
        self._reader.setmaxbuf(0)  # else a large reply's buffer is made anew for each that follows
        self._waiting: deque[tuple[int, asyncio.Future[list[Any]], list[Any], float]] = deque()
        self._watch: asyncio.TimerHandle | None = None
        self._transport = cast("asyncio.Transport", opened._writer.transport)
        self._transport.set_protocol(self)

    def exchange(self, commands: Sequence[Command]) -> asyncio.Future[list[Any]]:
        """Sends commands behind those that were sent before; their replies, errors in place.

        Raises (when awaited):
            HotTierUnavailableError: no answer came; ``sent`` is True, some may have been executed.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[list[Any]] = loop.create_future()
        if not self.is_open:
            answer.set_exception(self._unavailable("the connection was closed", sent=False))
            return answer
        self._waiting.append((len(commands), answer, [], time.monotonic()))
        self._transport.writelines(list(pack(commands)))
        if self._timeout_s is not None and self._watch is None:
            self._watch = loop.call_later(self._timeout_s, self._check_time)
        return answer

    def script(self, name: str, keys: Sequence[str], args: Sequence[Any]) -> Command:
        """The command that runs a script on this run of the server."""
        return ("EVALSHA", script_sha(name, self.run), len(keys), *keys, *args)

    def data_received(self, data: bytes) -> None:
        try:
            self._reader.feed(data)
            while (reply := self._reader.gets()) is not False:
                self._take(reply)
        except (hiredis.HiredisError, RedisError) as error:
            self._end(error)

    def _take(self, reply: Any) -> None:
        if isinstance(reply, _PUSHED):
            return  # about the server's maintenance; what it does is noticed when it is done
        if not self._waiting:
            raise redis.InvalidResponse("a reply to nothing that was asked")
        count, answer, replies, _ = self._waiting[0]
        if isinstance(reply, (NoScriptError, BusyLoadingError)) or (
            isinstance(reply, ResponseError) and says_demoted(reply)
        ):
            self.is_open = False  # the next exchange finds out where the server is by now
        replies.append(reply)
        if len(replies) == count:
            self._waiting.popleft()
            if not answer.done():
                answer.set_result(replies)
        if not self.is_open and not self._waiting:
            self._transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionError("connection closed by server"))

    def close(self) -> None:
        """Ends the connection; what is under way on it has no answer."""
        self._end(ConnectionError("it was closed here"))

    def _check_time(self) -> None:
        self._watch = None
        if not self._waiting or self._timeout_s is None:
            return
        left_s = self._waiting[0][3] + self._timeout_s - time.monotonic()
        if left_s <= 0:
            self._end(TimeoutError(f"no answer within {self._timeout_s:g} s"))
        else:
            loop = asyncio.get_running_loop()
            self._watch = loop.call_later(left_s, self._check_time)

    def _end(self, error: BaseException) -> None:
        self.is_open = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._transport.abort()
        while self._waiting:
            _, answer, _, _ = self._waiting.popleft()
            if not answer.done():
                unavailable = self._unavailable(reason(error), sent=True)
                unavailable.__cause__ = error
                answer.set_exception(unavailable)
                answer.exception()  # whoever waited may have gone

    def _unavailable(self, why: str, *, sent: bool) -> HotTierUnavailableError:
        executed = "; whether the command was executed is unknown" if sent else ""
        return HotTierUnavailableError(
            f"Redis did not answer ({why}){executed}. Check that it runs and can be reached, then "
            "try again",
            sent=sent,
            run_id=self.run.run_id if sent else None,
        )


class Pipelines:
    """One pipeline to each server, opened when it is first asked for and after it has ended."""

    def __init__(self) -> None:
        self._opening: dict[int, asyncio.Task[Pipeline]] = {}
        self._open: dict[int, Pipeline] = {}

    async def of(self, server: Server) -> Pipeline:
        """The pipeline to a server.

        Raises:
            LakelogError: as `Server.wire`.
        """
        key = id(server)
        found = self._open.get(key)
        if found is not None and found.is_open:
            return found
        task = self._opening.get(key)
        if task is None:
            task = self._opening[key] = asyncio.ensure_future(open_pipeline(server))
            task.add_done_callback(lambda done: self._opened(key, done))
        return await asyncio.shield(task)

    def _opened(self, key: int, task: asyncio.Task[Pipeline]) -> None:
        del self._opening[key]
        if not task.cancelled() and task.exception() is None:
            self._open[key] = task.result()

    def close(self) -> None:
        """Ends all connections."""
        for pipeline in self._open.values():
            pipeline.close()
        self._open.clear()


async def open_pipeline(server: Server, *, blocks: bool = False) -> Pipeline:
    """A new connection to a server, with the handshake of `connection`.

    Args:
        blocks: for commands that block, for at most `MAX_BLOCK_MS`.

    Raises:
        LakelogError: as `Server.wire`.
    """
    options = dict(server.options)
    kind = _CLASSES[options.pop("connection_class", redis.Connection)]
    timeout_s = options.get("socket_timeout")
    found: list[Run] = []

    async def greet(connection: Any) -> None:
        found.append(await _handshake(connection))

    try:
        connection = kind(
            retry=Retry(NoBackoff(), 0), redis_connect_func=greet, **{**NO_NAME, **options}
        )
        await connection.connect()
    except ILLEGIBLE as error:
        raise server.not_made(error) from error
    except (RedisError, OSError) as error:
        raise server.unreachable(error) from error
    return Pipeline(connection, found[-1], MAX_BLOCK_MS / 1000 + LATE_S if blocks else timeout_s)


async def _handshake(connection: Any) -> Run:
    """As `connection._handshake`."""
    await connection.on_connect()
    await connection.send_command("INFO", "server", "replication")
    run = Run.of(text_of(await connection.read_response()))
    for name in _SCRIPTS:
        await connection.send_command("SCRIPT", "EXISTS", script_sha(name, run))
        with suppress(NoPermissionError):
            if (await connection.read_response())[0]:
                continue
        await connection.send_command("SCRIPT", "LOAD", scripts.script_text(name, run))
        with suppress(NoPermissionError):
            await connection.read_response()
    return run
