"""What people hand over becomes bytes and columns, or an error that says how to mend it."""

from collections import UserDict
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.ingest.given_records import as_columns
from lakelog.ingest.given_values import as_bytes, as_headers, as_timestamp_ms
from lakelog.values.record import PRODUCED, Record

NOW_MS = 1_700_000_000_000


def rows(records):
    table, partitions = as_columns(records, NOW_MS)
    assert table.schema.equals(PRODUCED)
    asked = None if partitions is None else partitions.to_pylist()
    found = [
        (
            row["timestamp_ms"],
            row["key"],
            row["value"],
            [(h["key"], h["value"]) for h in row["headers"]],
        )
        for row in table.to_pylist()
    ]
    return found, asked


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (b"a", b"a"),
        ("Härjedalen", "Härjedalen".encode()),
        (bytearray(b"a"), b"a"),
        (memoryview(b"abc")[1:], b"bc"),
        (b"", b""),
        (None, None),
    ],
)
def test_bytes_and_text_are_taken(value, stored):
    assert as_bytes("value", value) == stored


@pytest.mark.parametrize("value", [1, {"a": 1}, [b"a"], "\ud800"])
def test_other_values_are_refused(value):
    with pytest.raises(InvalidArgumentError, match="value"):
        as_bytes("value", value)


def test_headers_keep_order_repetition_null_and_empty():
    pairs = [("a", "x"), ("a", b"y"), ("Jämtland", "Härjedalen"), ("n", None), ("", "")]
    assert as_headers(pairs) == [
        ("a", b"x"),
        ("a", b"y"),
        ("Jämtland", "Härjedalen".encode()),
        ("n", None),
        ("", b""),
    ]
    assert as_headers({"a": b"1"}) == [("a", b"1")]


@pytest.mark.parametrize(
    "headers", [[("a",)], 5, [(1, b"a")], [("a", 1)], "ab", ["ab"], [{"a": "b", "c": "d"}]]
)
def test_other_headers_are_refused(headers):
    with pytest.raises(InvalidArgumentError, match="header"):
        as_headers(headers)


def test_a_timestamp_is_milliseconds_or_an_aware_datetime():
    zone = timezone(timedelta(hours=1))
    assert as_timestamp_ms(datetime(1970, 1, 1, 1, 0, 1, tzinfo=zone)) == 1000
    assert as_timestamp_ms(-1) == -1


@pytest.mark.parametrize("timestamp", [-2, 2**62, datetime(2020, 1, 1), 1.5, True])  # noqa: DTZ001
def test_other_timestamps_are_refused(timestamp):
    with pytest.raises(InvalidArgumentError):
        as_timestamp_ms(timestamp)


def test_a_table_of_text_gets_the_columns_of_a_record():
    table = pa.table({"key": ["k", None], "value": pa.array(["a", ""], pa.large_string())})
    assert rows(table) == ([(NOW_MS, b"k", b"a", []), (NOW_MS, None, b"", [])], None)


@pytest.mark.parametrize("before_us", [1001, 1500, 1999])
def test_a_time_that_only_rounding_makes_none_is_refused(before_us):
    time = datetime(1970, 1, 1, tzinfo=timezone.utc) - timedelta(microseconds=before_us)
    for unit, factor in (("us", 1), ("ns", 1000)):
        times = pa.array([5, -before_us * factor, None], pa.timestamp(unit, "UTC"))
        with pytest.raises(InvalidArgumentError, match="before 1970"):
            as_columns(pa.table({"value": ["a", "b", "c"], "timestamp": times}), NOW_MS)
    with pytest.raises(InvalidArgumentError, match="before 1970"):
        as_timestamp_ms(time)
    with pytest.raises(InvalidArgumentError, match="before 1970"):
        as_timestamp_ms(time.isoformat())
    with pytest.raises(InvalidArgumentError, match="before 1970"):
        as_columns([{"value": "a", "timestamp": time}], NOW_MS)


def test_the_time_that_readers_show_for_none_is_none():
    time = datetime(1970, 1, 1, tzinfo=timezone.utc) - timedelta(milliseconds=1)
    times = pa.array([time], pa.timestamp("us", "UTC"))
    assert rows(pa.table({"value": ["a"], "timestamp": times}))[0][0][0] == -1
    assert as_timestamp_ms(time) == -1


def test_time_finer_than_a_millisecond_is_rounded_up():
    table = pa.table(
        {"value": ["a"], "timestamp": pa.array([1_000_001], pa.timestamp("ns", "UTC"))}
    )
    assert rows(table)[0][0][0] == 2


#: Half hours around changes of Berlin's, Lord Howe's (by half an hour) and New York's clocks.
CHANGES = (
    ("Europe/Berlin", datetime(2024, 3, 31, tzinfo=timezone.utc)),
    ("Europe/Berlin", datetime(2024, 10, 26, 23, tzinfo=timezone.utc)),
    ("Australia/Lord_Howe", datetime(2024, 4, 6, 14, tzinfo=timezone.utc)),
    ("America/New_York", datetime(2024, 11, 3, 4, tzinfo=timezone.utc)),
    ("+02:00", datetime(2024, 10, 26, 23, tzinfo=timezone.utc)),
)


@pytest.mark.parametrize(("zone", "start"), CHANGES)
@pytest.mark.parametrize(("unit", "finer"), [("s", 0), ("ms", 0), ("us", 1), ("ns", 1000)])
def test_a_time_with_a_zone_is_the_same_moment_in_every_hour_of_a_clock_change(
    zone, start, unit, finer
):
    moments = [start + timedelta(minutes=10 * number) for number in range(24)]
    in_utc = pa.array([*moments, None], pa.timestamp(unit, "UTC"))
    expected_ms = [int(moment.timestamp() * 1000) + (finer > 0) for moment in moments]
    ticks = pa.array(
        [None if n is None else n + finer for n in in_utc.cast(pa.int64()).to_pylist()]
    )
    times = ticks.cast(pa.timestamp(unit, zone))
    table = pa.table(
        {
            "value": ["a"] * 25,
            "timestamp": pa.chunked_array([times[:7], times[7:7], times[7:]]),
        }
    )
    assert [row[0] for row in rows(table)[0]] == [*expected_ms, NOW_MS]
    dictionary = pa.table({"value": ["a"] * 25, "timestamp": times.dictionary_encode()})
    assert rows(dictionary) == rows(table)


def test_a_datetime_says_by_its_fold_which_of_two_equal_clock_times_it_is():
    zone = ZoneInfo("Europe/Berlin")
    first, second = (datetime(2024, 10, 27, 2, 30, tzinfo=zone, fold=fold) for fold in (0, 1))
    expected_ms = [1_729_989_000_000, 1_729_992_600_000]
    assert [as_timestamp_ms(first), as_timestamp_ms(second)] == expected_ms
    times = pa.table({"value": ["a", "b"], "timestamp": pa.array([first, second])})
    assert [row[0] for row in rows(times)[0]] == expected_ms


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "Nowhere/AtAll"])
def test_a_time_at_either_end_of_its_type_is_taken_or_named(zone):
    last, first = pa.array([2**63 - 1], pa.int64()), pa.array([-(2**63)], pa.int64())
    table = pa.table({"value": ["a"], "timestamp": last.cast(pa.timestamp("ns", zone))})
    assert rows(table)[0][0][0] == 9_223_372_036_855
    for unit, ticks in (("us", last), ("s", last), ("s", first), ("ms", first), ("ns", first)):
        table = pa.table({"value": ["a"], "timestamp": ticks.cast(pa.timestamp(unit, zone))})
        with pytest.raises(InvalidArgumentError, match="timestamp"):
            as_columns(table, NOW_MS)


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"key": ["a"]}, "has the column value"),
        ({"value": ["a"], "vlaue": ["a"]}, "not value, vlaue"),
        ({"value": [1]}, "column value is of type int64, but takes binary or text"),
        ({"value": ["a"], "timestamp": pa.array([0], pa.timestamp("ms"))}, "with a zone"),
        ({"value": ["a"], "timestamp_ms": [-2]}, "timestamp -2 cannot be stored"),
        ({"value": ["a"], "timestamp_ms": ["x"]}, "column timestamp is of type string"),
        ({"value": ["a"], "headers": ["x"]}, "column headers takes lists"),
        ({"value": ["a"], "headers": [[{"key": None, "value": b""}]]}, "a key is null"),
        ({"value": ["a"], "partition": ["x"]}, "column partition takes whole numbers"),
    ],
)
def test_a_table_of_other_columns_is_refused(columns, sentence):
    with pytest.raises(InvalidArgumentError, match=sentence):
        as_columns(pa.table(columns), NOW_MS)


def test_a_sequence_may_mix_values_pairs_mappings_and_records():
    records = [
        b"a",
        None,
        ("k", "b"),
        {"value": "c", "key": b"k", "headers": {"h": "1"}, "timestamp_ms": 5, "partition": 2},
        Record("other", 7, 100, 9, b"k", b"d", (("h", None),)),
    ]
    assert rows(records) == (
        [
            (NOW_MS, None, b"a", []),
            (NOW_MS, None, None, []),
            (NOW_MS, b"k", b"b", []),
            (5, b"k", b"c", [("h", b"1")]),
            (9, b"k", b"d", [("h", None)]),
        ],
        [None, None, None, 2, None],
    )


@pytest.mark.parametrize(
    "records",
    [
        "abc",
        b"abc",
        bytearray(b"abc"),
        memoryview(b"abc"),
        {"value": 1},
        {"value": "a"},
        UserDict({"value": "a"}),
        Record("other", 7, 100, 9, b"k", b"d", ()),
        5,
        [("a", "b", "c")],
        [{"key": "a"}],
        [{"value": 1, "x": 2}],
        [3],
        ["\ud800"],
        [(b"k", b"a"), (1, b"a")],
        [(b"k", b"a"), ("k", "\ud800")],
    ],
)
def test_other_sequences_are_refused(records):
    with pytest.raises(InvalidArgumentError):
        as_columns(records, NOW_MS)
