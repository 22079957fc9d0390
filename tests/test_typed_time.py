"""Times as people type them: what each form means, what is refused, and what is said of it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidArgumentError, LakelogError
from lakelog.ingest.given_values import as_timestamp_ms
from lakelog.values.offsets import (
    Ago,
    AtOffset,
    AtTimestamp,
    Earliest,
    position,
    timestamp_ms,
    understood,
)
from lakelog.values.typed_time import clock_text, parse_kafka_time, read_time, zone_named

UTC = timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")
NOON_MS = 1_372_939_200_000  # 2013-07-04T12:00:00Z
HOUR_MS = 3_600_000
NOW = datetime(2013, 7, 4, 22, 30, tzinfo=UTC)  # the 5th in Berlin


@pytest.mark.parametrize(
    ("text", "zone", "expected_ms"),
    [
        ("2013-07-04 12:00", "UTC", NOON_MS),
        ("2013-07-04T12", "UTC", NOON_MS),
        ("2013-07-04 12", "Europe/Berlin", NOON_MS - 2 * HOUR_MS),
        ("2013-07-04T12:00:00Z", "Europe/Berlin", NOON_MS),
        ("2013-07-04T12:00:00.250+02:00", "UTC", NOON_MS - 2 * HOUR_MS + 250),
        ("2013-07-04T12:00:00+0530", "UTC", NOON_MS - 11 * HOUR_MS // 2),
        ("2013-07-04 12:00 -05", "UTC", NOON_MS + 5 * HOUR_MS),
        ("2013-07-04 12:00:00.5 America/New_York", "UTC", NOON_MS + 4 * HOUR_MS + 500),
        (" 2013-07-04  12:00 utc ", "Asia/Tokyo", NOON_MS),
        ("2013-07-04", "UTC", NOON_MS - 12 * HOUR_MS),
        ("12:00", "UTC", NOON_MS),
        ("12:00", "Europe/Berlin", NOON_MS + 22 * HOUR_MS),
        ("today", "UTC", NOON_MS - 12 * HOUR_MS),
        ("yesterday 12:00", "UTC", NOON_MS - 24 * HOUR_MS),
        ("Yesterday", "Europe/Berlin", NOON_MS - 14 * HOUR_MS),
        ("last tuesday", "UTC", NOON_MS - 60 * HOUR_MS),
        ("Last  Wednesday 12:00 UTC", "Asia/Tokyo", NOON_MS - 24 * HOUR_MS),
        ("last thursday 12:00", "UTC", NOON_MS - 7 * 24 * HOUR_MS),
        ("last friday 12:00", "UTC", NOON_MS - 6 * 24 * HOUR_MS),
        ("last friday 14:00", "Europe/Berlin", NOON_MS - 6 * 24 * HOUR_MS),  # it is Friday there
        (f"@{NOON_MS}", "Asia/Tokyo", NOON_MS),
        ("@5", "UTC", 5),
        ("5", "UTC", 5),
        (f"@{NOON_MS // 1000}", "Asia/Tokyo", NOON_MS),
        (f"{NOON_MS // 1000}", "Asia/Tokyo", NOON_MS),
        (f"{NOON_MS // 1000}.2504", "UTC", NOON_MS + 251),
        (f"{NOON_MS}", "Asia/Tokyo", NOON_MS),
        (f"{NOON_MS * 1000}", "UTC", NOON_MS),
        (f"{NOON_MS * 10**6 + 1}", "UTC", NOON_MS + 1),
        ("2013-07-04 12:00:00.0001", "UTC", NOON_MS + 1),
        ("2013-07-04 12:00:00.000000001", "UTC", NOON_MS + 1),
        ("2023-10-29 02:30", "Europe/Berlin", 1_698_539_400_000),  # the first of the two
    ],
)
def test_times_as_they_are_typed(text, zone, expected_ms):
    found = read_time(text, zone_named(zone), NOW)
    assert (found.timestamp_ms, found.ago) == (expected_ms, None)


@pytest.mark.parametrize(
    ("text", "ago"),
    [
        ("-10m", timedelta(minutes=10)),
        ("10 minutes ago", timedelta(minutes=10)),
        ("1 week ago", timedelta(weeks=1)),
        ("now", timedelta(0)),
    ],
)
def test_distances_are_from_now_and_need_no_zone(text, ago):
    assert read_time(text, None, NOW).ago == ago
    assert position(text) == Ago(ago)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2013-02-30 12:00", "calendar"),
        ("2013-07-04 25:00", "calendar: times go from 00:00:00 to 23:59:59"),
        ("2013-13-01", "calendar: there is no month 13"),
        ("2013-00-01", "calendar: there is no month 0"),
        ("2013-02-29", "calendar: February 2013 has no day 29"),
        ("2013-07-04 12:00 +25:00", "calendar"),
        ("2013-07-04 12:00 Mars/Olympus", "'Mars/Olympus' is not a time zone"),
        ("07/04/2013 12:00", "is not a time: write 2013-07-04 12:00"),
        ("4 July 2013", "is not a time: write 2013-07-04 12:00"),
        ("1969-12-31", "before 1970"),
        ("9" * 19 + "000000", "out of bounds"),
        ("noonish", "is not a time: write"),
        ("", "is not a time"),
        ("1" * 4_400, "is not a time"),
        ("2013-07-04 12:00 " + "x" * 10_000, "is not a time"),
        ("99999999999 weeks ago", "too far"),
    ],
)
def test_what_is_no_time_is_refused_in_words(text, said):
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        read_time(text, UTC, NOW)
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("text", ["2013-07-04 12:00", "12:00", "yesterday"])
def test_a_time_without_a_zone_is_refused_where_none_is_given(text):
    with pytest.raises(InvalidArgumentError, match=f"no time zone.*'{text} UTC'"):
        position(text)
    assert isinstance(position(f"{text} UTC"), AtTimestamp)
    assert isinstance(position(text, BERLIN), AtTimestamp)


@pytest.mark.parametrize("text", ["2026-13-01", "2026-02-30 12:00"])
def test_a_day_that_is_none_is_told_so_before_its_zone_is_missed(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="not a date and time of the calendar"):
        position(text)


def test_a_number_counts_the_same_wherever_a_time_is_typed() -> None:
    for text in ("@1372939200", "@1372939200000"):
        assert position(text) == AtTimestamp(NOON_MS)
        assert timestamp_ms(text) == read_time(text, None, NOW).timestamp_ms == NOON_MS
    assert timestamp_ms("1372939200") == NOON_MS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2013-07-04 12:00", None),
        ("-10m", None),
        ("@1372939200000", None),
        ("@1372939200", "@1372939200 was taken as epoch seconds: 2013-07-04 12:00:00Z"),
        ("1372939200", "1372939200 was taken as epoch seconds: 2013-07-04 12:00:00Z"),
        ("1372939200000", "1372939200000 was taken as epoch milliseconds: 2013-07-04 12:00:00Z"),
        ("12:00", "12:00 was taken as 2013-07-05 12:00:00+02:00"),
        ("last monday", "last monday was taken as 2013-07-01 00:00:00+02:00"),
        ("yesterday", "yesterday was taken as 2013-07-04 00:00:00+02:00"),
        ("2013-03-31 02:30", "the clocks of Europe/Berlin skip 02:30 on that day; 2013-03-31 "
         "02:30 was taken as 2013-03-31 03:30:00+02:00"),
    ],
)  # fmt: skip
def test_what_a_text_leaves_open_is_said(text, said):
    assert read_time(text, BERLIN, NOW).said == said


def test_a_position_is_an_offset_a_name_or_a_time():
    assert position("250") == AtOffset(250)
    assert position(" earliest ") == Earliest()
    assert position("2013-07-04 12:00 UTC") == AtTimestamp(NOON_MS)
    assert understood("2013-07-04 12:00", UTC)[0] == AtTimestamp(NOON_MS)
    with pytest.raises(InvalidArgumentError, match="is not a position: give an offset"):
        position("soon")


@given(st.integers(86_400_000, 7_258_118_400_000), st.timezones())
def test_a_moment_that_a_zones_clocks_show_comes_back(at_ms, zone):
    shown = clock_text(at_ms, zone)
    assert read_time(shown, None, NOW).timestamp_ms == at_ms


@given(st.text(max_size=60) | st.text("0123456789-:/.TZ +apm@", max_size=24))
def test_any_text_is_a_time_or_refused(text):
    try:
        found = read_time(text, UTC, NOW)
    except LakelogError:
        return
    assert (found.timestamp_ms is None) != (found.ago is None)
    assert found.timestamp_ms is None or found.timestamp_ms >= 0


@pytest.mark.parametrize("name", ["", "UTC", " z "])
def test_utc_has_many_names(name):
    assert zone_named(name) is UTC


@pytest.mark.parametrize(
    "typed",
    [
        "2013-07-04T12:00:00Z",
        "2013-07-04 14:00 Europe/Berlin",
        "@1372939200000",
        "1372939200",
        datetime(2013, 7, 4, 12, tzinfo=UTC),
        NOON_MS,
    ],
)
def test_what_takes_a_time_to_look_for_takes_it_as_it_is_typed(typed: int | str | datetime) -> None:
    assert timestamp_ms(typed) == NOON_MS


def test_a_distance_counts_from_now() -> None:
    before = timestamp_ms(datetime.now(UTC))
    assert before - HOUR_MS <= timestamp_ms("-1h") <= timestamp_ms(datetime.now(UTC)) - HOUR_MS


@pytest.mark.parametrize("value", ["noon-ish", "2013-07-04 12:00", datetime(2013, 7, 4), True, 1.5])  # noqa: DTZ001
def test_what_names_no_moment_is_no_time_to_look_for(value: object) -> None:
    with pytest.raises(InvalidArgumentError):
        timestamp_ms(value)  # type: ignore[arg-type]


def test_a_records_own_time_is_what_its_producer_wrote() -> None:
    """It depends on no clock and no choice of readings, and says by -1 that there is none."""
    assert as_timestamp_ms("2013-07-04T12:00:00Z") == NOON_MS
    assert as_timestamp_ms("1969-12-31T23:59:59.999Z") == -1
    for typed in ("yesterday UTC", "-10m", "1372939200"):
        assert timestamp_ms(typed) > 0
        with pytest.raises(InvalidArgumentError, match="not an ISO-8601 time"):
            as_timestamp_ms(typed)


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2018-05-12T10:00:00.000", "2018-05-12T10:00:00.000Z"),
        ("2018-05-12T10:00:00.017Z", "2018-05-12T10:00:00.017Z"),
        ("2018-05-12T10:00:00.000+07", "2018-05-12T03:00:00.000Z"),
        ("2018-05-12T10:00:00.000+0700", "2018-05-12T03:00:00.000Z"),
        ("2018-05-12T10:00:00.000-07:30", "2018-05-12T17:30:00.000Z"),
    ],
)
def test_a_time_of_kafkas_commands(text: str, utc: str) -> None:
    assert parse_kafka_time(text) == timestamp_ms(utc)


@pytest.mark.parametrize(
    "text",
    [
        *("2018-05-12T10:00:00", "2018-05-12T10:00:00Z", "2018-05-12T10:00:00+0100"),
        *("2018-05-12T10:00:00.000001", "2018-05-12 10:00:00.000", "2018-05-12"),
        *("2018-05-12T10:00:00.000 Europe/Berlin", "2018-13-12T10:00:00.000", "now", ""),
        *("2018-05-12T25:00:00.000", "2018-05-12T10:00:00.10815+07:00"),
    ],
)
def test_what_kafkas_commands_do_not_take(text: str) -> None:
    with pytest.raises(InvalidArgumentError):
        parse_kafka_time(text)
