"""Columns of JSON values: what each type takes; a value reads the same whoever is beside it."""

from __future__ import annotations

import json
import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog.codec import json_object, value_columns
from lakelog.codec.value_columns import (
    BLOCK_ROWS,
    MAX_DEPTH,
    NOT_AN_OBJECT,
    PIECES,
    TOO_DEEP,
    columns_of,
    value_schema,
)

COLUMNS = (
    "t tinyint, i int, b bigint, f float, d double, n decimal(5,2), s string, o boolean, "
    "day date, at timestamp, a array<int>, r struct<x int, y string>"
)
SCHEMA = value_schema(COLUMNS)
#: Makes those beside it be read one by one.
BROKEN = b'{"i":}'


def read(*values: bytes | None, columns: str = COLUMNS) -> list[dict[str, Any]]:
    """Of each value, what is not null; NaN never is."""
    found = columns_of(pa.array(values, pa.binary()), value_schema(columns))
    found.validate(full=True)
    return [
        {name: one for name, one in row.items() if one is not None} for row in found.to_pylist()
    ]


UTC = timezone.utc


@pytest.mark.parametrize(
    ("value", "columns"),
    [
        ('{"i":1,"b":-9223372036854775808,"t":-0}', {"i": 1, "b": -(2**63), "t": 0}),
        ('{"d":1,"f":0.1}', {"d": 1.0, "f": 0.10000000149011612}),
        ('{"d":123456789012345678901234567890}', {"d": 1.2345678901234568e29}),
        ('{"d":1e-999}', {"d": 0.0}),
        ('{"n":1.5}', {"n": Decimal("1.50")}),
        ('{"n":"-12.340"}', {"n": Decimal("-12.34")}),
        ('{"n":1e2}', {"n": Decimal("100.00")}),
        ('{"s":"\\u00e9\\ud83d\\ude00","o":true}', {"s": "é😀", "o": True}),
        (
            '{"s":{"k": [1.10, "é", null, false, 1E400]}}',
            {"s": '{"k":[1.10,"é",null,false,1E400]}'},
        ),
        ('{"s":-0.0}', {"s": "-0.0"}),
        ('{"s":true}', {"s": "true"}),
        ('{"day":"2013-01-01"}', {"day": date(2013, 1, 1)}),
        ('{"at":"2013-01-01"}', {"at": datetime(2013, 1, 1, tzinfo=UTC)}),
        ('{"at":"2013-01-01 05:15"}', {"at": datetime(2013, 1, 1, 5, 15, tzinfo=UTC)}),
        (
            '{"at":"2013-01-01T05:15:00.1234569-0530"}',
            {"at": datetime(2013, 1, 1, 10, 45, 0, 123456, tzinfo=UTC)},
        ),
        ('{"a":[1,null],"r":{"y":"q","z":0}}', {"a": [1, None], "r": {"x": None, "y": "q"}}),
        ("{}", {}),
        (' {"i" :\r\n 1}\n', {"i": 1}),
        ('{"i":1,"i":2}', {"i": 2}),
        ('{"i":null,"I":3,"z":[{"i":4}]}', {}),
        ('{"z":1e999,"y":' + "9" * 5000 + "}", {}),
        ('{"i":1,"y":' + "9" * 5000 + "}", {"i": 1}),
        ('{"z":"\\ud800"}', {}),
        ('{"s":"a: NaN, Inf"}', {"s": "a: NaN, Inf"}),
    ],
)
def test_what_the_types_take(value: str, columns: dict[str, Any]) -> None:
    raw = value.encode()
    assert read(raw) == [columns]
    assert read(raw, BROKEN)[0] == columns


RULES = (
    "n int NOT NULL, x double DEFAULT 1.5, s string NOT NULL DEFAULT 'none', o boolean, "
    "p decimal(5,2) DEFAULT 0.10, m map<string,int>"
)
FILLED = {"x": 1.5, "s": "none", "p": Decimal("0.10")}


@pytest.mark.parametrize("columns", [RULES, RULES.replace(", m map<string,int>", "")])
def test_what_stands_for_a_missing_member_and_what_must_be_there(columns: str) -> None:
    wrong = {"value_error": "n: missing or null, and it is NOT NULL"}
    cases: list[tuple[bytes | None, dict[str, Any]]] = [
        (b'{"n":1}', {"n": 1, **FILLED}),
        (b'{"n":2,"x":null,"s":"a","o":true}', {"n": 2, **FILLED, "s": "a", "o": True}),
        (b'{"n":3,"p":"2.25"}', {"n": 3, **FILLED, "p": Decimal("2.25")}),
        (b'{"x":1}', wrong),
        (b'{"n":null}', wrong),
        (b"{}", wrong),
        (b'{"n":"no"}', {"value_error": "n: not an int"}),
        (b"no", {"value_error": NOT_AN_OBJECT}),
        (None, {}),
    ]
    assert read(*(value for value, _ in cases), columns=columns) == [found for _, found in cases]
    for value, found in cases:
        assert read(value, columns=columns) == [found]


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", NOT_AN_OBJECT),
        (b" \n", NOT_AN_OBJECT),
        (b"[1]", NOT_AN_OBJECT),
        (b"null", NOT_AN_OBJECT),
        (b"plain text", NOT_AN_OBJECT),
        (b"\xef\xbb\xbf{}", NOT_AN_OBJECT),
        (b'{"i":1', NOT_AN_OBJECT),
        (b'{"i":1}\0', NOT_AN_OBJECT),
        (b'{"i":1}{"i":2}', "not JSON"),
        (b'{"i":1}\n{"i":2}', "not JSON"),
        (b'{"i":1},{"i":2}', "not JSON"),
        (b'{"i":1}\0}', "not JSON"),
        (b'{"z":"line\nend"}', "not JSON"),
        (b'{"z":"tab\tin"}', "not JSON"),
        (b'{"z":NaN}', "not JSON"),
        (b'{"d": -Infinity}', "not JSON"),
        (b'{"z":[Inf]}', "not JSON"),
        (b'{"z":01}', "not JSON"),
        (b"{'i':1}", "not JSON"),
        (b'{"i":1,}', "not JSON"),
        (b'{"z":"\xff"}', "not UTF-8"),
        (b'{"z":"\xed\xa0\x80"}', "not UTF-8"),
        (b'{"z":' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", TOO_DEEP),
        (b'{"i":1.0}', "i: not an int"),
        (b'{"i":1e2}', "i: not an int"),
        (b'{"i":2147483648}', "i: not an int"),
        (b'{"i":"1"}', "i: not an int"),
        (b'{"i":true}', "i: not an int"),
        (b'{"b":9223372036854775808}', "b: not a bigint"),
        (b'{"b":' + b"9" * 5000 + b"}", "b: not a bigint"),
        (b'{"t":128}', "t: not a tinyint"),
        (b'{"d":"1.5"}', "d: not a double"),
        (b'{"d":1e309}', "d: not a double"),
        (b'{"d":' + b"9" * 400 + b"}", "d: not a double"),
        (b'{"f":1e39}', "f: not a float"),
        (b'{"n":1.234}', "n: not a decimal(5,2)"),
        (b'{"n":1000}', "n: not a decimal(5,2)"),
        (b'{"n":"1_0"}', "n: not a decimal(5,2)"),
        (b'{"n":"NaN"}', "n: not a decimal(5,2)"),
        (b'{"s":"\\ud800"}', "s: not a string"),
        (b'{"o":1}', "o: not a boolean"),
        (b'{"day":"2013-02-29"}', "day: not a date"),
        (b'{"day":"0000-01-01"}', "day: not a date"),
        (b'{"day":15706}', "day: not a date"),
        (b'{"at":"2013-01-01T24:00:00Z"}', "at: not a timestamp"),
        (b'{"at":"0001-01-01T00:00:00+01:00"}', "at: not a timestamp"),
        (b'{"at":1357016400000}', "at: not a timestamp"),
        (b'{"a":{}}', "a: not an array"),
        (b'{"a":[1,"x"]}', "a[]: not an int"),
        (b'{"r":[]}', "r: not an object"),
        (b'{"r":{"x":0.5}}', "r.x: not an int"),
    ],
)
def test_what_does_not_parse_says_why_and_hurts_nobody_else(value: bytes, why: str) -> None:
    good = b'{"i":1,"s":"x"}'
    beside = {"i": 1, "s": "x"}
    assert read(value) == [{"value_error": why}]
    assert read(good, value, None, good) == [beside, {"value_error": why}, {}, beside]


def test_objects_of_any_names_are_maps() -> None:
    columns = "m map<string,array<double>>, i int"
    assert read(b'{"m":{"a":[1,2.5],"b":null},"i":3}', None, columns=columns) == [
        {"m": [("a", [1.0, 2.5]), ("b", None)], "i": 3},
        {},
    ]
    assert read(b'{"m":{"a":["x"]}}', columns=columns) == [{"value_error": "m[][]: not a double"}]


# -- whoever is beside it ----------------------------------------------------------------------

NUMBERS = st.one_of(
    st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,4})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.sampled_from(["127", "128", "-128", "-129", "2147483647", "-2147483649", "999.99", "1e308"]),
)
TIMES = st.from_regex(
    r"[0-9]{4}-(0[1-9]|1[0-3])-([0-2][0-9]|3[01])"
    r"([T ][0-2][0-9](:[0-5][0-9](:[0-5][0-9](\.[0-9]{1,10})?)?)?"
    r"(Z|[+-][0-2][0-9](:?[0-6][0-9])?)?)?",
    fullmatch=True,
)
DECIMALS = st.from_regex(r"[+-]?[0-9]{0,3}\.?[0-9]{0,3}(e[+-]?[0-3])?", fullmatch=True)
LEAVES = st.one_of(
    NUMBERS,
    (st.text(max_size=6) | TIMES | DECIMALS).map(json.dumps),
    st.sampled_from(["true", "false", "null", "NaN", "Inf", "-Infinity", "nan", '"\\ud800"', "+1"]),
)
BLANKS = st.sampled_from(["", "", "", " ", "\n", "\t\r\n"])


def members(tokens: st.SearchStrategy[str], names: list[str]) -> st.SearchStrategy[str]:
    one = st.builds('{}"{}"{}:{}'.format, BLANKS, st.sampled_from(names), BLANKS, tokens)
    return st.lists(one, max_size=4).map(lambda all_: f"{{{','.join(all_)}}}")


TOKENS = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda all_: f"[{','.join(all_)}]")
        | members(inner, ["x", "y", "z"])
    ),
    max_leaves=4,
)
OBJECTS = members(TOKENS, [*SCHEMA.names, "z"]).map(lambda text: text.encode("utf-8"))


@st.composite
def damaged(draw: st.DrawFn) -> bytes:
    """An object with a few bytes put in or taken out."""
    value = bytearray(draw(OBJECTS))
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(value)))
        put = draw(
            st.sampled_from([b"", b"{", b"}", b",", b'"', b"\\", b"\0", b"\n", b"\xff", b"0"])
        )
        value[at : at + draw(st.integers(0, 1))] = put
    return bytes(value)


@settings(max_examples=75)
@given(st.lists(st.none() | OBJECTS | OBJECTS | damaged(), max_size=8))
@example([b'{"i":1}{"i":2}', b"  ", b'{"i":3}'])
@example([b'{"at":"2013-01-01T05:00:00.1234567Z"}'])
def test_a_value_reads_the_same_alone_and_beside_others(values: list[bytes | None]) -> None:
    alone = [one for value in values for one in read(value)]
    assert read(*values) == alone
    assert read(*values, BROKEN)[:-1] == alone


ZEROS = ["-0", "0", "-0.0", "-0e0", "-0E5", "0.0", "[-0, 0]", '{"x": -0}']


@pytest.mark.parametrize("type_", ["int", "float", "double", "decimal(5,2)", "string"])
@pytest.mark.parametrize("zero", ZEROS)
def test_zero_keeps_its_sign_alone_and_beside_others(type_: str, zero: str) -> None:
    value = f'{{"n":{zero}}}'.encode()
    columns = f"n {type_}, m map<string,{type_}>"
    (alone,) = read(value, columns=f"n {type_}")
    beside, _ = read(value, BROKEN, columns=f"n {type_}")
    (beside_a_map,) = read(value, columns=columns)
    assert repr(beside) == repr(beside_a_map) == repr(alone)
    if zero.startswith("-") and type_ in {"float", "double"}:
        assert math.copysign(1, alone["n"]) == -1
    if type_ == "string":
        assert alone["n"].replace(" ", "") == zero.replace(" ", "")


def refuse(constant: str) -> None:
    raise ValueError(constant)


def as_python_reads(value: bytes | None) -> dict[str, Any]:
    """The columns of `SIMPLE` objects by Python's json alone; without the reason of an error."""
    try:
        found = {} if value is None else json.loads(value, parse_constant=refuse)
        whole, number, yes_or_no = (found.get(name) for name in ("i", "d", "o"))
        assert whole is None or (type(whole) is int and -(2**31) <= whole < 2**31)
        assert number is None or (type(number) in (int, float) and not math.isinf(float(number)))
        assert yes_or_no is None or type(yes_or_no) is bool
    except (ValueError, OverflowError, AssertionError):
        return {"value_error": None}
    row = {"i": whole, "d": None if number is None else float(number), "o": yes_or_no}
    return {name: one for name, one in row.items() if one is not None}


SIMPLE = members(
    NUMBERS | st.text(max_size=6).map(json.dumps) | st.sampled_from(["true", "null", "NaN"]),
    ["i", "d", "o", "z"],
)


@settings(max_examples=300)
@given(st.lists(st.none() | SIMPLE.map(str.encode), max_size=8))
def test_values_are_what_python_s_json_says_and_errors_where_it_says(
    values: list[bytes | None],
) -> None:
    found = read(*values, columns="i int, d double, o boolean")
    without_why = [{n: None if n == "value_error" else v for n, v in row.items()} for row in found]
    assert without_why == [as_python_reads(value) for value in values]


# -- blocks, layouts and what it costs ---------------------------------------------------------


def test_values_of_any_size_and_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_columns, "BLOCK_BYTES", 64)
    values = [
        None if n % 7 == 0 else b'{"i":%d,"s":"%s"}' % (n, b"x" * (n % 90)) for n in range(300)
    ]
    whole = pa.array(values, pa.binary())
    wanted = columns_of(whole, SCHEMA)
    assert wanted["i"].to_pylist() == [None if n % 7 == 0 else n for n in range(300)]
    assert wanted["value_error"].null_count == 300
    assert columns_of(whole.slice(13, 200), SCHEMA) == wanted.slice(13, 200)
    assert columns_of(pa.chunked_array([whole.slice(0, 9), whole.slice(9)]), SCHEMA) == wanted
    assert columns_of(whole.cast(pa.large_binary()), SCHEMA) == wanted
    assert columns_of(whole.slice(0, 0), SCHEMA) == wanted.slice(0, 0)
    assert columns_of(pa.nulls(3, pa.binary()), SCHEMA).num_rows == 3


@pytest.mark.parametrize(
    ("bad", "arrow_calls", "one_by_one"),
    [
        ({}, 1, 0),
        ({5000: b'{"i":"x"}'}, 1 + PIECES, BLOCK_ROWS // PIECES),
        ({5000: b'{"i":1.5}'}, 1 + PIECES, BLOCK_ROWS // PIECES),
        (dict.fromkeys(range(BLOCK_ROWS), b'{"i":"x"}'), 1 + PIECES, BLOCK_ROWS),
        (dict.fromkeys(range(BLOCK_ROWS), b'{"i":1.5}'), 1 + PIECES, BLOCK_ROWS),
        (dict.fromkeys(range(BLOCK_ROWS), b"no JSON"), 0, 0),
    ],
    ids=["good", "one string", "one fraction", "strings", "fractions", "no objects"],
)
def test_what_does_not_parse_costs_a_few_calls_and_few_values_read_one_by_one(
    monkeypatch: pytest.MonkeyPatch, bad: dict[int, bytes], arrow_calls: int, one_by_one: int
) -> None:
    calls, read_alone = [], []
    read_json, members_of = pj.read_json, json_object.members

    def counting_read_json(*args: Any, **kwargs: Any) -> pa.Table:
        calls.append(1)
        return read_json(*args, **kwargs)

    def counting_members(value: bytes) -> dict[str, Any]:
        read_alone.append(1)
        return members_of(value)

    monkeypatch.setattr(value_columns.pj, "read_json", counting_read_json)
    monkeypatch.setattr(value_columns, "members", counting_members)
    values = pa.array([bad.get(n, b'{"i":%d}' % n) for n in range(BLOCK_ROWS)], pa.binary())
    found = columns_of(values, value_schema("i int"))
    assert found["value_error"].null_count == BLOCK_ROWS - len(bad)
    assert found["i"].null_count == len(bad)
    assert len(calls) <= arrow_calls
    assert len(read_alone) <= one_by_one
