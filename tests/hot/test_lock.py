"""A lock is held by one at a time, and ends by itself when its holder is gone."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from lakelog.base.back_off import BackOff
from lakelog.errors import ConcurrentChangeError, UnknownTopicIdError
from lakelog.hot import HotLog, lock


def test_one_at_a_time_makes_the_names_of_a_topic(bench) -> None:
    inside, most, times = 0, 0, 0

    def make_names() -> None:
        nonlocal inside, most, times
        for _ in range(20):
            with bench.hot.naming(bench.topic):
                inside += 1
                most = max(most, inside)
                bench.client.ping()  # the others have the time to come in
                inside -= 1
                times += 1

    threads = [threading.Thread(target=make_names) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (most, times) == (1, 80)
    assert not bench.client.keys("*:naming:*")


def test_who_holds_it_for_ever_is_not_waited_for_for_ever(bench, monkeypatch) -> None:
    monkeypatch.setattr(lock, "BACK_OFF", BackOff(0.001, 0.001, tries=3))
    with bench.hot.naming(bench.topic), pytest.raises(ConcurrentChangeError, match="orders"):
        bench.hot.naming(bench.topic).__enter__()
    with bench.hot.naming(bench.topic):
        pass


def test_of_one_who_died_it_ends_by_itself(bench, monkeypatch) -> None:
    dead = bench.hot.naming(bench.topic)
    monkeypatch.setattr(lock.Lock, "_renew", lambda self: None)
    with monkeypatch.context() as soon:
        soon.setattr(lock, "LOCK_MS", 50)
        dead.__enter__()
    with bench.hot.naming(bench.topic):
        dead.__exit__(None, None, None)  # late: it does not take the other's away
        assert bench.client.keys("*:naming:*")


def test_it_lasts_as_long_as_its_holder_is_at_work(bench, monkeypatch, pass_ms) -> None:
    monkeypatch.setattr(lock, "LOCK_MS", 300)
    with bench.hot.naming(bench.topic):
        held = bench.client.keys("*:naming:*")
        pass_ms(HotLog.connect(bench.url), 900)
        assert bench.client.keys("*:naming:*") == held


def test_what_was_done_under_it_is_done_though_redis_goes_before_its_end(
    make_redis, caplog
) -> None:
    server = make_redis()
    with caplog.at_level("INFO"), HotLog.connect(server.url).naming_status():
        server.kill()
    assert "given back" in caplog.text


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
def test_nothing_is_made_in_a_catalog_for_a_topic_that_was_deleted(bench, again) -> None:
    bench.hot.topics().delete(bench.topic.name)
    if again:
        bench.hot.topics().create(bench.topic.name)
    with pytest.raises(UnknownTopicIdError), bench.hot.naming(bench.topic):
        raise AssertionError("it was let in")
    assert bench.client.keys("*:naming:*") == []


def test_who_asks_again_since_the_answer_was_lost_has_it(bench) -> None:
    naming = bench.hot.naming_status()
    naming._call("take")  # its answer is lost
    with naming:
        assert bench.client.keys("*:naming:*")
    assert not bench.client.keys("*:naming:*")


def test_rights_of_an_older_lakelog_say_who_holds_it(bench, monkeypatch) -> None:
    """They do not let it ask how long it lasts."""
    monkeypatch.setattr(lock, "BACK_OFF", BackOff(0.001, 0.001, tries=1))
    rights = ["on", ">word", "~*", "&*", "+@all", "-pttl"]
    bench.client.execute_command("ACL", "SETUSER", "older", *rights)
    older = HotLog.connect(bench.url.replace("redis://", "redis://older:word@"))
    with bench.hot.naming(bench.topic), pytest.raises(ConcurrentChangeError) as refused:
        older.naming(bench.topic).__enter__()
    older.close()
    assert refused.value.holder == f"process {os.getpid()} on {socket.gethostname()}"
