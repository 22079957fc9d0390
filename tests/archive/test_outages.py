"""`lakelog archive --continuous` as a process, while Redis, the store or the disk are away.

Nothing here asserts how long something took; the limits are there so that what hangs fails.
"""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from lakelog import Lakelog
from lakelog.base.failpoints import ENVIRONMENT_VARIABLE, Pause
from lakelog.cli import main as cli
from lakelog.jobs import status_history
from lakelog.testing.eventually import eventually
from tests.support.object_store import Fault, FaultyFront, s3_options
from tests.support.servers import RedisServer

LIVENESS_S = 120.0

METHODS = ("GET", "HEAD", "POST", "PUT")

AT_ONCE = {"lakelog.flush.rows": 1, "lakelog.flush.interval.ms": 1}
LATER = {"lakelog.flush.rows": 1_000_000, "lakelog.flush.interval.ms": 3_600_000}


class ArchiverProcess:
    """The command, and what it says."""

    def __init__(self, url: str, cold: str, *arguments: str, **more: Any) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "lakelog.cli.main", "--redis", url, "--cold", cold),
                *("--engine", "inline", "--output", "json", "archive", "--continuous"),
                *arguments,
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **more,
        )
        self.output: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.said: list[str] = []
        self._threads = [
            threading.Thread(target=self._read_output, daemon=True),
            threading.Thread(target=self._read_errors, daemon=True),
        ]
        for thread in self._threads:
            thread.start()

    def archived(self, records: int) -> list[dict[str, Any]]:
        """Rows of its reports until they have so many records."""
        rows = []
        while sum(row["records"] for row in rows) < records:
            rows.append(self._next())
        return rows

    def says(self, text: str) -> None:
        """Wait until it has said that on standard error."""
        eventually(lambda: text in "".join(self.said) or self.process.poll() is not None)
        assert text in "".join(self.said), self.said

    def end(self, number: int = signal.SIGTERM) -> int:
        """Its exit code after a signal."""
        self.process.send_signal(number)
        code = self.process.wait(LIVENESS_S)
        for thread in self._threads:
            thread.join(LIVENESS_S)
        return code

    def _next(self) -> dict[str, Any]:
        try:
            return self.output.get(timeout=LIVENESS_S)
        except queue.Empty:
            raise AssertionError(f"nothing was archived; it said {self.said}") from None

    def _read_output(self) -> None:
        for line in self.process.stdout or ():
            self.output.put(json.loads(line))

    def _read_errors(self) -> None:
        for line in self.process.stderr or ():
            self.said.append(line)


@pytest.fixture
def start() -> Iterator[Callable[..., ArchiverProcess]]:
    started: list[ArchiverProcess] = []

    def begin(*arguments: Any, **more: Any) -> ArchiverProcess:
        started.append(ArchiverProcess(*arguments, **more))
        return started[-1]

    yield begin
    for one in started:
        one.process.kill()
        one.process.wait()


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    """Loses nothing when it is killed."""
    return make_redis(appendfsync="always")


@pytest.fixture
def cold(tmp_path: Path) -> str:
    return str(tmp_path / "cold")


@pytest.fixture
def log(server: RedisServer, cold: str) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, cold, engine="inline") as opened:
        yield opened


@pytest.fixture
def bucket(s3_front: FaultyFront, monkeypatch: pytest.MonkeyPatch) -> str:
    """A cold root behind the front; this process and those it starts know how to open it."""
    for name, value in s3_options(s3_front.url).items():
        monkeypatch.setenv(name, value)
    return f"s3://lakelog/{uuid4().hex}"


@pytest.fixture
def s3_log(server: RedisServer, bucket: str) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, bucket, engine="inline") as opened:
        yield opened


def append(log: Lakelog, topic: str, count: int = 1) -> None:
    with log.producer(delivery_timeout_ms=120_000) as producer:
        for number in range(count):
            producer.send(topic, str(number))


def archived(log: Lakelog, topic: str) -> int:
    """Records in the cold tier."""
    table = log._table(log.topics.get(topic))
    assert table is not None
    return sum(file.records for file in table.snapshot().files)


# -- Redis ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("away_s", [2.0, pytest.param(6.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_a_redis_that_is_away_for_seconds_is_waited_for(server, log, cold, start, clean, away_s):
    log.topics.create("t", 2, AT_ONCE)
    process = start(server.url, cold)
    append(log, "t", 5)
    process.archived(5)
    server.stop() if clean else server.kill()
    process.says("archiving from")
    time.sleep(away_s)  # an outage, not a wait for something
    server.start()
    append(log, "t", 7)
    process.archived(7)
    assert process.end() == 0, "".join(process.said)
    assert archived(log, "t") == 12


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://127.0.0.1:1", "is not a Redis URL"),
        ("redis://:wrong@{}", "check user and password"),
    ],
    ids=["no URL", "a wrong password"],
)
def test_what_no_wait_will_mend_ends_it(make_redis, cold, start, url, said):
    server = make_redis(requirepass="secret")
    process = start(url.format(server.url.rpartition("@")[2].removeprefix("redis://")), cold)
    assert process.process.wait(LIVENESS_S) == 1
    process.says(said)


def test_a_stop_while_redis_is_away_ends_the_process_with_a_sentence(server, log, cold, start):
    log.topics.create("t", 1, AT_ONCE)
    process = start(server.url, cold)
    append(log, "t", 5)
    process.archived(5)
    server.kill()
    process.says("archiving from")
    assert process.end() == 1
    assert "the run ended before all was archived" in "".join(process.said)
    assert "cannot reach Redis" in "".join(process.said)


# -- the store -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "status", [403, *(pytest.param(status, marks=pytest.mark.slow) for status in (429, 500))]
)
def test_a_store_that_refuses_one_topic_refuses_no_other(
    server, s3_log, bucket, s3_front, start, capsys, status
):
    for name in ("refused", "other"):
        s3_log.topics.create(name, 1, AT_ONCE)
    s3_front.inject(*(Fault(method, "refused", status=status, times=None) for method in METHODS))
    process = start(server.url, bucket)
    append(s3_log, "refused", 3)
    for _ in range(5):
        append(s3_log, "other", 2)
        assert {row["topic"] for row in process.archived(2)} == {"other"}
    process.says("archiving refused failed")
    eventually(lambda: bool(s3_log.hot.beats().alive()))

    def said() -> list[dict[str, Any]]:
        code = cli.main(
            ["--redis", server.url, "--cold", bucket, "--output", "json", "status", "other"]
        )
        assert code == 0
        return list(json.loads(capsys.readouterr().out)["archiving"])

    # Where the store is asked again for long, the first call is told of before it has returned.
    eventually(lambda: any(trouble["tries"] for trouble in said()))
    (trouble,) = said()
    assert trouble["topic"] == "refused"
    assert trouble["since_ms"] <= time.time_ns() // 1_000_000
    assert re.search(rf"{status}|ACCESS_DENIED|SLOW_DOWN|INTERNAL", trouble["why"])
    eventually(
        lambda: any(
            row["topic"] == "refused" and row["state"] == "not archived"
            for row in status_history(s3_log).to_pylist()
        )
    )
    s3_front.inject()
    assert {row["topic"] for row in process.archived(3)} == {"refused"}
    assert process.end() == 0, "".join(process.said)


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_store_that_hangs_does_not_hold_up_a_stop(
    server, s3_log, bucket, s3_front, start, number
):
    for name in ("hangs", "other"):
        s3_log.topics.create(name, 1, LATER)
    process = start(server.url, bucket)
    eventually(lambda: bool(s3_log.hot.beats().alive()))
    s3_front.inject(
        *(Fault(m, "hangs", hang=True, times=None) for m in ("PUT", "POST", "GET", "HEAD"))
    )
    for name in ("hangs", "other"):
        append(s3_log, name, 4)
    assert process.end(number) == 1
    said = "".join(process.said)
    s3_front.inject()
    if "hangs: not archived" in said:
        assert "What is left is in Redis" in said
        assert archived(s3_log, "other") == 4  # what could be archived was
    else:  # a machine that is too slow to end in order within the time for that
        assert "what is not archived is in Redis" in said
    s3_log.archive()
    assert archived(s3_log, "other") == 4
    assert archived(s3_log, "hangs") == 4  # and nothing is lost or doubled


# -- many topics, and stops ----------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_drains_what_no_policy_asked_for(server, log, cold, start, number):
    for name in ("one", "two"):
        log.topics.create(name, 2, LATER)
    log.topics.create("warm", 1, AT_ONCE)  # a first commit takes what a stop has not
    append(log, "warm", 1)
    process = start(server.url, cold)
    process.archived(1)
    eventually(lambda: bool(log.hot.beats().alive()))
    for name in ("one", "two"):
        append(log, name, 9)
    assert process.end(number) == 0, process.said
    assert (archived(log, "one"), archived(log, "two")) == (9, 9)
    assert log.hot.beats().alive() == {}


def test_a_stop_reaches_a_process_whose_output_nobody_reads(server, log, cold):
    log.topics.create("t", 1, AT_ONCE)
    read, write = os.pipe()
    os.set_blocking(write, False)
    with suppress(BlockingIOError):
        while True:
            os.write(write, b"x" * 4096)
    os.set_blocking(write, True)
    with ExitStack() as stack:
        stack.callback(os.close, read)
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "lakelog.cli.main", "--redis", server.url),
                *("--cold", cold, "--engine", "inline", "archive", "--continuous"),
            ],
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
        )
        stack.callback(process.wait)
        stack.callback(process.kill)
        os.close(write)
        append(log, "t", 3)
        eventually(lambda: archived(log, "t") == 3)
        time.sleep(0.5)  # so that it prints: that it hangs in a write, nothing tells outside of it
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=LIVENESS_S)
    assert process.returncode == 1
    assert "did not in time" in said


# -- processes of others -------------------------------------------------------------------------

UNFINISHED = """
import atexit, sys, threading
from lakelog import Lakelog
log = Lakelog.connect(sys.argv[1], sys.argv[2], engine="inline")
producer = log.producer(linger_ms=60_000)
producer.send("other", b"left to the end")
run = log.archive_continuously(["t"])
threading.Thread(target=lambda: list(run), daemon=True).start()
atexit.register(print, "others are told")
sys.stdin.readline()
"""


@pytest.mark.parametrize("hangs", [True, False])
def test_a_process_that_ends_within_a_call_does_not_crash(server, log, cold, tmp_path, hangs):
    log.topics.create("t", 1, AT_ONCE)
    log.topics.create("other", 1)
    append(log, "t", 5)
    folder = tmp_path / "paused"
    folder.mkdir()
    pause = Pause(folder)
    process = subprocess.Popen(
        [sys.executable, "-c", UNFINISHED, server.url, cold],
        env={**os.environ, ENVIRONMENT_VARIABLE: f"archive.after_copy=pause:{folder}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert pause.wait_reached(lambda: process.poll() is not None)
    if not hangs:
        pause.release()
    said, errors = process.communicate("\n", timeout=LIVENESS_S)
    assert process.returncode == (1 if hangs else 0), errors
    assert ("did not return in time" in errors) == hangs
    assert said == "others are told\n"
    assert log.log("other").offsets()[0].log_end == 1
    log.archive("t")
    assert archived(log, "t") == 5
