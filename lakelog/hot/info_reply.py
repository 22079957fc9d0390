"""What Redis's INFO says, by name."""

from __future__ import annotations


def info_fields(reply: bytes | str) -> dict[str, str]:
    """The fields of the sections that were asked for."""
    text = reply.decode("utf-8", "replace") if isinstance(reply, bytes) else reply
    pairs = (line.partition(":") for line in text.splitlines() if not line.startswith("#"))
    return {name: value for name, colon, value in pairs if colon}
