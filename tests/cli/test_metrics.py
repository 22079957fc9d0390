"""``lakelog metrics`` as people, scripts and Prometheus meet it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakelog.cli import main as cli
from lakelog.lakelog import Lakelog
from tests.support.servers import RedisServer


@pytest.fixture
def log(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        log.topics.create("t", 1)
        with log.producer() as producer:
            producer.send("t", "v")
        yield log


@pytest.fixture
def listening() -> Iterator[Callable[..., tuple[subprocess.Popen[str], str]]]:
    """Starts it in a process of its own, on a free port; gives the process and the URL."""
    started = []

    def start(*where: str) -> tuple[subprocess.Popen[str], str]:
        command = [sys.executable, "-m", "lakelog.cli.main", *where, "metrics"]
        process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
        )
        started.append(process)
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"serving (http://\S+);", line):
                return process, found[1]
        raise AssertionError("it serves nothing")

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stderr.close()


def test_text_and_json_say_the_same(log, where, capsys):
    assert cli.main([*where, "metrics"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"lakelog_log_end_offset +topic=t partition=0 +1 +offsets", text)
    assert cli.main([*where, "--output", "json", "metrics", "t"]) == 0
    rows = json.loads(capsys.readouterr().out)
    (end,) = [row for row in rows if row["metric"] == "lakelog_log_end_offset"]
    assert end == {
        "metric": "lakelog_log_end_offset",
        "kind": "gauge",
        "unit": "offsets",
        "labels": {"topic": "t", "partition": "0"},
        "value": 1.0,
    }


def test_a_textfile_is_what_prometheus_reads(log, where, tmp_path, capsys):
    path = tmp_path / "lakelog.prom"
    assert cli.main([*where, "metrics", "--textfile", str(path)]) == 0
    found = {family.name for family in text_string_to_metric_families(path.read_text("utf-8"))}
    assert {"lakelog_up", "lakelog_log_records_in"} <= found
    assert cli.main([*where, "metrics", "--textfile", str(tmp_path / "no" / "x.prom")]) == 1
    told = capsys.readouterr().err
    assert f"the metrics cannot be written to {tmp_path}/no/x.prom: No such file" in told
    assert "Name a file in a folder that is there" in told


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_until_it_is_stopped(log, where, listening, number):
    process, url = listening(*where)
    with urllib.request.urlopen(url) as answer:
        assert b'lakelog_log_end_offset{partition="0",topic="t"} 1.0' in answer.read()
    process.send_signal(number)
    _, said = process.communicate()
    assert (process.returncode, said) == (0, "lakelog: stopped\n")


def test_it_begins_also_where_redis_is_away(make_redis, tmp_path, listening):
    server: RedisServer = make_redis()
    server.kill()
    process, url = listening("--redis", server.url, "--cold", str(tmp_path / "cold"))
    with urllib.request.urlopen(url) as answer:
        assert b"\nlakelog_up 0.0\n" in answer.read()
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in said


def test_a_taken_port_is_an_error_of_two_lines(log, where, listening, capsys):
    _, url = listening(*where)
    taken = url.removeprefix("http://").removesuffix("/metrics")
    assert cli.main([*where, "metrics", "--listen", taken]) == 1
    said = capsys.readouterr().err.splitlines()
    assert said == [
        f"lakelog: cannot listen at {taken}:",
        "something listens there already. Stop it, or give another port",
    ]


def test_what_makes_no_sense_is_refused(log, where, capsys):
    assert cli.main([*where, "--output", "json", "metrics", "--listen", "127.0.0.1:0"]) == 1
    assert cli.main([*where, "metrics", "--listen", "nowhere"]) == 1
    assert cli.main(["metrics", "--listen", "127.0.0.1:0"]) == 1
    json_form, address, log_place = capsys.readouterr().err.strip().splitlines()
    assert "takes no --output" in json_form
    assert "'nowhere' is no place to listen" in address
    assert "where is the log?" in log_place


def test_the_exporter_tells_what_cleanups_of_other_processes_counted(
    log: Lakelog, where: list[str], listening: Callable[..., tuple[subprocess.Popen[str], str]]
) -> None:
    compacted = {"cleanup.policy": "compact", "internal.segment.bytes": 200}
    log.topics.create("prices", 1, compacted)
    with log.producer() as producer:
        for _ in range(8):
            producer.send("prices", b"v" * 50, key=b"k").result()
    log.archive()
    command = [sys.executable, "-m", "lakelog", *where, "cleanup", "run"]
    for _ in range(2):
        subprocess.run(command, check=True, capture_output=True, timeout=300)
    _, url = listening(*where)
    with urllib.request.urlopen(url) as answer:
        exposed = answer.read().decode()
    found = {
        (one.name, one.labels.get("topic", "")): one.value
        for family in text_string_to_metric_families(exposed)
        for one in family.samples
        if one.name.startswith("lakelog_cleaner_") and "bucket" not in one.name
    }
    assert found["lakelog_cleaner_runs_total", "prices"] == 2
    assert found["lakelog_cleaner_runs_total", "t"] == 2
    assert found["lakelog_cleaner_failures_total", "prices"] == 0
    assert found["lakelog_cleaner_failed_partitions", "prices"] == 0
    assert 0 < found["lakelog_cleaner_recopy_ratio", "prices"] < 1
    assert found["lakelog_cleaner_max_clean_seconds", "prices"] > 0
    assert ("lakelog_cleaner_recopy_ratio", "t") not in found
    assert found["lakelog_cleaner_seconds_count", ""] == 4
    assert found["lakelog_cleaner_seconds_sum", ""] > 0
