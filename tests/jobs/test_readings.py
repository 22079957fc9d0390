"""Sample records that are there once, however often they are added."""

from __future__ import annotations

import json

import pytest

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError
from lakelog.jobs import add_readings


def numbers(log: Lakelog, topic: str = "readings") -> list[int]:
    found = log.log(topic)
    return sorted(
        json.loads(record.value)["n"]
        for partition in found.offsets()
        for record in found.read(partition, "earliest").records()
    )


def test_readings_are_there_once_and_a_larger_number_adds_the_rest(log: Lakelog) -> None:
    assert sum(one.records for one in add_readings(log, "readings", 100)) == 100
    assert add_readings(log, "readings", 100) == []
    assert add_readings(log, "readings", 40) == []
    added = add_readings(log, "readings", 250)
    assert sum(one.records for one in added) == 150
    assert numbers(log) == list(range(250))


def test_what_a_run_left_that_was_cut_off_is_finished(log: Lakelog) -> None:
    (first, _) = add_readings(log, "whole", 90)
    log.topics.create("readings", 2)
    with log.producer() as producer:  # as if it had died after a part of one partition
        rows = log.log("whole").read(first.topic_partition.partition, 0, 20).to_arrow()
        producer.send_batch("readings", rows.select(["key", "value", "timestamp"]), partition=0)
    assert first.topic_partition.partition == 0
    add_readings(log, "readings", 90)
    assert numbers(log) == list(range(90))


@pytest.mark.parametrize("are_deleted", [False, True])
def test_after_an_unclean_stop_the_readings_go_on_where_they_were(
    log: Lakelog, are_deleted: bool
) -> None:
    add_readings(log, "readings", 90)
    for partition in (0, 1):
        log.log("readings").recover(partition, 1_000_000)
        if are_deleted:
            log.log("readings").raise_log_start(partition, -1)
    assert sum(one.records for one in add_readings(log, "readings", 120)) == 30
    assert numbers(log) == list(range(90 if are_deleted else 0, 120))


def test_the_same_readings_are_the_same_bytes_in_every_log(log: Lakelog) -> None:
    for topic in ("one", "other"):
        add_readings(log, topic, 50)
    for partition in (0, 1):
        one, other = (log.log(topic).read(partition, 0).to_arrow() for topic in ("one", "other"))
        assert one == other


def test_fewer_than_none_is_refused(log: Lakelog) -> None:
    with pytest.raises(InvalidArgumentError, match="records=-1"):
        add_readings(log, "readings", -1)
