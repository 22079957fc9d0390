"""What an add action says of a file's rows, as Delta has it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

from .rows import RowTally
from .value_statistics import ValueStatistics, bound_text

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def statistics(tally: RowTally, values: ValueStatistics) -> str:
    """The statistics of a file of these rows, as JSON.

    Beyond the year 9999, Delta's text holds no time. A file with such a record says no more than
    how many it has: if one bound alone were missing, delta-rs would pass over the file.

    Args:
        values: those of its value columns.
    """
    said = {"numRecords": str(tally.records)}
    if tally.records and time_statistic(tally.max_us):
        least = {"offset": tally.first, **time_statistic(tally.min_us)}
        largest = {"offset": tally.last, **time_statistic(tally.max_us)}
        nulls = {"offset": 0, "timestamp": 0, **values.nulls}
        said |= {
            "minValues": _json_object(_members(least) | values.least),
            "maxValues": _json_object(_members(largest) | values.largest),
            "nullCount": _json_object(_members(nulls)),
        }
    return _json_object(said)


def statistics_text(
    records: int | None,
    least: Mapping[str, Any],
    largest: Mapping[str, Any],
    nulls: Mapping[str, int],
) -> str:
    """Statistics of a file as JSON, made again of values that were read from such a text.

    Args:
        records: None if it is not said.
        least: by column; likewise the others.
    """
    said: dict[str, str] = {} if records is None else {"numRecords": str(records)}
    bounds = {"minValues": least, "maxValues": largest}
    said |= {
        name: _json_object({column: bound_text(value) for column, value in values.items()})
        for name, values in bounds.items()
        if values
    }
    if nulls:
        said["nullCount"] = _json_object(_members(nulls))
    return _json_object(said)


def _members(values: Mapping[str, object]) -> dict[str, str]:
    return {name: json.dumps(value) for name, value in values.items()}


def _json_object(members: Mapping[str, str]) -> str:
    """An object of members that are JSON already: a decimal has more digits than a float."""
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"


def milliseconds(time_us: int | None, beyond: int) -> int:
    """What an index reads back from the statistic of a time."""
    if time_us is None:
        return -1
    return time_us // 1000 if time_statistic(time_us) else beyond


def time_statistic(time_us: int | None) -> dict[str, str]:
    """As Delta writes it; left out beyond the year 9999, which its text cannot hold."""
    if time_us is None:
        return {}
    try:
        time = _EPOCH + timedelta(milliseconds=time_us // 1000)
    except OverflowError:
        return {}
    return {"timestamp": time.isoformat(timespec="milliseconds").replace("+00:00", "Z")}
