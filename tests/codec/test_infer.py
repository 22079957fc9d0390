"""What columns are proposed for values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec.infer import Inferred, InferredColumn, infer
from lakelog.codec.value_columns import columns_of, value_schema


def proposed(*values: Any, known: str = "") -> Inferred:
    """Of values that are written as JSON; None is null."""
    texts = [None if value is None else json.dumps(value).encode() for value in values]
    return infer(pa.array(texts, pa.binary()), known)


@pytest.mark.parametrize(
    ("values", "ddl"),
    [
        ([{"a": 1}, {"a": 2**40}], "a bigint"),
        ([{"a": 1}, {"a": 1.5}, {"a": None}], "a double"),
        ([{"a": 2**63 - 1}, {"a": -(2**63)}], "a bigint"),
        ([{"a": 1}, {"a": 2**63}], "a decimal(20,0)"),
        ([{"a": 2**64 - 1}, {"a": -(10**19)}, {"a": None}], "a decimal(20,0)"),
        ([{"a": 1}, {"a": 10**20}], "a string"),
        ([{"a": 10**20}], "a string"),
        ([{"a": 2**53}, {"a": 0.5}], "a double"),
        ([{"a": 2**53 + 1}, {"a": 0.5}], "a string"),
        ([{"a": 1e300}, {"a": 0.1}, {"a": 1}], "a double"),
        ([{"a": [1, 2**64 - 1]}, {"a": [2]}], "a array<decimal(20,0)>"),
        ([{"a": {"id": 2**63}}, {"a": {"id": 1}}], "a struct<id decimal(20,0)>"),
        ([{"a": 2**64 - 1}, {"a": "x"}], "a string"),
        ([{"a": True}], "a boolean"),
        ([{"a": "2013-01-01"}, {"a": "2013-12-31"}], "a date"),
        ([{"a": "2013-01-01"}, {"a": "2013-01-01T05:00:00Z"}], "a timestamp"),
        ([{"a": "2013-01-01"}, {"a": "soon"}], "a string"),
        ([{"a": 1}, {"a": "x"}], "a string"),
        ([{"a": 1}, {"a": [1]}], "a string"),
        ([{"a": []}, {"a": [None, 1]}], "a array<bigint>"),
        ([{"a": []}], "a array<string>"),
        (
            [{"a": {"x": 1}}, {"a": {"y": ["q"], "x": 0.5}}],
            "a struct<x double, y array<string>>",
        ),
        ([{"a": {}}], "a string"),
        ([{"a": {"x": 1, "X": 2}}], "a string"),
        ([{"b": 1, "a-b": 2}, {"c": "x"}], "b bigint, `a-b` bigint, c string"),
        ([{"a": None}], ""),
        ([[1], "text", None], ""),
    ],
)
def test_the_columns_take_what_was_seen(values: list[Any], ddl: str) -> None:
    assert proposed(*values).ddl == ddl


def test_how_often_a_member_is_there_and_what_cannot_be_a_column_are_told() -> None:
    found = proposed({"a": 1, "offset": 2}, {"a": "x", "A": 1}, {"b c": 1, "d": None}, [1], None)
    assert found == Inferred(
        sampled=5,
        null=1,
        unparsed=1,
        columns=(
            InferredColumn("a", "string", 2, "differs from value to value"),
            InferredColumn(
                "offset", None, 1, "has the name of a column of lakelog's own; left out"
            ),
            InferredColumn("A", None, 1, "differs from another by case alone; left out"),
            InferredColumn("b c", None, 1, "has a name that no column of a table has; left out"),
            InferredColumn("d", None, 0, "is always null; left out"),
        ),
        ddl="a string",
    )


def of_texts(*texts: str) -> Inferred:
    return infer(pa.array([text.encode() for text in texts], pa.binary()))


@pytest.mark.parametrize(
    ("numbers", "type_", "note"),
    [
        (["18446744073709551615", "1"], "decimal(20,0)", "has whole numbers beyond bigint"),
        (["0.1", "1.50", "3E2", "-0", "1e-7", "12345678901234567000.0"], "double", ""),
        *(
            (
                [number, "0.5"],
                "string",
                "has numbers of more digits than a double keeps: text keeps them",
            )
            for number in (
                "12345678901234567.89",
                "3.14159265358979323846",
                "9007199254740993.0",
                "9007199254740993e0",
                "1e400",
                "1e-400",
                "1e99999999999999999999999999",
                "9" * 5000,
            )
        ),
    ],
)
def test_no_number_of_the_sample_loses_digits(numbers: list[str], type_: str, note: str) -> None:
    texts = [f'{{"a": {number}}}' for number in numbers]
    found = of_texts(*texts)
    assert found.columns == (InferredColumn("a", type_, len(numbers), note),)
    assert found.unparsed == 0
    columns = columns_of(
        pa.array([text.encode() for text in texts], pa.binary()), value_schema(found.ddl)
    )
    kept = columns["a"].to_pylist()
    if type_ == "string":
        assert kept == numbers
    elif type_ == "double":
        assert list(map(repr, kept)) == [repr(float(number)) for number in numbers]
    else:
        assert list(map(str, kept)) == numbers


def test_a_note_tells_of_numbers_within_arrays_and_objects() -> None:
    found = of_texts('{"a": [{"x": 18446744073709551615}], "b": {"y": [1.23456789012345678901]}}')
    assert [(column.type, column.note) for column in found.columns] == [
        ("array<struct<x decimal(20,0)>>", "has whole numbers beyond bigint"),
        (
            "struct<y array<string>>",
            "has numbers of more digits than a double keeps: text keeps them",
        ),
    ]


def test_a_column_of_doubles_that_is_there_and_loses_digits_is_told() -> None:
    found = proposed({"id": 2**64 - 1, "n": 1}, known="id double, n double")
    assert [column.note for column in found.columns] == [
        "is there already, and does not keep all digits of some: two numbers may be one in it",
        "is there already",
    ]


@given(st.lists(st.integers(-(2**70), 2**70), min_size=1, unique=True), st.booleans())
def test_numbers_that_differ_stay_apart(numbers: list[int], beside_a_fraction: bool) -> None:
    texts = [f'{{"a": {number}}}' for number in numbers] + ['{"a": 0.5}'] * beside_a_fraction
    values = pa.array([text.encode() for text in texts], pa.binary())
    kept = columns_of(values, value_schema(infer(values).ddl))["a"].to_pylist()
    assert len(set(kept)) == len(texts)


@pytest.mark.parametrize(("name", "shown"), [("\ud800", "\\ud800"), ("a\0", "a\0")])
def test_a_name_that_no_table_can_have_is_left_out(name: str, shown: str) -> None:
    found = proposed({name: 1, "b": 1})
    assert (found.ddl, found.unparsed) == ("b bigint", 0)
    assert found.columns[0] == InferredColumn(
        shown, None, 1, "has a name that no column of a table has; left out"
    )


def test_an_object_with_a_member_that_no_table_can_have_is_text() -> None:
    found = proposed({"b": {"a\0": 1}})
    assert (found.ddl, found.unparsed) == ("b string", 0)


def test_columns_that_are_there_stay_and_what_they_refuse_is_counted() -> None:
    found = proposed({"b": 1, "a": 1.5}, {"a": 2}, known="a int COMMENT 'x', z date")
    assert found.ddl == "a int COMMENT 'x', z date, b bigint"
    assert found.unparsed == 1
    assert found.columns[1] == InferredColumn("a", "int", 2, "is there already")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=4)
    | st.dates().map(str),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["x", "y", "Y"]), inner)
    ),
    max_leaves=6,
)


@given(st.lists(st.none() | st.dictionaries(st.sampled_from(["a", "b", "B", "c d"]), JSON)))
def test_every_value_it_was_told_by_parses(values: list[Any]) -> None:
    found = proposed(*values)
    assert found.unparsed == 0
    if found.ddl:
        texts = [None if value is None else json.dumps(value).encode() for value in values]
        columns = columns_of(pa.array(texts, pa.binary()), value_schema(found.ddl))
        for column in found.columns:
            if column.type is not None:
                there = columns[column.name]
                assert len(there) - there.null_count == column.present
