"""The text that defines value columns: what it means, what is refused and where."""

from __future__ import annotations

import decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidConfigError
from lakelog.values.value_ddl import (
    MAX_DEPTH,
    PRIMITIVES,
    Array,
    Column,
    Decimal,
    Map,
    Primitive,
    Struct,
    check_additive,
    ddl_of,
    parse_columns,
)

NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,8}", fullmatch=True).map("x{}".format)


def columns(types: st.SearchStrategy) -> st.SearchStrategy[tuple[Column, ...]]:
    one = st.builds(Column, NAMES, types, st.none() | st.text(max_size=8))
    return st.lists(one, min_size=1, max_size=4, unique_by=lambda c: c.name.lower()).map(tuple)


TYPES = st.recursive(
    st.sampled_from(sorted(set(PRIMITIVES.values()))).map(Primitive)
    | st.integers(1, 38).flatmap(lambda p: st.integers(0, p).map(lambda s: Decimal(p, s))),
    lambda inner: (
        inner.map(Array) | inner.map(Map) | columns(inner).map(lambda fields: Struct(fields))
    ),
    max_leaves=6,
)


@given(columns(TYPES))
def test_what_is_written_is_read_back(defined: tuple[Column, ...]) -> None:
    assert parse_columns(ddl_of(defined)) == defined


def test_spark_s_other_names_and_spellings() -> None:
    text = (
        "a LONG, b: Dec(4,1) , `c-d` STRUCT< x : byte comment 'it''s' , y array<real>>, e numeric"
    )
    assert parse_columns(text) == (
        Column("a", Primitive("bigint")),
        Column("b", Decimal(4, 1)),
        Column(
            "c-d",
            Struct(
                (
                    Column("x", Primitive("tinyint"), "it's"),
                    Column("y", Array(Primitive("float"))),
                )
            ),
        ),
        Column("e", Decimal(10, 0)),
    )


def test_what_must_be_there_and_what_stands_for_what_is_not() -> None:
    text = (
        "a int NOT NULL, b double default -1.5e3 COMMENT 'x', c string NOT NULL DEFAULT 'it''s', "
        "d boolean DEFAULT TRUE, e decimal(5,2) DEFAULT 1.50, `2nd` bigint DEFAULT 7"
    )
    parsed = parse_columns(text)
    assert [(one.is_required, one.default) for one in parsed] == [
        (True, None),
        (False, decimal.Decimal("-1500")),
        (True, "it's"),
        (False, True),
        (False, decimal.Decimal("1.50")),
        (False, decimal.Decimal(7)),
    ]
    assert parse_columns(ddl_of(parsed)) == parsed
    assert [one.declaration for one in parsed[:3]] == [
        "a int",
        "b double COMMENT 'x'",
        "c string",
    ]


def test_no_text_is_no_columns() -> None:
    assert parse_columns("") == parse_columns("  \n") == ()


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [
        ("a", 1, "a type should stand here"),
        ("a itn", 2, "bigint"),
        ("a int,", 6, "name should stand here"),
        (", a int", 0, "name should stand here"),
        ("a int b", 6, "a comma or the end"),
        ("a int, A string", 7, "'a' already"),
        ("a struct<b int, B int>", 16, "'b' already"),
        ("Offset int", 0, "lakelog's own"),
        ("value_error string", 0, "lakelog's own"),
        ("a decimal(39,0)", 10, "1..38"),
        ("a decimal(5,6)", 12, "0..5"),
        ("a map<int,int>", 6, "keys of a map are strings"),
        ("a struct<>", 9, "name should stand here"),
        ("a array<int", 11, "'>' should stand here"),
        ("a int NOT", 9, "NULL should stand here"),
        ("a struct<b int NOT NULL>", 15, "only a column"),
        ("a int DEFAULT 'x'", 14, "a number"),
        ("a int DEFAULT", 13, "a number"),
        ("a int DEFAULT 1.0", 14, "it is no int"),
        ("a tinyint DEFAULT 128", 18, "it is no tinyint"),
        ("a float DEFAULT 1e39", 16, "it is no float"),
        ("a decimal(3,2) DEFAULT 10", 23, "it is no decimal(3,2)"),
        ("a decimal(3,2) DEFAULT 1.234", 23, "it is no decimal(3,2)"),
        ("a boolean DEFAULT 1", 18, "true or false"),
        ("a string DEFAULT x", 17, "single quotes"),
        ("a date DEFAULT '2020-01-01'", 15, "has no DEFAULT"),
        ("a array<int> DEFAULT 1", 21, "has no DEFAULT"),
        ("a int COMMENT x", 14, "single quotes"),
        ("a int COMMENT 'x", 14, "single quotes"),
        ("`a b` int", 0, "cannot be a column's name"),
        ("`` int", 0, "cannot be a column's name"),
        ("`a\0` int", 0, "cannot be a column's name"),
        ("`a\x7f` int", 0, "cannot be a column's name"),
        ("`a\ud800` int", 0, "cannot be a column's name"),
        ("a struct<`b\0` int>", 9, "cannot be a column's name"),
        ("a binary", 2, "a type should stand here"),
        ("a timestamp_ntz", 2, "a type should stand here"),
        ("a " + "array<" * (MAX_DEPTH + 1) + "int" + ">" * (MAX_DEPTH + 1), 200, "deeper"),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_place(text: str, position: int, said: str) -> None:
    with pytest.raises(InvalidConfigError, match=f"at character {position + 1} ") as refused:
        parse_columns(text)
    assert refused.value.position == position
    assert said in str(refused.value)


def test_a_column_of_a_struct_may_be_called_as_one_of_ours() -> None:
    assert parse_columns("leg struct<offset int>")[0].type == Struct(
        (Column("offset", Primitive("int")),)
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", "a int"),
        ("a int", "a int, b string"),
        ("a int, b string", "b string, c date, a int"),
        ("a int", "a int COMMENT 'seconds'"),
        ("a struct<b int COMMENT 'x'>", "a struct<b int>"),
        ("a decimal(10,0)", "a decimal"),
    ],
)
def test_columns_may_be_added_and_comments_changed(old: str, new: str) -> None:
    check_additive(parse_columns(old), parse_columns(new))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("a int", "", "'a' is gone"),
        ("a int, b string", "b string", "'a' is gone"),
        ("a int", "A int", "spelt 'A' now"),
        ("a int", "a bigint", "is bigint, and was int"),
        ("a struct<b int>", "a struct<b int, c int>", "was struct<b int>"),
        ("a array<int>", "a map<string,int>", "was array<int>"),
    ],
)
def test_no_column_goes_or_changes_its_type(old: str, new: str, said: str) -> None:
    with pytest.raises(InvalidConfigError, match="can only be added") as refused:
        check_additive(parse_columns(old), parse_columns(new))
    assert said in str(refused.value)
