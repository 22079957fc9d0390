"""Properties of tables by name that are too long for a catalog, in pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cold.by_name.definition import PIECE_CHARACTERS, in_pieces, joined
from lakelog.cold.by_name.names import quoted, unquoted
from lakelog.cold.properties import FORMAT_PROPERTY

LENGTHS = st.one_of(
    st.integers(0, 4 * PIECE_CHARACTERS),
    st.sampled_from([n * PIECE_CHARACTERS + more for n in range(4) for more in (0, 1)]),
)
VALUES = st.builds(lambda length, text: (text * length)[:length], LENGTHS, st.text(min_size=1))
NAMES = ("lakelog.topic.config", "lakelog.registers", "delta.columnMapping.mode", "note")
PROPERTIES = st.dictionaries(st.sampled_from(NAMES), VALUES)


@given(st.lists(PROPERTIES, min_size=1, max_size=4))
def test_what_was_set_last_comes_back_whatever_was_longer_before(settings):
    kept: dict[str, str] = {}
    wanted: dict[str, str] = {}
    for properties in settings:
        kept |= in_pieces({FORMAT_PROPERTY: "1", **properties})
        wanted |= properties
    found = joined(kept)
    assert {name: found[name] for name in wanted} == wanted


@given(PROPERTIES)
def test_no_piece_of_ours_is_too_long_and_what_is_cut_has_a_newer_format(properties):
    kept = in_pieces({FORMAT_PROPERTY: "1", **properties})
    own = {name: value for name, value in kept.items() if name.startswith("lakelog.")}
    assert max(map(len, own.values())) <= PIECE_CHARACTERS
    is_cut = any(name not in properties for name in own if name != FORMAT_PROPERTY)
    assert kept[FORMAT_PROPERTY] == ("2" if is_cut else "1")
    assert {name: kept[name] for name in properties if name not in own} == {
        name: value for name, value in properties.items() if name not in own
    }


@pytest.mark.parametrize("parts", [("a", "b", "c"), ("ä`b", "``", "x.y")])
def test_a_quoted_name_is_taken_apart_again(parts: tuple[str, ...]) -> None:
    assert unquoted(quoted(*parts)) == list(parts)
