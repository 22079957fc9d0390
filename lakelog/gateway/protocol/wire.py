"""Requests and responses in their frames: a length, a header, and the message.

| header | from version | fields |
|---|---|---|
| request | 1 | API key int16, version int16, correlation id int32, client id nullable string |
| request | 2, of flexible versions | tagged fields besides |
| response | 0 | correlation id int32 |
| response | 1, of flexible versions | tagged fields besides |

The response to ApiVersions has header 0 whatever its version, since a client that asks for versions
does not know yet which of them the broker can write.

Source: KIP-482; KIP-511 (ApiVersions).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from .messages import APIS
from .primitives import (
    Api,
    ApiMessage,
    Buffer,
    MalformedRequestError,
    Pieces,
    Records,
    read_nullable_string,
    skip_tags,
)

__all__ = [
    "API",
    "Api",
    "ApiMessage",
    "Buffer",
    "MalformedRequestError",
    "Pieces",
    "Records",
    "RequestHeader",
    "frame_response",
    "read_header",
]

#: API key → the API and its versions that are served
API: dict[int, Api] = {api.key: api for api in APIS}

_API_VERSIONS = 18
_read_fixed = struct.Struct(">hhi").unpack_from
_HEADER_0 = struct.Struct(">ii").pack  # the frame's length, the correlation id
_HEADER_1 = struct.Struct(">iix").pack  # and no tagged fields


class RequestHeader(NamedTuple):
    """What stands before a request."""

    api_key: int
    version: int
    correlation_id: int
    client_id: str | None
    body_position: int  # in the frame; of a version that is not served, perhaps of tagged fields


def read_header(frame: Buffer) -> RequestHeader:
    """The header of a request.

    Keys and versions that are not served are told like others: with the correlation id, which
    comes first, a refusal can be sent.

    Args:
        frame: without its length.

    Raises:
        MalformedRequestError: the bytes are no header.
    """
    try:
        key, version, correlation_id = _read_fixed(frame, 0)
        client_id, position = read_nullable_string(frame, 8)
        api = API.get(key)
        if api is not None and api.is_flexible(version) and version <= api.max_version:
            position = skip_tags(frame, position)
    except (IndexError, ValueError, struct.error) as error:
        raise MalformedRequestError(
            f"{len(frame)} bytes are no request: the header: {error}"
        ) from error
    return RequestHeader(key, version, correlation_id, client_id, position)


def frame_response(
    api_key: int, version: int, correlation_id: int, response: ApiMessage
) -> list[Buffer]:
    """What to send, in order: the frame's length, the header, and the response.

    The buffers of records are those that the response was given.

    Raises:
        KeyError: the API or the version is not served.
    """
    has_tags = API[api_key].is_flexible(version) and api_key != _API_VERSIONS
    header = _HEADER_1 if has_tags else _HEADER_0
    buffers: list[Buffer] = [b""]
    response.write(version, buffers.append)
    size_bytes = sum(map(len, buffers)) + (5 if has_tags else 4)
    buffers[0] = header(size_bytes, correlation_id)
    return buffers
