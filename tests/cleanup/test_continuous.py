"""Cleaning up again and again: by the interval, through outages, until it is stopped."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cleanup.report import CleanupReport
from lakelog.cli.main import main
from lakelog.errors import CleanupFailedError, UnknownTopicOrPartitionError
from lakelog.testing.eventually import eventually
from tests.support.command_line import running
from tests.support.servers import RedisServer

EXPIRING = {"internal.segment.bytes": 200, "local.retention.ms": 0, "retention.ms": 1000}

#: Far more than any test takes.
LONG = timedelta(minutes=5)


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis(appendonly="yes", appendfsync="always")


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.set_defaults({"log.retention.check.interval.ms": 1})  # a second at least
        lake.topics.create("old", 1, EXPIRING)
        yield lake


def add_expired(lake: Lakelog, records: int = 3) -> int:
    """Archives records of which each is a segment, and expired; the log's end then."""
    with lake.producer(linger_ms=0) as producer:
        for _ in range(records):
            sent = producer.send("old", b"x" * 100, timestamp_ms=1).result()
    lake.archive("old")
    return sent.offset + 1


def log_start(lake: Lakelog) -> int:
    return lake.log("old").offsets()[0].log_start


def test_what_expires_later_goes_in_a_later_round(lake: Lakelog) -> None:
    stop = threading.Event()
    rounds = lake.clean_continuously(stop=stop, max_duration=LONG)
    for _ in range(2):
        end = add_expired(lake)
        report = next(rounds)
        assert report.topic == "old"
        assert report.retained
        assert log_start(lake) == end
    stop.set()
    assert list(rounds) == []


def test_it_ends_by_itself_after_its_time(lake: Lakelog) -> None:
    end = add_expired(lake)
    reports = list(lake.clean_continuously(max_duration=timedelta(0)))
    assert [one.topic for one in reports if one.retained] == ["old"]
    assert log_start(lake) == end


def test_it_outlives_an_outage(
    lake: Lakelog, server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    stop = threading.Event()
    rounds = lake.clean_continuously(stop=stop, max_duration=LONG)
    add_expired(lake)
    next(rounds)
    end = add_expired(lake)
    server.kill()
    found: list[CleanupReport] = []
    reader = threading.Thread(target=lambda: found.append(next(rounds)), daemon=True)
    reader.start()
    eventually(lambda: not reader.is_alive() or "cleanup failed" in caplog.text)
    server.start()
    reader.join(60)
    assert found[0].retained
    assert log_start(lake) == end


def test_a_name_of_no_topic_is_refused_at_once(lake: Lakelog) -> None:
    with pytest.raises(UnknownTopicOrPartitionError):
        next(lake.clean_continuously("no-such-topic", max_duration=LONG))


def test_what_failed_last_is_an_error_at_the_end(lake: Lakelog, tmp_path: Path) -> None:
    lake.topics.create("kept", 1, {"cleanup.policy": "compact", "internal.segment.bytes": 200})
    with lake.producer(linger_ms=0) as producer:
        for _ in range(3):
            producer.send("kept", b"x" * 100, key="a").result()
    lake.archive("kept")
    sorted((tmp_path / "cold" / "kept").rglob("archive-*.parquet"))[0].unlink()
    end = add_expired(lake)
    with pytest.raises(CleanupFailedError) as failed:
        list(lake.clean_continuously(max_duration=timedelta(0)))
    assert {one.topic for one in failed.value.reports if one.failures} == {"kept"}
    assert log_start(lake) == end  # the rest was done


def test_the_tables_alone_are_cleaned_again_and_again_too(lake: Lakelog, tmp_path: Path) -> None:
    end = add_expired(lake)
    with Lakelog.connect(None, tmp_path / "cold", engine="inline") as cold:
        assert [one.topic for one in cold.clean_continuously(max_duration=timedelta(0))] == ["old"]
    assert log_start(lake) == end - 1  # only Redis knows that all of the newest is archived


def test_a_continuous_archiver_cleans_up_as_well_where_it_is_told_to(lake: Lakelog) -> None:
    cleaned: list[CleanupReport] = []
    stop = threading.Event()
    run = lake.archive_continuously(stop=stop, max_duration=LONG, cleaned=cleaned.append)
    archiving = threading.Thread(target=lambda: list(run), daemon=True)
    archiving.start()
    for rounds in (1, 2):
        end = add_expired(lake)
        eventually(lambda end=end: log_start(lake) == end)
        eventually(lambda rounds=rounds: sum(bool(one.retained) for one in cleaned) >= rounds)
    stop.set()
    archiving.join(60)
    assert not archiving.is_alive()


@pytest.mark.parametrize(
    "command",
    [["cleanup", "run", "--continuous"], ["archive", "--continuous", "--cleanup"]],
    ids=" ".join,
)
def test_a_command_goes_on_until_it_is_told_to_stop_and_is_in_the_history(
    lake: Lakelog, server: RedisServer, tmp_path: Path, command: list[str], capsys
) -> None:
    where = ["--redis", server.url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]
    with running(*where, *command, "--max-duration", "5m", "--output", "json") as process:
        for _ in range(2):
            end = add_expired(lake)
            eventually(lambda end=end: log_start(lake) == end or process.poll() is not None)
        process.send_signal(signal.SIGTERM)
        shown, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert said.splitlines()[-1] == "finishing; again to stop now"
    if command[0] == "cleanup":
        rows = [json.loads(line) for line in shown.splitlines()]
        assert [row["step"] for row in rows].count("retain") >= 2
    assert main([*where, "history", "--output", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert " ".join(command) in json.dumps(told)


def test_one_that_starts_while_redis_is_away_begins_once_it_is_there(
    lake: Lakelog, server: RedisServer, tmp_path: Path
) -> None:
    end = add_expired(lake)
    server.kill()
    where = ["--redis", server.url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]
    with running(*where, "cleanup", "run", "--continuous") as process:
        assert process.stderr is not None
        told = []
        for line in process.stderr:
            told.append(line)
            if "again" in line:
                break
        assert "again" in "".join(told[-1:]), told
        server.start()
        eventually(lambda: log_start(lake) == end)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 0


@pytest.mark.parametrize("command", [["cleanup", "run"], ["archive"]], ids=" ".join)
def test_the_time_of_a_run_that_is_not_continuous_is_refused(
    command: list[str], server: RedisServer, tmp_path: Path, capsys
) -> None:
    where = ["--redis", server.url, "--cold", str(tmp_path / "cold")]
    assert main([*where, *command, "--max-duration", "1m"]) == 1
    assert "--continuous" in capsys.readouterr().err
