"""Other implementations of Kafka's protocol read our bytes as we meant them, and write the same."""

from __future__ import annotations

import datetime
import enum
import importlib
import io
from collections.abc import Mapping
from typing import Any
from uuid import UUID

import kafka.protocol.admin
import kafka.protocol.consumer
import kafka.protocol.metadata
import kafka.protocol.producer
import kafka.protocol.sasl
import pytest

from lakelog.gateway.protocol.definitions import snake
from lakelog.gateway.protocol.messages import ApiVersionsResponse
from lakelog.gateway.protocol.primitives import Api, ApiMessage
from lakelog.gateway.protocol.wire import frame_response, read_header
from tests.gateway.message_values import MessageValues, every_version, plain_message

#: Messages that kafka-python knows, by name.
KAFKA_PYTHON: Mapping[str, Any] = {
    name: found
    for package in (
        kafka.protocol.admin,
        kafka.protocol.consumer,
        kafka.protocol.metadata,
        kafka.protocol.producer,
        kafka.protocol.sasl,
    )
    for name, found in vars(package).items()
    if name.endswith(("Request", "Response"))
}


def versions(*, known: Mapping[str, Any] | None = None) -> list[Any]:
    """Cases of a test: each message in each version, or those of them that are known."""
    return [
        pytest.param(api, message, version, id=f"{message.__name__}-{version}")
        for api, message, version in every_version()
        if known is None
        or (message.__name__ in known and version <= known[message.__name__].max_version)
    ]


def normal(value: Any) -> Any:
    """The value as we have it: others have types for times and codes, and for ids that are none."""
    match value:
        case dict():
            # kafka-python has sets of operations, of other names.
            kept = {name for name in value if not name.endswith("authorized_operations")}
            return {name: normal(value[name]) for name in kept}
        case list() | tuple():
            return [normal(one) for one in value]
        case datetime.timedelta():
            return value // datetime.timedelta(milliseconds=1)
        case datetime.datetime():
            epoch = datetime.datetime.fromtimestamp(0, datetime.timezone.utc)
            return (value - epoch) // datetime.timedelta(milliseconds=1)
        case enum.Enum():
            return value.value
        case UUID(int=0):
            return None
    return value


@pytest.mark.parametrize(("api", "message", "version"), versions(known=KAFKA_PYTHON))
def test_kafka_python_reads_and_writes_the_same(
    api: Api, message: type[ApiMessage], version: int
) -> None:
    theirs = KAFKA_PYTHON[message.__name__]
    values = MessageValues((message.__name__, version))
    for number in range(10):
        one = values.message(message, version)
        if isinstance(one, ApiVersionsResponse):
            one.error_code = 0  # kafka-python takes those with another for version 0
        if message is api.request:
            read = theirs.decode(one.encode(version), version=version)
            read.with_header(number, "client")
            framed = bytes(read.encode(header=True, framed=True))
            header = read_header(framed[4:])
            assert header[:4] == (api.key, version, number, "client")
            assert message.decode(version, framed[4:], header.body_position) == one
        else:
            framed = b"".join(frame_response(api.key, version, number, one))
            read = theirs.decode(framed, version=version, header=True, framed=True)
            assert read.header.correlation_id == number
            assert read.encode() == one.encode(version)
        expected, found = (plain_message(each, message, version) for each in (one, read))
        assert normal(found) == normal(expected)


@pytest.mark.parametrize(("api", "message", "version"), versions())
def test_kio_reads_and_writes_the_same(api: Api, message: type[ApiMessage], version: int) -> None:
    """Of values that its types take: it refuses numbers that are no codes, or no times."""
    serial = pytest.importorskip("kio.serial", reason="needs Python 3.11")
    kind = "request" if message is api.request else "response"
    try:
        module = importlib.import_module(f"kio.schema.{snake(api.name)}.v{version}.{kind}")
    except ModuleNotFoundError:
        pytest.skip("kio does not know the version")
    theirs = getattr(module, message.__name__)
    values = MessageValues((message.__name__, version), tame=True)
    for _ in range(10):
        one = values.message(message, version)
        written = one.encode(version)
        read, size_bytes = serial.entity_reader(theirs)(written, 0)
        assert size_bytes == len(written)
        again = io.BytesIO()
        serial.entity_writer(theirs)(again, read)
        assert again.getvalue() == written
        expected, found = (plain_message(each, message, version) for each in (one, read))
        assert normal(found) == normal(expected)
