"""When a JSON object's members give back exactly its bytes, and how they look."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec.fields_entry import COMPACT, SPACED, join_object, split_object

texts = st.text(max_size=8) | st.sampled_from(
    ["5", "-1", "1e5", "01", "true", "null", '"', "[", "{", "NaN", "2013-01-01", " ", "\n", "\x7f"]
)
objects = st.dictionaries(
    st.text(max_size=5),
    texts | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.lists(texts),
    min_size=1,
    max_size=5,
)


@pytest.mark.parametrize(
    ("value", "members"),
    [
        ('{"a":1}', [("a", "1")]),
        ('{"a":1,"a":2}', [("a", "1"), ("a", "2")]),  # duplicate members
        ('{"b":1,"a":2}', [("b", "1"), ("a", "2")]),  # order
        ('{"a":1.0,"b":1E+05,"c":-0}', [("a", "1.0"), ("b", "1E+05"), ("c", "-0")]),
        ('{"a":"x","b":"5","c":"true","d":"","e":"[x"}',
         [("a", "x"), ("b", '"5"'), ("c", '"true"'), ("d", ""), ("e", '"[x"')]),
        ('{"a":"2013-01-01","b":"01","c":"N1"}', [("a", "2013-01-01"), ("b", "01"), ("c", "N1")]),
        ('{"a":"line\\nbreak"}', [("a", "line\nbreak")]),
        ('{"a":"é"}', [("a", "é")]),
        ('{"a":"\\u00e9","b":"\\/"}', [("a", '"\\u00e9"'), ("b", '"\\/"')]),  # other escapes
        ('{"a":"\\ud800"}', [("a", '"\\ud800"')]),  # half a surrogate pair
        ('{"é":{"x": [1,  2]}}', [("é", '{"x": [1,  2]}')]),  # nested white space stays
        ('{"a":NaN,"b":-Infinity}', None),
        ('{"a":%s}' % ("9" * 5000), None),
    ],
)  # fmt: skip
def test_a_compact_object_as_members(value, members):
    found = split_object(value.encode())

    if members is None:  # what a parser of another version may read otherwise stays whole
        assert found is None or join_object(*found) == value
    else:
        assert found == (members, COMPACT)
        assert join_object(*found) == value


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"{",
        b"{}",
        b"{ }",
        b"[]",
        b"null",
        b'"a"',
        b'{"a"}',
        b'{"a":}',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1}}',
        b'{"a":1} ',
        b' {"a":1}',
        b'{"a":1}\n',
        b'{ "a":1}',
        b'{"a":1 }',
        b'{"a" :1}',
        b'{"a": 1,"b": 2}',
        b'{"a":1, "b":2}',
        b'{"a": 1, "b":2}',
        b'{"a":1,"b": 2}',
        b'{"a":1,\n"b":2}',
        b"{'a':1}",
        b"{1:2}",
        b'{"a":1,5:2}',
        b'{"a":1,null:2}',
        b'{"a":1,[]:2}',
        b'{"a":01}',
        b'{"\\u0061":1}',
        b'{"\\ud800":1}',
        b'{"a":"\xff"}',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
)
def test_what_members_would_not_give_back_is_no_object(value):
    assert split_object(value) is None


@given(objects, st.booleans(), st.sampled_from([COMPACT, SPACED]))
def test_what_json_writes_is_split_unless_a_name_is_escaped_otherwise(
    members, ascii_only, separators
):
    value = json.dumps(members, separators=separators, ensure_ascii=ascii_only)
    plain_names = all(
        json.dumps(name, ensure_ascii=ascii_only) == json.dumps(name, ensure_ascii=False)
        for name in members
    )

    found = split_object(value.encode())

    assert (found is not None) == plain_names
    if found is not None:
        assert found[1] == separators
        assert join_object(*found) == value


@given(st.binary(max_size=30).map(lambda middle: b'{"a":' + middle + b"}"))
def test_no_bytes_are_split_unless_they_are_given_back(value):
    found = split_object(value)

    assert found is None or join_object(*found).encode() == value
