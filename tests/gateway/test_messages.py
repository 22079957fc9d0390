"""Every version of every message survives its bytes, and what is no message is said to be none."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from random import Random
from uuid import UUID

import pytest

from lakelog.gateway.protocol import generate
from lakelog.gateway.protocol.definitions import Definitions
from lakelog.gateway.protocol.messages import (
    FetchRequest,
    FetchResponse,
    ListOffsetsResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    ShareFetchResponse,
)
from lakelog.gateway.protocol.primitives import (
    ApiMessage,
    pack_compact_string,
    pack_uvarint,
    read_compact_string,
    read_uvarint,
)
from lakelog.gateway.protocol.wire import API, MalformedRequestError, Pieces
from tests.gateway.message_values import DEFINITIONS, MessageValues, every_version

JAR = (
    Path.home()
    / f".m2/repository/org/apache/kafka/kafka-clients/{DEFINITIONS.kafka_version}"
    / f"kafka-clients-{DEFINITIONS.kafka_version}.jar"
)
VERSIONS = [
    pytest.param(message, version, id=f"{message.__name__}-{version}")
    for _, message, version in every_version()
]


def test_the_module_is_what_the_definitions_make() -> None:
    made = generate.module(DEFINITIONS)
    assert made == generate.MESSAGES.read_text("utf-8"), "run lakelog.gateway.protocol.generate"


@pytest.mark.skipif(not JAR.exists(), reason="no jar of kafka-clients in Maven's repository")
def test_the_definitions_are_those_of_kafka() -> None:
    assert Definitions.of_jar(JAR) == DEFINITIONS


@pytest.mark.parametrize(("message", "version"), VERSIONS)
def test_a_message_survives_its_bytes(message: type[ApiMessage], version: int) -> None:
    values = MessageValues((message.__name__, version))
    for _ in range(10):
        one = values.message(message, version)
        written = one.encode(version)
        assert message.decode(version, written) == one
        assert message.decode(version, bytearray(b"head" + written), 4) == one
        assert message.decode(version, memoryview(written)).encode(version) == written


@pytest.mark.parametrize(("message", "version"), VERSIONS)
def test_a_message_of_defaults_survives_its_bytes(message: type[ApiMessage], version: int) -> None:
    written = message().encode(version)
    assert message.decode(version, written).encode(version) == written


@pytest.mark.parametrize(("message", "version"), VERSIONS)
def test_a_message_that_is_cut_is_refused_and_what_follows_one_is_nobodys(
    message: type[ApiMessage], version: int
) -> None:
    values = MessageValues((message.__name__, version))
    written = min((values.message(message, version).encode(version) for _ in range(5)), key=len)
    for end in range(min(len(written), 300)):
        with pytest.raises(MalformedRequestError, match=message.__name__):
            message.decode(version, written[:end])
    assert message.decode(version, written + b"\0").encode(version) == written


def mutated(random: Random, data: bytes) -> bytes:
    """The bytes with some of them cut, changed, put in or doubled, or others altogether."""
    found = bytearray(data)
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(found))
        match random.randrange(6):
            case 0:
                del found[at:]
            case 1:
                del found[at : at + random.randint(1, 4)]
            case 2:
                found[at:at] = random.randbytes(random.randint(1, 4))
            case 3:
                found[at : at + 4] = random.choice([b"\x7f\xff\xff\xff", b"\xff" * 4, b"\xff" * 9])
            case 4 if found:
                found[at % len(found)] ^= 1 << random.randrange(8)
            case _:
                found[at:at] = found[at : at + random.randint(1, 40)]
    return bytes(found) if random.random() < 0.95 else random.randbytes(random.randint(0, 60))


def fuzz(seed: int, count: int) -> int:
    """How many of so many mutated requests were refused; others are what their bytes say."""
    random = Random(seed)
    requests = [(api.request, version) for api, _, version in every_version()]
    written = [
        (request, version, MessageValues((seed, request, version)).message(request, version))
        for request, version in requests
    ]
    seeds = [(request, version, message.encode(version)) for request, version, message in written]
    refused = 0
    for _ in range(count):
        request, version, data = random.choice(seeds)
        try:
            message = request.decode(version, mutated(random, data))
        except MalformedRequestError:
            refused += 1
        else:
            message.encode(version)
    return refused


def test_of_mutated_requests_only_malformed_ones_are_refused() -> None:
    assert fuzz(seed=1, count=20_000) > 5_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_of_many_mutated_requests_only_malformed_ones_are_refused(seed: int) -> None:
    assert fuzz(seed, count=100_000) > 25_000


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\xff\xff\x00\x01\x00\x00\x00\x00\x7f\xff\xff\xff", id="array"),
        pytest.param(b"\x7f\xff" + b"x" * 100, id="string"),
        pytest.param(
            b"\xff\xff\x00\x01\x00\x00\x00\x00\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x01"
            b"\x00\x00\x00\x00\x7f\xff\xff\xff",
            id="records",
        ),
    ],
)
def test_what_is_longer_than_the_request_is_refused_before_room_is_made(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(MalformedRequestError):
            ProduceRequest.decode(3, data)
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


def test_an_array_of_so_many_small_items_that_they_do_not_fit_is_refused() -> None:
    topics = pack_uvarint(1001) + b"\0" * 1000  # 1000 topics, of a byte each
    with pytest.raises(MalformedRequestError, match="array"):
        MetadataRequest.decode(9, topics)


def test_text_that_is_not_utf_8_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="utf-8"):
        MetadataRequest.decode(1, b"\0\0\0\1\0\2\xff\xfe")


def test_null_where_none_may_be_is_refused_and_not_written() -> None:
    with pytest.raises(MalformedRequestError, match="null"):
        ProduceRequest.decode(3, b"\xff\xff\0\1\0\0\0\0\xff\xff\xff\xff")
    with pytest.raises(TypeError):
        MetadataResponse(brokers=None).encode(9)  # type: ignore[arg-type]


def test_unknown_tagged_fields_are_skipped() -> None:
    request = ProduceRequest(acks=1, topic_data=[])
    written = request.encode(9)
    assert written.endswith(b"\0")
    tagged = written[:-1] + b"\2\x05\3abc\xe8\x07\0"
    assert ProduceRequest.decode(9, tagged) == request
    with pytest.raises(MalformedRequestError, match="tagged field"):
        ProduceRequest.decode(9, written[:-1] + b"\1\5\x7f")


def test_a_tagged_field_is_all_of_its_bytes() -> None:
    request = FetchRequest(cluster_id="abc", topics=[], forgotten_topics_data=[])
    written = request.encode(12)
    assert written.endswith(b"\1\0\4\4abc")
    assert FetchRequest.decode(12, written) == request
    with pytest.raises(MalformedRequestError, match="tagged field"):
        FetchRequest.decode(12, written[:-6] + b"\0\5\4abc!")


def test_records_are_views_of_the_request() -> None:
    one = ProduceRequest.PartitionProduceData(0, b"a batch")
    request = ProduceRequest(topic_data=[ProduceRequest.TopicProduceData("orders", [one])])
    frame = request.encode(9)
    records = ProduceRequest.decode(9, frame).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is frame
    assert records == b"a batch"


def test_records_in_pieces_are_written_as_they_are() -> None:
    pieces = [b"a", bytes(300), memoryview(b"xyz")]
    partition = FetchResponse.PartitionData(records=Pieces(pieces))
    response = FetchResponse(
        responses=[FetchResponse.FetchableTopicResponse("t", partitions=[partition])]
    )
    for version in (11, 12):
        written: list[object] = []
        response.write(version, written.append)
        assert all(any(one is piece for one in written) for piece in pieces)
        read = FetchResponse.decode(version, response.encode(version))
        assert read.responses[0].partitions[0].records == b"".join(pieces)


def test_fields_that_a_version_lacks_are_left_out() -> None:
    partition = ProduceResponse.PartitionProduceResponse(1, error_message="no")
    topic = ProduceResponse.TopicProduceResponse("t", [partition])
    response = ProduceResponse([topic], throttle_time_ms=5)
    read = ProduceResponse.decode(3, response.encode(3))
    assert read.throttle_time_ms == 5
    assert read.responses[0].partition_responses[0].error_message is None


def test_defaults_are_kafkas() -> None:
    assert FetchRequest().max_bytes == 0x7FFFFFFF
    assert MetadataRequest().allow_auto_topic_creation is True
    assert ListOffsetsResponse.ListOffsetsPartitionResponse().offset == -1
    assert MetadataRequest.MetadataRequestTopic().topic_id == UUID(int=0)
    one, other = ShareFetchResponse.PartitionData(), ShareFetchResponse.PartitionData()
    assert one == other
    assert one.current_leader is not other.current_leader


def test_versions_that_are_not_served_have_no_functions() -> None:
    for api in API.values():
        for message in (api.request, api.response):
            served = range(api.min_version, api.max_version + 1)
            assert list(message.readers) == list(message.writers) == list(served)
    with pytest.raises(KeyError):
        ProduceRequest.decode(13, b"")


@pytest.mark.parametrize("number", [0, 1, 127, 128, 300, 2**14, 2**21 - 1, 2**28, 2**32 - 1])
def test_varints_survive(number: int) -> None:
    assert read_uvarint(b"x" + pack_uvarint(number), 1) == (number, 1 + len(pack_uvarint(number)))


def test_a_varint_that_does_not_end_is_refused() -> None:
    with pytest.raises(MalformedRequestError, match="varint"):
        read_uvarint(b"\x80" * 6, 0)


def test_half_a_surrogate_pair_is_written_as_a_question_mark() -> None:
    assert read_compact_string(pack_compact_string("a\ud800"), 0) == ("a?", 3)
