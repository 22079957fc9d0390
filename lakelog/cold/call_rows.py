"""Producers' calls as JSON holds them: a list each, in the order of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ..values.config import INT64_MAX
from ..values.producer_calls import ProducerCall

_NAMES = ProducerCall.__struct_fields__


def rows_of_calls(calls: Iterable[ProducerCall]) -> list[list[Any]]:
    return [[getattr(call, name) for name in _NAMES] for call in calls]


def calls_of_rows(rows: Iterable[Sequence[Any]]) -> tuple[ProducerCall, ...]:
    """Reads what `rows_of_calls` wrote.

    Raises:
        ValueError, TypeError: it is something else.
    """
    return tuple(_call(row) for row in rows)


def _call(row: Sequence[Any]) -> ProducerCall:
    *numbers, checksum = row
    if len(row) != len(_NAMES) or not all(map(_is_whole, numbers)):
        raise ValueError(f"{row!r:.120} is no call of a producer")
    if not isinstance(checksum, str) or not re.fullmatch(r"\w{1,16}", checksum, re.ASCII):
        raise ValueError(f"{checksum!r:.80} is no checksum")
    return ProducerCall(*row)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= INT64_MAX
