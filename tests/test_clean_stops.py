"""After a clean stop of an embedded Redis every log goes on at its next offset."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.errors import HotTierUnavailableError
from lakelog.hot.hot_log import pause_all

TIERED = {"retention.ms": -1}
UNTIERED = {"remote.storage.enable": False}


def opened(directory: Path, tenant: str | None = None) -> Lakelog:
    return Lakelog.embedded(directory, tenant=tenant, engine="inline")


def send(log: Lakelog, value: str = "a") -> int:
    with log.producer() as producer:
        return producer.send("t", value, partition=0).result().offset


@pytest.mark.parametrize("config", [TIERED, UNTIERED], ids=["tiered", "untiered"])
@pytest.mark.parametrize("tenant", [None, "acme"])
def test_a_topic_that_was_deleted_before_the_stop_comes_back_without_a_gap(
    tmp_path: Path, config: dict[str, object], tenant: str | None
) -> None:
    if tenant is not None:
        with opened(tmp_path) as log:
            log.tenants.create(tenant)
    with opened(tmp_path, tenant) as log:
        log.topics.create("t", 2, config)
        send(log)
    with opened(tmp_path, tenant) as log:
        assert send(log) == 1
        log.topics.delete("t")
    with opened(tmp_path, tenant):
        pass  # another stop, while it is kept
    with opened(tmp_path, tenant) as log:
        log.undelete("t")
        assert send(log) == 2
        assert log.log("t").offsets()[0].gaps == ()
        assert [record.offset for record in log.log("t").read(0).records()] == [0, 1, 2]
        assert log.log("t").offsets()[1].log_end == 0


def test_an_archived_topic_comes_back_without_a_gap_when_it_was_brought_back_before_the_stop(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as log:
        log.topics.create("t", 1, TIERED)
        send(log)
        log.archive("t")
        log.topics.delete("t")
    with opened(tmp_path) as log:
        log.undelete("t")
    with opened(tmp_path) as log:
        assert send(log) == 1


def test_of_two_topics_of_one_name_each_goes_on_where_it_was(tmp_path: Path) -> None:
    with opened(tmp_path) as log:
        log.topics.create("t", 1, TIERED)
        send(log)
        first = log.topics.delete("t")
        log.topics.create("t", 1, TIERED)
        send(log)
        send(log)
    with opened(tmp_path) as log:
        assert send(log) == 2
        second = log.topics.delete("t")
    with opened(tmp_path) as log:
        log.undelete("t", first.topic_id)
        assert send(log) == 1
        log.topics.delete("t")
        log.undelete("t", second.topic_id)
        assert send(log) == 3


def test_a_topic_whose_deletion_was_cut_short_by_the_stop_comes_back_without_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as log:
        log.topics.create("t", 1, TIERED)
        send(log)
        with monkeypatch.context() as patched:
            patched.setattr(type(log.topics), "_delete_partitions", _cut)
            with pytest.raises(KeyboardInterrupt):
                log.topics.delete("t")
    with opened(tmp_path) as log:
        log.undelete("t")
        assert send(log) == 1


def _cut(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_what_redis_loses_of_a_topic_that_came_back_names_no_offset_twice(
    tmp_path: Path, tenant: str | None
) -> None:
    """The mark of the clean stop is off the disk before the topic can come back."""
    if tenant is not None:
        with opened(tmp_path) as log:
            log.tenants.create(tenant)
    with opened(tmp_path, tenant) as log:
        log.topics.create("t", 1, TIERED)
        send(log)
        log.topics.delete("t")
    data, kept = tmp_path / "redis" / "appendonlydir", tmp_path / "kept"
    log = opened(tmp_path, tenant)
    shutil.copytree(data, kept)  # what a power cut leaves at best of what is written from here on
    log.undelete("t")
    assert send(log) == 1
    os.kill(json.loads((tmp_path / "redis" / "server.json").read_text())["pid"], signal.SIGKILL)
    with contextlib.suppress(HotTierUnavailableError):  # it may still be about to end
        log.close()
    shutil.rmtree(data)
    shutil.copytree(kept, data)
    with opened(tmp_path, tenant) as log:
        log.undelete("t")
        assert send(log) > 1


def test_a_pause_that_no_stop_followed_ends_for_a_topic_that_came_back_meanwhile(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as log:
        log.topics.create("t", 1, TIERED)
        send(log)
        log.topics.delete("t")
        pause_all(log.hot)
        log.undelete("t")
    with opened(tmp_path) as log:
        assert send(log) == 1
