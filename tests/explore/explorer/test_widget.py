"""The widget by its controls, as a user has them, and by its methods."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import timedelta

import pyarrow as pa
import pytest
from hands import Hands

from lakelog import Lakelog
from lakelog.errors import (
    InvalidArgumentError,
    MissingExtraError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.values.record import RECORDS, OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

CLASSES = """topic partition offset chosen timestamp seek earliest latest earliest-local back
    forward search find stop follow table record expression error
    retry progress picture told more"""


def rows(explorer):
    """What the expression that is shown gives."""
    view = explorer.view
    log = explorer._questions.open(view.topic).log
    return eval(explorer.expression, {"log": log}).to_arrow()


# -- going about -------------------------------------------------------------------------------


def test_a_page_of_both_tiers_is_there_at_once(orders):
    explorer = orders.explore(at=90)
    hands = Hands(explorer)

    assert "lakelog-explorer" in explorer._dom_classes
    for name in CLASSES.split():
        assert hands.find(name) is not None
    assert hands.offsets() == list(range(90, 130))
    assert hands.html("table").count('data-tier="cold"') == 10
    assert hands.html("table").count('data-tier="hot"') == 30
    assert explorer.expression == "log.read(0, 90, 130)"
    assert "read(0, 90, 130)" in hands.html("expression")
    assert "130 records in partition 0, 14 Nov 2023 22:13:20" in hands.html("told")
    assert "Delta" in hands.html("told")
    assert "archived up to here" in hands.html("told")
    assert not hands.visible("error")
    assert not hands.visible("retry")
    assert hands.html("progress") == ""


def test_seeking_by_box_picture_and_buttons(orders):
    hands = Hands(orders.explore())
    hands.type("page-records", 20)
    seen = []
    for do in (
        lambda: hands.type("offset", 42),
        lambda: hands.type("picked", f"{6.6 / 130} {6.6 / 130} 1"),
        lambda: hands.click("latest"),
        lambda: hands.click("earliest-local"),
        lambda: hands.click("back"),
        lambda: hands.click("forward"),
        lambda: hands.click("forward"),
        lambda: hands.click("earliest"),
        lambda: hands.click("back"),
    ):
        do()
        seen.append((hands.offsets()[0], hands.offsets()[-1]))
        assert rows(hands.explorer).equals(hands.explorer.data())
        assert hands.find("offset").value == hands.offsets()[0]
    ends = [(42, 61), (7, 26), (110, 129), (100, 119), (80, 99), (100, 119), (120, 129)]
    assert seen == [*ends, (0, 19), (0, 19)]
    assert "the log starts here" in hands.html("notes")


def test_forward_at_the_end_shows_the_last_page_and_says_so(orders):
    hands = Hands(orders.explore(at="latest"))
    hands.click("forward")
    assert hands.offsets() == list(range(80, 130))
    assert "the log ends at 130" in hands.html("notes")


@pytest.mark.parametrize(
    ("text", "zone", "taken"),
    [
        ("2023-11-14 23:14", "Europe/Berlin", "= 2023-11-14 23:14:00+01:00"),
        ("2023-11-14T22", "UTC", "= 2023-11-14 22:00:00Z"),
        ("1700000040", "UTC", "taken as epoch seconds: 2023-11-14 22:14:00Z"),
        ("1700000040000", "UTC", "taken as epoch milliseconds: 2023-11-14 22:14:00Z"),
        ("12:00", "Europe/Berlin", "12:00 was taken as 20"),
        ("yesterday", "UTC", "yesterday was taken as 20"),
        ("10 minutes ago", "UTC", "= 20"),
    ],
)
def test_how_a_time_was_taken_is_said_beside_it(orders, text, zone, taken):
    hands = Hands(orders.explore())
    hands.type("zone", zone)
    hands.type("timestamp", text)
    assert taken in hands.html("taken")
    assert hands.explorer.error is None
    hands.type("timestamp", "04/07/2013 12:00")
    assert hands.html("taken") == ""
    assert "is not a time: write 2013-07-04 12:00" in hands.html("error")


@pytest.mark.parametrize(
    ("text", "zone", "first", "said"),
    [
        ("2023-11-14 22:14:00", "UTC", 40, ""),
        ("2023-11-14 23:14:00", "Europe/Berlin", 40, ""),
        ("2023-11-14T22:15:10Z", "Europe/Berlin", 110, ""),
        ("2001-01-01", "UTC", 0, ""),
        ("2040-01-01 00:00", "UTC", 80, "no record has a timestamp at or after that time"),
        ("10 minutes ago", "UTC", 80, "no record has a timestamp at or after that time"),
        ("-99999d", "UTC", 0, ""),
    ],
)
def test_seeking_by_time(orders, text, zone, first, said):
    hands = Hands(orders.explore())
    hands.type("zone", zone)
    hands.type("timestamp", text)
    assert hands.offsets()[0] == first
    assert said in hands.html("notes")
    hands.click("latest")
    hands.click("seek")  # the time is what was typed last
    assert hands.offsets()[0] == first
    hands.type("offset", 3)
    hands.click("latest")
    hands.type("offset", 3)
    hands.click("seek")
    assert hands.offsets()[0] == 3


def test_times_are_shown_in_the_zone(orders):
    hands = Hands(orders.explore())
    assert "2023-11-14 22:13:20.000Z" in hands.html("table")
    hands.type("zone", "Asia/Kolkata")
    assert "2023-11-15 03:43:20.000+05:30" in hands.html("table")


def test_another_topic_and_another_partition(orders):
    orders.topic("sales", partitions=3)
    orders.send("one", topic="sales", partition=2)
    hands = Hands(orders.explore())
    hands.click("refresh")
    assert list(hands.find("topic").options) == ["orders", "sales"]
    hands.type("search", 'key = "k1"')
    hands.click("find")

    hands.type("topic", "sales")
    assert [number for _, number in hands.find("partition").options] == [-1, 0, 1, 2]
    assert hands.find("partition").value == -1
    assert hands.explorer.expression == "log.search('', {2: 0}, {2: 1})"
    assert rows(hands.explorer).equals(hands.explorer.data())
    hands.type("partition", 0)
    assert "the partition is empty" in hands.html("notes")
    assert "no records" in hands.html("table")
    assert hands.explorer.expression == "log.read(0, 0, 0)"
    assert hands.explorer.data().equals(RECORDS.empty_table())
    assert hands.html("search") == ""
    for name in ("forward", "back", "latest", "earliest", "earliest-local", "find"):
        hands.click(name)
        assert not hands.visible("error")

    hands.type("partition", 2)
    assert hands.offsets() == [0]
    hands.type("topic", "orders")
    assert hands.offsets() == list(range(50))


def test_deleted_records_leave_an_empty_partition(orders):
    orders.lakelog.log("orders").raise_log_start(0, -1)
    hands = Hands(orders.explore())
    assert "all records below 130 were deleted" in hands.html("notes")
    assert hands.explorer.expression == "log.read(0, 130, 130)"


def test_without_a_topic_the_first_is_shown_and_without_topics_that_is_said(shop):
    empty = shop.explore(None)
    assert "there are no topics; lake.deleted()" in Hands(empty).html("notes")
    with pytest.raises(InvalidArgumentError, match="no topic"):
        empty.data()
    assert repr(empty).startswith("LogExplorer: there are no topics; lake.deleted()")
    Hands(empty).click("earliest")
    assert "create one" in Hands(empty).html("error")
    shop.topic("b")
    shop.topic("a")
    Hands(empty).click("refresh")
    assert Hands(empty).find("topic").value == "a"
    assert shop.explore(None).view.topic == "a"


# -- looking for something ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("box", "text", "code", "first"),
    [
        ("search", "key='k3'", "'key = \"k3\"'", 3),
        ("search", "header.h exists", "'header.h exists'", 0),
        ("search", 'header.h = "17"', "'header.h = \"17\"'", 17),
        ("search", "text 11", "'text 11'", 110),
        ("search", "value.n>97", "'value.n > 97'", 98),
    ],
)
def test_filters(orders, box, text, code, first):
    hands = Hands(orders.explore())
    hands.type(box, text)
    hands.click("find")
    assert hands.offsets()[0] == first
    assert hands.explorer.expression.endswith(f".matching({code})")
    assert rows(hands.explorer).equals(hands.explorer.data())
    assert hands.explorer.data().num_rows > 0
    assert hands.html(box) == text

    hands.click("latest")  # the filter stays
    assert rows(hands.explorer).equals(hands.explorer.data())
    hands.click("clear")
    assert "matching" not in hands.explorer.expression


def test_a_search_reads_no_more_than_it_may_and_goes_on_from_there(orders):
    explorer = orders.explore()
    explorer.search("text 12", max_records=50)
    hands = Hands(explorer)
    assert hands.offsets() == []
    assert "the limit of records" in hands.html("notes")
    end = explorer.view.end_offset
    assert explorer.expression == f"log.read(0, 0, {end}).matching('text 12')"
    assert 50 <= end < 120
    explorer.forward()
    assert hands.offsets() == list(range(120, 130))
    assert "up to the end of the log" in hands.html("notes")


def test_the_history_of_a_key_is_told_across_both_tiers(orders):
    orders.send(("k3", None))
    hands = Hands(orders.explore(at=100))
    assert hands.find("history").disabled
    hands.type("opened", "0:101")
    hands.click("history")

    assert hands.offsets() == [*range(3, 130, 7), 130]
    assert "last written" not in hands.html("notes")
    assert "key k3: 20 versions shown, deleted by the tombstone at offset 130" in hands.html(
        "notes"
    )
    assert hands.html("table").count('data-tier="cold"') == 14
    assert hands.html("table").count('data-tier="hot"') == 6
    assert "tombstone" in hands.html("table")
    assert hands.explorer.expression == "log.read(0, 0, 131).matching('key = \"k3\"')"
    assert rows(hands.explorer).equals(hands.explorer.data())
    hands.click("clear")
    assert "versions" not in hands.html("notes")


def test_a_record_without_a_key_has_no_history(shop):
    shop.topic()
    shop.send("keyless")
    hands = Hands(shop.explore())
    hands.type("opened", "0:0")
    hands.click("history")
    assert "without a key" in hands.html("error")


# -- one record --------------------------------------------------------------------------------


def test_a_record_is_opened_in_full(orders):
    explorer = orders.explore()
    hands = Hands(explorer)
    hands.type("opened", "0:17")
    assert 'tr[data-row="0:17"]' in hands.html("record")  # which marks it
    assert "&quot;n&quot;: 17" in hands.html("record")
    assert not hands.visible("full")
    assert explorer.record(18).value == b'{"n": 18}'
    hands.type("format", "hex")
    assert "00000000  7b 22 6e 22" in hands.html("record")
    hands.type("opened", "")
    assert hands.html("record") == ""
    with pytest.raises(InvalidArgumentError, match=r"seek\(99\) shows it"):
        explorer.record(99)


def test_large_values_and_many_headers_stay_small_until_they_are_asked_for(shop):
    shop.topic(**{"max.message.bytes": 8 << 20})
    many = [(f"header-{n}", b"value") for n in range(10_000)]
    shop.send(*(("large", b"x" * (1 << 20)) for _ in range(20)), ("many", "v", many))
    hands = Hands(shop.explore(at="latest"))
    assert hands.offsets() == list(range(21 - len(hands.offsets()), 21))
    assert 10 < len(hands.offsets()) < 20  # a page of large values is shorter
    assert len(hands.html("table")) < 30_000
    assert "1.0 MiB" in hands.html("table")
    assert "+9,997" in hands.html("table")

    hands.type("opened", "0:20")
    assert "header-49" in hands.html("record")
    assert "header-50" not in hands.html("record")
    assert hands.visible("full")
    hands.type("full", True)
    assert "header-9999" in hands.html("record")
    hands.type("opened", "0:19")
    assert not hands.find("full").value
    assert len(hands.html("record")) < 10_000
    assert "1,048,576 bytes" in hands.html("record")
    hands.type("full", True)
    assert len(hands.html("record")) > 1 << 20
    hands.click("back")
    assert hands.html("record") == ""


def test_nothing_of_a_record_is_taken_for_html(shop):
    evil = "<script>alert(1)</script>"
    shop.topic()
    shop.send((evil, evil, [(evil, evil.encode())]))
    explorer = shop.explore()
    hands = Hands(explorer)
    hands.type("opened", "0:0")
    hands.type("search", evil)
    hands.click("find")
    hands.type("opened", "0:0")
    explorer.history(evil)
    with pytest.raises(InvalidArgumentError):
        explorer.choose(evil)
    for name in ("table", "record", "expression", "error", "notes"):
        assert "<script" not in hands.html(name)
        assert "&lt;script&gt;" in hands.html(name) or name == "record"


def test_values_that_are_no_text_are_shown_in_hexadecimal(shop):
    shop.topic()
    shop.send((b"\x00\xff", bytes(range(256))), (b"", b""), (b"gone", None), (None, None))
    hands = Hands(shop.explore())
    table = hands.html("table")
    assert "00 ff" in table
    assert "hex" in table
    assert ">empty</i>" in table
    assert ">tombstone</i>" in table
    assert table.count(">null</i>") == 2


# -- as code and as text -----------------------------------------------------------------------


def test_methods_return_when_the_page_is_shown_and_raise_what_went_wrong(orders):
    explorer = orders.explore()
    assert explorer.seek(120).expression == "log.read(0, 120, 130)"
    assert explorer.back().expression == "log.read(0, 70, 120)"
    assert explorer.forward().expression == "log.read(0, 120, 130)"
    assert explorer.seek("2023-11-14T22:14:00Z").view.start_offset == 40
    assert explorer.seek(timedelta(minutes=1)).view.end_offset == 130
    times = ("2023-11-14T22:14:50Z", "2023-11-14T22:14:55Z")
    assert explorer.search('key = "k0"', *times).data()["offset"].to_pylist() == [91]
    assert "up to the end of the range that is searched" in Hands(explorer).html("notes")
    assert explorer.history("k0").data().num_rows == 19
    with pytest.raises(OffsetOutOfRangeError):
        explorer.seek(131)
    assert "131" in Hands(explorer).html("error")
    assert explorer.choose("orders", 0, 5).view.start_offset == 5
    assert explorer.error is None


def test_rows_come_as_arrow_and_as_pandas(orders):
    explorer = orders.explore(at=128)
    assert explorer.data().schema == RECORDS
    assert isinstance(explorer.data(), pa.Table)
    assert list(explorer.to_pandas()["offset"]) == [128, 129]


def test_a_frontend_without_widgets_gets_the_table_as_text(orders):
    explorer = orders.explore(at=98)
    bundle = explorer._repr_mimebundle_()
    assert bundle["application/vnd.jupyter.widget-view+json"]["model_id"] == explorer.model_id
    lines = bundle["text/plain"].splitlines()
    assert lines[0] == "orders-0 [0, 130)  log.read(0, 98, 130)"
    assert lines[1].split() == ["offset", "time", "tier", "key", "value", "headers", "size"]
    time = ["2023-11-14", "22:14:58.000Z"]
    assert lines[3].split() == ["98", *time, "cold", "k0", '{"n":', "98}", "h=98", "14", "B"]
    assert len(lines) == 35
    assert repr(explorer) == bundle["text/plain"]


def test_the_log_opens_its_own(orders):
    explorer = orders.lakelog.log("orders").explore(0, "latest")
    assert explorer.view.end_offset == 130
    explorer.close()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("nowhere",), UnknownTopicOrPartitionError),
        (("orders", 3), UnknownTopicOrPartitionError),
        (("orders", 0, "yesterday"), InvalidArgumentError),
    ],
)
def test_what_cannot_be_opened_is_refused(orders, arguments, error):
    with pytest.raises(error):
        orders.lakelog.explore(*arguments)


def test_without_ipywidgets_the_extra_is_named(orders, monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lakelog.explore.explorer.")]:
        if name.endswith((".widget", ".controls")):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lakelog\[explore\]'"):
        orders.lakelog.explore("orders")


def test_a_lakelog_is_opened_without_widgets_and_plots():
    program = (
        "import json, sys, lakelog.lakelog;"
        "print(json.dumps([m for m in ('ipywidgets', 'plotly', 'pandas', 'IPython')"
        " if m in sys.modules]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == []


def test_an_untiered_topic_is_all_hot(redis_url):
    with Lakelog.connect(redis_url) as lakelog:
        lakelog.topics.create("hot", 1, {"remote.storage.enable": False})
        with lakelog.producer() as producer:
            producer.send("hot", "v", partition=0)
        explorer = lakelog.explore("hot")
        explorer.wait()
        assert Hands(explorer).html("table").count('data-tier="hot"') == 1
        assert "Delta" not in Hands(explorer).html("told")
        explorer.close()


def test_the_readers_zone_is_taken_until_one_is_chosen(orders):
    hands = Hands(orders.explore())
    assert "2023-11-14 22:13:20.000Z" in hands.html("table")
    for name in ("Etc/UTC", "Mars/Olympus"):
        hands.type("reader-zone", name)
        assert hands.find("zone").value == "UTC"
    hands.type("reader-zone", "Asia/Tokyo")
    assert hands.find("zone").value == "Asia/Tokyo"
    assert ">2023-11-15 07:13:20.000+09:00<" in hands.html("table")
    assert "15 Nov 2023" in hands.html("told")
    hands.type("zone", "Europe/Berlin")
    assert "14 Nov 2023 23:13" in hands.html("told")
    hands.type("reader-zone", "America/New_York")  # as after the page was opened anew
    assert hands.find("zone").value == "Europe/Berlin"


def test_the_picture_marks_where_groups_are(orders):
    coordinator = GroupCoordinator(orders.lakelog.hot.connections)
    place = TopicPartition("orders", 0)
    topic_id = orders.lakelog.topics.get("orders").topic_id
    for group_id, offset in (("<nightly>", 65), ("up to date", 130)):
        coordinator.commit(
            group_id, {place: OffsetAndMetadata(offset)}, topic_ids={"orders": topic_id}
        )
    hands = Hands(orders.explore())
    assert "&lt;nightly&gt;</b>" in hands.html("picture")
    assert "up to date" not in hands.html("picture")
    assert "a group has read up to here" in hands.html("told")
