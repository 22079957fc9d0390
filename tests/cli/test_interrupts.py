"""Ctrl-C, a Redis that takes no more or restarts: a process says so, and leaves no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
import redis

from lakelog import Lakelog
from lakelog.cli.produce import CHUNK_RECORDS
from lakelog.operate.check.verification import verify
from lakelog.testing.eventually import eventually
from tests.support.command_line import running
from tests.support.servers import RedisServer


@pytest.fixture
def place(redis_url: str, tmp_path: Path) -> list[str]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("t")
    return ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]


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
    client.config_set("maxmemory", client.info("memory")["used_memory"] + 4 * 2**20)
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{os.urandom(300).hex()}\n" for _ in range(20_000)))
    with lines.open() as given, running("--redis", url, "produce", "t", "--output", "json",
                                        stdin=given) as process:  # fmt: skip
        assert process.stderr is not None
        told = iter(process.stderr)
        assert any("is full" in line for line in told)  # at once, although it tries for minutes
        process.send_signal(signal.SIGINT)
        assert any("finishing" in line for line in told)
        process.send_signal(signal.SIGINT)
        said = "".join(told)
        assert process.stdout is not None
        values = json.loads(process.stdout.read())
        assert process.wait(timeout=60) == 130
    client.config_set("maxmemory", 0)
    assert values["records"] == log_end(url) > 0
    assert values["records"] + values["not_written"] + values["unknown"] == CHUNK_RECORDS
    assert f"{values['not_written']:,} records that were read are not in the log" in said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_second_stop_ends_an_archiver_at_once(
    make_redis: Callable[..., RedisServer], tmp_path: Path, number: signal.Signals
) -> None:
    server = make_redis()
    place = ["--redis", server.url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]
    with running(*place, "archive", "--continuous") as process:
        eventually(lambda: catches(process.pid, signal.SIGTERM))
        os.kill(server.pid, signal.SIGSTOP)  # so that the first stop cannot end it at once
        process.send_signal(number)
        assert process.stderr is not None
        assert process.stderr.readline() == "finishing; again to stop now\n"
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(timeout=60) == 130
    assert said == "stopped; what is not archived is in Redis, where the next run finds it\n"


@pytest.mark.parametrize(
    "more_after_s",
    [[], *(pytest.param(one, marks=pytest.mark.slow) for one in ([0.01], [0.5], [0.5, 0.5, 1.0]))],
)
def test_an_interrupted_archive_leaves_what_holds(
    make_redis: Callable[..., RedisServer], tmp_path: Path, more_after_s: list[float]
) -> None:
    """Its threads are in calls that do not return; one more Ctrl-C, or several, end it sooner."""
    server, cold = make_redis(), tmp_path / "cold"
    names = [f"t{number}" for number in range(4)]
    with Lakelog.connect(server.url, cold) as lake:
        for name in names:
            lake.topics.create(name, 2, {"local.retention.ms": 0})
            with lake.producer() as producer:
                producer.send_batch(name, [os.urandom(50) for _ in range(20_000)])
    with running("--redis", server.url, "--cold", str(cold), "archive") as process:
        eventually(lambda: any(cold.rglob("*.parquet")))
        os.kill(server.pid, signal.SIGSTOP)
        process.send_signal(signal.SIGINT)
        for after_s in more_after_s:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=after_s)
            process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    os.kill(server.pid, signal.SIGCONT)
    assert said in ("", "stopped; what is not archived is in Redis, where the next run finds it\n")
    assert process.returncode in (130, -signal.SIGINT)
    if not more_after_s:
        assert (process.returncode, said != "") == (130, True)
    with Lakelog.connect(server.url, cold) as lake:
        lake.archive()
        for name in names:
            log = lake.log(name)
            assert [found for one in verify(log) for found in one.findings] == []
            ends = {number: held.log_end for number, held in log.offsets().items()}
            assert sum(log.count(number, 0, end) for number, end in ends.items()) == 20_000


def catches(pid: int, number: signal.Signals) -> bool:
    """Whether a process handles a signal itself (Linux tells in /proc)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.split("SigCgt:")[1].split()[0], 16) & 1 << (number - 1))


def test_an_interrupt_while_it_starts_leaves_no_traceback(place: list[str]) -> None:
    """From where the command begins: each try comes later than the one before, until it runs."""
    for wait_ms in range(0, 10_000, 150):
        with running(*place, "consume", "t", "--follow") as process:
            eventually(lambda: catches(process.pid, signal.SIGINT))
            eventually(lambda: not catches(process.pid, signal.SIGINT))
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=wait_ms / 1000)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert said in ("", "stopped\n")
        assert process.returncode in (-signal.SIGINT, 130)
        if wait_ms > 1_000 and said == "stopped\n":
            return
    raise AssertionError("it never ran")


_IMPORTED = """
import signal, sys
from lakelog.cli.entry import main
class Finder:
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("msgspec", "numpy", "pyarrow", "deltalake"):
            if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
                print("interruptible import of", name)
sys.meta_path.insert(0, Finder())
sys.exit(main())
"""


@pytest.mark.parametrize("command", ["consume", "produce", "topics", "groups", "gateway"])
def test_no_interrupt_comes_up_within_the_import_of_a_library(
    place: list[str], command: str
) -> None:
    """msgspec loses one there, is left half made, and crashes the process when it is used."""
    more = {"consume": ["t"], "produce": ["t"], "gateway": ["users", "list"]}.get(command, ["list"])
    shown = subprocess.run(
        [sys.executable, "-c", _IMPORTED, *place, command, *more],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert "interruptible" not in shown.stdout
    assert "Traceback" not in shown.stderr


def test_who_follows_goes_on_after_a_restart_of_redis(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis(appendfsync="always")

    def send(value: str) -> None:
        with Lakelog.connect(server.url, tmp_path, engine="inline") as lake, lake.producer() as to:
            to.send("t", value).result()

    with Lakelog.connect(server.url, tmp_path, engine="inline") as lake:
        lake.topics.create("t")
    place = ["--redis", server.url, "--cold", str(tmp_path), "--engine", "inline"]
    with running(*place, "consume", "t", "--follow", "-f", "%s\\n", "--max", "1") as process:
        with server.client() as client:
            eventually(lambda: client.info("clients")["blocked_clients"])
        server.restart()
        send("b")
        shown, said = process.communicate(timeout=300)
    assert (process.returncode, shown) == (0, "b\n")
    assert "Traceback" not in said
    assert "tried again" in said
