"""Frames: headers of requests are read whatever was asked, those of responses fit the version."""

from __future__ import annotations

import contextlib
import struct
from random import Random

import pytest

from lakelog.gateway.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    SaslHandshakeResponse,
)
from lakelog.gateway.protocol.wire import (
    API,
    MalformedRequestError,
    Pieces,
    RequestHeader,
    frame_response,
    read_header,
)


def header(key: int, version: int, client: bytes | None = b"me") -> bytes:
    length = -1 if client is None else len(client)
    return struct.pack(">hhih", key, version, 7, length) + (client or b"")


def test_a_request_is_read_behind_its_header() -> None:
    body = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name="orders")])
    frame = header(3, 9) + b"\0" + body.encode(9)
    found = read_header(frame)
    assert found == RequestHeader(3, 9, 7, "me", 13)
    request = MetadataRequest.decode(9, frame, found.body_position)
    assert request.topics is not None
    assert [topic.name for topic in request.topics] == ["orders"]


def test_a_client_may_have_no_id() -> None:
    assert read_header(header(3, 1, None)) == RequestHeader(3, 1, 7, None, 10)


def test_tagged_fields_of_a_header_are_skipped() -> None:
    assert read_header(header(3, 9) + b"\1\0\2hi").body_position == 12 + 5


@pytest.mark.parametrize(("key", "version"), [(999, 0), (18, 99), (0, 2), (24, 3), (3, -1)])
def test_the_header_of_what_is_not_served_can_be_refused(key: int, version: int) -> None:
    found = read_header(header(key, version) + b"\xff\xff")
    assert (found.api_key, found.version, found.correlation_id) == (key, version, 7)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        header(3, 9)[:7],
        header(3, 9),  # the tagged fields are missing
        header(3, 1, b"\xff\xfe"),
        struct.pack(">hhih", 3, 1, 7, 100) + b"short",
        header(3, 9) + b"\xff" * 9,
    ],
)
def test_what_is_no_header_is_refused(frame: bytes) -> None:
    with pytest.raises(MalformedRequestError, match="header"):
        read_header(frame)


def test_of_random_bytes_a_header_is_read_or_they_are_refused() -> None:
    random = Random(3)
    for _ in range(5_000):
        frame = header(random.choice([0, 1, 3, 18, 99]), random.randint(-1, 20))
        frame = frame[: random.randint(0, 12)] + random.randbytes(random.randint(0, 20))
        with contextlib.suppress(MalformedRequestError):
            assert read_header(frame).body_position <= len(frame)


@pytest.mark.parametrize(
    ("key", "version", "response", "tags"),
    [
        (3, 8, MetadataResponse(), b""),
        (3, 9, MetadataResponse(), b"\0"),
        (18, 3, ApiVersionsResponse(), b""),
        (18, 4, ApiVersionsResponse(), b""),
        (17, 1, SaslHandshakeResponse(), b""),
    ],
)
def test_a_response_has_the_header_of_its_version(
    key: int, version: int, response: MetadataResponse, tags: bytes
) -> None:
    body = struct.pack(">i", 7) + tags + response.encode(version)
    framed = b"".join(frame_response(key, version, 7, response))
    assert framed == struct.pack(">i", len(body)) + body


def test_buffers_of_records_are_in_the_frame_as_they_are() -> None:
    pieces = [bytes(5000), memoryview(bytearray(3000))]
    partition = FetchResponse.PartitionData(records=Pieces(pieces))
    topic = FetchResponse.FetchableTopicResponse("orders", partitions=[partition])
    buffers = frame_response(1, 11, 7, FetchResponse(responses=[topic]))
    assert all(any(one is piece for one in buffers) for piece in pieces)
    framed = b"".join(buffers)
    assert struct.unpack_from(">i", framed) == (len(framed) - 4,)


def test_an_api_says_what_is_served() -> None:
    api = API[18]
    assert (api.name, api.request, api.response) == (
        "ApiVersions",
        ApiVersionsRequest,
        ApiVersionsResponse,
    )
    assert [api.is_flexible(version) for version in range(5)] == [False, False, False, True, True]
    assert not API[17].is_flexible(1)
    assert all(key == one.key for key, one in API.items())
    assert not API.keys() & {24, 25, 26, 27, 28}, "transactions are not served"
