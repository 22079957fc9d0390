"""``grep``: a text in any topics, as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial

import pytest

from lakelog import Lakelog

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(where: list[str], command: Run) -> Run:
    """Topics a and b of two partitions; what is archived of a is trimmed from Redis."""
    with Lakelog.connect(where[1], where[3], engine="inline") as lake:
        for name in ("a", "b"):
            lake.topics.create(name, 2, {"local.retention.ms": 0, "retention.ms": -1})
            with lake.producer() as producer:
                for n in range(6):
                    producer.send(
                        name, f"value {n}.0", key=f"k{n}", partition=n % 2, timestamp_ms=1000 * n
                    )
        lake.archive("a")
        with lake.producer() as producer:
            producer.send("a", "k1 (again)", partition=0, timestamp_ms=9000)
            producer.send("b", b"\xff.0", partition=0, timestamp_ms=9000)

    return partial(command, *where, "grep")


def found(run: Run, *arguments: str) -> list[str]:
    shown, _ = run(*arguments, "--output", "json")
    rows = map(json.loads, shown.splitlines())
    return [f"{row['topic']}-{row['partition']}@{row['offset']}" for row in rows]


def test_in_key_or_value_of_all_topics_or_some(run: Run) -> None:
    assert found(run, "k1") == ["a-1@0", "a-0@3", "b-1@0"]
    assert found(run, "k1", "b") == ["b-1@0"]
    assert found(run, "value 3", "b", "a") == ["b-1@1", "a-1@1"]
    assert found(run, "0", "a", "-p", "0", "--from", "1") == ["a-0@1", "a-0@2"]


def test_nothing_in_the_text_is_special(run: Run) -> None:
    assert found(run, "(again)") == ["a-0@3"]
    assert run("value ..0", code=1) == ("", "")
    assert run("key = 1", code=1) == ("", "")


def test_records_without_it(run: Run) -> None:
    assert found(run, "-v", "value", "a", "b") == ["a-0@3", "b-0@3"]
    assert found(run, ".0", "-v", "a") == ["a-0@3"]


def test_more_of_the_record(run: Run) -> None:
    assert found(run, "value", "--where", "offset = 2", "--key", "k5") == ["a-1@2", "b-1@2"]
    assert found(run, "value", "--max", "8") == [
        *(f"a-{n % 2}@{n // 2}" for n in range(6)), "b-0@0", "b-1@0",
    ]  # fmt: skip
    assert found(run, "value", "--from", "@4000") == ["a-0@2", "a-1@2", "b-0@2", "b-1@2"]


def test_how_many_by_topic(run: Run) -> None:
    shown, _ = run("k1", "-c", "--output", "json")
    assert json.loads(shown) == [{"topic": "a", "records": 2}, {"topic": "b", "records": 1}]
    shown, _ = run("nowhere", "a", "-c", "--output", "json", code=1)
    assert json.loads(shown) == [{"topic": "a", "records": 0}]
    shown, _ = run("-c", "--max", "2", "value", "b", "a", "--output", "json")
    assert json.loads(shown) == [{"topic": "b", "records": 2}, {"topic": "a", "records": 0}]


def test_what_cannot_be_asked_is_refused(run: Run) -> None:
    assert "no text to look for" in run("", code=1)[1]
    assert "no topic 'c'" in run("x", "c", code=1)[1]
    assert "-c counts" in run("x", "-c", "--output", "csv", code=1)[1]
