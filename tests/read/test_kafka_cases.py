"""Cases of Kafka's own tests that concern reading, re-expressed (Apache-2.0).

| case | Kafka's test | here |
|---|---|---|
| 4 | UnifiedLogTest testReadOutOfRange | same |
| 5 | UnifiedLogTest testAppendAndReadWithNonSequentialOffsets | same; the holes are a lost tail's |
| 7 | UnifiedLogTest testReadWithMinMessage | same; a record, Kafka: a batch |
| 9 | LogSegmentTest, find by timestamp | same |
| 26 | UnifiedLogTest testFetchOffsetByTimestampIncludesLeaderEpoch | same |
| 28 | UnifiedLogTest testFetchOffsetByTimestampFromRemoteStorage | same |
| 29 | UnifiedLogTest testFetchLatestTieredTimestampNoRemoteStorage | None for -1 |
| 30 | RemoteLogManagerTest testFindOffsetByTimestamp | same; there are no epochs |
| 31 | tiered ListOffsetsTest | same |
| 34 | PlaintextConsumerTest offsetsForTimes | same |
| 35 | kafka-python test_consumer_integration offsets_for_times | same |
"""

from __future__ import annotations

import pytest

from lakelog.errors import InvalidArgumentError, OffsetOutOfRangeError
from lakelog.offsets import AtTimestamp
from lakelog.record import OffsetAndTimestamp


def at(log, target):
    """The answer to a search by timestamp or by name, as Kafka prints it: -1 for none."""
    found = log.seek(0, AtTimestamp(target) if isinstance(target, int) else target)
    return -1 if found is None else found


def test_case_4_reading_out_of_range(make_bench):
    bench = make_bench()
    bench.append([1] * 1024)
    bench.log.raise_log_start(0, 1024)
    bench.append([1])

    assert bench.log.fetch(0, 1025).records.num_rows == 0
    for offset in (0, 1026):
        with pytest.raises(OffsetOutOfRangeError):
            bench.log.fetch(0, offset)


@pytest.mark.parametrize("tiered", [False, True], ids=["hot", "cold"])
def test_case_5_a_read_inside_a_hole_gives_the_next_record(bench, tiered):
    bench.append(range(50))
    bench.log.recover(0, 51)
    bench.append([50])
    first = bench.log.offsets()[0].log_end - 1
    if tiered:
        bench.tier(first + 1, first + 1)

    for offset in (*range(50), 50, 51, 57, first - 1, first):
        (record, *_) = bench.fetched(offset)
        assert record.offset == (offset if offset < 50 else first)


@pytest.mark.parametrize("archived", [0, 10], ids=["hot", "cold"])
def test_case_7_a_read_is_never_too_small_for_one_record(bench, archived):
    bench.append(range(10))
    bench.tier(archived, archived)

    assert [[r.offset for r in bench.fetched(i, max_bytes=1)] for i in range(10)] == [
        [i] for i in range(10)
    ]


@pytest.mark.parametrize(
    ("target", "offset"),
    [(420, 42), (421, 43), (430, 43), (431, 44), (401, 41), (399, 40), (491, -1)],
)
@pytest.mark.parametrize("archived", [40, 42, 45, 50])
def test_case_9_the_first_record_at_or_after_a_timestamp(bench, archived, target, offset):
    bench.append([0] * 40)
    bench.log.raise_log_start(0, 40)
    bench.append([offset * 10 for offset in range(40, 50)])
    bench.tier(archived, archived)

    assert at(bench.log, target) == offset


@pytest.mark.parametrize("tiered", [True, False], ids=["case-28-tiered", "case-26-29-untiered"])
def test_cases_26_28_29_offset_by_timestamp(make_bench, tiered):
    bench = make_bench(tiered=tiered)
    names = ("earliest", "earliest-local", "latest", "latest-tiered", "max-timestamp", 0)
    assert [at(bench.log, name) for name in names] == [0, 0, 0, -1, -1, -1]

    bench.append([1000])
    bench.append([1001])
    if tiered:
        bench.tier(1, 1)

    assert [at(bench.log, target) for target in (1000, 1001)] == [0, 1]
    assert bench.log.offset_for_timestamp(0, 1001) == OffsetAndTimestamp(1, 1001)
    expected = [0, 1, 2, 0, 1] if tiered else [0, 0, 2, -1, 1]
    assert [at(bench.log, name) for name in names[:-1]] == expected


def test_case_30_offset_by_timestamp_in_cold(bench):
    bench.append([5] * 120)
    bench.log.raise_log_start(0, 120)
    bench.append([999, 1001, 1002])
    bench.tier(123, 123)

    assert bench.log.offset_for_timestamp(0, 1000) == OffsetAndTimestamp(121, 1001)
    assert [at(bench.log, target) for target in (1002, 1003)] == [122, -1]


def test_case_31_list_offsets_over_two_tiers(bench):
    bench.append(range(1000, 1006))
    bench.tier(4, 4)

    names = ("earliest", "earliest-local", "latest-tiered", "latest")
    assert [at(bench.log, name) for name in names] == [0, 4, 3, 6]
    targets = (999, 1001, 1003, 1004, 1005, 1006)
    assert [at(bench.log, target) for target in targets] == [0, 1, 3, 4, 5, -1]


def test_case_34_offsets_for_times(bench):
    bench.append(range(100))
    bench.tier(30, 10)
    consumer, tp = bench.consumer(), bench.topic.partition(0)

    for target in (0, 20, 80):
        assert consumer.offsets_for_times({tp: target}) == {tp: OffsetAndTimestamp(target, target)}
    with pytest.raises(InvalidArgumentError):
        consumer.offsets_for_times({tp: -1})


def test_case_35_offsets_for_times_early_middle_late(bench):
    early, middle, late = 1_500_000_000_000, 1_500_000_001_500, 1_500_000_002_000
    bench.append([early])
    bench.append([late])
    consumer, tp = bench.consumer(), bench.topic.partition(0)

    for target, offset, found in [(early, 0, early), (middle, 1, late), (late, 1, late)]:
        assert consumer.offsets_for_times({tp: target}) == {tp: OffsetAndTimestamp(offset, found)}
    assert consumer.offsets_for_times({tp: 9_999_999_999_999}) == {tp: None}
    assert consumer.offsets_for_times({}) == {}
