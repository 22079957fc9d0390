"""The picture of time, against a plain count of records; and what hands do with it."""

from __future__ import annotations

import re
from datetime import timezone
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from gapped_story import Story, beginnings, happenings
from hands import Hands
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.cold import rows as cold_rows
from lakelog.errors import MissingFileError
from lakelog.explore import record_times
from lakelog.explore.explorer.view import OpenedTopic
from lakelog.explore.histogram import BOTH, COLD, HOT, Groups, edges, histogram, whole
from lakelog.explore.picture import Mark, marks_of, pictures
from lakelog.explore.picture_html import legend, picture_html, ticks, written
from lakelog.explore.record_times import groups_of
from lakelog.values.config import EntryFormat

EPOCH_MS = 1_700_000_000_000
CODES = {"cold": COLD, "both": BOTH, "hot": HOT}

groups = st.lists(
    st.tuples(
        st.just(0),
        st.just(0),
        st.just(1),
        st.integers(0, 1000),
        st.integers(-1, 5_000),
        st.integers(0, 3_000),
        st.sampled_from([COLD, BOTH, HOT]),
    ).map(lambda one: (*one[:5], one[4] if one[4] < 0 else one[4] + one[5], one[6], 1)),
    max_size=20,
)


@given(
    rows=groups,
    start=st.integers(-500, 4_000),
    wide=st.integers(1, 6_000),
    steps=st.integers(1, 40),
)
def test_a_group_is_spread_evenly_over_its_time_and_no_record_lost(rows, start, wide, steps):
    """Said plainly: millisecond by millisecond."""
    found = histogram(Groups.of(rows), edges((start, start + wide), steps))
    assert len(found.totals) <= steps
    assert found.edges_ms[0] == start
    assert found.edges_ms[-1] >= start + wide
    of_all = found.records + found.outside + found.untimed
    assert of_all == pytest.approx(sum(row[3] for row in rows))
    plain = np.zeros((3, 20_000))
    for *_, records, low, high, tier, _ in rows:
        if low >= 0:
            plain[tier, 1_000 + low : 1_000 + high + 1] += records / (high - low + 1)
    for step, (first, last) in enumerate(zip(found.edges_ms, found.edges_ms[1:], strict=False)):
        expected = plain[:, 1_000 + first : 1_000 + last].sum(axis=1)
        assert found.counts[:, step] == pytest.approx(expected)


def test_a_wrong_clock_does_not_squeeze_the_picture():
    rows = [(0, n, n + 1, 10_000, 1_000 * n, 1_000 * n + 999, COLD, 1) for n in range(10)]
    rows.append((0, 10, 11, 1, 4_000_000_000, 4_000_000_000, HOT, 1))
    assert whole(Groups.of(rows)) == (0, 10_000)
    assert histogram(Groups.of(rows), edges((0, 10_000), 10)).outside == 1


@given(beginning=beginnings, steps=st.lists(happenings, max_size=6))
@settings(max_examples=8)
def test_records_are_counted_as_a_list_counts_them(make_bench, beginning, steps):
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    opened = OpenedTopic(story.bench.log)
    look = opened.look([0, 1])
    held = [record for partition in (0, 1) for record in story.held(partition)]
    times = [record.timestamp_ms for record in held if record.timestamp_ms >= 0]
    made: list[Any] = []
    found = pictures(opened.log, look, steps=20, on_coarse=made.append).found
    if found is None:
        assert not times
        return
    for one in [*(picture.found for picture in made), found]:
        known = one.records + one.outside + one.untimed
        if one.exact.all():  # what is cut out of a file that compaction thinned is estimated
            assert known >= len(held) - 1e-6  # at least: indexes count what compaction took, too
    window = (min(times), max(times) + 1)
    fine = pictures(opened.log, look, window, steps=20).found
    assert fine is not None
    if fine.exact.all():
        expected, _ = np.histogram(times, fine.edges_ms)
        assert fine.totals.tolist() == pytest.approx(expected.tolist())


def test_records_whose_first_ones_are_gone_are_counted_where_they_are(make_bench):
    """Redis tells of a segment when its first entry was, also after that was deleted."""
    bench = make_bench()
    bench.append([33, *[0] * 9])
    bench.log.raise_log_start(0, 9)
    opened = OpenedTopic(bench.log)
    fine = pictures(opened.log, opened.look([0]), (0, 1), steps=20).found
    assert fine.totals.tolist() == [1]


def test_tiers_are_told_apart(make_bench):
    bench = make_bench(**{"internal.segment.bytes": 20_000})
    for _ in range(30):
        bench.append(list(range(100)), value_bytes=10)
    bench.tier(2_000, 1_500)
    look = OpenedTopic(bench.log).look([0])
    found = groups_of(look)
    each = {tier: float(found.records[found.tier == tier].sum()) for tier in (COLD, BOTH, HOT)}
    assert each == {COLD: 1_500, BOTH: 500, HOT: 1_000}


@pytest.mark.parametrize("archived", [0, 300])
def test_all_that_one_entry_brought_is_in_the_picture(make_bench, archived):
    """Redis tells of it only when the last of its records was, as of a file that was loaded."""
    bench = make_bench()
    times = [60_000 * n for n in range(300)]
    bench.append(times, entry_format=EntryFormat.ARROW)
    if archived:
        bench.tier(archived, 0)  # Redis has them, too
    opened = OpenedTopic(bench.log)
    found = pictures(opened.log, opened.look([0])).found
    assert (found.edges_ms[0], found.outside) == (0, 0)
    assert found.edges_ms[-1] > times[-1]
    assert float(found.totals.sum()) == pytest.approx(300)


def test_too_many_records_are_not_counted_one_by_one(orders, monkeypatch):
    opened = OpenedTopic(orders.lakelog.log("orders"))
    look = opened.look([0])
    assert pictures(opened.log, look).found.exact.all()
    monkeypatch.setattr(record_times, "PICTURE", record_times.Budget(10, 10, 500, 1))
    coarse = pictures(opened.log, look).found
    assert not coarse.exact.all()
    zoomed = pictures(opened.log, look, (EPOCH_MS, EPOCH_MS + 5_000), steps=5).found
    assert zoomed.records == pytest.approx(5, abs=0.5)


@pytest.fixture
def bursts(make_bench, monkeypatch):
    """One file of many row groups, whose records come in bursts with silence between them."""
    for module in (cold_rows, record_times):
        monkeypatch.setattr(module, "ROW_GROUP_ROWS", 4)
    bench = make_bench()
    times = [10_000 * burst + n for burst in range(16) for n in range(32)]
    bench.append(times, entry_format=EntryFormat.ARROW)
    bench.archive(len(times))
    return bench, times


@pytest.mark.parametrize("hot", [False, True], ids=["cold", "in both tiers"])
def test_row_groups_say_when_the_records_of_a_long_file_are(bursts, monkeypatch, hot):
    bench, times = bursts
    if not hot:
        bench.trim(len(times))
    monkeypatch.setattr(record_times, "PICTURE", record_times.Budget(50, 50, 500, 1))
    opened = OpenedTopic(bench.log)
    look = opened.look([0])
    made: list[Any] = []
    found = pictures(opened.log, look, steps=64, on_coarse=made.append).found
    (coarse,) = made
    expected, _ = np.histogram(times, found.edges_ms)
    off, coarsely_off = (np.abs(one.totals - expected).sum() for one in (found, coarse.found))
    assert off < coarsely_off / 3  # a row group may hold the end of a burst and the next one
    assert found.records + found.outside == pytest.approx(len(times))

    # A part of the time: of its row groups alone the records are counted.
    read: list[Any] = []
    table = type(opened.log.table)
    monkeypatch.setattr(table, "read", lambda *a, _read=table.read: read.append(a) or _read(*a))
    fine = pictures(opened.log, look, (30_000, 30_032), steps=32).found
    assert fine.totals.tolist() == [1] * 32
    assert fine.exact.all()
    assert bool(read) != hot


def test_footers_are_read_up_to_a_limit_and_where_they_may_help(bursts, monkeypatch):
    bench, times = bursts
    bench.trim(len(times))
    monkeypatch.setattr(record_times, "PICTURE", record_times.Budget(10, 10, 500, 1))
    opened = OpenedTopic(bench.log)
    look = opened.look([0])
    asked: list[Any] = []
    table = type(opened.log.table)
    plain = table.row_groups
    monkeypatch.setattr(table, "row_groups", lambda *a: asked.append(a) or plain(*a))
    coarse = pictures(opened.log, look, steps=40, fine=False).found
    for name, most in (("MOST_FOOTERS", 0), ("MOST_FOOTER_BYTES", 1), ("ROW_GROUP_ROWS", 1_000)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(record_times, name, most)
            found = pictures(opened.log, look, steps=40).found
        assert found.totals.tolist() == coarse.totals.tolist()
    assert asked == []
    # What has no statistics, or is gone, stays as the index has it.
    monkeypatch.setattr(table, "row_groups", lambda *a: plain(*a)[1:])
    assert pictures(opened.log, look, steps=40).found.totals.tolist() == coarse.totals.tolist()

    def gone(*_: object) -> object:
        raise MissingFileError("it was vacuumed", path="it")

    monkeypatch.setattr(table, "row_groups", gone)
    assert pictures(opened.log, look, steps=40).found.totals.tolist() == coarse.totals.tolist()


def test_the_archived_end_is_marked_when_the_first_record_is_that_waits(shop):
    """Also while the segment in Redis began with records that are archived and trimmed."""
    shop.topic()
    shop.send(*(str(number) for number in range(100)))
    shop.lakelog.archive("orders")
    shop.send(*(str(number) for number in range(100, 130)))
    opened = OpenedTopic(shop.lakelog.log("orders"))
    coarse: list[Any] = []
    fine = pictures(opened.log, opened.look([0]), on_coarse=coarse.append)
    first_ms = EPOCH_MS + 100 * 1000
    (mark,) = fine.marks
    assert (mark.kind, mark.start_ms) == ("archived", first_ms)
    for picture in coarse:  # about there
        (mark,) = picture.marks
        assert first_ms - 1000 <= mark.start_ms <= first_ms


# -- drawn ---------------------------------------------------------------------------------------


def test_marks_and_bars_are_where_they_are_in_time():
    rows = [(0, 0, 9, 9, 0, 0, COLD, 1), (0, 9, 10, 1, 9_000, 9_000, HOT, 1)]
    found = histogram(Groups.of(rows), edges((0, 10_000), 10))
    html = picture_html(found, [Mark("archived", 9_000), Mark("start", -1)], timezone.utc, None)
    assert 'class="ll-mark ll-archived" style="left:90.00%;' in html
    assert "ll-start" not in html
    assert re.findall(r'<path class="ll-(\w+)" d="M([\d.]+)', html) == [
        ("cold", "0.1"),
        ("hot", "9.1"),
    ]
    assert "9 cold" in html
    assert html.count("<title>") == 2


def test_readers_are_marked_where_they_are_furthest_behind():
    rows = [
        (partition, 100 * n, 100 * n + 100, 100, 1_000 * n, 1_000 * n + 999, COLD, 1)
        for partition in (0, 1)
        for n in range(5)
    ]
    positions = {"ends": {0: 500, 1: 500}, "reads": {0: 450, 1: 150}, "new": {0: 0}}
    marks = marks_of(Groups.of(rows), {}, positions)
    assert [(mark.kind, mark.start_ms, mark.text, mark.label) for mark in marks] == [
        ("group", 0, "new has read up to here", "new"),
        ("group", 1_500, "reads has read up to here", "reads"),
    ]


def test_of_many_readers_the_last_have_a_mark_with_their_name():
    rows = [(0, 100 * n, 100 * n + 100, 100, 1_000 * n, 1_000 * n + 999, COLD, 1) for n in range(9)]
    positions = {f"<group {n}>": {0: 100 * n} for n in range(9)}
    marks = marks_of(Groups.of(rows), {}, positions)
    assert [mark.label for mark in marks] == ["<group 0>", "<group 1>", "<group 2>"]
    assert marks[-1].text.endswith("; 6 more are further")
    found = histogram(Groups.of(rows), edges((0, 9_000), 9))
    html = picture_html(found, marks, timezone.utc, None)
    assert re.findall(r'<b class="ll-label ll-after ll-row(\d)">([^<]*)</b>', html) == [
        ("0", "&lt;group 0&gt;"),
        ("1", "&lt;group 1&gt;"),
        ("2", "&lt;group 2&gt;"),
    ]
    assert "a group has read up to here" in legend(found, archived=False, read=True)


@pytest.mark.parametrize(
    ("wide_ms", "first", "labels"),
    [
        (365 * 86_400_000, "2013-01-01", ["Jan 2013", "Mar", "May", "Jul", "Sep", "Nov"]),
        (86_400_000, "2013-01-01", ["1 Jan 00:00", "06:00", "12:00", "18:00", "2 Jan 00:00"]),
        (4_000, "2013-01-01", ["1 Jan 00:00:00", "00:00:01", "00:00:02", "00:00:03", "00:00:04"]),
    ],
)
def test_an_axis_counts_as_calendars_and_clocks_do(wide_ms, first, labels):
    start = np.datetime64(first, "ms").astype(int).item()
    assert [text for _, text in ticks(start, start + wide_ms, timezone.utc, 6)] == labels


def test_an_axis_is_of_the_readers_zone():
    start = np.datetime64("2013-01-01", "ms").astype(int).item()
    zone = ZoneInfo("Asia/Kolkata")
    (first, label), *_ = ticks(start, start + 86_400_000, zone, 6)
    assert (first - start, label) == (30 * 60_000, "1 Jan 06:00")
    assert written(start, 60_000, zone) == "1 Jan 2013 05:30"


@given(start=st.integers(0, 2**62), wide=st.integers(1, 2**61), most=st.integers(2, 12))
def test_an_axis_is_never_crowded(start, wide, most):
    found = ticks(start, start + wide, timezone.utc, most)
    assert len(found) <= most + 1
    assert all(start <= time_ms <= start + wide for time_ms, _ in found)


# -- hands ---------------------------------------------------------------------------------------


def test_a_click_goes_to_a_time_and_a_drag_chooses_one(orders):
    hands = Hands(orders.explore())
    hands.type("picked", f"{40.5 / 130} {40.5 / 130} 1")
    assert hands.offsets()[0] == 41
    hands.type("picked", f"{20 / 130} {40 / 130} 2")
    assert hands.offsets()[0] in (19, 20)
    assert hands.offsets()[-1] in (39, 40)
    assert "ll-chosen" in hands.html("picture")
    low, high = hands.find("chosen").value
    assert (low, high) == (153, 308)
    hands.click("forward")
    assert hands.offsets()[-1] in (39, 40)
    hands.click("whole")
    assert hands.offsets() == list(range(50))
    assert hands.find("chosen").value == (0, 1000)


def test_the_expression_is_of_the_chosen_time_alone(orders):
    hands = Hands(orders.explore())
    log = orders.lakelog.log("orders")
    hands.type("chosen", (400, 600))
    for name in ("latest", "back", "earliest", "forward", "latest"):
        hands.click(name)
        found = eval(hands.explorer.expression, {"log": log}).to_arrow()
        assert found.equals(hands.explorer.data()), name
        assert min(hands.offsets()) > 50
        assert max(hands.offsets()) < 79


def test_the_range_below_chooses_and_zooms(orders):
    hands = Hands(orders.explore())
    hands.type("chosen", (0, 500))
    hands.click("latest")
    assert hands.offsets()[-1] == 64
    hands.type("search", "text")
    assert hands.offsets() == []
    assert not hands.find("zoom").disabled
    hands.click("zoom")
    assert "65 records" in hands.html("told")
    hands.click("whole")
    assert "130 records" in hands.html("told")
    assert hands.offsets()[0] == 100  # the search is still the same


def test_the_picture_moves_with_the_page_and_the_topic(orders):
    orders.topic("empty")
    hands = Hands(orders.explore())
    here = re.compile(r"ll-page\" style=\"left:([\d.]+)%")
    assert here.search(hands.html("picture")).group(1) == "0.00"
    hands.click("latest")
    assert float(here.search(hands.html("picture")).group(1)) > 50
    hands.click("refresh")
    hands.type("topic", "empty")
    assert hands.html("picture") == ""
    assert not hands.visible("chosen")
