"""What people hand to a producer for one record: a key, a value, headers, a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NoReturn

from ..codec.entry import MAX_TIMESTAMP_MS
from ..errors import InvalidArgumentError
from ..values.arguments import moment_us, whole
from ..values.record import NO_TIMESTAMP_MS

#: Bytes, or text that is stored as UTF-8; None: no key, or a tombstone.
BytesLike = bytes | bytearray | memoryview | str | None
HeadersLike = Mapping[str, BytesLike] | Iterable[tuple[str, BytesLike]]


def as_bytes(name: str, value: object) -> bytes | None:
    """The bytes of a key, value or header value.

    Raises:
        InvalidArgumentError: it is neither bytes nor text nor None.
    """
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, str):
        try:
            return value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"the {name} is no valid text: {error}") from None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise InvalidArgumentError(
        f"a {name} is bytes, text or None, not {type(value).__name__}: encode {value!r:.80} first, "
        "such as with json.dumps(…) or str(…)"
    )


def as_headers(headers: HeadersLike) -> list[tuple[str, bytes | None]]:
    """Headers in their order, as items of the headers column.

    Args:
        headers: a mapping; or pairs, or, as tables have them, mappings of key and value.

    Raises:
        InvalidArgumentError: not (text, bytes) pairs.
    """
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    try:
        items = [_pair(pair) for pair in pairs]
    except (TypeError, ValueError):
        raise InvalidArgumentError(
            f"headers are a mapping or (key, value) pairs, not {headers!r:.80}"
        ) from None
    for key, _ in items:
        if not isinstance(key, str):
            raise InvalidArgumentError(f"the key of a header is text, not {key!r:.80}")
        as_bytes("header's key", key)
    return [(key, as_bytes("header's value", value)) for key, value in items]


def _pair(pair: Any) -> tuple[Any, Any]:
    """ValueError for a value that would split in two only by chance."""
    if isinstance(pair, Mapping):
        if set(pair) != {"key", "value"}:
            raise ValueError
        return pair["key"], pair["value"]
    if isinstance(pair, (str, bytes, bytearray)):
        raise ValueError
    key, value = pair
    return key, value


#: As readers show a record without a timestamp.
_NONE_US = NO_TIMESTAMP_MS * 1_000


def as_timestamp_ms(timestamp: object) -> int:
    """Epoch milliseconds of a whole number, a time (see `moment_us`) or ISO text; -1 says that
    there is none.

    Not what people type (see `typed_time`): a record keeps what its producer said, so it must not
    depend on the day of the reading or on a choice between two readings, and one before 1970 is
    refused for what it is, or says that there is none.

    Raises:
        InvalidArgumentError: not a time, a naive one, one below -1, or one that only rounding
            makes -1.
    """
    time_ms = whole(timestamp)
    if time_ms is None:
        time_us = moment_us(_read(timestamp) if isinstance(timestamp, str) else timestamp)
        if time_us is None:
            raise InvalidArgumentError(
                f"{timestamp!r} is not a time: give epoch milliseconds, an aware datetime, or ISO "
                "text"
            )
        if _NONE_US - 1_000 < time_us < _NONE_US:
            refuse_rounded_to_none(str(timestamp))
        time_ms = -(-time_us // 1_000)
    if not NO_TIMESTAMP_MS <= time_ms <= MAX_TIMESTAMP_MS:
        raise InvalidArgumentError(
            f"timestamp {time_ms} cannot be stored: give milliseconds since 1970-01-01 UTC, up to "
            f"{MAX_TIMESTAMP_MS}, or -1 for none",
            value=time_ms,
        )
    return time_ms


def _read(text: str) -> datetime:
    try:
        return datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text.strip()))
    except ValueError:
        raise InvalidArgumentError(
            f"{text!r} is not an ISO-8601 time such as 2013-12-30T12:00:00Z"
        ) from None


def refuse_rounded_to_none(time: str) -> NoReturn:
    """Refuses a time between -2 and -1 ms, which rounded up would mean that there is none."""
    raise InvalidArgumentError(
        f"timestamp {time} lies before 1970-01-01 UTC and cannot be stored; for none, give -1 or "
        "leave it out"
    )
