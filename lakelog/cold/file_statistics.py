"""What an add action says of a file's rows, as Delta has it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from types import MappingProxyType

from .rows import RowTally

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_AS_THEY_ARE: Mapping[str, str] = MappingProxyType({})


def statistics(tally: RowTally, names: Mapping[str, str] = _AS_THEY_ARE) -> str:
    """The statistics of a file of these rows, as JSON.

    Args:
        names: what columns are called in files, where that is not their name.
    """
    said: dict[str, object] = {"numRecords": tally.records}
    if tally.records:
        offset, timestamp = (names.get(name, name) for name in ("offset", "timestamp"))
        said["minValues"] = {offset: tally.first, **time_statistic(tally.min_us, timestamp)}
        said["maxValues"] = {offset: tally.last, **time_statistic(tally.max_us, timestamp)}
        said["nullCount"] = {offset: 0, timestamp: 0}
    return json.dumps(said, separators=(",", ":"))


def milliseconds(time_us: int | None, beyond: int) -> int:
    """What an index reads back from the statistic of a time."""
    if time_us is None:
        return -1
    return time_us // 1000 if time_statistic(time_us) else beyond


def time_statistic(time_us: int | None, name: str = "timestamp") -> dict[str, str]:
    """As Delta writes it; left out beyond the year 9999, which its text cannot hold."""
    if time_us is None:
        return {}
    try:
        time = _EPOCH + timedelta(milliseconds=time_us // 1000)
    except OverflowError:
        return {}
    return {name: time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
