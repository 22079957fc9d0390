"""Which compression an entry gets, by Kafka's settings of the topic and the producer."""

from __future__ import annotations

import logging
import warnings

from ..errors import InvalidConfigError
from ..values.config import COMPRESSION_STAND_INS, Compression

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
