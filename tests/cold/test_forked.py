"""A process that was forked from one that used Delta tables is told so."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import multiprocessing, os, sys
from lakelog import Lakelog

def look(queue, url, cold):
    try:
        with Lakelog.connect(None, cold, engine="inline") as log:
            queue.put(log.log("orders").read(0).to_arrow().num_rows)
    except BaseException as error:
        queue.put(f"{type(error).__name__}: {error}")

if __name__ == "__main__":
    url, cold, method, first = sys.argv[1:]
    if first == "used":
        with Lakelog.connect(url, cold, engine="inline") as lake:
            lake.topics.create("orders")
            with lake.producer() as producer:
                producer.send("orders", b"v")
            lake.archive()
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=look, args=(queue, url, cold))
    process.start()
    print(queue.get(timeout=60))
    process.join()
"""


@pytest.fixture
def run(redis_url: str, tmp_path: Path):
    def run(method: str, first: str) -> str:
        script = tmp_path / "script.py"
        script.write_text(SCRIPT)
        command = [sys.executable, str(script), redis_url, str(tmp_path / "cold"), method, first]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert "panicked" not in done.stderr
        return done.stdout.strip()

    return run


def test_a_fork_of_a_process_that_used_tables_ends_in_a_sentence(run) -> None:
    said = run("fork", "used")
    assert said.startswith("LogClosedError: process ")
    assert "multiprocessing.get_context('spawn')" in said


@pytest.mark.slow
def test_a_process_of_its_own_reads_the_table(run) -> None:
    assert run("spawn", "used") == "1"


@pytest.mark.slow
def test_a_fork_of_a_process_that_used_none_reads_the_table(run) -> None:
    run("spawn", "used")
    assert run("fork", "unused") == "1"
