"""What matches, against the same said in plain Python."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.config import EntryFormat
from lakelog.errors import InvalidArgumentError
from lakelog.read.json_path import JsonPath, is_json_path
from lakelog.read.matching import Match
from lakelog.record import RECORDS, TopicPartition, to_records

small = st.binary(max_size=3)
names = st.sampled_from(["a", "b", "a=b", "ü"])
headers = st.lists(st.tuples(names, st.none() | small), max_size=3)
rows = st.lists(st.tuples(st.none() | small, st.none() | small, headers), max_size=12)
TP = TopicPartition("t", 0)


def batch(given_rows):
    return pa.RecordBatch.from_pylist(
        [
            {
                "offset": offset,
                "timestamp": 0,
                "timestampType": 0,
                "key": key,
                "value": value,
                "headers": [{"key": name, "value": data} for name, data in pairs],
            }
            for offset, (key, value, pairs) in enumerate(given_rows)
        ],
        RECORDS,
    )


@given(
    found=rows,
    skipped=st.integers(0, 3),
    key=st.none() | small,
    header=st.none() | st.tuples(names, st.none() | small),
    text=st.none() | small,
)
def test_rows_are_those_that_plain_python_finds(found, skipped, key, header, text):
    records = batch(found).slice(skipped)  # its arrays begin in the middle, as those of a page may
    match = Match.of(key=key, header=header, text=text)

    def matches(record):
        return (
            (key is None or record.key == key)
            and (not text or (record.value is not None and text in record.value))
            and (
                header is None
                or any(
                    name == header[0] and header[1] in (None, data) for name, data in record.headers
                )
            )
        )

    expected = [record for record in to_records(TP, records) if matches(record)]
    assert to_records(TP, match.rows(records)) == expected
    assert bool(match) == (key is not None or header is not None or bool(text))
    assert Match.of(**eval(f"dict({match.arguments()})")) == match  # what is printed is the same


documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["x", 'q"', "ä", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "ä b"]), inner)
    ),
    max_leaves=8,
)


@given(values=st.lists(documents, max_size=6), escaped=st.booleans())
@pytest.mark.parametrize(
    ("path", "leads"),
    [
        ("$.a", lambda d: isinstance(d, dict) and "a" in d),
        ('$["ä b"]', lambda d: isinstance(d, dict) and "ä b" in d),
        ("$[0]", lambda d: isinstance(d, list) and len(d) > 0),
        ("$[-2]", lambda d: isinstance(d, list) and len(d) > 1),
        ("$ == 1", lambda d: d == 1 and not isinstance(d, bool)),
        ("$.* == true", lambda d: isinstance(d, (dict, list)) and any(x is True for x in inner(d))),
        ("$.a >= 0", lambda d: isinstance(d, dict) and number(d.get("a")) and d["a"] >= 0),
        ("$.a != 'x'", lambda d: isinstance(d, dict) and "a" in d and d["a"] != "x"),
        ("$.a = null", lambda d: isinstance(d, dict) and "a" in d and d["a"] is None),
    ],
)
def test_a_path_matches_where_it_leads(path, leads, values, escaped):
    data = [(None, json.dumps(value, ensure_ascii=escaped).encode(), ()) for value in values]
    found = Match.of(json=path).rows(batch(data)).column("offset").to_pylist()
    assert found == [offset for offset, value in enumerate(values) if leads(value)]


def inner(document):
    return document.values() if isinstance(document, dict) else document


def number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def test_what_is_no_json_matches_no_path():
    data = [(None, value, ()) for value in (None, b"", b"text", b"\xff{", b"[" * 100_000)]
    assert Match.of(json="$").rows(batch(data)).num_rows == 0


def test_a_name_of_half_a_letter_is_looked_for_all_the_same():
    data = [(None, value, ()) for value in (rb'{"\ud800": 1}', b'{"a": 1}')]
    found = Match.of(json=r'$["\ud800"]').rows(batch(data))
    assert found.column("offset").to_pylist() == [0]


@pytest.mark.parametrize("text", ["a", "$a", "$.", "$.a ==", "$.a == x", "$[x]", "$.a b"])
def test_what_is_no_path_is_refused_with_an_example(text):
    with pytest.raises(InvalidArgumentError, match=r"JSON"):
        JsonPath.of(text)


def test_what_python_itself_cannot_take_is_no_path():
    for text in (r'$["\q"]', f"$[{'9' * 5000}]", "$ == " + "[" * 100_000):
        with pytest.raises(InvalidArgumentError, match=r"JSON"):
            JsonPath.of(text)


@pytest.mark.parametrize(
    ("text", "is_path"),
    [("$.a", True), ("$[0]", True), ("$", True), ("$ == 1", True), ("$5", False), ("a $.b", False)],
)
def test_which_texts_are_paths(text, is_path):
    assert is_json_path(text) is is_path


@pytest.mark.parametrize(
    "wrong", [{"key": 7}, {"key": "\udcff"}, {"header": ""}, {"header": "=x"}, {"text": 1.5}]
)
def test_what_cannot_be_matched_is_refused(wrong):
    with pytest.raises(InvalidArgumentError):
        Match.of(**wrong)


def test_a_range_gives_its_matches_from_both_tiers(bench):
    bench.append(list(range(20)), entry_format=EntryFormat.FIELDS)
    bench.tier(15, 10)

    found = bench.log.read(0, 3, 18).matching(text="v1", header="h=1")
    assert [record.offset for record in found.records()] == list(range(10, 18))
    assert found.to_arrow().num_rows == 8
    assert repr(found).endswith("[3, 18) matching header='h=1', text='v1')")
    assert bench.log.read(0, 3, 18).matching().to_arrow().num_rows == 15
