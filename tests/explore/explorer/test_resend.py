"""A record sent again, by those who asked for it."""

from __future__ import annotations

import pytest
from hands import Hands

from lakelog.errors import InvalidArgumentError


def records(shop, topic="orders"):
    return [
        (record.key, record.value, record.headers)
        for record in shop.lakelog.log(topic).read(0).records()
    ]


@pytest.fixture
def writer(orders):
    """An explorer that may write, with record 17 open."""
    orders.topic("again")
    hands = Hands(orders.explore("orders", write=True))
    hands.type("opened", "0:17")
    return hands


def test_nothing_can_be_sent_unless_it_was_asked_for(orders):
    hands = Hands(orders.explore())
    hands.type("opened", "0:17")
    assert not hands.visible("again")
    hands.click("again")
    hands.click("send")
    hands.click("send")
    assert len(records(orders)) == 130


def test_a_record_is_sent_as_it_is_after_a_confirmation(writer, orders):
    hands = writer
    assert hands.visible("again")
    assert not hands.visible("sending")
    hands.click("again")
    assert hands.visible("sending")
    assert hands.find("send-value").value == '{"n": 17}'
    hands.click("send")
    assert hands.find("send").description == "Yes, append it to 'orders'"
    assert len(records(orders)) == 130
    hands.click("send")
    assert records(orders)[130:] == [(b"k3", b'{"n": 17}', (("h", b"17"),))]
    assert "appended to orders-0 at offset 130" in hands.html("sent")
    assert hands.find("send").description == "Send"


def test_a_record_is_edited_and_sent_to_another_topic(writer, orders):
    hands = writer
    hands.click("again")
    hands.click("send")
    hands.type("send-topic", "again")
    assert hands.find("send").description == "Send"  # what is confirmed is what is sent
    hands.click("send")
    hands.type("send-value", '{"n": "none"}')
    hands.type("send-key", "k")
    hands.click("send")
    hands.click("send")
    assert records(orders, "again") == [(b"k", b'{"n": "none"}', (("h", b"17"),))]
    assert len(records(orders)) == 130


def test_another_record_needs_another_confirmation(writer, orders):
    hands = writer
    hands.click("again")
    hands.click("send")
    hands.type("opened", "0:18")
    assert not hands.visible("sending")
    hands.click("again")
    assert hands.find("send-value").value == '{"n": 18}'
    assert hands.find("send").description == "Send"


def test_bytes_and_null_stay_what_they_are(orders):
    orders.topic("bytes")
    orders.send((b"\xff", None), (None, b"\x80"), topic="bytes")
    hands = Hands(orders.explore("bytes", write=True))
    for name in ("0:0", "0:1"):
        hands.type("opened", name)
        hands.click("again")
        assert hands.find("send-key").disabled
        assert hands.find("send-value").disabled
        hands.click("send")
        hands.click("send")
    assert records(orders, "bytes") == [(b"\xff", None, ()), (None, b"\x80", ())] * 2


def test_what_cannot_be_sent_is_an_error(writer, orders):
    hands = writer
    hands.click("again")
    hands.type("send-topic", "again")
    orders.lakelog.topics.delete("again")
    hands.click("send")
    hands.click("send")
    assert "again" in hands.html("error")
    assert hands.find("topic").value == "orders"
    hands.click("retry")
    assert not hands.visible("error")
    hands.type("send-topic", "orders")
    hands.click("send")
    hands.click("send")
    assert len(records(orders)) == 131


def test_a_record_of_a_topic_that_is_gone_is_sent_to_one_that_is_there(writer, orders):
    hands = writer
    orders.lakelog.topics.delete("orders")
    hands.click("refresh")
    assert "orders" in hands.html("error")
    hands.click("again")
    assert hands.find("send-topic").value is None
    hands.click("send")
    assert "choose the topic" in hands.html("error")
    hands.type("send-topic", "again")
    hands.click("send")
    hands.click("send")
    assert records(orders, "again") == [(b"k3", b'{"n": 17}', (("h", b"17"),))]


def test_the_archive_alone_takes_no_records(orders):
    with pytest.raises(InvalidArgumentError, match="takes no records"):
        orders.lakelog.archived.explore("orders", write=True)
