"""What a fields entry looks like in redis-cli."""

from __future__ import annotations

import pytest

from lakelog.codec import EntryId, decode, encode
from lakelog.codec.crc import crc32c_of_parts
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch


def fields_of(key, value, headers=(), *, flatten=False, timestamp_ms=5):
    """The fields before the CRC, of one record."""
    batch = produced_batch([(timestamp_ms, key, value, headers)])
    (entry,) = encode(batch, EntryFormat.FIELDS, Compression.NONE, flatten=flatten)
    *fields, crc_name, crc = entry.fields
    assert (crc_name, crc) == (b"__crc", crc32c_of_parts(fields))
    assert decode([(EntryId(0, 1), entry.fields)]).column("value").to_pylist() == [value]
    return fields


def test_a_record_reads_as_timestamp_key_headers_and_value():
    fields = fields_of(b"N14228", b"late", [("a", b"1"), ("b", None), ("a", b""), ("ä", b"2")])

    assert fields == [
        *(b"__ts", b"5"),
        *(b"__key", b"N14228"),
        *(b"__header.a", b"1"),
        *(b"__nullheader.b", b""),
        *(b"__header.a", b""),
        *("__header.ä".encode(), b"2"),
        *(b"value", b"late"),
    ]


def test_null_key_and_value_have_no_field_and_empty_ones_do():
    assert fields_of(None, None, timestamp_ms=-1) == [b"__ts", b"-1"]
    assert fields_of(b"", b"") == [b"__ts", b"5", b"__key", b"", b"value", b""]


def test_a_flattened_object_shows_its_members():
    value = b'{"dest":"IAH","delay":11,"late":true,"gate":null,"codes":["A", 1],"note":"5"}'

    assert fields_of(None, value, flatten=True) == [
        *(b"__ts", b"5"),
        *(b"dest", b"IAH"),
        *(b"delay", b"11"),
        *(b"late", b"true"),
        *(b"gate", b"null"),
        *(b"codes", b'["A", 1]'),
        *(b"note", b'"5"'),
    ]


def test_pythons_own_json_layout_is_marked():
    assert fields_of(None, b'{"a": 1, "b": {"c":2}}', flatten=True) == [
        *(b"__ts", b"5"),
        *(b"__json", b"spaced"),
        *(b"a", b"1"),
        *(b"b", b'{"c":2}'),
    ]


@pytest.mark.parametrize(
    "value",
    [
        b'{"value":1}',
        b'{"a":1,"__key":2}',
        b'{"__crc":"00000000"}',
        b'{"__":1}',
        b"{}",
        b"[1]",
        b"plain",
        b"",
        b'{"a" : 1}',
    ],
)
def test_a_value_that_members_could_not_give_back_stays_whole(value):
    assert fields_of(None, value, flatten=True) == [b"__ts", b"5", b"value", value]


def test_members_named_like_other_fields_of_a_stream_are_no_matter():
    assert fields_of(None, b'{"a":1,"c":2,"t":3,"":4}', flatten=True)[2:] == [
        *(b"a", b"1", b"c", b"2", b"t", b"3", b"", b"4")
    ]


def test_without_flatten_an_object_stays_whole():
    assert fields_of(None, b'{"a":1}')[2:] == [b"value", b'{"a":1}']


@pytest.mark.parametrize(("members", "flattened"), [(3_898, True), (3_899, False), (10_000, False)])
def test_an_object_of_more_members_than_the_append_script_takes_stays_whole(members, flattened):
    value = b"{%s}" % b",".join(b'"m%d":%d' % (number, number) for number in range(members))

    fields = fields_of(None, value, flatten=True)

    assert (fields[2] == b"m0") is flattened
    assert len(fields) + 2 <= 2 * 3_900


@pytest.mark.parametrize(("headers", "name"), [(3_897, b"__ts"), (3_898, b"a")])
def test_a_record_of_more_fields_than_the_append_script_takes_is_an_arrow_entry(headers, name):
    rows = [(5, None, b"v", [(f"h{number}", b"") for number in range(headers)])]

    (entry,) = encode(produced_batch(rows), EntryFormat.FIELDS, Compression.NONE)

    assert entry.fields[0] == name
    assert len(entry.fields) <= 2 * 3_900
    batch = decode([(EntryId(0, 1), entry.fields)])
    assert len(batch.column("headers")[0]) == headers
