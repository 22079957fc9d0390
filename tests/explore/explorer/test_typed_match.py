from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.explore.explorer.typed_match import typed, typed_match
from lakelog.read.matching import Match


@pytest.mark.parametrize(
    ("boxes", "expected"),
    [
        ({}, {}),
        ({"key": " ada "}, {"key": b"ada"}),
        ({"key": "0x00ff"}, {"key": b"\x00\xff"}),
        ({"key": '"0x00ff"'}, {"key": b"0x00ff"}),
        ({"key": '""'}, {"key": b""}),
        ({"key": '"'}, {"key": b'"'}),
        ({"header": "h"}, {"header": "h"}),
        ({"header": "h=1=2"}, {"header": ("h", b"1=2")}),
        ({"text": " two words"}, {"text": b" two words"}),
        ({"text": "$.a == 1"}, {"json": "$.a == 1"}),
        ({"text": '"$.a"'}, {"text": b"$.a"}),
        ({"text": "costs $5"}, {"text": b"costs $5"}),
    ],
)
def test_what_the_boxes_spell(boxes, expected):
    assert typed_match(**boxes) == Match.of(**expected)


@given(key=st.binary(max_size=6) | st.text(max_size=6).map(str.encode))
def test_a_key_is_typed_as_it_is_shown(key):
    shown, _, _ = typed(Match(key=key))
    assert typed_match(key=shown).key == key


@given(text=st.text(st.characters(exclude_categories=["C"]), min_size=1, max_size=8))
def test_a_text_is_typed_as_it_is_shown(text):
    _, _, shown = typed(Match.of(text=text))
    assert typed_match(text=shown) == Match.of(text=text)
