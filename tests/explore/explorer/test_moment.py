from __future__ import annotations

from datetime import timedelta, timezone

import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.explore.explorer.moment import clock_time, moment, zone
from lakelog.offsets import Ago, AtTimestamp, Earliest

NOON_MS = 1_372_939_200_000  # 2013-07-04T12:00:00Z
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("text", "zone_name", "expected_ms"),
    [
        ("2013-07-04 12:00", "UTC", NOON_MS),
        ("2013-07-04T12:00:00Z", "Europe/Berlin", NOON_MS),
        ("2013-07-04T12:00:00.250+02:00", "UTC", NOON_MS - 2 * HOUR_MS + 250),
        ("2013-07-04 12:00", "Europe/Berlin", NOON_MS - 2 * HOUR_MS),
        ("2013-07-04 12:00:00.5 America/New_York", "UTC", NOON_MS + 4 * HOUR_MS + 500),
        (" 2013-07-04  12:00 utc ", "Asia/Tokyo", NOON_MS),
        ("2013-07-04", "UTC", NOON_MS - 12 * HOUR_MS),
        (f"@{NOON_MS}", "Asia/Tokyo", NOON_MS),
        ("2023-10-29 02:30", "Europe/Berlin", 1_698_539_400_000),  # the first of the two
    ],
)
def test_times_as_they_are_typed(text, zone_name, expected_ms):
    assert moment(text, zone_name) == AtTimestamp(expected_ms)


def test_distances_and_names_are_positions_as_everywhere():
    assert moment("10 minutes ago") == moment("-10m") == Ago(timedelta(minutes=10))
    assert moment("earliest") == Earliest()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2013-02-30 12:00", "calendar"),
        ("2013-07-04 12:00 Mars/Olympus", "Mars/Olympus"),
        ("yesterday", "not a position"),
    ],
)
def test_what_is_no_time_is_refused_in_words(text, said):
    with pytest.raises(InvalidArgumentError, match=said):
        moment(text)


@pytest.mark.parametrize("name", ["", "UTC", " z "])
def test_utc_has_many_names(name):
    assert zone(name) is timezone.utc


def test_a_timestamp_is_shown_with_its_distance_from_utc():
    assert clock_time(NOON_MS + 7, timezone.utc) == "2013-07-04 12:00:00.007Z"
    assert clock_time(NOON_MS, zone("Europe/Berlin")) == "2013-07-04 14:00:00.000+02:00"
    assert clock_time(-1, timezone.utc) == "–"
    assert clock_time(10**16, timezone.utc) == f"@{10**16}"
