"""What an add action says of a file's rows, so that a filter skips files. Pure.

As Delta writes it: bounds that no value lies outside of, and how many values are null. A string is
cut to `STRING_CHARACTERS`, a time to milliseconds, each bound away from the values. A column
without values has no bounds. One with values has both: where one is left out, a filter of delta-rs
passes over the whole file, whichever bound it needs (tried: 1.6.6).

Source: Delta's protocol, "Per-file Statistics".
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa

from ..base import compute as pc
from ..values.value_ddl import VALUE_ERROR
from .rows import RowTally, with_value_columns
from .schema import with_statistics

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


#: As Delta's own writers cut strings.
STRING_CHARACTERS = 32

#: Sorts after every other character, in UTF-8 too.
_LAST_CHARACTER = "\U0010ffff"

#: What no text holds.
_SURROGATES = range(0xD800, 0xE000)

_MILLISECOND = timedelta(milliseconds=1)


class ValueStatistics:
    """Statistics of a file's value columns, taken in row group by row group.

    Args:
        columns: the value columns of the file.
    """

    def __init__(self, columns: pa.Schema) -> None:
        self._nulls = dict.fromkeys(with_statistics(columns), 0)
        self._least: dict[str, Any] = {}
        self._largest: dict[str, Any] = {}

    def count(self, rows: pa.Table) -> None:
        """Take in more rows."""
        for name in self._nulls:
            self._nulls[name] += rows[name].null_count
            found = pc.min_max(rows[name]).as_py()
            if found["min"] is not None:
                self._least[name] = min(found["min"], self._least.get(name, found["min"]))
                self._largest[name] = max(found["max"], self._largest.get(name, found["max"]))

    @property
    def nulls(self) -> dict[str, int]:
        """How many values of each column are null."""
        return dict(self._nulls)

    @property
    def least(self) -> dict[str, str]:
        """No value is less, by column, as JSON."""
        return {name: _lower_bound(value) for name, value in self._least.items()}

    @property
    def largest(self) -> dict[str, str]:
        """No value is larger, by column, as JSON."""
        return {name: _upper_bound(value) for name, value in self._largest.items()}


def counted_values(
    row_groups: Iterable[pa.Table], columns: pa.Schema, tally: RowTally, values: ValueStatistics
) -> Iterator[pa.Table]:
    """The row groups with their value columns, once they are counted.

    Args:
        columns: the value columns; without any the groups come as they are.
        tally: gets the records that do not parse.
    """
    for group in row_groups:
        if len(columns):
            group = with_value_columns(group, columns)
            tally.unparsed += group.num_rows - group[VALUE_ERROR].null_count
            values.count(group)
        yield group
        del group


def _lower_bound(value: Any) -> str:
    if isinstance(value, str):
        return json.dumps(value[:STRING_CHARACTERS])
    return _exact(value)


def _upper_bound(value: Any) -> str:
    if isinstance(value, str) and len(value) > STRING_CHARACTERS:
        return json.dumps(_larger(value))
    if isinstance(value, datetime) and value.microsecond % 1000:
        try:
            return _exact(value + _MILLISECOND)
        except OverflowError:  # the end of the year 9999, as people write "for ever"
            return bound_text(value)
    return _exact(value)


def bound_text(value: Any) -> str:
    """A bound as JSON, with all of its digits."""
    if isinstance(value, datetime) and value.microsecond % 1000:
        return json.dumps(value.isoformat().replace("+00:00", "Z"))
    return _exact(value)


def _larger(text: str) -> str:
    """A text that is not less than a longer one, nor than any that begins as it does."""
    cut = text[:STRING_CHARACTERS]
    if text[STRING_CHARACTERS] != _LAST_CHARACTER:
        return cut + _LAST_CHARACTER
    cut = cut.rstrip(_LAST_CHARACTER)
    if not cut:
        return text  # nothing shorter is larger
    following = ord(cut[-1]) + 1
    return cut[:-1] + chr(following if following != _SURROGATES[0] else _SURROGATES[-1] + 1)


def _exact(value: Any) -> str:
    """A value as JSON; of a time only its milliseconds."""
    if isinstance(value, datetime):
        return json.dumps(value.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
    if isinstance(value, date):
        return json.dumps(value.isoformat())
    if isinstance(value, Decimal):
        return f"{value:f}"  # all digits, which a float has not
    return json.dumps(value)
