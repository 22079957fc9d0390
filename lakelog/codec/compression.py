"""Which compression an entry gets, by Kafka's settings of the topic and the producer.

It is left out where it does not pay: of values that are encrypted, or pictures. Incompressible
bytes cost more to compress than to send, and their readers as much again. Whether a partition's are
is seen by what becomes of them: an entry that stayed about as large as it was has the next ones
written plain, and one of `TRIED_EACH` is compressed to see whether that still holds.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Sequence

from ..errors import InvalidConfigError
from ..values.config import COMPRESSION_STAND_INS, KIB, Compression
from .entry import Entry

#: Compression pays from this share saved; below, a reader's work outweighs the bytes.
LEAST_SAVED = 0.05

#: One in so many calls tries again.
TRIED_EACH = 16

_LEAST_BYTES = 4 * KIB  # a smaller entry says little: most of it may be what surrounds the records

_log = logging.getLogger(__name__)
_NAMES = {"none": Compression.NONE, **{kind.value: kind for kind in Compression}}
_said: set[str] = set()  # stand-ins that this process has announced


def resolve_compression(topic: str, producer: str) -> Compression:
    """How to compress entries, given the topic's and the producer's ``compression.type``.

    The topic decides, unless it says ``producer``. For gzip and snappy, which Arrow IPC lacks,
    zstd and lz4 stand in; each process says so once for each, as a warning and in the log.

    Args:
        topic: producer, uncompressed, gzip, snappy, lz4 or zstd.
        producer: none (or uncompressed), gzip, snappy, lz4 or zstd.

    Raises:
        InvalidConfigError: another name.
    """
    name = producer if topic == "producer" else topic
    stand_in = COMPRESSION_STAND_INS.get(name)
    if stand_in is not None:
        if name not in _said:
            _said.add(name)
            _log.warning("compression.type=%s is stored as %s", name, stand_in)
            warnings.warn(
                f"compression.type={name} is stored as {stand_in}: entries are Arrow IPC, "
                f"which has no {name}; set {stand_in} to be rid of this warning",
                stacklevel=2,
            )
        name = stand_in
    if name not in _NAMES:
        raise InvalidConfigError(
            f"compression.type={name!r} is not legal: it takes "
            f"{', '.join([*_NAMES, *COMPRESSION_STAND_INS])}",
            name="compression.type",
            value=name,
        )
    return _NAMES[name]


class AdaptiveCompression:
    """How to compress the next entries of one partition.

    Threads may share one: what they find out is at worst learnt one call later.

    Args:
        wanted: where it pays.
    """

    __slots__ = ("_plain_left", "wanted")

    def __init__(self, wanted: Compression) -> None:
        self.wanted = wanted
        self._plain_left = 0

    def next(self) -> Compression:
        """For the entries of the next call."""
        if self._plain_left == 0:
            return self.wanted
        self._plain_left -= 1
        return Compression.NONE

    def learn(self, used: Compression, entries: Sequence[Entry]) -> None:
        """Takes note of what became of a call's entries."""
        if used is Compression.NONE:
            return
        decoded_bytes = sum(entry.decoded_bytes for entry in entries)
        if decoded_bytes < _LEAST_BYTES:
            return
        stored_bytes = sum(entry.size_bytes for entry in entries)
        pays = stored_bytes <= (1 - LEAST_SAVED) * decoded_bytes
        self._plain_left = 0 if pays else TRIED_EACH - 1
