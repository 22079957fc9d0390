"""A record, as it is or edited, to be produced again."""

from __future__ import annotations

from msgspec import Struct

from ...values.record import Record


class Resend(Struct, frozen=True):
    """What is to be sent, and where to: a new record, with the time of its sending."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


def editable(data: bytes | None) -> str | None:
    """The text that can be edited; None where there is none, or bytes that are no text."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def edited(record: Record, topic: str, key: str, value: str) -> Resend:
    """The record with the texts in the place of its own, where those could be edited.

    What was not touched stays byte for byte; null stays null.
    """
    return Resend(topic, _replaced(record.key, key), _replaced(record.value, value), record.headers)


def _replaced(data: bytes | None, text: str) -> bytes | None:
    before = editable(data)
    return data if before is None or before == text else text.encode()
