"""What callers have at hand: NumPy's, pandas's and Arrow's numbers and times, one for a list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError, InvalidConfigError, InvalidTimestampError
from lakelog.groups.reset import FromFile, ShiftBy, ToDatetime, ToOffset
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

DAY_MS = 86_400_000
DAY = date(2024, 3, 31)
AT = datetime(2024, 3, 31, tzinfo=timezone.utc)
AT_MS = int(AT.timestamp() * 1000)

#: The begin of `DAY` in UTC, as people have it.
MOMENTS = {
    "int64": np.int64(AT_MS),
    "uint64": np.uint64(AT_MS),
    "arrow's int64": pa.scalar(AT_MS),
    "datetime": AT,
    "date": DAY,
    "datetime64 of days": np.datetime64("2024-03-31"),
    "datetime64 of months": np.datetime64("2024-03") + np.timedelta64(0, "M"),
    "datetime64 of ns": np.datetime64("2024-03-31T00:00:00.000000000"),
    "pandas": pd.Timestamp("2024-03-31", tz="UTC"),
    "pandas in a zone": pd.Timestamp("2024-03-31 01:00", tz="Europe/Berlin"),
    "arrow's timestamp": pa.scalar(AT, pa.timestamp("ns", "UTC")),
    "arrow's date": pa.scalar(DAY),
}
MONTH_MS = int(datetime(2024, 3, 1, tzinfo=timezone.utc).timestamp() * 1000)


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        config = {"retention.ms": np.int64(-1), "message.timestamp.after.max.ms": 2**62}
        lake.topics.create("t", np.int64(2), config)  # type: ignore[arg-type]
        with lake.producer() as producer:
            for offset in range(4):
                time_ms = AT_MS - DAY_MS + offset * DAY_MS
                producer.send("t", b"%d" % offset, partition=0, timestamp_ms=time_ms)
        yield lake


@pytest.mark.parametrize("kind", MOMENTS)
def test_a_moment_is_found_whatever_type_it_has(lake: Lakelog, kind: str) -> None:
    moment: Any = MOMENTS[kind]
    at_ms, offset = (MONTH_MS, 0) if "months" in kind else (AT_MS, 1)
    log, first = lake.log("t"), TopicPartition("t", 0)
    found = log.offset_for_timestamp(0, moment)
    assert found is not None
    assert found.offset == offset
    with lake.consumer(group_id="g") as consumer:
        consumer.assign([first])
        assert consumer.seek_to_timestamp(first, moment) == offset
        assert consumer.offsets_for_times({first: moment})[first] == found
        consumer.commit({first: OffsetAndMetadata(0)})
    (planned,) = lake.group_offsets.plan("g", ToDatetime(moment), [first])
    assert planned.offset == offset
    with lake.producer() as producer:
        sent = producer.send("t", b"", partition=1, timestamp_ms=moment).result()
        assert sent.timestamp_ms == at_ms
        batch = producer.send_batch("t", [{"value": b"", "timestamp": moment, "partition": 1}])
        assert [one.timestamp_ms for one in batch] == [at_ms]
    if "int" not in kind:  # a number is an offset there
        assert log.seek(0, moment) == offset
        assert len(log.read(0, moment).to_arrow()) == 4 - offset
        assert len(log.search("partition = 0", moment).to_arrow()) == 4 - offset
        assert sum(one.records for one in lake.archive("t", moment)) == offset


@pytest.mark.parametrize(
    ("finer", "whole_ms"),
    [
        (np.datetime64(AT_MS * 1_000_000 + 1, "ns"), AT_MS + 1),
        (np.datetime64(AT_MS * 1_000 - 1, "us"), AT_MS),
        (np.datetime64(DAY_MS * 10**9 + 1, "ps"), DAY_MS + 1),
        (pd.Timestamp(AT_MS * 1_000_000 + 1, unit="ns", tz="UTC"), AT_MS + 1),
        (AT + timedelta(microseconds=1), AT_MS + 1),
        (np.datetime64("12000-01-01"), 316_516_204_800_000),
        (pd.Timestamp(np.datetime64("12000-01-01", "s")).tz_localize("UTC"), 316_516_204_800_000),
    ],
)
def test_what_is_finer_than_a_millisecond_is_rounded_up_in_any_year(
    lake: Lakelog, finer: Any, whole_ms: int
) -> None:
    with lake.producer() as producer:
        sent = producer.send("t", b"", partition=1, timestamp_ms=finer).result()
    assert sent.timestamp_ms == whole_ms
    assert lake.log("t").seek(1, finer) == 0


@pytest.mark.parametrize(
    "moment",
    [
        datetime(2024, 3, 31),  # noqa: DTZ001
        pd.Timestamp("2024-03-31"),
        pa.scalar(datetime(2024, 3, 31)),  # noqa: DTZ001
        pa.scalar(2**60, pa.timestamp("us")),
        pa.scalar(None, pa.timestamp("us", "UTC")),
        pd.NaT,
        np.datetime64("NaT"),
        1.5,
        np.float64(AT_MS),
        True,
        None,
        b"2024-03-31",
        np.datetime64(2**62, "s"),
    ],
)
def test_what_names_no_moment_is_refused_everywhere(lake: Lakelog, moment: Any) -> None:
    log, first = lake.log("t"), TopicPartition("t", 0)
    calls: list[Callable[[], object]] = [
        lambda: log.seek(0, moment),
        lambda: log.read(0, moment),
        lambda: log.search("", moment),
        lambda: log.offset_for_timestamp(0, moment),
        lambda: lake.archive("t", moment),
        lambda: ToDatetime(moment),
    ]
    with lake.consumer() as consumer, lake.producer() as producer:
        consumer.assign(first)
        calls += [
            lambda: consumer.seek_to_timestamp(first, moment),
            lambda: consumer.offsets_for_times({first: moment}),
        ]
        if moment is not None:
            calls.append(lambda: producer.send("t", b"", partition=1, timestamp_ms=moment))
        for call in calls:
            with pytest.raises(InvalidArgumentError):
                call()


@pytest.mark.parametrize("of", [np.int64, np.uint8, np.int32, pa.scalar])
def test_a_number_of_any_library_is_taken_wherever_a_whole_number_is(
    lake: Lakelog, of: Callable[[int], Any]
) -> None:
    zero, one, two, many = of(0), of(1), of(2), of(100)
    log = lake.log("t")
    assert lake.topics.add_partitions("t", of(3)).partitions == 3
    with lake.producer(linger_ms=zero, max_in_flight=one) as producer:
        assert producer.send("t", b"", partition=two).result(timeout=many).partition == 2
        (sent,) = producer.send_batch("t", [b"x"], partition=two)
        assert sent.offset == 1
        producer.flush(many)
    log = lake.log("t")
    assert log.seek(zero, one) == 1
    assert [*log.offsets([zero, two])] == [0, 2]
    assert [*log.offsets(two)] == [2]
    assert log.seek_each("latest", [zero]) == {0: 4}
    assert log.fetch(zero, one, max_bytes=many).records["offset"][0].as_py() == 1
    assert len(log.read(zero, one, two, max_bytes=many).to_arrow()) == 1
    assert log.count(zero, one) == 3
    assert log.last(zero, two) == 2
    assert log.lag(zero, one).records.records == 3
    assert log.sample(two).num_rows == 2
    assert log.search("", {0: one}, partitions=zero).page(two).records.num_rows == 2
    assert log.records_below(zero, one) == 1
    assert log.raise_log_start(zero, one) == 1
    assert [report.records for report in lake.archive("t", {0: two})] == [1]
    lake.skips("t", zero).list()
    with lake.consumer(
        group_id="g", max_poll_records=two, session_timeout_ms=np.int64(45_000)
    ) as consumer:
        consumer.assign([("t", zero)])
        consumer.seek(("t", zero), two)  # type: ignore[arg-type]
        (records,) = consumer.poll(many, one).values()
        assert [record.offset for record in records] == [2]
        consumer.commit({TopicPartition("t", zero): OffsetAndMetadata(two, "", one)})
        assert consumer.committed(TopicPartition("t", zero)) == 2
        assert consumer.committed(TopicPartition("t", 0), metadata=True) == (2, "", 1)
    first = TopicPartition("t", 0)
    for scenario in (ToOffset(one), ShiftBy(one), FromFile({first: one})):
        planned = lake.group_offsets.plan("g", scenario, [("t", zero)])
        lake.group_offsets.apply("g", planned)
    assert lake.group_offsets.committed("g") == {first: 1}


def test_what_is_no_whole_number_is_refused_by_an_error_that_names_it(lake: Lakelog) -> None:
    for wrong in ("0", 0.0, np.float64(0), None, True, np.True_, [0]):
        log = lake.log("t")
        calls: list[Callable[[], object]] = [
            lambda: log.last(0, wrong),  # type: ignore[arg-type] # noqa: B023
            lambda: log.search("").page(wrong),  # type: ignore[arg-type] # noqa: B023
            lambda: log.raise_log_start(0, wrong),  # type: ignore[arg-type] # noqa: B023
            lambda: log.recover(0, wrong),  # type: ignore[arg-type] # noqa: B023
            lambda: ToOffset(wrong),  # type: ignore[arg-type] # noqa: B023
            lambda: ShiftBy(wrong),  # type: ignore[arg-type] # noqa: B023
            lambda: FromFile({TopicPartition("t", 0): wrong}),  # type: ignore[dict-item] # noqa: B023
        ]
        for call in calls:
            with pytest.raises(InvalidArgumentError):
                call()
        with pytest.raises(InvalidConfigError, match="linger_ms"):
            lake.producer(linger_ms=wrong)
    with pytest.raises(InvalidArgumentError, match="expression"):
        lake.log("t").search(5)  # type: ignore[arg-type]


# -- partitions and topics ---------------------------------------------------------------------


def test_one_partition_is_as_good_as_a_list_of_one(lake: Lakelog) -> None:
    first = TopicPartition("t", 0)
    for one in (first, ("t", 0), ("t", np.int64(0)), [first], [("t", 0)], {first}, {first: 5}):
        with lake.consumer(group_id="g", auto_offset_reset="earliest") as consumer:
            consumer.assign(one)  # type: ignore[arg-type]
            assert consumer.assignment() == {first}
            assert consumer.end_offsets(one) == {first: 4}  # type: ignore[arg-type]
            assert consumer.beginning_offsets(one) == {first: 0}  # type: ignore[arg-type]
            consumer.pause(one)  # type: ignore[arg-type]
            assert consumer.paused() == {first}
            consumer.resume(one)  # type: ignore[arg-type]
            assert not consumer.paused()
            consumer.seek_to_end(one)  # type: ignore[arg-type]
            assert consumer.position(first) == 4
            consumer.seek_to_beginning(one)  # type: ignore[arg-type]
            assert consumer.position(("t", 0)) == 0  # type: ignore[arg-type]
            assert consumer.lag(("t", 0)).records.records == 4  # type: ignore[arg-type]
            assert consumer.highwater(("t", 0)) == 4  # type: ignore[arg-type]
            assert consumer.seek_to_timestamp(("t", 0), AT_MS) == 1  # type: ignore[arg-type]
        plan = lake.group_offsets.plan("g", ToOffset(3), one)  # type: ignore[arg-type]
        assert [two.topic_partition for two in plan] == [first]


@pytest.mark.parametrize(
    "wrong", ["t", ["t"], 0, [0], None, [None], [("t", 0, 1)], [("t", "0")], [(0, "t")], [("t",)]]
)
def test_what_is_no_partition_is_refused_everywhere(lake: Lakelog, wrong: Any) -> None:
    with lake.consumer(group_id="g") as consumer:
        consumer.assign(TopicPartition("t", 0))
        for call in (
            *(consumer.assign, consumer.pause, consumer.resume, consumer.position, consumer.lag),
            *(consumer.seek_to_beginning, consumer.seek_to_end, consumer.committed),
            *(consumer.beginning_offsets, consumer.end_offsets, consumer.highwater),
            *(consumer.offsets_for_times, lambda one: consumer.seek(one, 0)),
            lambda one: consumer.seek_to_timestamp(one, 0),
            lambda one: lake.group_offsets.plan("g", ToOffset(0), one),
            lambda one: lake.share_group_offsets.delete_offsets("g", one),
            lambda one: lake.groups.delete_offsets("g", one),
        ):
            with pytest.raises(InvalidArgumentError):
                call(wrong)
        assert consumer.assignment() == {TopicPartition("t", 0)}


def test_a_topic_stands_for_its_name_and_what_is_none_is_refused(lake: Lakelog) -> None:
    topic = lake.topics.get("t")
    with lake.producer() as producer:
        assert producer.send(topic, b"", partition=1).result().topic == "t"  # type: ignore[arg-type]
        for wrong in (None, ["t"], 5):
            with pytest.raises(InvalidArgumentError):
                producer.send(wrong, b"")  # type: ignore[arg-type]
    assert [report.topic for report in lake.archive(topic)] == ["t"]  # type: ignore[arg-type]
    assert [report.topic for report in lake.cleanup([topic])] == ["t"]  # type: ignore[list-item]
    assert len(lake.status(topic).partitions) == 2  # type: ignore[arg-type]
    for call in (lake.archive, lake.cleanup, lake.status, lake.metrics, lake.check):
        for wrong in (5, [5], b"t"):
            with pytest.raises(InvalidArgumentError):
                call(wrong)  # type: ignore[operator]
    for wrong in (5, [("retention.ms", 1)], {5: 5}):
        for settle in (
            lambda given: lake.topics.create("u", 1, given),
            lambda given: lake.topics.alter("t", given),
            lambda given: lake.cleanup_plan("t", given),
            lake.topics.set_defaults,
            lambda given: lake.tenants.create("a", given),
            lambda given: lake.tenants.create("a", None, given),
        ):
            with pytest.raises(InvalidConfigError, match="no dict of settings"):
                settle(wrong)  # type: ignore[arg-type]
    for call in (lake.sql, lambda given: lake.erase("t", given, dry_run=True)):
        with pytest.raises(InvalidArgumentError):
            call(5)  # type: ignore[operator]


# -- durations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "second", [timedelta(seconds=1), np.timedelta64(1, "s"), pd.Timedelta("1s")]
)
def test_a_duration_of_any_library_is_taken(lake: Lakelog, second: Any) -> None:
    assert [report.records for report in lake.archive("t", patience=second)] == [4]
    assert not [*lake.archive_continuously("t", max_duration=second * 0)]
    assert not [*lake.clean_continuously("t", max_duration=second * 0)]
    assert lake.log("t").seek(0, second * 5 * 10**9) == 0  # 158 years: pandas 2 ends at 292
    with lake.producer(linger_ms=60_000) as producer:
        sent = producer.send("t", b"", partition=1)
        for wait in (sent.result, sent.exception):
            with pytest.raises(InvalidArgumentError, match="no time to wait"):
                wait("60")  # type: ignore[arg-type]
        assert sent.result(timeout=second * 60).offset == 0
        for wrong in ("60", [1], timedelta(minutes=1)):
            with pytest.raises(InvalidArgumentError, match="timeout_ms="):
                producer.flush(wrong)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError, match="timeout_ms="):
                producer.close(wrong)  # type: ignore[arg-type]
        assert producer.send("t", b"still open", partition=1).result().offset == 1


# -- records -----------------------------------------------------------------------------------


def test_what_is_no_word_among_some_no_event_and_no_list_of_names_is_refused(
    lake: Lakelog,
) -> None:
    calls: dict[str, Callable[[Any], object]] = {
        "is not a step of cleanup:": lambda wrong: lake.cleanup("t", steps=wrong),
        "is not a tier:": lambda wrong: lake.check(tiers=wrong),
        "topics=": lambda wrong: lake.acl("reader", wrong),
        "groups=": lambda wrong: lake.acl("consumer", groups=wrong),
        "stop=": lambda wrong: lake.archive_continuously(stop=wrong),
        "stop": lambda wrong: next(lake.clean_continuously(stop=wrong)),
    }
    for name, call in calls.items():
        for wrong in (5, [5], 0.5):
            with pytest.raises(InvalidArgumentError, match=f"{name}.* give "):
                call(wrong)
    for words in ("everything", ["hot", "warm"], "ho"):
        with pytest.raises(InvalidArgumentError, match="give some of hot, cold"):
            lake.check(tiers=words)
    with pytest.raises(InvalidArgumentError, match="give some of retain, compact"):
        lake.cleanup("t", steps="compac")
    assert lake.check(tiers="hot").sound
    assert [report.topic for report in lake.cleanup("t", steps="retain")] == ["t"]


def test_a_record_after_the_year_9999_is_read_and_says_so_when_its_datetime_is_asked_for(
    lake: Lakelog,
) -> None:
    far_ms = 253_402_300_800_000
    with lake.producer() as producer:
        producer.send("t", b"far", partition=1, timestamp_ms=far_ms)
    for _ in range(2):
        (record,) = lake.log("t").read(1).records()
        assert (record.value, record.timestamp_ms) == (b"far", far_ms)
        assert "far" in repr(record)
        with pytest.raises(InvalidTimestampError, match=r"offset 0 of t-1 .* use timestamp_ms"):
            _ = record.timestamp
        lake.archive("t")
