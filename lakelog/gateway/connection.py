"""One client's connection: frames in, answers out, in the order of the requests."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple, cast

from . import metadata
from .dispatch import API_VERSIONS, HANDLERS, PRODUCE, SERVED
from .produce import produce
from .protocol.codes import ErrorCode
from .protocol.messages import ApiVersionsRequest, ProduceRequest
from .protocol.wire import (
    API,
    ApiMessage,
    MalformedRequestError,
    RequestHeader,
    frame_response,
    read_header,
)
from .session import Session

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct(">i")
#: Produce requests that are appended in one round trip.
_MAX_TOGETHER = 64
#: Requests that wait to be answered; a client that sends more is not read from.
_MAX_WAITING = 256


class Frame(NamedTuple):
    """A request, undecoded but for its header."""

    header: RequestHeader
    data: bytes


class ClientConnection(asyncio.Protocol):
    """Serves one connection.

    Requests are answered one after the other, as Kafka's brokers do, but for produce requests that
    follow each other: those are appended together.

    Args:
        open_session: makes the session, given the client's host.
        on_closed: called once, when the connection is over.
        is_refused: it is closed as soon as it is there.
    """

    def __init__(
        self,
        open_session: Callable[[str], Session],
        on_closed: Callable[[ClientConnection], None],
        *,
        is_refused: bool = False,
    ) -> None:
        self.last_active_s = time.monotonic()
        self._open_session = open_session
        self._on_closed = on_closed
        self._chunks: list[bytes] = []  # of the frame that is not whole yet
        self._chunk_bytes = 0
        self._needed = _LENGTH.size
        self._held_bytes = 0  # of memory, for the frame that is not whole yet
        self._frames: deque[Frame] = deque()
        self._task: asyncio.Task[None] | None = None
        self._memory_task: asyncio.Task[None] | None = None
        self._can_write = asyncio.Event()
        self._is_over = is_refused
        self._is_producing = False

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self._task is None or self._task.done()

    # -- asyncio's side ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.session = self._open_session(peer[0] if peer else "")
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._is_over:
            transport.close()
        self._can_write.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """What was sent to be produced is, as by a broker: with acks=0 nobody waits for more."""
        self._is_over = True
        self._can_write.set()
        if self._task is not None and not self._is_producing:
            self._task.cancel()
            self._task = None
        kept = [frame for frame in self._frames if frame.header.api_key == PRODUCE]
        gone_bytes = sum(len(frame.data) for frame in self._frames if frame not in kept)
        self._give_back(self._held_bytes + gone_bytes)
        self._frames = deque(kept)
        if kept and self.is_idle:
            self._task = asyncio.ensure_future(self._serve())
        self._on_closed(self)

    def pause_writing(self) -> None:
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._can_write.set()

    def data_received(self, data: bytes) -> None:
        self.last_active_s = time.monotonic()
        self._chunks.append(data)
        self._chunk_bytes += len(data)
        if self._chunk_bytes >= self._needed and not self._is_over:
            self._split()
        if self._frames and self.is_idle:
            self._task = asyncio.ensure_future(self._serve())

    def close(self) -> None:
        """Ends the connection; what was sent to the client still goes out."""
        self._is_over = True
        self._transport.close()

    # -- frames ------------------------------------------------------------------------------------

    def _split(self) -> None:
        """Takes the whole frames off what came."""
        data = self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)
        at, end = 0, len(data)
        while end - at >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(data, at)
            if not 0 < length <= self.session.settings.max_request_bytes:
                self._refuse(f"a request of {length} bytes; {self._what_it_may_be(data, at)}")
                return
            if not self._holds(length):
                break
            if end - at - _LENGTH.size < length:
                break
            self._held_bytes = 0
            at += _LENGTH.size
            frame = data if length == end else data[at : at + length]
            at += length
            try:
                self._frames.append(Frame(read_header(frame), frame))
            except MalformedRequestError as error:
                self._refuse(error.message)
                return
        rest = data[at:]
        self._chunks, self._chunk_bytes = [rest] if rest else [], len(rest)
        self._needed = _LENGTH.size
        if len(rest) >= _LENGTH.size:
            self._needed += _LENGTH.unpack_from(rest)[0]
        if len(self._frames) >= _MAX_WAITING:
            self._transport.pause_reading()

    def _holds(self, length: int) -> bool:
        """Whether there is memory for a frame; else the client is not read from until there is."""
        if self._held_bytes:
            return True
        if self.session.memory.take_now(length):
            self._held_bytes = length
            return True
        self._transport.pause_reading()
        self._memory_task = asyncio.ensure_future(self._wait_for_memory(length))
        return False

    async def _wait_for_memory(self, length: int) -> None:
        await self.session.memory.take(length)
        if self._is_over:
            self._give_back(length)
            return
        self._held_bytes = length
        self._transport.resume_reading()
        self.data_received(b"")

    def _give_back(self, size_bytes: int) -> None:
        if size_bytes:
            self.session.memory.give_back(size_bytes)
        self._held_bytes = 0

    @staticmethod
    def _what_it_may_be(data: bytes, at: int) -> str:
        start = data[at : at + 8]
        if start[:3] == b"\x16\x03\x01":
            return "it begins TLS, which is not switched on here"
        if start[:4] in (b"GET ", b"POST", b"HEAD", b"PUT "):
            return "it is HTTP, and this is a port of Kafka's protocol"
        return "it is no client of Kafka"

    def _refuse(self, why: str) -> None:
        logger.warning("%s: closed: %s", self.session, why)
        self._chunks, self._chunk_bytes = [], 0
        self._give_back(self._held_bytes + sum(len(frame.data) for frame in self._frames))
        self._frames.clear()
        self.close()

    # -- answers -----------------------------------------------------------------------------------

    async def _serve(self) -> None:
        try:
            while self._frames:
                if len(self._frames) == _MAX_WAITING - 1 and not self._is_over:
                    self._transport.resume_reading()
                await self._serve_next()
        except MalformedRequestError as error:
            self._refuse(error.message)
        except asyncio.CancelledError:
            raise
        except Exception:
            logger.exception("%s: closed: a request could not be answered", self.session)
            self.close()

    async def _serve_next(self) -> None:
        frames = [self._frames.popleft()]
        key = frames[0].header.api_key
        while key == PRODUCE and self._frames and len(frames) < _MAX_TOGETHER:
            if self._frames[0].header.api_key != PRODUCE:
                break
            frames.append(self._frames.popleft())
        held_bytes = sum(len(frame.data) for frame in frames)
        self._is_producing = key == PRODUCE
        try:
            if key == PRODUCE:
                await self._produce(frames)
            else:
                await self._answer(frames[0])
        finally:
            self._is_producing = False
            del frames
            self.session.memory.give_back(held_bytes)
            await self._written()

    async def _written(self) -> None:
        """Waits until the client has taken most of what was answered."""
        try:
            await self._can_write.wait()
        finally:
            held_bytes, self.session.held_bytes = self.session.held_bytes, 0
            self.session.memory.give_back(held_bytes)

    async def _answer(self, frame: Frame) -> None:
        header = frame.header
        self.session.client_id = header.client_id or ""
        if header.api_key == API_VERSIONS:
            self._answer_versions(frame)
            return
        handler = HANDLERS.get(header.api_key)
        if handler is None:
            self._refuse(f"it asks for API {header.api_key}, which is not served")
            return
        response = await handler(self.session, self._decoded(frame), header.version)
        self._send(header, response)

    def _answer_versions(self, frame: Frame) -> None:
        """In a version that is not known, the client is told so in the first, and asks again."""
        header, api = frame.header, API[API_VERSIONS]
        if not api.min_version <= header.version <= api.max_version:
            response = metadata.versions(SERVED, ErrorCode.UNSUPPORTED_VERSION)
            self._send(header._replace(version=0), response)
            return
        request = cast("ApiVersionsRequest", self._decoded(frame))
        metadata.note_software(self.session, request, header.version)
        self._send(header, metadata.versions(SERVED))

    async def _produce(self, frames: list[Frame]) -> None:
        self.session.client_id = frames[0].header.client_id or ""
        requests = [
            (cast("ProduceRequest", self._decoded(frame)), frame.header.version) for frame in frames
        ]
        responses = await produce(self.session, requests)
        for frame, (request, _), response in zip(frames, requests, responses, strict=True):
            if request.acks:
                self._send(frame.header, response)
            elif any(
                one.error_code for topic in response.responses for one in topic.partition_responses
            ):
                # Who does not wait for an answer hears of a refusal by this alone, as with Kafka.
                self._refuse("a batch of a producer with acks=0 was refused")
                return

    def _decoded(self, frame: Frame) -> ApiMessage:
        header = frame.header
        api = API[header.api_key]
        if not api.min_version <= header.version <= api.max_version:
            raise MalformedRequestError(
                f"{api.name} of version {header.version}; {api.min_version}..{api.max_version} are "
                "served"
            )
        return api.request.decode(header.version, memoryview(frame.data), header.body_position)

    def _send(self, header: RequestHeader, response: ApiMessage) -> None:
        if not self._is_over:
            buffers = frame_response(
                header.api_key, header.version, header.correlation_id, response
            )
            self._transport.writelines(buffers)
        self.last_active_s = time.monotonic()
