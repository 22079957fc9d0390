"""``lakelog offsets``: what it prints, and what it says to options that are none.

Kafka's own test cases of the grammar are in tests/conformance.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lakelog.cli import main as cli
from lakelog.lakelog import Lakelog

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(where: list[str], command: Run) -> Run:
    """Topics ``a`` (12 partitions), ``a.b`` and ``axb`` (1), three records in each partition.

    Their timestamps are 1000, 3000 and 2000; of ``a.b`` the first two are archived and trimmed.
    """
    with Lakelog.connect(where[1], where[3], engine="inline") as log:
        for name, partitions, tiered in (("a", 12, False), ("a.b", 1, True), ("axb", 1, True)):
            log.topics.create(
                name, partitions, {"remote.storage.enable": tiered, "retention.ms": -1}
            )
            with log.producer() as producer:
                for number in range(partitions):
                    for time_ms in (1000, 3000, 2000):
                        producer.send(name, "v", partition=number, timestamp_ms=time_ms)
        log.archive("a.b", 2)
        log.hot.trim(log.topics.get("a.b").partition(0), 2)

    return partial(command, *where, "offsets")


@pytest.mark.parametrize(
    ("time", "lines"),
    [
        ("latest", "a.b:0:3 axb:0:3"),
        ("-1", "a.b:0:3 axb:0:3"),
        ("earliest", "a.b:0:0 axb:0:0"),
        ("-2", "a.b:0:0 axb:0:0"),
        ("max-timestamp", "a.b:0:1 axb:0:1"),
        ("-3", "a.b:0:1 axb:0:1"),
        ("earliest-local", "a.b:0:2 axb:0:0"),
        ("-4", "a.b:0:2 axb:0:0"),
        ("latest-tiered", "a.b:0:1"),
        ("-5", "a.b:0:1"),
        ("earliest-pending-upload", "a.b:0:2 axb:0:0"),
        ("-6", "a.b:0:2 axb:0:0"),
        ("0", "a.b:0:0 axb:0:0"),
        ("1001", "a.b:0:1 axb:0:1"),
        ("@3000", "a.b:0:1 axb:0:1"),
        ("3001", ""),
        ("1970-01-01T00:00:03Z", "a.b:0:1 axb:0:1"),
        ("10m ago", ""),
    ],
)
def test_the_offset_of_a_position(run: Run, time: str, lines: str) -> None:
    out, _ = run("--topic", "a.b", f"--time={time}")
    assert out.split() == lines.split()


def test_an_untiered_topic_has_neither_a_last_tiered_nor_a_pending_offset(run: Run) -> None:
    for time in ("-5", "-6"):
        assert run("a", "--time", time) == ("", "")


def test_lines_are_sorted_as_kafkas_tool_sorts_them(run: Run) -> None:
    out, _ = run("a")
    assert [line.split(":")[1] for line in out.split()] == sorted(map(str, range(12)))


def test_a_topic_by_its_name_is_no_pattern(run: Run) -> None:
    assert run("a.b") == ("a.b:0:3\n", "")
    assert run("--topic", "a.b") == ("a.b:0:3\naxb:0:3\n", "")
    assert run("a", "-p", "3,11") == ("a:11:3\na:3:3\n", "")
    assert run("a", "--partition", "3") == ("a:3:3\n", "")


def test_json_is_a_list_of_the_rows(run: Run) -> None:
    out, _ = run("--topic-partitions", "a:-2,a[.]b", "--output", "json")
    assert json.loads(out) == [
        {"topic": "a", "partition": 0, "offset": 3},
        {"topic": "a", "partition": 1, "offset": 3},
        {"topic": "a.b", "partition": 0, "offset": 3},
    ]
    assert json.loads(run("a.b", "--time", "3001", "--output", "json")[0]) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--time", "soon"], "--time 'soon' cannot be read; give epoch milliseconds"),
        (["--time", "-7"], "-6 or earliest-pending-upload"),
        (["--time", "9" * 19], "cannot be read"),
        (["--time", "9" * 5000], "cannot be read"),
        (["--time", "2013-12-30T12:00:00"], "if it is UTC, say '2013-12-30T12:00:00 UTC'"),
        (["--time", "2013-02-30 UTC"], "February 2013 has no day 30"),
        (["--topic", "a("], "--topic 'a(' is not a regular expression"),
        (["--topic", "a,,b"], "has an empty item"),
        (["--topic-partitions", "a:1,"], "has an empty item"),
        (["--topic-partitions", ""], "has an empty item"),
        (["--topic-partitions", "a:b"], "'a:b' is not of the form topic:partitions"),
        (["--topic-partitions", "a:1:2"], "'a:1:2' is not of the form"),
        (["--topic-partitions", "a:1-2-3"], "is not of the form"),
        (["--topic-partitions", "a:" + "1" * 5000], "is not of the form"),
        (["--topic-partitions", "[:0"], "is not a regular expression"),
        (["--partitions", "0-3"], "ranges go with --topic-partitions"),
        (["--partitions", "-1"], "not a list of partition numbers"),
        (["--topic-partitions", "a", "--topic", "a"], "without TOPIC, --topic and --partitions"),
        (["--topic-partitions", "a", "-p", "0"], "without TOPIC, --topic and --partitions"),
        (["a", "--topic-partitions", "a"], "without TOPIC, --topic and --partitions"),
        (["a", "--topic", "a"], "not both"),
        (["nothing"], "nothing"),
        (["a", "-p", "12"], "no topic-partition is asked for: the log holds a; loosen"),
        (["--topic", "a.b.c"], "the log holds a, a.b, axb"),
        (["--topic-partitions", "a:3-3"], "no topic-partition is asked for"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, list) else "",
)
def test_what_is_refused_says_what_to_write(run: Run, arguments: list[str], sentence: str) -> None:
    out, err = run(*arguments, code=1)
    assert out == ""
    assert err.startswith("lakelog: ")
    assert sentence in err


def test_a_topic_that_cannot_be_asked_hides_no_other(run: Run, tmp_path: Path) -> None:
    (log,) = (tmp_path / "cold").glob("a.b/*/_delta_log")
    log.rename(log.with_name("gone"))
    log.write_text("no directory")
    out, err = run("--topic-partitions", "a[.]b,axb,a:0", code=1)
    assert out == "a:0:3\naxb:0:3\n"
    assert err.startswith("lakelog: topic a.b: ")


def test_a_log_without_topics_says_so(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]
    assert cli.main([*where, "offsets"]) == 1
    assert "no topics yet" in capsys.readouterr().err
