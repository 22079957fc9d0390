"""A real server with S3's API for tests, and a proxy that makes it fail on purpose."""

from __future__ import annotations

import contextlib
import http.client
import re
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

from lakelog.base.back_off import wait_until
from tests.support.servers import ANSWER_TIMEOUT_S, START_TIMEOUT_S, STARTING, free_port

#: Headers about one connection, not about the message.
_HOP_BY_HOP = {
    "connection",
    "keep-alive",
    "transfer-encoding",
    "content-length",
    "upgrade",  # Java offers to speak HTTP/2
    "http2-settings",
}


class S3Server:
    """moto's S3 in its own process on a free loopback port; it keeps everything in memory.

    Needs ``moto[server]`` (``pip install 'lakelog[dev]'``).
    """

    def __init__(self) -> None:
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> S3Server:
        with tempfile.TemporaryFile() as said:  # a line per request, too
            self._process = subprocess.Popen(
                [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(self.port)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
            if not self._await_answer(self._process):
                self.stop()
                said.seek(0)
                raise RuntimeError(
                    "moto's server did not start (is moto[server] installed?); it said:\n"
                    + said.read().decode(errors="replace")[-4000:]
                )
        return self

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def make_bucket(self, name: str) -> str:
        """Makes a bucket, and returns its URL."""
        status, said = self._request("PUT", f"/{name}")
        if status != http.client.OK:
            raise RuntimeError(f"bucket {name!r} was not made: {said.decode(errors='replace')}")
        return f"s3://{name}"

    def keys(self, bucket: str) -> list[str]:
        """All keys of a bucket that has at most 1,000, sorted."""
        text = self._request("GET", f"/{bucket}?list-type=2")[1].decode()
        return sorted(re.findall(r"<Key>(.*?)</Key>", text))

    def _await_answer(self, process: subprocess.Popen[bytes]) -> bool:
        def is_over() -> bool:
            with contextlib.suppress(OSError):
                # Who has the port otherwise may accept connections and never answer.
                self._request("GET", "/", ANSWER_TIMEOUT_S)
                return True
            return process.poll() is not None

        return wait_until("moto's answer", is_over, STARTING) and process.poll() is None

    def _request(
        self, method: str, path: str, timeout_s: float = START_TIMEOUT_S
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request(method, path)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@dataclass
class Fault:
    """A fault that happens to matching requests, `times` times.

    Args:
        method: ``PUT``, ``GET``, …
        target: a regular expression to be found in the path and query.
        status: answer with this, and S3's code for it, instead of asking the server.
        delay_s: wait this long first.
        lose_reply: let the server do it, then close the connection without an answer.
        cut_body: let the server do it, then close the connection in the middle of the answer.
        skip: let this many such requests pass unharmed first.
        times: how often it happens. None: until other faults are injected.
        hang: give no answer until other faults are injected; then go on.
        unconditional: hand it on without its condition, as a store does that knows none.
    """

    method: str
    target: str
    status: int | None = None
    delay_s: float = 0.0
    lose_reply: bool = False
    cut_body: bool = False
    skip: int = 0
    times: int | None = 1
    hang: bool = False
    unconditional: bool = False
    happened: int = field(default=0, init=False)
    seen: int = field(default=0, init=False)


def s3_options(url: str) -> dict[str, str]:
    """The storage options of a server at that URL; it takes any key."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "a key",
        "AWS_SECRET_ACCESS_KEY": "a secret word",
    }


class FaultyFront:
    """An HTTP proxy on a loopback port; faults happen to requests that pass through it."""

    CODES: ClassVar[dict[int, str]] = {
        403: "AccessDenied",
        429: "TooManyRequests",
        500: "InternalError",
        503: "SlowDown",
    }

    def __init__(self, port: int) -> None:
        self._inner_port = port
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._injected = threading.Event()
        self.requests: list[tuple[str, str, dict[str, str]]] = []  # method, path, headers
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="faulty-front", daemon=True
        )

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(self) -> FaultyFront:
        self._thread.start()
        return self

    def stop(self) -> None:
        self.inject()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def inject(self, *faults: Fault) -> None:
        """Replaces the faults that are still to happen; without any, nothing fails any more."""
        with self._lock:
            self._faults = list(faults)
            self._injected.set()  # those that hang go on
            self._injected = threading.Event()

    def fault_of(self, method: str, path: str, headers: dict[str, str]) -> Fault | None:
        """The fault that happens to a request."""
        with self._lock:
            self.requests.append((method, path, headers))
            for fault in self._faults:
                if fault.method == method and re.search(fault.target, path):
                    fault.seen += 1
                    over = fault.times is not None and fault.happened >= fault.times
                    if fault.seen > fault.skip and not over:
                        fault.happened += 1
                        return fault
        return None

    def until_injected(self) -> threading.Event:
        """Set when other faults are injected."""
        with self._lock:
            return self._injected

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """What the server answers."""
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._inner_port, timeout=START_TIMEOUT_S
        )
        try:
            connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers.items():
                if name.lower() not in _HOP_BY_HOP:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            return answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores clients that went away."""


def _handler(front: FaultyFront) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self._body()
            headers = dict(self.headers.items())
            injected = front.until_injected()
            fault = front.fault_of(self.command, self.path, headers)
            if fault is not None and fault.hang:
                injected.wait()
            if fault is not None and fault.delay_s:
                time.sleep(fault.delay_s)
            if fault is not None and fault.status is not None:
                self._send(fault.status, [("Content-Type", "application/xml")], _error(fault))
                return
            if fault is not None and fault.unconditional:
                headers = {k: v for k, v in headers.items() if k.lower() != "if-none-match"}
            status, answered, content = front.ask(self.command, self.path, headers, body)
            if fault is not None and fault.lose_reply:
                self.close_connection = True
                return
            self._send(status, answered, content, cut=fault is not None and fault.cut_body)

        do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = do_HEAD = answer

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            chunks = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                chunks.append(self.rfile.read(size))
                self.rfile.readline()
            while self.rfile.readline().strip():  # trailers
                pass
            return b"".join(chunks)

        def _send(
            self, status: int, headers: list[tuple[str, str]], content: bytes, *, cut: bool = False
        ) -> None:
            self.send_response_only(status)
            size = len(content)
            for name, value in headers:
                if self.command == "HEAD" and name.lower() == "content-length":
                    size = int(value)
                elif name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content[: size // 2] if cut else content)
            self.close_connection = self.close_connection or cut

        def log_message(self, format: str, *args: Any) -> None:
            """Logs nothing."""

    return Handler


def _error(fault: Fault) -> bytes:
    code = FaultyFront.CODES.get(fault.status or 0, "Unknown")
    return (
        f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>injected</Message></Error>"
    ).encode()
