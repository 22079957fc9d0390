"""Ctrl-C, and a Redis that takes no more: a process says what it did, and leaves no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

from lakelog import Lakelog
from lakelog.testing.eventually import eventually
from lakelog.testing.servers import RedisServer


@pytest.fixture
def place(redis_url: str, tmp_path: Path) -> list[str]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("t")
    return ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "lakelog", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def log_end(redis_url: str) -> int:
    with Lakelog.connect(redis_url, engine="inline") as lake:
        return lake.hot.offsets([lake.topics.get("t").partition(0)]).popitem()[1].log_end


def test_an_interrupted_produce_counts_what_is_in_the_log(place: list[str], redis_url: str) -> None:
    with running(*place, "produce", "t", "--output", "json") as process:
        assert process.stdin is not None
        process.stdin.write("a record\n" * 12_345)
        process.stdin.flush()
        eventually(lambda: log_end(redis_url) >= 10_000)  # it reads on; the others are under way
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.splitlines()[-1] == "lakelog: stopped"
    assert json.loads(shown) == {"topic": "t", "records": log_end(redis_url)}


def test_a_full_redis_counts_what_is_in_the_log(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    url = make_redis().url
    client = redis.Redis.from_url(url)
    with Lakelog.connect(url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("t")
    used = client.info("memory")["used_memory"]
    client.config_set("maxmemory", used + 8 * 2**20)
    with running("--redis", url, "produce", "t", "--output", "json") as process:
        assert process.stdin is not None
        lines = "".join(f"{os.urandom(500).hex()}\n" for _ in range(2_000))
        with suppress(BrokenPipeError):
            while process.poll() is None:
                process.stdin.write(lines)
        process.stdin = None
        shown, said = process.communicate(timeout=60)
    client.config_set("maxmemory", 0)
    values = json.loads(shown)
    assert process.returncode == 1
    assert values["records"] == log_end(url) > 0
    assert values["not_written"] > 0
    assert "is full" in said
    assert f"{values['not_written']:,} records that were read are not in the log" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_stop_ends_an_archiver_at_once(
    make_redis: Callable[..., RedisServer], tmp_path: Path, number: signal.Signals
) -> None:
    server = make_redis()
    place = ["--redis", server.url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]
    with running(*place, "archive", "--continuous") as process:
        caught(process.pid)
        os.kill(server.pid, signal.SIGSTOP)  # so that the first stop cannot end it at once
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.readline() == "finishing; again to stop now\n"
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert said == "stopped; what is not archived is in Redis, where the next run finds it\n"


def caught(pid: int) -> None:
    """Until the process catches SIGTERM (Linux tells in /proc)."""

    def catches() -> bool:
        status = Path(f"/proc/{pid}/status").read_text()
        return bool(int(status.split("SigCgt:")[1].split()[0], 16) & 1 << (signal.SIGTERM - 1))

    eventually(catches)


def test_an_interrupt_while_it_starts_leaves_no_traceback(place: list[str]) -> None:
    """At any moment: each try comes somewhat later than the one before, until one has ended."""
    ended = False
    for wait_ms in range(0, 5_000, 100):
        with running(*place, "consume", "t", "--follow") as process:
            try:
                process.wait(timeout=0.15 + wait_ms / 1000)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert said in ("", "stopped\n")
        assert process.returncode in (-signal.SIGINT, 130)
        ended = said == "stopped\n"
        if ended:
            break
    assert ended
