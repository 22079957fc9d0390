"""The log that parameters name."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from lakelog.errors import (
    HotTierUnavailableError,
    InvalidArgumentError,
    UnknownTenantError,
    UnknownTopicOrPartitionError,
)
from lakelog.jobs import connect, connect_cold, doctor, parameters
from lakelog.jobs.parameters import Parameters
from lakelog.jobs.readings import SAMPLE_READINGS
from lakelog.jobs.run_record import recent_troubles
from lakelog.place import cold_root

COMMON = {
    "redis_url": "",
    "redis_password_ref": "",
    "cold": "",
    "location": "",
    "keyspace": "lakelog",
    "directory": "",
    "run_id": "",
}


@pytest.fixture(autouse=True)
def inline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")


def given(**values: Any) -> Parameters:
    return parameters(**{**COMMON, **values})


def ends(log: Any) -> dict[str, int]:
    return {
        topic.name: sum(one.log_end for one in log.log(topic).offsets().values())
        for topic in log.topics.list()
    }


def test_a_log_of_its_own_has_something_to_look_at_once(tmp_path: Path) -> None:
    for _ in range(2):
        with connect(given(directory=str(tmp_path))) as log:
            assert ends(log) == {"readings": SAMPLE_READINGS}


def test_a_topic_that_is_named_is_made_and_no_other(tmp_path: Path) -> None:
    with connect(given(directory=str(tmp_path), topics="trips, orders")) as log:
        assert ends(log) == {"orders": SAMPLE_READINGS, "trips": SAMPLE_READINGS}
    with connect(given(directory=str(tmp_path))) as log:  # there is something to look at
        assert set(ends(log)) == {"orders", "trips"}


def test_without_samples_nothing_is_made(tmp_path: Path) -> None:
    with connect(parameters(directory=str(tmp_path)), samples=False) as log:
        assert ends(log) == {}


def test_nothing_is_made_in_a_log_with_its_redis_elsewhere(redis_url: str, tmp_path: Path) -> None:
    asked = given(redis_url=redis_url, cold=str(tmp_path), keyspace="mine", topic="readings")
    with connect(asked) as log:
        assert log.topics.list() == []
        assert (str(log.place), log.hot.servers()[0].name) == (str(tmp_path), redis_url)
        assert "'mine'" in repr(log)
        with pytest.raises(UnknownTopicOrPartitionError):
            log.log("readings")


@pytest.mark.parametrize("mistyped", ["s3:/bkt/log", "s3:bkt/log", "file:log", "s3://bkt//log"])
def test_a_mistyped_root_is_refused_and_becomes_no_folder(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistyped: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ({"cold": mistyped}, {"cold": "main.logs", "location": mistyped}):
        for way in (
            lambda given: connect(given),
            lambda given: connect(given, patience=timedelta(seconds=5)),
            connect_cold,
        ):
            with pytest.raises(InvalidArgumentError, match=r"write (s3|file)://"):
                way(given(redis_url=redis_url, **place))
    (row,) = (one for one in doctor(given(cold=mistyped)) if one.what == "cold root")
    assert (row.state, "write " in row.found) == ("broken", True)
    with pytest.raises(InvalidArgumentError, match="log's directory"):
        connect(given(directory=mistyped))
    assert list(tmp_path.iterdir()) == []


def test_a_notebook_works_on_the_topics_of_a_tenant(redis_url: str, tmp_path: Path) -> None:
    with connect(given(redis_url=redis_url, cold=str(tmp_path))) as log:
        log.tenants.create("acme")
        log.topics.create("orders", 1)
    asked = given(redis_url=redis_url, cold=str(tmp_path), tenant="acme")
    with connect(asked) as log:
        log.topics.create("trips", 1, {"local.retention.ms": 0})
        with log.producer() as producer:
            producer.send("trips", b"a trip")
        log.archive()
        assert [topic.name for topic in log.topics.list()] == ["trips"]
    with connect_cold(given(cold=str(tmp_path), tenant="acme")) as log:
        assert [topic.name for topic in log.topics.list()] == ["trips"]
    with pytest.raises(UnknownTenantError, match="other"):
        connect(given(redis_url=redis_url, cold=str(tmp_path), tenant="other"))


def test_the_password_comes_by_reference(
    make_redis: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_redis(requirepass="a-secret-word")
    monkeypatch.setenv("THE_PASSWORD", "a-secret-word")
    url = f"redis://127.0.0.1:{server.port}"
    with connect(given(redis_url=url, cold=str(tmp_path), redis_password_ref="env:THE_PASSWORD")):
        pass


def test_a_redis_that_is_away_is_waited_for_and_rows_say_so(
    make_redis: Any, tmp_path: Path
) -> None:
    server = make_redis()
    place = cold_root(str(tmp_path / "cold"))
    asked = given(redis_url=server.url, cold=str(place.storage.root))
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        connect(asked)
    opened: list[Any] = []
    waiting = Thread(target=lambda: opened.append(connect(asked, patience=timedelta(minutes=5))))
    waiting.start()
    while not recent_troubles(place):
        assert waiting.is_alive()
    assert [row["topic"] for row in recent_troubles(place)] == [None]  # Redis itself
    server.start()
    waiting.join()
    with opened[0] as log:
        assert log.topics.list() == []


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"cold": "/somewhere"}, "cold"),
        ({"location": "/somewhere"}, "location"),
        ({"redis_password_ref": "env:X"}, "redis_password_ref"),
        ({"keyspace": "mine"}, "keyspace"),
        ({"redis_url": "redis://localhost:1", "directory": "/somewhere"}, "directory"),
    ],
)
def test_parameters_that_go_with_nothing_are_refused(values: dict[str, str], named: str) -> None:
    with pytest.raises(InvalidArgumentError, match=f"parameter {named} is"):
        connect(given(**values))


def test_a_cold_root_is_opened_alone_by_cold_or_by_directory(tmp_path: Path) -> None:
    with connect(given(directory=str(tmp_path))) as log:
        log.archive()
    for asked in (given(directory=str(tmp_path)), given(cold=str(tmp_path / "cold"))):
        look = connect_cold(asked).status()
        assert [(one.topic_partition.topic, one.state) for one in look.partitions] == [
            ("readings", "cold only")
        ] * 2
        assert sum(one.offsets.archived_end for one in look.partitions) == SAMPLE_READINGS
    with pytest.raises(InvalidArgumentError, match="neither cold nor directory"):
        connect_cold(given())
