from __future__ import annotations

from datetime import timezone

from lakelog.explore.explorer.rows import clock_time
from lakelog.values.typed_time import zone_named

NOON_MS = 1_372_939_200_000  # 2013-07-04T12:00:00Z


def test_a_timestamp_is_shown_with_its_distance_from_utc():
    assert clock_time(NOON_MS + 7, timezone.utc) == "2013-07-04 12:00:00.007Z"
    assert clock_time(NOON_MS, zone_named("Europe/Berlin")) == "2013-07-04 14:00:00.000+02:00"
    assert clock_time(-1, timezone.utc) == "–"
    assert clock_time(10**16, timezone.utc) == f"@{10**16}"
