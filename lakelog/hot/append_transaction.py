"""An append whose entries go past the script: one transaction, as atomic as the script alone.

A script takes copies of all that it is given, which for large entries is more than half of Redis's
work for them. So its checks and its bookkeeping run without them, and they are plain commands:

| command                             | what it does                                             |
|-------------------------------------|----------------------------------------------------------|
| ``XSETID stream``, the largest id   | the stream takes no entry                                |
| ``append.lua``, step ``check``      | refuses the call; or the stream takes entries again      |
| ``XADD NOMKSTREAM`` of each entry   | adds it, or fails                                        |
| ``append.lua``, step ``count``      | the bookkeeping; of a call that was refused, the stream  |
|                                     | takes entries again                                      |

An entry carries its id, so the caller has to know where the log ends. Whatever keeps the check from
saying yes (a refusal, another log end, a script that the server does not know, a missing right)
leaves a stream that takes nothing. So what the script does alone is what the transaction does, or
nothing; and a caller to which the check says ``ELSEWHERE`` goes by the script.

Only if MULTI itself is refused, as it is once a user's right to it is taken away, the others are
executed one by one. The caller then sends the call by the script, which finds it counted, or finds
its entries and counts them. Who appends in between may be refused as if the entries were somebody
else's; and where several do so at once, an entry can be left that has to be moved aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from redis.exceptions import NoPermissionError, ResponseError

from ..codec import EntryId
from .append import AppendCall, append_arguments

if TYPE_CHECKING:
    from .connection import Command, Wire

_LARGEST_ID = f"{2**64 - 1}-{2**64 - 1}"


class AppendTransaction(Struct, frozen=True):
    """One call, to be run as a transaction.

    Args:
        keys: of the partition, the stream first.
        call: one that knows where it will begin.
        now_ms, replicas: see `append_arguments`.
    """

    keys: Sequence[str]
    call: AppendCall
    now_ms: int | None
    replicas: int

    def commands(self, wire: Wire) -> list[Command]:
        """What is sent, in one piece."""
        stream, base_offset = self.keys[0], self.call.base_offset
        assert base_offset is not None
        check, count = (
            wire.script(
                "append",
                self.keys,
                append_arguments(self.call, self.now_ms, self.replicas, step, base_offset),
            )
            for step in ("check", "count")
        )
        adds: list[Command] = []
        end = base_offset
        for entry in self.call.batch.entries:
            end += entry.record_count
            entry_id = EntryId(end - 1, entry.record_count)
            adds.append(("XADD", stream, "NOMKSTREAM", str(entry_id), *entry.fields))
        return [("MULTI",), ("XSETID", stream, _LARGEST_ID), check, *adds, count, ("EXEC",)]

    def answer(self, replies: Sequence[Any]) -> Any:
        """What the script alone would have answered, or an error.

        Args:
            replies: to `commands`.
        """
        executed = replies[-1]
        # If not all were executed, one was refused, so that none was. Where MULTI was, the others
        # were executed one by one, and the script knows what it finds of them.
        if not isinstance(executed, list) or len(executed) != len(replies) - 2:
            return [b"ELSEWHERE", int(any(map(_is_denied, replies)))]
        check, count = executed[1], executed[-1]
        return count if isinstance(check, list) and check[0] == b"READY" else check


def _is_denied(reply: object) -> bool:
    return isinstance(reply, NoPermissionError) or (
        isinstance(reply, ResponseError) and str(reply).startswith("unknown command")
    )
