"""A server as it is when its answers take a while: a relay of bytes in a process of its own.

``python relay.py URL DELAY_S`` prints the port that it listens on, and ends with
its standard input. What the server answers is handed on as it comes, later by the delay; what is
sent to it at once. Any number of connections wait side by side, and none is held to a rate: bytes
that came while others waited follow them at once.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast
from urllib.parse import urlsplit

READ_BYTES = 1024 * 1024

#: So much may wait to be taken by the other side, of each connection.
HELD_BYTES = 16 * 1024 * 1024


class Relay(asyncio.BufferedProtocol):
    """One direction of a connection: what comes in goes to the other side, `delay_s` later."""

    def __init__(self, delay_s: float = 0.0) -> None:
        self._delay_s = delay_s
        self._buffer = bytearray(READ_BYTES)
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[float, bytes]] = (
            deque()
        )  # when it is due, and what; b"": the end
        self._timer: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport | None = None
        self.other: Relay | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(HELD_BYTES)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._hand_on(bytes(memoryview(self._buffer)[:nbytes]))

    def eof_received(self) -> bool:
        self._hand_on(b"")
        return True  # what goes the other way still does

    def connection_lost(self, exc: Exception | None) -> None:
        self._hand_on(None)

    def pause_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if self.other is not None and self.other.transport is not None:
            self.other.transport.resume_reading()

    def _hand_on(self, content: bytes | None) -> None:
        """Nothing is the end of this direction, None that of the connection."""
        if not self._delay_s:
            self._write(content)
            return
        self._waiting.append((self._loop.time() + self._delay_s, content))
        if self._timer is None:
            self._timer = self._loop.call_at(self._waiting[0][0], self._write_due)

    def _write_due(self) -> None:
        now_s = self._loop.time()
        while self._waiting and self._waiting[0][0] <= now_s:
            self._write(self._waiting.popleft()[1])
        due = self._waiting[0][0] if self._waiting else None
        self._timer = None if due is None else self._loop.call_at(due, self._write_due)

    def _write(self, content: bytes | None) -> None:
        to = None if self.other is None else self.other.transport
        if to is None or to.is_closing():
            return
        if content is None:
            to.close()
        elif content:
            to.write(content)
        else:
            to.write_eof()


class Accepted(Relay):
    """The side of whoever connected."""

    def __init__(self, host: str, port: int, delay_s: float) -> None:
        super().__init__()
        self._server = host, port
        self._answers_s = delay_s
        self._connecting: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        assert self.transport is not None
        self.transport.pause_reading()  # until there is somebody to hand it to
        self._connecting = self._loop.create_task(self._connect())

    async def _connect(self) -> None:
        assert self.transport is not None
        answers = Relay(self._answers_s)
        answers.other = self
        try:
            await self._loop.create_connection(lambda: answers, *self._server)
        except OSError:
            self.transport.close()
            return
        self.other = answers
        if self.transport.is_closing() and answers.transport is not None:
            answers.transport.close()
        self.transport.resume_reading()


async def serve(url: str, delay_s: float) -> None:
    """Relays until the standard input ends."""
    place = urlsplit(url)
    host, port = place.hostname or "127.0.0.1", place.port or 80
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Accepted(host, port, delay_s), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


@contextmanager
def relayed(url: str, delay_s: float = 0.0) -> Iterator[str]:
    """The URL at which a server is reached whose answers come so much later, meanwhile."""
    with subprocess.Popen(
        [sys.executable, __file__, url, str(delay_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{int(process.stdout.readline())}"
        finally:
            process.stdin.close()
            process.wait()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], float(sys.argv[2])))
