"""How far a server's clock is from this machine's, as far as one exchange can tell.

A record's timestamp is its producer's time, and all that goes by time beside it is Redis's: which
timestamps are refused (``message.timestamp.after.max.ms``, of Redis's now, as Kafka goes by its
broker's), when a segment rolls, how long a record waited to be archived. Kafka only refuses; who is
off by less than an hour is told nothing, and finds out when a search by time gives other records.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

logger = logging.getLogger(__name__)

#: From here on it is told. Machines that keep their clocks by NTP differ by milliseconds.
TOLERATED_MS = 1_000


def time_ms(reply: Sequence[Any]) -> int:
    """The reply to TIME in milliseconds."""
    seconds, microseconds = reply
    return int(seconds) * 1000 + int(microseconds) // 1000


def skew_ms(sent_ms: int, server_ms: int, received_ms: int) -> int:
    """By how much a server's clock is surely ahead of ours; negative: behind; 0: it may be right.

    Args:
        sent_ms: our time before it was asked.
        server_ms: what it answered.
        received_ms: our time after that. Whatever the exchange took, its time lies between ours.
    """
    if server_ms > received_ms:
        return server_ms - received_ms
    return min(0, server_ms - sent_ms)


def is_off(skew: int) -> bool:
    """Whether a skew in milliseconds is worth a word."""
    return abs(skew) >= TOLERATED_MS


def skew_text(skew: int) -> str:
    """The skew as the end of a sentence on the server's clock."""
    return f"{abs(skew) / 1000:,.1f} s {'ahead of' if skew > 0 else 'behind'} this machine's"


class SkewWarning:
    """Warns once of each server whose clock is off."""

    def __init__(self) -> None:
        self._warned: set[str] = set()

    def look(self, server: str, skew: int) -> None:
        """Takes note of a skew that was measured.

        Args:
            server: its name, without a password.
        """
        if not is_off(skew) or server in self._warned:
            return
        self._warned.add(server)
        logger.warning(
            "the clock of Redis at %s is %s: records get their timestamps here, and Redis refuses "
            "those beyond message.timestamp.after.max.ms, rolls segments and measures lags by its "
            "own. Have both machines keep their clocks by NTP",
            server,
            skew_text(skew),
        )
