from __future__ import annotations

import json
from datetime import timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.errors import InvalidArgumentError
from lakelog.explore.explorer.decode import FORMATS, Decoded, decode, dump
from lakelog.explore.explorer.rows import clock_time
from lakelog.values.typed_time import zone_named


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, Decoded("null", "null", 0, 0)),
        (b"", Decoded("empty", "", 0, 0)),
        (b"text", Decoded("utf-8", "text", 4, 4)),
        (b'{"a": 1}', Decoded("json", '{"a": 1}', 8, 8)),
        (b"{not json", Decoded("utf-8", "{not json", 9, 9)),
        (b"17", Decoded("utf-8", "17", 2, 2)),
        (b"\x00\xff", Decoded("hex", "00 ff", 2, 2)),
        (b"\x00a", Decoded("hex", "00 61", 2, 2)),
        ("東京".encode(), Decoded("utf-8", "東京", 6, 6)),
    ],
)
def test_what_bytes_are_taken_for(value, expected):
    assert decode(value) == expected


def test_a_format_that_does_not_fit_gives_way_to_a_plainer_one():
    assert decode(b"text", "json").kind == "utf-8"
    assert decode(b"\xff", "json").kind == "hex"
    assert decode(b"a\x00", "utf-8") == Decoded("utf-8", "a\\u0000", 2, 2)
    assert decode(b"[1]", "utf-8").kind == "utf-8"
    assert decode(b"[1]", "hex").text == "5b 31 5d"
    with pytest.raises(InvalidArgumentError, match="utf-16"):
        decode(b"", "utf-16")


def test_letters_that_change_how_others_look_are_spelt_out():
    assert decode("a\u202eb\u200bc".encode()).text == r"a\u202eb\u200bc"


@given(text=st.text(st.characters(exclude_categories=["C"]), max_size=20), limit=st.integers(1, 30))
def test_a_text_is_cut_between_letters(text, limit):
    found = decode(text.encode(), "utf-8", limit=limit)
    if text:
        assert found.size_bytes == len(text.encode())
        assert found.cut == (found.size_bytes > limit)
    if found.kind == "utf-8" and text.isprintable():
        assert text.startswith(found.text)
        assert len(found.text.encode()) <= limit


@given(value=st.binary(max_size=200), kind=st.sampled_from(FORMATS), limit=st.none() | st.just(20))
def test_any_bytes_can_be_shown_in_any_format(value, kind, limit):
    for pretty in (False, True):
        found = decode(value, kind, limit=limit, pretty=pretty)
        assert found.size_bytes == len(value)
        assert found.shown_bytes <= found.size_bytes


def test_json_in_full_stands_on_several_lines_as_it_was_written():
    value = b'{"b": 1.50, "a": [12345678901234567890, "\\u00e4"], "e": {}, "b": 2}'
    found = decode(value, pretty=True)
    assert found.kind == "json"
    assert found.text.splitlines()[:2] == ["{", '  "b": 1.50,']
    assert "12345678901234567890" in found.text
    assert found.text.count('"b"') == 2
    assert json.loads(found.text) == json.loads(value)


def test_json_nested_deeply_takes_no_more_room_than_its_lines():
    value = b"[" * 500 + b",".join([b"1"] * 5_000) + b"]" * 500
    found = decode(value, pretty=True)
    assert json.loads(found.text) == json.loads(value)
    assert max(map(len, found.text.splitlines())) < 80


def test_a_dump_has_offsets_and_letters():
    assert dump(b"0123456789abcdef\x00!") == (
        "00000000  30 31 32 33 34 35 36 37 38 39 61 62 63 64 65 66  0123456789abcdef\n"
        "00000010  00 21                                            ·!"
    )


def test_a_timestamp_is_shown_with_its_distance_from_utc():
    noon_ms = 1_372_939_200_000  # 2013-07-04T12:00:00Z
    assert clock_time(noon_ms + 7, timezone.utc) == "2013-07-04 12:00:00.007Z"
    assert clock_time(noon_ms, zone_named("Europe/Berlin")) == "2013-07-04 14:00:00.000+02:00"
    assert clock_time(-1, timezone.utc) == "–"
    assert clock_time(10**16, timezone.utc) == f"@{10**16}"
