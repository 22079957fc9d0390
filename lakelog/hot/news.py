"""Waits for what is appended, on an event loop: one blocking read a slot, however many wait."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from redis.exceptions import ResponseError

from ..errors import LakelogError
from .connection import Server, Servers
from .pipelines import Pipeline, Pipelines, open_pipeline
from .refusals import translate
from .waits import MAX_BLOCK_MS, POLL_MS

#: How long a read is at least under way, for each stream that it covers, before it is made anew for
#: others: a read of many streams takes Redis and us some microseconds for each.
_LEAST_S = 10e-6

#: How long a connection is kept that nobody waits on.
_IDLE_S = 30.0


class News:
    """Who waits for which streams. One read covers the streams of a slot, on a server alone all.

    A stream that the read does not cover yet has it end (``CLIENT UNBLOCK``) and begin anew.
    """

    def __init__(self, servers: Servers, pipelines: Pipelines) -> None:
        self._servers = servers
        self._pipelines = pipelines
        self._watches: dict[tuple[int, int], _Watch] = {}

    async def wait(self, positions: Mapping[str, int], timeout_s: float) -> set[str]:
        """As `Follower.wait`, of somebody who does not come back."""
        follower = Follower(self)
        try:
            return await follower.wait(positions, timeout_s)
        finally:
            follower.close()

    def watch(self, stream: str) -> _Watch:
        """What reads a stream.

        Raises:
            LakelogError: it is not known where it is.
        """
        server = self._servers.for_key(stream)
        key = (id(server), self._servers.slot(stream))
        if key not in self._watches:
            self._watches[key] = _Watch(server, self._pipelines)
        return self._watches[key]

    def close(self) -> None:
        """Ends the reads; nobody is woken any more."""
        for watch in self._watches.values():
            watch.close()
        self._watches.clear()


class Follower:
    """Somebody who waits for streams again and again. They stay covered in between."""

    def __init__(self, news: News) -> None:
        self._news = news
        self._followed: dict[str, tuple[_Watch, int]] = {}  # with the position
        self._told: set[str] = set()  # have what was waited for
        self._ended: asyncio.Future[None] | None = None

    def follows(self, stream: str, position: int) -> bool:
        """Whether the stream is followed from there on, and has had nothing since."""
        watch, followed = self._followed.get(stream, (None, -1))
        return watch is not None and followed == position

    async def wait(self, positions: Mapping[str, int], timeout_s: float) -> set[str]:
        """Returns once a stream has an id whose first number is at or above its position.

        Other streams than these are not followed any more.

        Returns:
            The streams that have one; none: the time is over.

        Raises:
            LakelogError: a server does not answer.
        """
        loop = asyncio.get_running_loop()
        self._told.clear()
        self._ended = loop.create_future()
        timer = loop.call_later(timeout_s, self._end)
        try:
            self._follow(positions)
            await self._ended
        finally:
            timer.cancel()
            self._ended = None
        return self._told & positions.keys()

    def _follow(self, positions: Mapping[str, int]) -> None:
        for stream in self._followed.keys() - positions.keys():
            self._leave(stream)
        for stream, position in positions.items():
            if not self.follows(stream, position):
                self._leave(stream)
                watch = self._news.watch(stream)
                self._followed[stream] = (watch, position)
                watch.add(stream, position, self)

    def _leave(self, stream: str) -> None:
        watch, _ = self._followed.pop(stream, (None, 0))
        if watch is not None:
            watch.leave(stream, self)

    def tell(self, stream: str) -> None:
        """The stream has what is waited for."""
        self._leave(stream)
        self._told.add(stream)
        self._end()

    def fail(self, error: LakelogError) -> None:
        """Nothing is followed any more, as a server did not answer."""
        self.close()
        if self._ended is not None and not self._ended.done():
            self._ended.set_exception(error)

    def _end(self) -> None:
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def close(self) -> None:
        """Follows nothing any more."""
        for stream in list(self._followed):
            self._leave(stream)


class _Watch:
    """The blocking read of one slot."""

    def __init__(self, server: Server, pipelines: Pipelines) -> None:
        self._server = server
        self._pipelines = pipelines
        self._waiting: dict[str, dict[Follower, int]] = {}  # by stream: position
        self._covered: dict[str, int] = {}  # of the read under way: position
        self._is_changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._may_unblock = True

    def add(self, stream: str, position: int, follower: Follower) -> None:
        self._waiting.setdefault(stream, {})[follower] = position
        if self._covered.get(stream, position + 1) > position:
            self._is_changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run())

    def leave(self, stream: str, follower: Follower) -> None:
        waiting = self._waiting.get(stream, {})
        waiting.pop(follower, None)
        if not waiting:
            self._waiting.pop(stream, None)

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _run(self) -> None:
        """Reads while anybody waits, and keeps the connection for who comes back soon."""
        pipeline: Pipeline | None = None
        try:
            while await self._has_waiting():
                if pipeline is None or not pipeline.is_open:
                    pipeline, client_id = await self._connected()
                    continue  # who waited may have left meanwhile
                await self._read_once(pipeline, client_id)
        except LakelogError as error:
            self._fail(error)
        finally:
            self._covered = {}
            if pipeline is not None:
                pipeline.close()

    async def _has_waiting(self) -> bool:
        if not self._waiting:
            self._covered = {}
            self._is_changed.clear()
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._is_changed.wait(), _IDLE_S)
        return bool(self._waiting)

    async def _connected(self) -> tuple[Pipeline, int | None]:
        pipeline = await open_pipeline(self._server, blocks=True)
        (client_id,) = await pipeline.exchange([("CLIENT", "ID")])
        return pipeline, client_id if isinstance(client_id, int) else None

    async def _read_once(self, pipeline: Pipeline, client_id: int | None) -> None:
        self._is_changed.clear()
        # A stream that nobody waits for just now, but did at that position when this began, stays.
        covered = {stream: min(own.values()) for stream, own in self._waiting.items()}
        self._covered = covered
        may_unblock = self._may_unblock and client_id is not None
        block_ms = MAX_BLOCK_MS if may_unblock else POLL_MS
        after = [f"{p - 1}-{2**64 - 1}" if p else "0-0" for p in covered.values()]
        command = ("XREAD", "COUNT", 1, "BLOCK", block_ms, "STREAMS", *covered, *after)
        reading = pipeline.exchange([command])
        changed = asyncio.ensure_future(self._is_changed.wait())
        try:
            await asyncio.wait((reading, changed), return_when=asyncio.FIRST_COMPLETED)
            if not reading.done() and may_unblock:
                await asyncio.sleep(_LEAST_S * len(covered))
                if not reading.done():
                    await self._unblock(client_id)
            (reply,) = await reading
        finally:
            changed.cancel()
        if isinstance(reply, ResponseError):
            raise translate(reply, self._server.name, next(iter(covered)))
        self._tell(reply)

    async def _unblock(self, client_id: int | None) -> None:
        shared = await self._pipelines.of(self._server)
        (reply,) = await shared.exchange([("CLIENT", "UNBLOCK", client_id)])
        if isinstance(reply, Exception):
            self._may_unblock = False  # the right to it lacks: the reads are short from now on

    def _tell(self, reply: Any) -> None:
        found: Mapping[bytes, Any] = reply if isinstance(reply, dict) else dict(reply or ())
        for name, entries in found.items():
            stream = name.decode()
            self._covered.pop(stream, None)
            last = _last_offset(entries)
            waiting = self._waiting.get(stream, {})
            for follower in [one for one, position in waiting.items() if position <= last]:
                follower.tell(stream)

    def _fail(self, error: LakelogError) -> None:
        for follower in {one for own in self._waiting.values() for one in own}:
            follower.fail(error)


def _last_offset(entries: Sequence[Any]) -> int:
    """Of the first entry that came with a stream; of a foreign id as well, which ends the wait."""
    if entries and isinstance(entries[0][0], list):  # under RESP3, one level more
        entries = entries[0]
    return int(entries[0][0].partition(b"-")[0]) if entries else -1
