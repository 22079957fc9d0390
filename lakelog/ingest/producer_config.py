"""A producer's settings, by Kafka's names in snake case."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from ..base.back_off import BackOff
from ..codec import resolve_compression
from ..errors import InvalidArgumentError, InvalidConfigError
from ..hot import Acks
from ..values.arguments import settle_numbers
from ..values.config import KIB, MIB, MINUTE_MS, check_names


class ProducerConfig(Struct, frozen=True):
    """Checked when made; `of` also says which names are legal.

    Raises:
        InvalidConfigError: a value out of bounds.
    """

    acks: str = "memory"
    # When an append counts as done: "memory", "replicas=N" or "fsync" (Kafka: all). See `hot.Acks`.

    batch_size: int = 240 * KIB
    # Bytes of records from which a batch is sent without waiting for linger_ms; ≥ 1. Kafka: 16 KiB.
    # As much as fits into one entry of the size that the codec aims at. Measured with 100-byte
    # values: a third less CPU here than with 16 KiB, and a third of Redis's; with 128 KiB, a tenth
    # less here.

    linger_ms: int = 5
    # How long a batch waits for more records; ≥ 0. Kafka: 5. Asking for a result ends the wait.

    buffer_memory: int = 32 * MIB
    # Bytes of records that wait to be sent, above which `send` blocks; ≥ 1. Kafka: 32 MiB.

    max_block_ms: int = MINUTE_MS
    # How long `send` waits for room in the buffer, or for Redis to say what a topic is; ≥ 0.
    # Kafka: 60,000.

    delivery_timeout_ms: int = 2 * MINUTE_MS
    # From `send` until a record without an answer fails; ≥ linger_ms. Kafka: 120,000. An answer
    # that is being waited for when the time is over (at most the socket's timeout) still counts.

    retry_backoff_ms: int = 100
    # The pause before a retry, doubled by each further one; ≥ 1. Kafka: 100. A random factor makes
    # it between half of that and all of it.

    retry_backoff_max_ms: int = 1000
    # The longest such pause; ≥ retry_backoff_ms. Kafka: 1,000.

    max_in_flight: int = 5
    # Calls of one partition under way at once, 1..5: Redis remembers the last five. Kafka: 5.

    compression_type: str = "lz4"
    # none, lz4, zstd, gzip (as zstd) or snappy (as lz4), where the topic says "producer".
    # Left out where it does not pay, see `codec.adaptive_compression`.
    # Kafka: none. Measured with JSON of 1 KiB: lz4 takes less CPU than none (2.0 µs against 3.2 a
    # record here, 0.5 against 3.3 in Redis), since there is less to send; random bytes cost a fifth
    # more here.

    metadata_max_age_ms: int = 5 * MINUTE_MS
    # How long a topic's partitions and settings are believed; ≥ 1. Kafka: 300,000.

    trace_batch_records: bool = False
    # Where there are spans (see `lakelog.tracing`): each record of a `send_batch` gets the context
    # of the batch's span as a header, some 70 bytes, unless it has one. Those of `send` get theirs.

    def __post_init__(self) -> None:
        settle_numbers(self)
        if not isinstance(self.trace_batch_records, bool):
            _refuse("trace_batch_records", self.trace_batch_records, "it takes True or False")
        for name, (low, high) in _BOUNDS.items():
            value = getattr(self, name)
            if type(value) is not int or not low <= value <= high:
                bound = f"≥ {low}" if high == _NO_LIMIT else f"in {low}..{high}"
                _refuse(name, value, f"it takes a whole number {bound}")
        for name, least in _AT_LEAST.items():
            if getattr(self, name) < getattr(self, least):
                _refuse(
                    name, getattr(self, name), f"{least}={getattr(self, least)} must not exceed it"
                )
        _check("acks", self.acks, Acks.parse)
        _check("compression_type", self.compression_type, _compression)

    @property
    def back_off(self) -> BackOff:
        """When to retry a call that may yet succeed; the caller knows the deadline."""
        return BackOff(self.retry_backoff_ms / 1000, self.retry_backoff_max_ms / 1000)

    @classmethod
    def of(cls, **settings: Any) -> ProducerConfig:
        """From keyword arguments.

        Raises:
            InvalidConfigError: there is no such setting, or a value is out of bounds.
        """
        check_names(cls, "producer", settings)
        return cls(**settings)


_NO_LIMIT = 2**63 - 1
_BOUNDS = {
    "batch_size": (1, 2**30),  # a call is one Redis command, whose query buffer is 1 GiB
    "linger_ms": (0, _NO_LIMIT),
    "buffer_memory": (1, _NO_LIMIT),
    "max_block_ms": (0, _NO_LIMIT),
    "delivery_timeout_ms": (0, _NO_LIMIT),
    "retry_backoff_ms": (1, _NO_LIMIT),
    "retry_backoff_max_ms": (1, _NO_LIMIT),
    "max_in_flight": (1, 5),
    "metadata_max_age_ms": (1, _NO_LIMIT),
}
_AT_LEAST = {"delivery_timeout_ms": "linger_ms", "retry_backoff_max_ms": "retry_backoff_ms"}


def _compression(name: str) -> object:
    if name == "producer":
        raise ValueError("that is a topic's setting")
    return resolve_compression("producer", name)


def _check(name: str, value: str, parse: Callable[[str], object]) -> None:
    try:
        parse(value)
    except InvalidArgumentError as error:  # names the setting itself
        raise InvalidConfigError(error.message, name=name, value=value) from error
    except ValueError as error:
        _refuse(name, value, str(error), error)


def _refuse(name: str, value: object, why: str, cause: Exception | None = None) -> None:
    raise InvalidConfigError(
        f"{name}={value!r} is not legal: {why}", name=name, value=value
    ) from cause
