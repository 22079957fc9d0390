"""What the page on limits says is refused, is; and just within, it is not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from msgspec import Struct

import lakelog
from lakelog import Lakelog
from lakelog.codec import Entry, ProducedBatch
from lakelog.codec.fields_entry import MAX_FIELDS
from lakelog.codec.value_columns import MAX_DEPTH
from lakelog.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    LakelogError,
    PolicyViolationError,
    RecordTooLargeError,
)
from lakelog.hot import AppendCall
from lakelog.hot.append import MAX_ENTRY_VALUES, check_call
from lakelog.hot.connection import MAX_CONNECTIONS
from lakelog.hot.topic_definition import MAX_PARTITIONS
from lakelog.ingest.bulk import MAX_CALL_BYTES
from lakelog.ingest.partition_queue import MAX_CALL_ENTRIES
from lakelog.ingest.producer_config import ProducerConfig
from lakelog.values.config import INT32_MAX, setting
from lakelog.values.producer_calls import MAX_SEQUENCES, REMEMBERED_CALLS
from lakelog.values.record import MAX_OFFSET
from lakelog.values.reservation import FEW_OFFSETS, FIRST_OFFSETS, MOST_OFFSETS
from lakelog.values.topic import MAX_NAME_LENGTH

README = Path(lakelog.__file__).parent / "operate" / "limits" / "README.md"


class Limit(Struct, frozen=True):
    """One thing that may get so large."""

    what: str
    most: int
    unit: str
    beyond: str  # what happens, or what raises it


def limits() -> tuple[Limit, ...]:
    """All of them, in the order in which they are shown."""
    entry, decoded, segment = (
        int(setting(name).default)
        for name in ("max.message.bytes", "lakelog.max.decoded.bytes", "segment.bytes")
    )
    return (
        Limit(
            "offset of a record",
            MAX_OFFSET - 2,
            "",
            "`PolicyViolationError`; write to another topic",
        ),
        Limit("partitions of a topic", MAX_PARTITIONS, "", "refused"),
        Limit("name of a topic", MAX_NAME_LENGTH, "characters", "refused, as by Kafka"),
        Limit(
            "entry as stored, so also a record",
            entry,
            "bytes",
            f"`RecordTooLargeError`; `max.message.bytes` raises it to {INT32_MAX:,}",
        ),
        Limit(
            "entry once decompressed",
            decoded,
            "bytes",
            f"likewise; `lakelog.max.decoded.bytes` raises it to {INT32_MAX:,}",
        ),
        Limit(
            "segment",
            segment,
            "bytes",
            f"the next one begins; `segment.bytes` raises it to {INT32_MAX:,}",
        ),
        Limit("fields of a record by themselves", MAX_FIELDS, "", "stored as Arrow instead"),
        Limit("names and values of an entry", MAX_ENTRY_VALUES, "", "refused; Lua takes no more"),
        Limit("one-record entries of a call", MAX_CALL_ENTRIES, "", "the next call takes them"),
        Limit("call of `send_batch`", MAX_CALL_BYTES, "bytes", "the next call takes them"),
        Limit("calls under way a partition", REMEMBERED_CALLS, "", "`max_in_flight`; they wait"),
        Limit("rows of a Spark task for a partition", MAX_SEQUENCES - 1, "", "refused"),
        Limit(
            "offsets that a lost tail skips",
            MOST_OFFSETS,
            "",
            f"as many as the partition has archived, {FIRST_OFFSETS:,} at least; in an embedded "
            f"log as many as it has records, {FEW_OFFSETS:,} at least",
        ),
        Limit("nesting of a JSON value in typed columns", MAX_DEPTH, "", "the columns are null"),
        Limit("connections of a process to a server", MAX_CONNECTIONS, "", "callers wait"),
    )


def rows() -> list[str]:
    """Rows of the Markdown table that shows them."""
    return [
        f"| {one.what} | {one.most:,}{f' {one.unit}' if one.unit else ''} | {one.beyond} |"
        for one in limits()
    ]


MOST = {one.what: one.most for one in limits()}


@pytest.fixture
def lake(redis_url: str) -> Iterator[Lakelog]:
    with Lakelog.connect(redis_url) as lake:
        yield lake


UNTIERED = {"remote.storage.enable": False}


def test_the_page_has_the_limits_of_the_code() -> None:
    section = README.read_text("utf-8").split("\n## ")[1]
    assert [line for line in section.splitlines()[4:] if line.startswith("| ")] == rows()


def test_partitions_and_names(lake: Lakelog) -> None:
    most = MOST["partitions of a topic"]
    with pytest.raises(LakelogError, match=f"1..{most}"):
        lake.topics.create("t", most + 1, UNTIERED)
    longest = "n" * MOST["name of a topic"]
    assert lake.topics.create(longest, 1, UNTIERED).name == longest
    with pytest.raises(LakelogError):
        lake.topics.create(longest + "n", 1, UNTIERED)


def test_the_last_offset(lake: Lakelog, redis_client: redis.Redis) -> None:
    lake.topics.create("t", 1, UNTIERED)
    last = MOST["offset of a record"]
    state = "{lakelog:stream:t:0}:state"
    base, *rest = redis_client.hget(state, "segment").decode().split()
    assert base == "0"
    redis_client.hset(state, mapping={"log_end": last, "segment": f"{last} {' '.join(rest)}"})
    with lake.producer() as producer:
        assert producer.send("t", b"the last").result().offset == last
        with pytest.raises(PolicyViolationError):
            producer.send("t", b"one more").result()


def test_the_largest_record(lake: Lakelog) -> None:
    most = MOST["entry as stored, so also a record"]
    lake.topics.create("t", 1, UNTIERED)
    with lake.producer(compression_type="none") as producer:
        assert producer.send("t", b"v" * (most - 1024)).result().offset == 0
        with pytest.raises(RecordTooLargeError, match=str(most)):
            producer.send("t", b"v" * (most + 1)).result()


@pytest.mark.parametrize(
    "name", ["max.message.bytes", "lakelog.max.decoded.bytes", "segment.bytes"]
)
def test_how_far_sizes_may_be_raised(lake: Lakelog, name: str) -> None:
    most = 2**31 - 1
    assert f"`{name}` raises it to {most:,}" in " ".join(rows())
    assert lake.topics.create("t", 1, {**UNTIERED, name: most}).config[name] == most
    with pytest.raises(InvalidConfigError):
        lake.topics.create("u", 1, {**UNTIERED, name: most + 1})


def test_values_of_an_entry_and_calls_under_way(lake: Lakelog) -> None:
    topic = lake.topics.create("t", 1, UNTIERED)

    def call(values: int) -> AppendCall:
        entry = Entry(1, [b"x"] * values, values, values, 0, 0, None)
        return AppendCall(topic.partition(0), topic.topic_id, ProducedBatch((entry,), 1, 0, 0, 0))

    check_call(call(MOST["names and values of an entry"]))
    with pytest.raises(InvalidArgumentError, match=str(MOST["names and values of an entry"])):
        check_call(call(MOST["names and values of an entry"] + 2))
    most = MOST["calls under way a partition"]
    assert ProducerConfig(max_in_flight=most).max_in_flight == most
    with pytest.raises(InvalidConfigError):
        ProducerConfig(max_in_flight=most + 1)
