"""The default engine: what it looks at, and that it works where there is no Spark."""

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
from lakelog.engines.choice import Choice, SparkFacts, Work
from lakelog.engines.chosen import Choices, part_of
from lakelog.engines.engine import InlineEngine
from lakelog.errors import InvalidArgumentError, MissingExtraError, SparkUnavailableError
from lakelog.operate.verification import verify
from lakelog.spark import auto_engine
from lakelog.spark.auto_engine import AutoEngine, free_memory_bytes
from lakelog.spark.engine_by_name import choose_engine
from lakelog.spark.lazy_engine import LazySparkEngine

#: Archives all there is with the default engine, and says what it held at most.
ARCHIVE = """
import sys
from lakelog import Lakelog
from lakelog.testing.process_memory import status_bytes
with Lakelog.connect(*sys.argv[1:]) as lake:
    reports = lake.archive()
    print({choice.engine for report in reports for choice in report.engines})
print(status_bytes("VmHWM") // 1024)
"""

MUCH = Work.copying(100_000_000, 10_000_000_000)


@dataclass(frozen=True)
class Task:
    number: int
    work: Work = MUCH


def number_of(task: Task) -> int:
    return task.number


class Elsewhere(LazySparkEngine):
    """In the place of Spark: counts what it is given, or cannot start."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error
        self.ran: list[int] = []

    def run(self, function: Callable[[Any], Any], tasks: Sequence[Any]) -> Iterator[Any]:
        if self.error is not None:
            raise self.error
        self.ran.append(len(tasks))
        return map(function, tasks)


@pytest.fixture
def facts(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Sets what is known of Spark."""

    def set_to(found: SparkFacts, missing: str | None = None) -> None:
        monkeypatch.setattr(auto_engine, "spark_facts", lambda: found)
        monkeypatch.setattr(auto_engine, "why_no_spark", lambda: missing)

    return set_to


def ran(engine: AutoEngine, *tasks: Task) -> tuple[Choice, ...]:
    choices = Choices()
    with choices.watched():
        assert list(engine.map(number_of, tasks)) == [task.number for task in tasks]
    return choices.made


def test_spark_runs_what_pays_and_this_process_the_rest(facts: Callable[..., None]) -> None:
    facts(SparkFacts(cores=4))
    there = Elsewhere()
    engine = AutoEngine(there)
    (much,) = ran(engine, Task(1), Task(2))
    (little,) = ran(engine, Task(1, Work.copying(10, 1_000)), Task(2))
    assert (much.engine, there.ran) == ("spark", [2])
    assert little.engine == "inline"  # all but nothing of it could be shared
    assert ran(engine) == ()
    with part_of(MUCH + MUCH):
        (part,) = ran(engine, *(Task(n, Work.copying(10, 1_000)) for n in range(4)))
    assert (part.engine, there.ran) == ("spark", [2, 4])


def test_without_java_it_works_here_and_says_what_is_missing(facts: Callable[..., None]) -> None:
    facts(SparkFacts(cores=4), missing="Spark needs Java 17 or 21, and there is none")
    there = Elsewhere()
    (choice,) = ran(AutoEngine(there), Task(1), Task(2))
    assert choice.engine == "inline"
    assert choice.why.endswith(
        "which cannot be started: Spark needs Java 17 or 21, and there is none"
    )
    assert there.ran == []


@pytest.mark.parametrize("error", [MissingExtraError, SparkUnavailableError])
def test_a_spark_that_does_not_start_is_tried_once(
    facts: Callable[..., None], error: type[Exception]
) -> None:
    facts(SparkFacts(cores=4))
    there = Elsewhere(error("no jars\nand more"))
    engine = AutoEngine(there)
    (first,) = ran(engine, Task(1), Task(2))
    assert first == Choice("inline", "Spark could not be started: no jars")
    there.error = AssertionError("it was tried again")
    (again,) = ran(engine, Task(1), Task(2))
    assert again.why.endswith("which cannot be started: no jars")


def test_engines_have_names() -> None:
    assert isinstance(choose_engine(), AutoEngine)
    assert isinstance(choose_engine("auto"), AutoEngine)
    assert isinstance(choose_engine("spark"), LazySparkEngine)
    assert isinstance(choose_engine("inline"), InlineEngine)
    with pytest.raises(InvalidArgumentError, match="'auto', 'spark' or 'inline'"):
        choose_engine("flink")


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


def test_archive_cleanup_and_verify_report_what_they_ran_on(redis_url: str, tmp_path: Path) -> None:
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
        assert choice.why.startswith("400 records in ")
        assert f"a: engine {choice}" in str(archived).splitlines()
        cleaned, _ = lake.cleanup()
        assert cleaned.optimized
        assert {choice.engine for choice in cleaned.engines} == {"inline"}
        verified = list(verify(lake.log("a")))
        assert {one.engines for one in verified} == {verified[0].engines}  # of the whole
        (choice,) = verified[0].engines
        assert choice.why.startswith("440 records in ")


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
