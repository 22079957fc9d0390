"""Searches over all partitions, as the explorer pages through them."""

from __future__ import annotations

from typing import Any

import pytest
from gapped_story import Story, beginnings, happenings
from hands import Hands
from hypothesis import given, settings
from hypothesis import strategies as st

from lakelog.explore.explorer.answer import answer
from lakelog.explore.explorer.view import Ask, OpenedTopic, Shown
from lakelog.ingest.partitioner import partition_of_key
from lakelog.read import seek
from lakelog.read.where import parse
from lakelog.testing.eventually import eventually
from lakelog.values.config import EntryFormat
from lakelog.values.offsets import AtTimestamp, Earliest, Latest

KEY = b"guest"
OWN = partition_of_key(KEY, 3)
OTHER = (OWN + 1) % 3
ENTRY_FORMATS = (EntryFormat.FIELDS, EntryFormat.ARROW)


@pytest.fixture
def sales(shop):
    """Three partitions; record n is of partition n % 3 and a second later than the one before.

    [0, 60) are cold, [60, 90) hot. Two of the key are where it goes, one is elsewhere.
    """
    shop.topic("sales", partitions=3)
    for n in range(90):
        if n == 60:
            shop.lakelog.archive("sales")
        key = KEY if n in (30 + OWN, 69 + OWN, 45 + OTHER) else b"other %d" % n
        shop.send((key, f"sale {n}"), topic="sales", partition=n % 3)
    return shop


def numbers(explorer: Any) -> list[int]:
    return [int(value.split()[1]) for value in explorer.data()["value"].to_pylist()]


def same_rows(explorer: Any) -> bool:
    log = explorer._questions.open("sales").log
    return bool(eval(explorer.expression, {"log": log}).to_arrow().equals(explorer.data()))


def test_all_partitions_are_one_page_in_the_order_of_time(sales):
    explorer = sales.explore("sales", page_records=20)
    seen = []
    for _ in range(5):
        seen.append(numbers(explorer))
        assert same_rows(explorer)
        explorer.forward()
    assert [n for page in seen for n in page] == list(range(90))
    assert numbers(explorer) == list(range(70, 90))  # the last once more,
    assert "the log ends here" in Hands(explorer).html("notes")
    for _ in range(4):
        explorer.back()
    assert numbers(explorer) == list(range(10))
    explorer.back()
    assert numbers(explorer) == list(range(20))
    assert "the log starts here" in Hands(explorer).html("notes")


def test_it_goes_to_a_time_and_to_the_ends(sales):
    explorer = sales.explore("sales", page_records=20)
    assert numbers(explorer.seek("2023-11-14T22:13:50Z")) == list(range(30, 50))
    assert numbers(explorer.seek("latest")) == list(range(70, 90))
    assert numbers(explorer.seek("2040-01-01 UTC")) == list(range(70, 90))
    assert "nothing is at or after that" in Hands(explorer).html("notes")
    assert numbers(explorer.seek(20))[:3] == [60, 61, 62]
    assert "from offset 20 of each partition" in Hands(explorer).html("notes")


def test_rows_say_their_partition_and_open_by_it(sales):
    hands = Hands(sales.explore("sales", at="latest", page_records=20))
    assert 'data-row="2:29"' in hands.html("table")
    hands.type("opened", "2:29")
    assert "sale 89" in hands.html("record")
    assert hands.explorer.record(29, 1).value == b"sale 88"
    assert "partitions" in repr(hands.explorer).splitlines()[0]
    assert repr(hands.explorer).splitlines()[1].split()[0] == "part"


def test_a_key_is_looked_for_where_it_goes_and_then_elsewhere(sales):
    opened = OpenedTopic(sales.lakelog.log("sales"))
    first: list[Shown] = []
    ask = Ask("sales", None, Earliest(), parse('key = "guest"'))
    shown = answer(opened, ask, on_first=first.append)
    (own,) = first
    assert own.places == [(OWN, 10), (OWN, 23)]
    assert f"partition {OWN}, where such a key goes" in own.notes[-1]
    assert shown.places == [(OWN, 10), (OTHER, 15), (OWN, 23)]
    assert shown.notes[-1] == f"1 of them lie outside partition {OWN}, where such a key goes"
    back = answer(opened, Ask("sales", None, Latest(), parse('key = "guest"'), 1))
    assert back.places == [(OWN, 23)]
    assert answer(opened, back.ask_back).places == [(OTHER, 15)]


def test_a_key_search_that_is_stopped_goes_on_in_the_others(sales):
    opened = OpenedTopic(sales.lakelog.log("sales"))
    ask = Ask("sales", None, Earliest(), parse('key = "guest"'))
    first: list[Shown] = []
    shown = answer(opened, ask, on_first=first.append, stopped=lambda: bool(first))
    assert shown.places == [(OWN, 10), (OWN, 23)]
    assert shown.notes[-1] == f"stopped: partition {OWN} alone was searched"
    assert answer(opened, shown.ask_forward).places == [(OTHER, 15)]


def test_a_time_range_bounds_the_search_and_its_pages(sales):
    explorer = sales.explore("sales", page_records=20)
    explorer.search("sale", "2023-11-14T22:13:30Z", "2023-11-14T22:14:00Z")
    assert numbers(explorer) == list(range(10, 30))
    assert numbers(explorer.forward()) == list(range(30, 40))
    assert numbers(explorer.back()) == list(range(10, 30))
    assert numbers(explorer.seek("latest")) == list(range(20, 40))
    assert numbers(explorer.seek("earliest")) == list(range(10, 30))
    assert same_rows(explorer)


def test_the_tail_of_all_partitions_is_followed(sales):
    explorer = sales.explore("sales", page_records=20)
    explorer.follow()
    sales.send("sale 90", topic="sales", partition=1)
    eventually(lambda: numbers(explorer)[-1] == 90)
    assert numbers(explorer) == list(range(71, 91))
    explorer.stop()


def test_a_followed_filter_is_asked_of_what_is_new_alone(sales, monkeypatch):
    explorer = sales.explore("sales", page_records=5)
    read: list[int] = []
    search = type(explorer._questions.open("sales").log).search_ranges

    def counted(log: Any, ranges: Any, where: Any) -> Any:
        read.append(sum(end - start for start, end in ranges.values()))
        return search(log, ranges, where)

    explorer.search("sale")
    monkeypatch.setattr(type(explorer._questions.open("sales").log), "search_ranges", counted)
    explorer.follow()
    assert read == [90]
    for n in range(90, 97):
        sales.send("not this", f"sale {n}", topic="sales", partition=n % 3)
        eventually(lambda n=n: numbers(explorer)[-1] == n)
    assert numbers(explorer) == [92, 93, 94, 95, 96]
    assert sum(read) == 90 + 14
    assert same_rows(explorer)
    explorer.stop()
    explorer.wait()
    assert numbers(explorer.back()) == [87, 88, 89, 90, 91]
    assert numbers(explorer.forward()) == [92, 93, 94, 95, 96]


@given(
    beginning=beginnings,
    steps=st.lists(happenings, max_size=6),
    records=st.integers(1, 30),
)
@settings(max_examples=4)
def test_walks_over_all_partitions_meet_each_record_once(make_bench, beginning, steps, records):
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    opened = OpenedTopic(story.bench.log)
    topic = story.bench.log.topic.name
    for text in ("", "3"):
        wanted = {
            partition: [
                one.offset
                for one in story.held(partition)
                if text.encode() in (one.value or b"") or text.encode() in (one.key or b"")
            ]
            for partition in range(2)
        }
        for where, forward in ((Earliest(), True), (Latest(), False)):
            ask = Ask(topic, None, where, parse(text), records)
            walked = walk(opened, ask, sum(map(len, wanted.values())), forward=forward)
            assert walked == wanted, (text, where)


@pytest.mark.slow
@given(
    beginning=beginnings,
    steps=st.lists(happenings, max_size=6),
    records=st.integers(1, 30),
    at=st.integers(0, 400),
    one_by_one=st.booleans(),
)
@settings(max_examples=6)
def test_walks_from_a_time_meet_each_record_once(
    make_bench, beginning, steps, records, at, one_by_one
):
    """In the order in which they are met where the time of no first record is known."""
    story = Story(make_bench(partitions=2))
    for kind, *arguments in [*beginning, *steps]:
        getattr(story, kind)(*arguments)
    log = story.bench.log
    times_ms = sorted({one.timestamp_ms for number in range(2) for one in story.held(number)})
    if not times_ms:
        return
    where = AtTimestamp(max(0, times_ms[at % len(times_ms)]))
    sought = {number: log.seek(number, where) for number in range(2)}
    wanted = {
        number: [
            one.offset for one in story.held(number) if start is not None and one.offset >= start
        ]
        for number, start in sought.items()
    }
    count = sum(map(len, wanted.values()))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(seek, "_ASKED_ONE_BY_ONE", 32 if one_by_one else 0)
        search = log.search("", where)
        for of in range(1, count + 1, 7):
            plain = log.search_ranges(search.ranges, search.where).page(of)
            assert search.page(of).records.equals(plain.records)
        if count:
            ask = Ask(log.topic.name, None, where, search.where, records)
            assert walk(OpenedTopic(log), ask, count, forward=True) == wanted


def walk(opened: OpenedTopic, ask: Ask, count: int, *, forward: bool) -> dict[int, list[int]]:
    """What pages show, one after the other, until there are so many rows."""
    found: dict[int, list[int]] = {0: [], 1: []}
    rows = 0
    while rows < count:
        shown = answer(opened, ask)
        assert shown.records.num_rows
        for partition, offset in shown.places if forward else shown.places[::-1]:
            found[partition].append(offset)
        rows += shown.records.num_rows
        again = eval(shown.view.expression, {"log": opened.log}).to_arrow()
        key = [("partition", "ascending"), ("offset", "ascending")]
        assert again.sort_by(key).equals(shown.records.sort_by(key))
        ask = shown.ask_forward if forward else shown.ask_back
    if not forward:
        found = {partition: offsets[::-1] for partition, offsets in found.items()}
    return found


def test_a_page_of_very_many_partitions_is_in_the_order_of_time(make_bench):
    """However their records came there: in entries of one record, or of many."""
    count = 200
    bench = make_bench(partitions=count)
    for partition in range(count):
        times = [1000 * n + partition for n in range(20)]
        bench.append(times, partition=partition, entry_format=ENTRY_FORMATS[partition % 2])
    opened = OpenedTopic(bench.log)
    name = bench.topic.name
    opened.look(range(count))

    def asked(ask: Ask) -> tuple[list[int], int]:
        shown = answer(opened, ask)
        partitions = shown.records["partition"].to_pylist()
        times = [one.timestamp() for one in shown.records["timestamp"].to_pylist()]
        assert times == sorted(times)
        return partitions, int(1000 * times[0])

    assert asked(Ask(name, None, Earliest())) == ([*range(50)], 0)
    assert asked(Ask(name, None, Latest())) == ([*range(150, 200)], 19_150)
    assert asked(Ask(name, None, AtTimestamp(10_000))) == ([*range(50)], 10_000)
    found = asked(Ask(name, None, Earliest(), parse('time >= "@10000"')))
    assert found == ([*range(50)], 10_000)
