"""``lakelog status`` as people and scripts read it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelog.cli import main as cli
from lakelog.lakelog import Lakelog
from lakelog.values.config import DAY_MS


@pytest.fixture
def status(
    redis_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    """Runs it with a cold root, or without one."""

    def status(*arguments: str, cold: bool = True, code: int = 0) -> str:
        root = ["--cold", str(tmp_path / "cold")] if cold else []
        assert cli.main(["--redis", redis_url, *root, "status", *arguments]) == code
        captured = capsys.readouterr()
        said.append(captured.err)
        return captured.out

    said: list[str] = []
    status.said = said  # type: ignore[attr-defined]
    return status


def as_json(status: Any, **more: Any) -> Any:
    return json.loads(status("--output", "json", **more))


@pytest.fixture
def make_topic(log: Lakelog) -> Callable[..., None]:
    """A topic of one partition with one record, so far ahead of now."""

    def make(name: str, *, ahead_ms: int = 0, **config: object) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        settings["message.timestamp.after.max.ms"] = 2**63 - 1
        log.topics.create(name, 1, settings)
        with log.producer() as producer:
            producer.send(name, "v", timestamp_ms=log.hot.now_ms() + ahead_ms)

    return make


def test_all_is_well(log, status, make_topic):
    assert "no topics yet" in status()
    make_topic("t")
    log.archive()
    shown = status()
    assert "cold size bytes  segments" in shown
    assert "warning" not in shown
    assert "error" not in shown
    seen = as_json(status)
    assert list(seen) == [
        "partitions",
        "errors",
        "warnings",
        "skipped",
        "archiving",
        "servers",
        "disks",
    ]
    assert seen["errors"] == seen["warnings"] == seen["skipped"] == seen["archiving"] == []
    (partition,) = seen["partitions"]
    assert partition["segments"] == 1
    assert 0 < partition["cold_size_bytes"] < 2**20


def test_a_timestamp_in_the_future_is_a_warning(status, make_topic):
    make_topic("t", ahead_ms=9 * DAY_MS)
    shown = status()
    assert "warning: segment 0 of t-0 holds a record with the timestamp" in shown
    assert "`lakelog delete-records t -p 0 --before 20" in shown
    (warning,) = as_json(status)["warnings"]
    assert (warning["topic"], warning["partition"]) == ("t", 0)


def test_a_topic_that_fails_is_a_row_and_a_sentence_and_the_exit_code(status, make_topic):
    make_topic("tiered")
    make_topic("untiered", remote_storage_enable=False)

    shown = status(cold=False, code=1)

    assert "no cold root" not in shown
    says = "lakelog: topic tiered: topic 'tiered' is tiered, but no cold root was given"
    assert status.said[-1].startswith(says)
    seen = as_json(status, cold=False, code=1)
    assert [(row["topic"], row["state"]) for row in seen["partitions"]] == [
        ("untiered", "ok"),
        ("tiered", "error"),
    ]
    (error,) = seen["errors"]
    assert error["topic"] == "tiered"
    assert "no cold root was given" in error["error"]
    assert as_json(status, code=0)["errors"] == []


def test_a_log_of_failing_topics_alone_is_told_too(status, make_topic):
    make_topic("tiered")
    shown = status(cold=False, code=1)
    assert "no topics yet" not in shown
    assert "tiered" in shown


def test_what_an_unclean_stop_skipped_is_not_called_lost(log, status, make_topic):
    make_topic("t")
    log.log("t").recover(0, 1_000_000)
    end = log.log("t").offsets()[0].log_end

    shown = status()

    assert f"t-0: offsets 1..{end - 1:,} were skipped after an unclean stop of Redis" in shown
    assert "whose last kept append was at 20" in shown
    assert "Records that may be lost: at most those appended" in shown
    assert "lost: " not in shown.replace("may be lost: ", "")
    seen = as_json(status)
    assert seen["partitions"][0]["skipped"] == f"1..{end - 1}"
    assert (seen["partitions"][0]["unarchived"], seen["partitions"][0]["lag_ms"] is None) == (
        1,
        False,
    )
    (skipped,) = seen["skipped"]
    assert (skipped["start_offset"], skipped["end_offset"]) == (1, end)
    assert skipped["last_append_ms"] <= skipped["recovered_ms"]


def test_many_gaps_are_few_sentences(log, status):
    log.topics.create("t", 9)
    for partition in range(9):
        log.log("t").recover(partition, 10)
    assert "… and 6 more; --output json has all" in status()
