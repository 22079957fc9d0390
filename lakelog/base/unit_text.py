"""Durations and sizes as people write them: ``7d``, ``1GiB``."""

from __future__ import annotations

import re
from fractions import Fraction

_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_BYTES = {"b": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_NUMBER = re.compile(r"\s*(\d{1,18}(?:\.\d{1,9})?)\s*([a-zA-Z]{1,3})\s*", re.ASCII)


def duration_ms(text: str) -> int | None:
    """The milliseconds of ``30s``, ``1.5h`` or ``7d``; None for what is no duration with a unit."""
    return _in_units(text, _MS)


def size_bytes(text: str) -> int | None:
    """The bytes of ``64KiB`` or ``1.5GiB``; None for what is no size with a unit."""
    return _in_units(text.lower(), _BYTES)


def plain_number(name: str, text: str) -> str:
    """The value of a setting as a number in the unit that its name says; others as they are."""
    found = None
    if name.endswith(".ms"):
        found = duration_ms(text)
    elif name.endswith((".bytes", ".buffer.size", ".byte.rate")):
        found = size_bytes(text)
    return text if found is None else str(found)


def units_of(name: str) -> str:
    """What else than a plain number a setting of that name takes, for an error."""
    if name.endswith(".ms"):
        return ", or with a unit, such as 30s, 12h or 7d"
    is_size = name.endswith((".bytes", ".byte.rate"))
    return ", or with a unit, such as 64KiB or 1GiB" if is_size else ""


def _in_units(text: str, units: dict[str, int]) -> int | None:
    found = _NUMBER.fullmatch(text)
    if found is None or found[2] not in units:
        return None
    value = Fraction(found[1]) * units[found[2]]
    return int(value) if value.denominator == 1 else None
