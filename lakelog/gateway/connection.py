"""One client's connection: frames in, answers out, in the order of the requests."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple, cast

from ..base.metrics import (
    COUNTS,
    GATEWAY_CONNECTIONS,
    GATEWAY_REFUSED,
    GATEWAY_REQUEST_BYTES,
    GATEWAY_REQUEST_SECONDS,
    GATEWAY_RESPONSE_BYTES,
)
from ..errors import LakelogError
from ..tracing.switch import tracer
from ..values.config import KIB
from . import metadata
from .dispatch import (
    API_VERSIONS,
    HANDLERS,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    SERVED,
    SERVED_WITH_SASL,
)
from .produce import produce
from .protocol.codes import ErrorCode
from .protocol.messages import (
    ApiVersionsRequest,
    ProduceRequest,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from .protocol.wire import (
    API,
    ApiMessage,
    MalformedRequestError,
    RequestHeader,
    frame_response,
    read_header,
)
from .sasl import SaslError
from .session import Session, shown
from .share_fetch import end_share_session

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct(">i")
#: Produce requests that are appended in one round trip.
_MAX_TOGETHER = 64
#: Requests that wait to be answered; a client that sends more is not read from.
_MAX_WAITING = 256

#: The largest request of a client that has not said who it is, and how long it has for that.
_MAX_STRANGER_BYTES = 64 * KIB
_STRANGER_S = 30.0
#: How long a client may take nothing of an answer, which holds memory that others wait for.
_STUCK_S = 30.0
#: How long a client waits that has failed to say who it is, so that it cannot try many passwords.
_FAILED_S = 0.5

#: In place of a header before a token of SASL that comes without one.
_TOKEN = RequestHeader(-1, 0, 0, None, 0)


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
        open_connections: where it is while it is open.
    """

    def __init__(
        self,
        open_session: Callable[[str], Session],
        open_connections: set[ClientConnection],
    ) -> None:
        self._last_active_s = self._opened_s = time.monotonic()
        self._partial_since_s: float | None = None  # a frame that is not whole yet
        self._blocked_since_s: float | None = None  # the client takes no more answers
        self._unsent_bytes = 0  # of answers, when it was looked last
        self._open_session = open_session
        self._open_connections = open_connections
        self._chunks: list[bytes] = []  # of the frame that is not whole yet
        self._chunk_bytes = 0
        self._needed = _LENGTH.size
        self._held_bytes = 0  # of memory, for the frame that is not whole yet
        self._frames: deque[Frame] = deque()
        self._sent_bytes = 0  # of answers
        self._tracer = tracer()
        self._task: asyncio.Task[None] | None = None
        self._memory_task: asyncio.Task[None] | None = None
        self._share_task: asyncio.Task[None] | None = None
        self._can_write = asyncio.Event()
        self._is_over = False
        self._is_producing = False
        self._takes_tokens = False  # of SASL, without headers

    @property
    def is_idle(self) -> bool:
        """Whether no request is under way."""
        return self._task is None or self._task.done()

    def check_time(self, now_s: float) -> None:
        """Ends the connection if the client has let it wait for too long."""
        settings = self.session.settings
        oldest_s = now_s - settings.max_idle_s
        if self._is_stuck(now_s, max(oldest_s, now_s - _STUCK_S)):
            self._refuse("it takes nothing of what it was answered")
            self._transport.abort()
        elif self._is_over:
            if self._last_active_s < oldest_s:
                self._transport.abort()
        elif not self.is_idle:
            return
        elif not self.session.is_in and self._opened_s < max(oldest_s, now_s - _STRANGER_S):
            self._refuse("it did not say in time who it is")
        elif self._partial_since_s is not None and self._partial_since_s < oldest_s:
            self._refuse(f"a request did not come whole within {settings.max_idle_s:g} s")
        elif self._last_active_s < oldest_s:
            logger.info("%s: closed: idle for %g s", self.session, settings.max_idle_s)
            self.close()

    def _is_stuck(self, now_s: float, oldest_s: float) -> bool:
        """Whether the client has taken none of what it was answered, since then."""
        if self._blocked_since_s is None:
            return False
        unsent_bytes = self._transport.get_write_buffer_size()
        if unsent_bytes != self._unsent_bytes:
            self._unsent_bytes, self._blocked_since_s = unsent_bytes, now_s
        return self._blocked_since_s < oldest_s

    # -- asyncio's side ----------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        peer = transport.get_extra_info("peername")
        self.session = self._open_session(peer[0] if peer else "")
        raw = transport.get_extra_info("socket")
        if raw is not None:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._can_write.set()
        self._open_connections.add(self)
        COUNTS.set(GATEWAY_CONNECTIONS, len(self._open_connections))

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
        self.session.forget_quiet()
        if self.session.share is not None:
            self._share_task = asyncio.ensure_future(end_share_session(self.session))
        if self.session.authentication is not None:
            self.session.authentication.close()
        self._open_connections.discard(self)
        COUNTS.set(GATEWAY_CONNECTIONS, len(self._open_connections))

    def pause_writing(self) -> None:
        self._blocked_since_s = time.monotonic()
        self._can_write.clear()

    def resume_writing(self) -> None:
        self._blocked_since_s = None
        self._can_write.set()

    def data_received(self, data: bytes) -> None:
        if self._is_over:
            return
        self._last_active_s = time.monotonic()
        if self._partial_since_s is None:
            self._partial_since_s = self._last_active_s
        self._chunks.append(data)
        self._chunk_bytes += len(data)
        if self._chunk_bytes >= self._needed:
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
            if not 0 < length <= self._max_frame_bytes:
                self._refuse(f"a request of {length} bytes; {self._what_it_may_be(data, at)}")
                return
            if not self._holds(length):
                break
            if end - at - _LENGTH.size < length:
                break
            at += _LENGTH.size
            frame = data[at : at + length]
            at += length
            try:
                header = _TOKEN if self._takes_tokens else read_header(frame)
            except MalformedRequestError as error:
                self._refuse(error.message)
                return
            self._held_bytes = 0  # they are the frame's
            self._frames.append(Frame(header, frame))
        rest = data[at:]
        self._chunks, self._chunk_bytes = [rest] if rest else [], len(rest)
        if not rest or self._waits_for_memory:
            self._partial_since_s = None
        elif at:
            self._partial_since_s = time.monotonic()
        self._needed = _LENGTH.size
        if len(rest) >= _LENGTH.size:
            self._needed += _LENGTH.unpack_from(rest)[0]
        if len(self._frames) >= _MAX_WAITING:
            self._transport.pause_reading()

    @property
    def _max_frame_bytes(self) -> int:
        most_bytes = self.session.settings.max_request_bytes
        return most_bytes if self.session.is_in else min(most_bytes, _MAX_STRANGER_BYTES)

    def _holds(self, length: int) -> bool:
        """Whether there is memory for a frame; else the client is not read from until there is."""
        if self._held_bytes:
            return True
        if self._waits_for_memory:
            return False
        if self.session.memory.take_now(length):
            self._held_bytes = length
            return True
        self._transport.pause_reading()
        self._memory_task = asyncio.ensure_future(self._wait_for_memory(length))
        return False

    @property
    def _waits_for_memory(self) -> bool:
        return self._memory_task is not None

    async def _wait_for_memory(self, length: int) -> None:
        await self.session.memory.take(length)
        self._memory_task = None
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

    def _what_it_may_be(self, data: bytes, at: int) -> str:
        start = data[at : at + 8]
        if start[:2] == b"\x16\x03":
            return "it begins TLS, which is not switched on here"
        if start[:4] in (b"GET ", b"POST", b"HEAD", b"PUT "):
            return "it is HTTP, and this is a port of Kafka's protocol"
        if not self.session.is_in:
            return "nobody sends as many before they have said who they are"
        return "it is no client of Kafka, or max_request_bytes is too small for it"

    def _refuse(self, why: str) -> None:
        if not self._is_over:
            logger.warning("%s: closed: %s", self.session, why)
            COUNTS.add(GATEWAY_REFUSED, 1)
        self._end()

    def _end(self) -> None:
        """Ends the connection, and forgets what was to be answered."""
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
        except LakelogError as error:
            self._refuse(error.message)
        except Exception:
            logger.exception("%s: closed: a request could not be answered", self.session)
            self.close()

    async def _serve_next(self) -> None:
        frames = [self._frames.popleft()]
        key = frames[0].header.api_key
        if not self.session.is_in and key not in _OF_STRANGERS:
            self.session.memory.give_back(len(frames[0].data))
            self._refuse(f"it asks for {_name(key)} before it has said who it is")
            return
        while key == PRODUCE and self._frames and len(frames) < _MAX_TOGETHER:
            if self._frames[0].header.api_key != PRODUCE:
                break
            frames.append(self._frames.popleft())
        held_bytes = sum(len(frame.data) for frame in frames)
        self.session.client_id = frames[0].header.client_id or ""
        self._is_producing = key == PRODUCE
        try:
            with self._observed(_name(key), len(frames), held_bytes):
                if key == PRODUCE:
                    await self._produce(frames)
                else:
                    await self._answer(frames[0])
            del frames
            await self._can_write.wait()
        finally:
            self._is_producing = False
            self.session.memory.give_back(held_bytes + self.session.answer_bytes)
            self.session.answer_bytes = 0

    @contextmanager
    def _observed(self, api: str, requests: int, request_bytes: int) -> Iterator[None]:
        """Counts the requests that are answered within, and makes their span."""
        began_s, sent_bytes = time.perf_counter(), self._sent_bytes
        made = self._tracer
        with nullcontext() if made is None else made.request(api, self.session.client_id):
            yield
        took_s = time.perf_counter() - began_s
        for _ in range(requests):
            COUNTS.observe(GATEWAY_REQUEST_SECONDS, took_s, api)
        COUNTS.add(GATEWAY_REQUEST_BYTES, request_bytes, api)
        COUNTS.add(GATEWAY_RESPONSE_BYTES, self._sent_bytes - sent_bytes, api)

    async def _answer(self, frame: Frame) -> None:
        header = frame.header
        if header.api_key == API_VERSIONS:
            self._answer_versions(frame)
            return
        if header.api_key == SASL_HANDSHAKE:
            await self._shake_hands(frame)
            return
        if header.api_key == SASL_AUTHENTICATE or header is _TOKEN:
            await self._authenticate(frame)
            return
        handler = HANDLERS.get(header.api_key)
        if handler is None:
            self._refuse(f"it asks for {_name(header.api_key)}, which is not served")
            return
        response = await handler(self.session, self._decoded(frame), header.version)
        self._send(header, response)

    def _answer_versions(self, frame: Frame) -> None:
        """In a version that is not known, the client is told so in the first, and asks again."""
        header, api = frame.header, API[API_VERSIONS]
        served = SERVED if self.session.authentication is None else SERVED_WITH_SASL
        if not api.min_version <= header.version <= api.max_version:
            response = metadata.versions(served, ErrorCode.UNSUPPORTED_VERSION)
            self._send(header._replace(version=0), response)
            return
        request = cast("ApiVersionsRequest", self._decoded(frame))
        metadata.note_software(self.session, request, header.version)
        self._send(header, metadata.versions(served))

    # -- who the client is -------------------------------------------------------------------------

    async def _shake_hands(self, frame: Frame) -> None:
        request = cast("SaslHandshakeRequest", self._decoded(frame))
        authentication = self.session.authentication
        if authentication is None:
            self._send(frame.header, SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE, []))
            self._refuse("it wants to say who it is (SASL), which is not switched on here")
            return
        code = authentication.shake_hands(request.mechanism)
        self._send(frame.header, SaslHandshakeResponse(code, list(authentication.mechanisms)))
        if code:
            self._refuse(f"it wants to log in by {shown(request.mechanism)}, which is not offered")
        self._takes_tokens = frame.header.version == 0 and not code

    async def _authenticate(self, frame: Frame) -> None:
        """Takes a token of SASL; who fails hears of it after a while, and is let go."""
        header, authentication = frame.header, self.session.authentication
        if authentication is None:
            self._refuse("it wants to say who it is (SASL), which is not switched on here")
            return
        if self._takes_tokens:
            token = frame.data
        else:
            token = cast("SaslAuthenticateRequest", self._decoded(frame)).auth_bytes
        try:
            answer = await authentication.answer(bytes(token))
        except SaslError as error:
            who = f" of {shown(authentication.user)}" if authentication.user else ""
            why = error.detail or error.message
            logger.warning("%s: closed: the login%s failed: %s", self.session, who, why)
            await asyncio.sleep(_FAILED_S)
            if not self._takes_tokens:
                self._send(header, SaslAuthenticateResponse(error.code, error.message))
            self._end()
            return
        if self._takes_tokens:
            self._transport.write(_LENGTH.pack(len(answer)) + answer)
            self._takes_tokens = not self.session.is_in
        else:
            self._send(header, SaslAuthenticateResponse(ErrorCode.NONE, None, answer))
        if self.session.is_in:
            self.session.log = authentication.log
            logger.info("%s: is in", self.session)

    # -- records -----------------------------------------------------------------------------------

    async def _produce(self, frames: list[Frame]) -> None:
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
        await asyncio.sleep(responses[-1].throttle_time_ms / 1000)

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
            self._sent_bytes += sum(map(len, buffers))
            self._transport.writelines(buffers)
        self._last_active_s = time.monotonic()


#: What a client may ask for before it has said who it is.
_OF_STRANGERS = frozenset({API_VERSIONS, SASL_HANDSHAKE, SASL_AUTHENTICATE, _TOKEN.api_key})


def _name(key: int) -> str:
    return API[key].name if key in API else f"API {key}"
