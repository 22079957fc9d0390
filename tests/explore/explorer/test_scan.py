from __future__ import annotations

import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.explore.explorer import scan as scanning
from lakelog.explore.explorer.opened_topic import OpenedTopic, stretches_of
from lakelog.explore.explorer.scan import ScanLimit, scan_backward, scan_forward
from lakelog.read.where import parse


@pytest.fixture
def log(make_bench):
    """3,000 records in entries of 100: [0, 2000) cold, [1500, 3000) hot."""
    bench = make_bench(**{"internal.segment.bytes": 20_000})
    for _ in range(30):
        bench.append(list(range(100)), value_bytes=10)
    bench.tier(2_000, 1_500)
    return bench.log


def forward(log, start, match, page=10, *, stopped=lambda: False, **limits):
    seen = []
    found = scan_forward(
        log,
        0,
        stretches_of(OpenedTopic(log).look(0)),
        start,
        3_000,
        match,
        page,
        limit=ScanLimit(**limits),
        on_progress=seen.append,
        stopped=stopped,
    )
    return found, seen


def backward(log, end, match, page=10, *, stopped=lambda: False, **limits):
    seen = []
    found = scan_backward(
        log,
        0,
        stretches_of(OpenedTopic(log).look(0)),
        0,
        end,
        match,
        page,
        limit=ScanLimit(**limits),
        on_progress=seen.append,
        stopped=stopped,
    )
    return found, seen


def offsets(found):
    return found.records["offset"].to_pylist()


def test_a_page_of_matches_ends_the_scan_and_says_what_it_covers(log):
    found, _ = forward(log, 5, parse("v29"), 3)
    assert (offsets(found), found.start_offset, found.end_offset) == ([29, 290, 291], 5, 292)
    assert found.ended == "found"
    found, _ = backward(log, 2_990, parse("v29"), 3)
    assert (offsets(found), found.start_offset) == ([2987, 2988, 2989], 2987)
    assert (found.end_offset, found.ended) == (2_990, "found")


def test_progress_grows_to_the_whole_way(log):
    for scan, start in ((forward, 0), (backward, 3_000)):
        found, seen = scan(log, start, parse('key = "none"'))
        assert found.ended == "edge"
        assert (found.start_offset, found.end_offset) == (0, 3_000)
        assert len(seen) > 1
        assert [one.records for one in seen] == sorted(one.records for one in seen)
        assert seen[-1].records == 3_000
        assert seen[-1].share == 1.0
        assert seen[-1].matches == 0


@pytest.mark.parametrize("scan", [forward, backward])
@pytest.mark.parametrize("limit", [{"bytes": 1}, {"records": 150}])
def test_a_limit_ends_it_where_it_can_go_on(log, scan, limit):
    found, seen = scan(log, 0 if scan is forward else 3_000, parse('key = "none"'), **limit)
    (name,) = limit
    assert found.ended == name
    assert 0 < found.end_offset - found.start_offset < 3_000
    if name == "records":
        assert found.end_offset - found.start_offset == 150
        assert seen[-1].records == 150


@pytest.mark.parametrize("scan", [forward, backward])
def test_a_scan_that_is_stopped_keeps_what_it_has_and_goes_on_from_there(log, scan):
    asked = iter([False, True])
    found, _ = scan(
        log,
        0 if scan is forward else 3_000,
        parse("7"),
        10_000,
        stopped=lambda: next(asked, True),
    )
    assert found.ended == "stopped"
    match = parse("7")
    more, _ = (
        forward(log, found.end_offset, match, 10_000)
        if scan is forward
        else backward(log, found.start_offset, match, 10_000)
    )
    both = [found, more] if scan is forward else [more, found]
    expected = [offset for offset in range(3_000) if "7" in str(offset)]
    assert [offset for one in both for offset in offsets(one)] == expected


def test_large_values_are_read_backward_in_short_stretches(make_bench, monkeypatch):
    monkeypatch.setattr(scanning, "_LARGEST_BYTES", 20_000)
    monkeypatch.setattr(scanning, "_STEP_BYTES", 5_000)
    bench = make_bench(**{"internal.segment.bytes": 1 << 30})
    for _ in range(60):
        bench.append([1], value_bytes=900)

    found, _ = backward(bench.log, 60, parse("v5"), 5)
    assert offsets(found) == [55, 56, 57, 58, 59]
    assert found.progress.bytes < 60_000  # some of it twice, but never all


@pytest.mark.parametrize("wrong", [{"records": 0}, {"bytes": -1}, {"records": 1.5}])
def test_a_limit_is_a_number_of_something(wrong):
    with pytest.raises(InvalidArgumentError, match="≥ 1"):
        ScanLimit(**wrong)
