from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lakelog.explore.explorer.tier_map import Part, map_html, parts
from lakelog.offsets import LogOffsets
from lakelog.record import OffsetRange


def test_tiers_overlap_where_both_hold():
    offsets = LogOffsets(10, 50, 80, 100, gaps=(OffsetRange(90, 95),))
    assert parts(offsets) == [
        Part("cold", 10, 50),
        Part("both", 50, 80),
        Part("hot", 80, 90),
        Part("lost", 90, 95),
        Part("hot", 95, 100),
    ]


def test_an_empty_partition_has_no_parts():
    assert parts(LogOffsets(7, 7, 7, 7)) == []
    assert "empty" in map_html(LogOffsets(7, 7, 7, 7), 7, 7)


@given(st.data())
def test_parts_cover_the_log_without_overlap(data):
    edges = sorted(data.draw(st.lists(st.integers(0, 60), min_size=4, max_size=4)))
    log_start, one, other, log_end = edges
    local, archived = (one, other) if data.draw(st.booleans()) else (other, other)
    cuts = sorted(
        data.draw(
            st.lists(st.integers(log_start, log_end), max_size=4).filter(
                lambda found: len(found) % 2 == 0
            )
        )
    )
    gaps = tuple(OffsetRange(*pair) for pair in zip(cuts[::2], cuts[1::2], strict=True))
    found = parts(LogOffsets(log_start, local, archived, log_end, gaps=gaps))
    at = log_start
    for part in found:
        assert part.start == at < part.end
        at = part.end
    assert at == log_end


def test_the_page_is_marked_within_the_bar():
    html = map_html(LogOffsets(0, 50, 50, 100), 95, 145)
    assert "left:95.000%;width:5.000%" in html
    assert 'title="cold [0, 50)"' in html
    assert "hot [50, 100)" in html
