"""What `produce --format json` takes out of a line is what stands there."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cli.produce import json_record, members_with_source
from lakelog.errors import InvalidArgumentError

SOURCES = [
    "0.1234567890123456789",
    "1.10",
    "-0",
    "1E400",
    "1e+05",
    "9" * 5000,
    "true",
    "[]",
    "[ 1.10,\t-0.0 ]",
    '{"a":1,"a":2}',
    '{ "a" : {"b": 1E400}, "c":"\\u00e9\\/" }',
    '{"é":"\\ud800"}',
]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "other"), [("key", "value"), ("value", "key")])
def test_what_is_no_text_is_stored_as_it_is_written(name, other, source):
    line = f' {{"{other}":null ,\t"{name}" : {source} ,"headers": []}} '
    record = json_record(line.encode())
    assert (record[name], record[other]) == (source, None)


def test_text_and_null_are_what_they_say():
    record = json_record('\ufeff{"value":"\\u00e9\\n","key":null,"partition":3}'.encode())
    assert (record["value"], record["key"], record["partition"]) == ("é\n", None, 3)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"5",
        b"[]",
        b"{}",
        b"{",
        b'{"value":1',
        b'{"value":1,}',
        b'{"value":1}}',
        b'{"value":NaN}',
        b'{"value":{"a":-Infinity}}',
        b'{"value":1,"value":2}',
        b'{"value":1,5:2}',
        b'{"value" 1}',
        b'{"value":"\xff"}',
        b'{"value":' + b"[" * 100_000,
    ],
)
def test_what_is_no_record_is_refused(line):
    with pytest.raises(InvalidArgumentError):
        json_record(line)


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).filter(lambda document: "Infinity" not in json.dumps(document))


@given(st.dictionaries(st.text(), documents), st.sampled_from([None, 0, 2]), st.booleans())
def test_members_read_as_json_reads_them(members, indent, ascii_only):
    line = json.dumps(members, indent=indent, ensure_ascii=ascii_only)
    found = members_with_source(line.encode())
    assert {name: member for name, (member, _) in found.items()} == members
    for member, source in found.values():
        assert source in line
        assert json.loads(source) == member
