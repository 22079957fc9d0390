"""Columns become JSON objects that read back as the same values, whatever they are."""

from __future__ import annotations

import base64
import json
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec import json_rows
from lakelog.codec.json_rows import json_objects, key_texts
from lakelog.errors import InvalidArgumentError

TIMES = st.datetimes()
#: By what a column may hold: its type, its values, and what JSON should say of one.
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any], Any]] = {
    "long": (pa.int64(), st.integers(-(2**63), 2**63 - 1), int),
    "unsigned": (pa.uint64(), st.integers(0, 2**64 - 1), int),
    "double": (pa.float64(), st.floats(), lambda one: one if math.isfinite(one) else None),
    "boolean": (pa.bool_(), st.booleans(), bool),
    "text": (pa.string(), st.text(), str),
    "large text": (pa.large_string(), st.text(), str),
    "category": (pa.dictionary(pa.int8(), pa.string()), st.sampled_from("ab\n"), str),
    "binary": (pa.binary(), st.binary(), lambda one: base64.b64encode(one).decode()),
    "decimal": (pa.decimal128(30, 9), st.decimals(-(10**20), 10**20, places=9), Decimal),
    "date": (pa.date32(), st.dates(), date.isoformat),
    "time": (pa.time64("us"), st.times(), lambda one: one.isoformat("microseconds")),
    "naive": (pa.timestamp("us"), TIMES, lambda one: one.isoformat(timespec="microseconds")),
    "moment": (
        pa.timestamp("us", "Asia/Tokyo"),
        TIMES.map(lambda one: one.replace(tzinfo=timezone.utc)),
        lambda one: one.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z",
    ),
}


def lists_of(kind: str) -> tuple[pa.DataType, st.SearchStrategy[Any], Any]:
    type_, values, said = KINDS[kind]
    return (
        pa.list_(type_),
        st.lists(st.none() | values, max_size=3),
        lambda items: [None if one is None else said(one) for one in items],
    )


KINDS["list"] = lists_of("text")
KINDS["list of lists"] = (
    pa.list_(pa.list_(pa.int64())),
    st.lists(st.none() | st.lists(st.integers(0, 9), max_size=2), max_size=2),
    list,
)
KINDS["struct"] = (
    pa.struct([("a", pa.int64()), ('b"', pa.list_(pa.string()))]),
    st.fixed_dictionaries(
        {"a": st.none() | st.integers(0, 9), 'b"': st.none() | st.lists(st.text(), max_size=2)}
    ),
    dict,
)
KINDS["map"] = (
    pa.map_(pa.string(), pa.float64()),
    st.dictionaries(st.text(), st.floats(0, 1), max_size=2).map(lambda one: list(one.items())),
    dict,
)


@given(st.data())
def test_each_value_reads_back(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    count = data.draw(st.integers(0, 5))
    columns, expected = [], []
    for kind in names:
        type_, values, said = KINDS[kind]
        rows = data.draw(st.lists(st.none() | values, min_size=count, max_size=count))
        columns.append(pa.array(rows, type_))
        expected.append([None if one is None else said(one) for one in rows])
    titles = [f"{number} {kind}\n" for number, kind in enumerate(names)]
    table = pa.table(dict(zip(titles, columns, strict=True)))
    start = data.draw(st.integers(0, count))
    found = [
        json.loads(text, parse_float=_Number)
        for text in json_objects(table.slice(start)).to_pylist()
    ]
    wanted = [dict(zip(titles, row, strict=True)) for row in zip(*expected, strict=True)][start:]
    assert found == wanted


class _Number:
    """A number as it is written, which is a double or a decimal by what it is compared with."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return bool((Decimal if isinstance(other, Decimal) else float)(self.text) == other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return self.text


def test_many_rows_are_made_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_rows, "ROWS_AT_ONCE", 10)
    made = json_objects(pa.table({"n": np.arange(35)}))
    assert made.num_chunks == 4
    assert made.to_pylist() == [f'{{"n":{n}}}' for n in range(35)]


def test_times_without_a_zone_are_those_of_the_zone_that_is_given() -> None:
    naive = pa.table(
        {"at": pa.array([datetime.fromisoformat("2026-07-01T12:00")], pa.timestamp("s"))}
    )
    assert json_objects(naive).to_pylist() == ['{"at":"2026-07-01T12:00:00"}']
    berlin = json_objects(naive, ZoneInfo("Europe/Berlin"))
    assert berlin.to_pylist() == ['{"at":"2026-07-01T10:00:00Z"}']
    twice = pa.table(
        {"at": pa.array([datetime.fromisoformat("2026-10-25T02:30")], pa.timestamp("s"))}
    )
    first = json_objects(twice, ZoneInfo("Europe/Berlin"))
    assert first.to_pylist() == ['{"at":"2026-10-25T00:30:00Z"}']
    skipped = pa.table(
        {"at": pa.array([datetime.fromisoformat("2026-03-29T02:30")], pa.timestamp("s"))}
    )
    with pytest.raises(InvalidArgumentError, match=r"column 'at': .* is no time of Europe/Berlin"):
        json_objects(skipped, ZoneInfo("Europe/Berlin"))


def test_durations_are_seconds_by_iso_8601() -> None:
    for unit, digits in (("s", ""), ("ms", ".000"), ("us", ".000000"), ("ns", ".000000000")):
        column = pa.array([timedelta(seconds=90), timedelta(seconds=-1), None], pa.duration(unit))
        assert json_objects(pa.table({"d": column})).to_pylist() == [
            f'{{"d":"PT90{digits}S"}}',
            f'{{"d":"PT-1{digits}S"}}',
            '{"d":null}',
        ]


def test_what_json_has_nothing_for_is_refused_by_the_name_of_its_column() -> None:
    interval = pa.array([(1, 2, 3)], pa.month_day_nano_interval())
    with pytest.raises(InvalidArgumentError, match="column 'odd' is of type month_day_nano"):
        json_objects(pa.table({"odd": interval}))
    by_number = pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))
    with pytest.raises(InvalidArgumentError, match="column 'odd' is of type map"):
        json_objects(pa.table({"odd": by_number}))
    with pytest.raises(InvalidArgumentError, match="'a' is there twice"):
        json_objects(pa.table([[1], [2]], names=["a", "a"]))


def test_keys_are_text_as_it_is_and_others_as_json_writes_them() -> None:
    for column, texts in (
        (pa.array(["a", None]), ["a", None]),
        (pa.array([b"\xff"]), [b"\xff"]),
        (pa.array([7, None]), ["7", None]),
        (pa.array([date(2026, 1, 1)]), ["2026-01-01"]),
        (pa.array([time(1)], pa.time32("s")), ["01:00:00"]),
        (pa.array([[1, 2]]), ["[1,2]"]),
    ):
        assert key_texts(pa.chunked_array([column]), "key").to_pylist() == texts
