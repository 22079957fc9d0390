"""The values of ``:producers``, as append.lua writes them and recovery.lua takes them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..values.producer_calls import ProducerCall

_CALL = re.compile(rb"\|(\d+) (\d+) (\d+) (-?\d+)(?: (\w+))?")


def parse_calls(producer: bytes, value: bytes) -> list[ProducerCall]:
    """The calls that a field of ``:producers`` tells, the newest first; none if it is foreign."""
    epoch = value.partition(b" ")[0]
    if not (producer.isdigit() and epoch.isdigit()):
        return []
    calls = []
    for *numbers, checksum in _CALL.findall(value):
        first, last, base, append_time_ms = map(int, numbers)
        said = checksum.decode("latin-1")
        calls.append(
            ProducerCall(int(producer), int(epoch), first, last, base, append_time_ms, said)
        )
    return calls


def recover_arguments(calls: Iterable[ProducerCall]) -> list[object]:
    """Id and value of each call; the script adds when it was recovered."""
    return [
        argument
        for one in calls
        for argument in (
            one.producer_id,
            f"{one.epoch}|{one.first_sequence} {one.last_sequence} {one.base_offset} "
            f"{one.append_time_ms} {one.checksum}",
        )
    ]
