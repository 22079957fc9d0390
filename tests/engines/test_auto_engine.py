"""The default engine: what it goes by, and that it works where there is no Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lakelog import Lakelog
from lakelog.engines.engine import Choice, Choices
from lakelog.engines.spark import SparkEngine
from lakelog.errors import MissingExtraError, SparkUnavailableError
from lakelog.operate.check.verification import verify
from lakelog.spark import auto_engine
from lakelog.spark.auto_engine import START_BYTES, AutoEngine, free_memory_bytes

#: Archives all there is with the default engine, and says what it held at most.
ARCHIVE = """
import sys
from lakelog import Lakelog
from tests.support.process_memory import status_bytes
with Lakelog.connect(*sys.argv[1:]) as lake:
    reports = lake.archive()
    print({choice.engine for report in reports for choice in report.engines})
print(status_bytes("VmHWM") // 1024)
"""


@dataclass(frozen=True)
class Task:
    number: int
    size_bytes: int = START_BYTES


def number_of(task: Task) -> int:
    return task.number


class Elsewhere(SparkEngine):
    """In the place of Spark: counts what it is given, or cannot start."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__(None)  # type: ignore[arg-type]
        self.error = error
        self.ran: list[int] = []

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        if self.error is not None:
            raise self.error
        self.ran.append(len(tasks))
        return map(function, tasks)


@pytest.fixture
def spark_is(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what is known of Spark."""

    def set_to(*, running: bool = False, missing: str | None = None) -> None:
        monkeypatch.setattr(auto_engine, "is_running", lambda: running)
        monkeypatch.setattr(auto_engine, "why_no_spark", lambda: missing)

    return set_to


def ran(engine: AutoEngine, *tasks: Task) -> tuple[Choice, ...]:
    choices = Choices()
    with choices.watched():
        assert list(engine.map(number_of, tasks)) == [task.number for task in tasks]
    return choices.made


def test_a_spark_that_is_running_does_all(spark_is: Callable[..., None]) -> None:
    spark_is(running=True)
    there = Elsewhere()
    assert ran(AutoEngine(there), Task(1, 10)) == (Choice("spark", "it is running"),)
    assert there.ran == [1]
    assert ran(AutoEngine(there)) == ()


def test_another_is_started_for_much_work_and_this_process_does_the_rest(
    spark_is: Callable[..., None],
) -> None:
    spark_is()
    there = Elsewhere()
    engine = AutoEngine(there)
    half = START_BYTES // 2
    assert ran(engine, Task(1, half), Task(2, half)) == (Choice("spark", "2.0 GiB of records"),)
    (little,) = ran(engine, Task(1, half), Task(2, 1000))
    assert (little.engine, there.ran) == ("inline", [2])
    assert little.why == "1.0 GiB of records; Spark is started from 2.0 GiB on"


def test_without_java_it_works_here_and_says_what_is_missing(
    spark_is: Callable[..., None],
) -> None:
    spark_is(missing="Spark needs Java 17 or 21, and there is none")
    there = Elsewhere()
    (choice,) = ran(AutoEngine(there), Task(1), Task(2))
    assert choice.engine == "inline"
    assert choice.why.endswith(
        "Spark cannot be started: Spark needs Java 17 or 21, and there is none"
    )
    assert there.ran == []


@pytest.mark.parametrize("error", [MissingExtraError, SparkUnavailableError])
def test_a_spark_that_does_not_start_is_tried_once(
    spark_is: Callable[..., None], error: type[Exception]
) -> None:
    spark_is()
    there = Elsewhere(error("no jars\nand more"))
    engine = AutoEngine(there)
    (first,) = ran(engine, Task(1), Task(2))
    assert first == Choice("inline", "Spark could not be started: no jars")
    there.error = AssertionError("it was tried again")
    (again,) = ran(engine, Task(1), Task(2))
    assert again.why.endswith("Spark cannot be started: no jars")


def test_free_memory_is_what_machine_and_container_leave(tmp_path: Path) -> None:
    meminfo, cgroup = tmp_path / "meminfo", tmp_path / "cgroup"
    assert free_memory_bytes(meminfo, cgroup) is None
    meminfo.write_text("MemTotal: 9 kB\nMemAvailable:   8192 kB\n")
    assert free_memory_bytes(meminfo, cgroup) == 8192 * 1024
    cgroup.mkdir()
    (cgroup / "memory.max").write_text("max\n")
    assert free_memory_bytes(meminfo, cgroup) == 8192 * 1024
    (cgroup / "memory.max").write_text("5000\n")
    (cgroup / "memory.current").write_text("4000\n")
    (cgroup / "memory.stat").write_text("anon 10\ninactive_file 3000\n")
    assert free_memory_bytes(meminfo, cgroup) == 4000


def test_archive_cleanup_and_verify_report_what_they_ran_on(
    redis_url: str, tmp_path: Path, spark_is: Callable[..., None]
) -> None:
    spark_is()
    with Lakelog.connect(redis_url, tmp_path / "cold") as lake:
        for name in ("a", "b"):
            lake.topics.create(name, 2)
        for records in (40, 400):  # the larger file is merged with the one before
            with lake.producer() as producer:
                for number in range(records):
                    producer.send("a", b"%d" % number, partition=number % 2)
            archived, idle = lake.archive()
            assert [choice.engine for choice in archived.engines] == ["inline"]
            assert idle.engines == ()
        (choice,) = archived.engines
        assert f"a: engine {choice}" in str(archived).splitlines()
        cleaned, _ = lake.cleanup()
        assert cleaned.optimized
        assert {choice.engine for choice in cleaned.engines} == {"inline"}
        verified = list(verify(lake.log("a")))
        assert {choice.engine for one in verified for choice in one.engines} == {"inline"}


@pytest.mark.slow
def test_what_it_archives_here_stays_below_512_mib(redis_url: str, tmp_path: Path) -> None:
    """Several topics at a time, of more than that together."""
    values = [os.urandom(64 * 1024) for _ in range(400)]
    with Lakelog.connect(redis_url, tmp_path / "cold") as lake:
        for number in range(6):
            lake.topics.create(f"t{number}", 2)
            with lake.producer(compression_type="none") as producer:
                for _ in range(4):
                    producer.send_batch(f"t{number}", values)
    done = subprocess.run(
        [sys.executable, "-c", ARCHIVE, redis_url, str(tmp_path / "cold")],
        capture_output=True,
        text=True,
        check=True,
    )
    engines, peak_kib = done.stdout.splitlines()
    assert engines == "{'inline'}"
    assert int(peak_kib) < 512 * 1024
