from __future__ import annotations

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lakelog.explore.explorer.tier_map import Part, map_html, parts, scale_of
from lakelog.offsets import LogOffsets
from lakelog.record import OffsetRange


def test_tiers_overlap_where_both_hold():
    offsets = LogOffsets(10, 50, 80, 100, gaps=(OffsetRange(90, 95),))
    assert parts(offsets) == [
        Part("cold", 10, 50),
        Part("both", 50, 80),
        Part("hot", 80, 90),
        Part("skipped", 90, 95),
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


HOUR = 3_600_000 * 16_384  # offsets that an hour's outage skips


def test_an_hour_long_gap_takes_little_of_the_bar():
    offsets = LogOffsets(0, 50, 50, 100 + HOUR, gaps=(OffsetRange(80, 80 + HOUR),))
    html = map_html(offsets, 0, 25)
    grown = [int(one) for one in re.findall(r"flex-grow:(\d+)", html)]
    assert grown == [50, 30, 6, 20]
    assert "left:0.000%;width:23.585%" in html
    assert f'title="skipped [80, {80 + HOUR:,})"' in html


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(1, HOUR)), min_size=1, max_size=4))
def test_the_slider_reaches_every_record_whatever_lies_between(runs):
    gaps, held, at = [], [], 0
    for length, gap in runs:
        held += range(at, at + length)
        at += length
        gaps.append(OffsetRange(at, at + gap))
        at += gap
    held.append(at)  # the log end
    scale = scale_of(LogOffsets(0, 0, 0, at, gaps=tuple(gaps)))
    drawn = scale.drawn(np.array(held))
    assert scale.offsets(drawn).tolist() == held
    low, high = int(drawn[0]), int(drawn[-1])
    assert high - low <= 2 * len(held)
    every = scale.offsets(np.arange(low, high + 1)).tolist()
    assert every == sorted(every)
    assert set(held) <= set(every)
