"""``lakelog cleanup``: what it prints, its JSON, its exit codes, with and without Redis."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.values.config import HOUR_MS

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(command: Run) -> Run:
    return partial(command, "--engine", "inline")


@pytest.fixture
def cold(tmp_path: Path) -> str:
    return str(tmp_path / "cold")


@pytest.fixture
def filled(redis_url: str, cold: str) -> list[str]:
    """A compacted topic of five segments and an old one of three, all archived."""
    with Lakelog.connect(redis_url, cold, engine="inline") as log:
        small = {"internal.segment.bytes": 200, "local.retention.ms": 0}
        log.topics.create("prices", 1, {**small, "cleanup.policy": "compact"})
        ahead = {"message.timestamp.after.max.ms": 10 * HOUR_MS}
        log.topics.create("events", 1, {**small, **ahead, "retention.ms": 1000})
        now_ms = log.hot.now_ms()
        with log.producer(linger_ms=0) as producer:
            for number in range(10):
                producer.send("prices", f"{number}", key=f"item {number % 2}").result()
                time_ms = now_ms - 100_000 if number < 8 else now_ms + 2 * HOUR_MS
                producer.send("events", f"{number}", timestamp_ms=time_ms).result()
        log.archive()
    return ["--redis", redis_url, "--cold", cold]


def test_a_run_does_what_the_plan_says_and_a_second_one_nothing(run: Run, filled: list[str]):
    planned = json.loads(run(*filled, "cleanup", "plan", "--output", "json")[0])
    steps = [(row["topic"], row["step"], row["action"]) for row in planned["plan"]]
    assert steps == [("events", "retain", "delete"), ("prices", "compact", "clean")]
    assert planned["plan"][0]["why"] == "retention.ms=1000"

    out, err = run(*filled, "cleanup", "run")
    assert "retain" in out
    assert "compact" in out
    assert "warning" in out  # of the timestamps to come
    assert "cleanup" in err  # the sign of life
    assert run(*filled, "cleanup", "run", "prices")[0] == "nothing to clean up: prices\n"
    (start,) = json.loads(
        run(*filled, "offsets", "events", "--time", "earliest", "--output", "json")[0]
    )
    assert start["offset"] > 0
    left = run(*filled, "consume", "prices", "--output", "json")[0].splitlines()
    assert len(left) < 10


def test_json_has_kafkas_measures(run: Run, filled: list[str]):
    done = json.loads(run(*filled, "cleanup", "run", "prices", "--output", "json")[0])["done"]
    (compacted,) = [row for row in done if row["step"] == "compact"]
    assert compacted["records_after"] == 2
    assert compacted["dirty_ratio_before"] == 1
    assert compacted["dirty_ratio_after"] == 0
    assert 0 < compacted["recopy_percent"] < 100
    assert compacted["size_bytes_after"] < compacted["size_bytes"]


def test_what_if_settings_were_changed(run: Run, filled: list[str]):
    out, _ = run(*filled, "cleanup", "plan", "events", "--set", "retention.ms=-1")
    assert "nothing would go: events" in out
    _, err = run(*filled, "cleanup", "plan", "--set", "retention.ms=soon", code=1)
    assert "retention.ms='soon' is not legal" in err
    _, err = run(*filled, "cleanup", "plan", "--set", "retention.ms", code=1)
    assert "--set 'retention.ms' should read NAME=VALUE" in err


def test_without_redis_the_tables_say_what_to_do(run: Run, filled: list[str], cold: str):
    planned = json.loads(run("--cold", cold, "cleanup", "plan", "--output", "json")[0])
    assert [row["step"] for row in planned["plan"]] == ["retain", "compact"]
    out, _ = run("--cold", cold, "cleanup", "run")
    assert "retain" in out
    assert "compact" in out
    (start,) = json.loads(
        run(*filled, "offsets", "events", "--time", "earliest", "--output", "json")[0]
    )
    assert start["offset"] > 0
    _, err = run("--cold", cold, "cleanup", "run", "nothing", code=1)
    assert "there are events, prices" in err


def test_only_some_steps(run: Run, filled: list[str]):
    out, _ = run(*filled, "cleanup", "run", "--step", "retain")
    assert "retain" in out
    assert "compact" not in out


def test_what_could_not_be_done_is_listed_and_the_exit_code_says_so(
    run: Run, filled: list[str], cold: str
):
    first = sorted(Path(cold, "prices").rglob("archive-*.parquet"))[0]
    first.unlink()
    out, err = run(*filled, "cleanup", "run", code=1)
    assert "retain" in out  # the other topic's
    assert first.name not in out
    assert "lakelog: prices-0: compact: " in err
    assert first.name in err
    assert run(*filled, "cleanup", "run", "prices", code=1)[0].startswith("nothing was cleaned up")
    failed = json.loads(run(*filled, "cleanup", "run", "--output", "json", code=1)[0])
    assert failed["failures"][0]["error"] == "MissingFileError"
    assert failed["failures"][0]["topic"] == "prices"


def test_an_untiered_topic_is_refused_by_name_and_passed_over_otherwise(
    run: Run, redis_url: str, cold: str
):
    with Lakelog.connect(redis_url, cold, engine="inline") as log:
        log.topics.create("hot", 1, {"remote.storage.enable": False})
    where = ["--redis", redis_url, "--cold", cold]
    _, err = run(*where, "cleanup", "run", "hot", code=1)
    assert "has no cold tier" in err
    assert "no topic has a cold tier" in run(*where, "cleanup", "run")[0]


def test_a_cold_root_without_tables_is_named(run: Run, tmp_path: Path):
    for verb in "run", "plan":
        out, _ = run("--cold", str(tmp_path / "typo"), "cleanup", verb)
        assert f"no topic's table lies under {tmp_path / 'typo'}" in out


def test_keyless_records_that_go_are_told(run: Run, redis_url: str, cold: str):
    with Lakelog.connect(redis_url, cold, engine="inline") as log:
        log.topics.create("late", 1, {"internal.segment.bytes": 200, "local.retention.ms": 0})
        with log.producer(linger_ms=0) as producer:
            for number in range(6):
                producer.send("late", f"{number}" * 50).result()
        log.archive()
        log.topics.alter("late", {"cleanup.policy": "compact"})
    where = ["--redis", redis_url, "--cold", cold]
    seen = json.loads(run(*where, "cleanup", "run", "--output", "json")[0])
    (warning,) = seen["warnings"]
    dropped = seen["done"][0]["keyless_dropped"]
    assert warning["topic"] == "late"
    assert f"dropped {dropped} records without a key" in warning["warning"]
    assert seen["failures"] == []
