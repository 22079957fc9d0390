"""Which ids a group can have, by Kafka's rule: any text that is not empty."""

from __future__ import annotations

from ..errors import InvalidGroupIdError
from .wire import MAX_STRING_BYTES


def check_group_id(group_id: object) -> str:
    """The id, if it is one.

    Raises:
        InvalidGroupIdError: empty, no text, or longer than a string of Kafka's protocol.
    """
    if isinstance(group_id, str) and group_id:
        try:
            size_bytes = len(group_id.encode())
        except UnicodeEncodeError:
            size_bytes = MAX_STRING_BYTES + 1
        if size_bytes <= MAX_STRING_BYTES:
            return group_id
    shown = repr(group_id)
    raise InvalidGroupIdError(
        f"{shown if len(shown) <= 100 else shown[:100] + '…'} is not the id of a group: give a "
        f"text of 1 to {MAX_STRING_BYTES:,} bytes",
        group_id=group_id if isinstance(group_id, str) else None,
    )
