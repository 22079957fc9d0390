"""`lakelog explore` as a process: who is let in, what it serves, how it ends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from http.cookiejar import CookieJar
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.base.back_off import POLL, wait_until
from lakelog.cli import main as cli
from tests.support.servers import free_port

TOKEN = "a token of the test's"
WIDGET = "application/vnd.jupyter.widget-view+json"
TIMEOUT_S = 60


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    with Lakelog.embedded(tmp_path / "log", engine="inline") as lake:
        lake.topics.create("orders", 1)
        with lake.producer() as producer:
            producer.send("orders", "hello")
    return tmp_path / "log"


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts the command, and gives its process and what it says first."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        home = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA")}
        process = subprocess.Popen(
            [sys.executable, "-m", "lakelog", *arguments],
            env={**os.environ, **home, "PAGE_TOKEN": TOKEN},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stderr is not None
        return process, process.stderr.readline()

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()


class Visitor:
    """A browser without scripts."""

    def __init__(self, url: str) -> None:
        self._url = url
        cookies = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(cookies)

    def get(self, path: str) -> tuple[str, str]:
        """Where it ends up, and what it is shown."""
        return self._open(path)

    def log_in(self, path: str, html: str, token: str) -> tuple[str, str]:
        """As the form of a page does; where it ends up, and what it is shown."""
        hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', html))
        return self._open(path, urllib.parse.urlencode({**hidden, "password": token}).encode())

    def _open(self, path: str, form: bytes | None = None) -> tuple[str, str]:
        with self._opener.open(self._url + path, form, timeout=TIMEOUT_S) as answer:
            return answer.url.removeprefix(self._url), answer.read().decode()


def test_who_has_the_token_is_shown_the_page_at_any_address(
    directory: Path, serve: Callable[..., tuple[subprocess.Popen[str], str]]
) -> None:
    process, said = serve("--dir", str(directory), "explore", "--listen", "127.0.0.1:0")
    found = re.search(r"serving (http://127\.0\.0\.1:\d+)(/\?token=[\w-]{32}) \(Ctrl-C", said)
    assert found, said
    url, with_token = found.groups()
    stranger = Visitor(url)
    assert stranger.get("/orders/0/0")[0].startswith("/login?next=")
    where, html = stranger.get("/?token=wrong")
    assert where.startswith("/login?next=")
    assert "This is not the token" in html
    visitor = Visitor(url)
    where, html = visitor.get(with_token)
    assert (where, WIDGET in html) == (with_token, True)
    # The cookie lets it in from now on, and no other host is asked for anything.
    for path in ("/orders/0/0", "/~groups", "/orders?where=n%20%3E%205"):
        where, html = visitor.get(path)
        assert (where, WIDGET in html) == (path, True)
        assert not re.findall(r'(?:src|href)="https?://', html)
    process.send_signal(signal.SIGTERM)
    assert process.wait(TIMEOUT_S) == 0
    assert wait_until("kernels to end", lambda: not kernels(directory), POLL.within(TIMEOUT_S))
    assert process.stderr is not None
    assert process.stderr.read() == "lakelog: stopped\n"  # nor does a kernel say anything


def test_a_stranger_reads_whose_page_it_is_and_where_the_token_is(
    directory: Path, serve: Callable[..., tuple[subprocess.Popen[str], str]]
) -> None:
    _, said = serve("--dir", str(directory), "explore", "--listen", "127.0.0.1:0")
    url, token = re.findall(r"(http://[\d.:]+)/\?token=([\w-]+)", said)[0]
    stranger = Visitor(url)
    where, html = stranger.get("/orders/0/0")
    assert "<title>lakelog</title>" in html
    assert "The address that <code>lakelog explore</code> prints" in html
    assert "This is not the token" not in html
    assert not re.findall(r'(?:src|href)="(?!data:)', html)
    with pytest.raises(urllib.error.HTTPError) as refused:
        stranger.log_in(where, html, "another")
    assert refused.value.code == 401
    assert "This is not the token" in refused.value.read().decode()
    assert stranger.log_in(where, html, token)[0] == "/orders/0/0"


def kernels(directory: Path) -> list[int]:
    """The processes that show pages of a log."""
    found = []
    for one in Path("/proc").glob("[0-9]*"):
        try:
            if f'"dir": "{directory}"'.encode() in (one / "environ").read_bytes():
                found.append(int(one.name))
        except OSError:
            continue  # it has ended
    return found


def test_a_token_of_ones_own_is_not_said(
    directory: Path, serve: Callable[..., tuple[subprocess.Popen[str], str]]
) -> None:
    listen = ("--listen", "127.0.0.1:0", "--token-ref", "env:PAGE_TOKEN")
    process, said = serve("--dir", str(directory), "explore", *listen)
    assert re.fullmatch(r"lakelog: serving http://127\.0\.0\.1:\d+ \(Ctrl-C ends it\)\n", said)
    process.send_signal(signal.SIGINT)
    assert process.wait(TIMEOUT_S) == 0


def test_what_cannot_be_served_is_said(
    directory: Path,
    tmp_path: Path,
    serve: Callable[..., tuple[subprocess.Popen[str], str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    import socket

    with socket.create_server(("127.0.0.1", free_port())) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        process, said = serve("--dir", str(directory), "explore", "--listen", address)
        assert f"cannot be served at {address}: " in said
        assert process.wait(TIMEOUT_S) == 1
    for arguments, wanted in (
        (["--dir", str(tmp_path / "none"), "explore"], "there is no log in"),
        (["--dir", str(directory), "explore", "--listen", "here"], "is no place to listen"),
        (["--dir", str(directory), "explore", "--token-ref", "env:NOT_SET"], "NOT_SET"),
        (["--dir", str(directory), "--output", "json", "explore"], "takes no --output"),
        (["--cold", str(directory / "cold"), "explore", "--write"], "--write needs --redis"),
    ):
        assert cli.main(arguments) == 1
        assert wanted in capsys.readouterr().err
