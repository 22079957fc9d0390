"""What is to be erased, as keys or as an expression of the search grammar."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ...cold.segment import SegmentFile
from ...errors import InvalidArgumentError
from ...read.where import Bounds, Where, is_all, parse, write
from ...read.where.expression import (
    All,
    Bytes,
    Compare,
    Contains,
    Either,
    Exists,
    Like,
    Member,
    Not,
    Number,
    OneOf,
    Rows,
    Text,
)
from ...values.record import RECORDS


@dataclass(frozen=True)
class RecordCondition:
    """A `cleanup.erasure_plan.Condition` over an expression. Picklable."""

    where: Where

    @classmethod
    def of(
        cls, keys: str | bytes | Iterable[str | bytes] | None = None, where: str | None = None
    ) -> RecordCondition:
        """From the arguments of `Lakelog.erase`.

        Raises:
            InvalidArgumentError: not just one of the two, no key, or an expression that cannot be
                read or asks for nothing.
        """
        if (keys is None) == (where is None):
            raise InvalidArgumentError(
                "say what is to be erased by keys or by a condition, one of the two: keys=… "
                "(--key), where=… (--where)"
            )
        if where is not None:
            parsed = parse(where)
            if is_all(parsed):
                raise InvalidArgumentError(
                    "the condition is empty, so every record would go: `lakelog delete-records "
                    "TOPIC --before -1` forgets them all, `lakelog topics purge` what is left of a "
                    "deleted topic"
                )
            return cls(parsed)
        assert keys is not None
        if not isinstance(keys, Iterable):
            raise InvalidArgumentError(f"{keys!r} is no key: give texts or bytes")
        given = [keys] if isinstance(keys, (str, bytes)) else list(keys)
        wrong = [key for key in given if not isinstance(key, (str, bytes))]
        if wrong or not given:
            said = f"{wrong[0]!r} is no key: give texts or bytes" if wrong else "no key was given"
            raise InvalidArgumentError(f"{said}. Records without a key: where='not key exists'")
        return cls(OneOf(Bytes("key"), tuple(dict.fromkeys(given))))

    @cached_property
    def _bounds(self) -> Bounds:
        return Bounds.of(self.where)

    @property
    def keys(self) -> frozenset[bytes] | None:
        """See `Condition.keys`."""
        return self._bounds.keys

    @cached_property
    def columns(self) -> Sequence[str]:
        """See `Condition.columns`."""
        return ["offset", "key"] if _asks_keys_alone(self.where) else RECORDS.names

    @property
    def asks_values(self) -> bool:
        """Whether it asks for more of a value than that there is one."""
        return _asks_values(self.where)

    def may_match(self, file: SegmentFile) -> bool:
        """See `Condition.may_match`."""
        bounds = self._bounds
        if bounds.partitions is not None and file.partition not in bounds.partitions:
            return False
        low, high = bounds.offsets
        if file.end_offset <= low or file.start_offset > high:
            return False
        return bounds.may_match(file.min_timestamp_ms, file.max_timestamp_ms)

    def holds(self, records: pa.RecordBatch, partition: int) -> np.ndarray:
        """See `Condition.holds`."""
        return self.where.holds(Rows(records, partition)).copy()

    def digest(self, salt: bytes) -> str:
        """SHA-256 of the salt and the expression, in hex: it shows no key."""
        return hashlib.sha256(salt + write(self.where).encode()).hexdigest()

    def __getstate__(self) -> dict[str, Any]:
        return {"where": self.where}


def _asks_values(where: Where) -> bool:
    match where:
        case All(parts) | Either(parts):
            return any(map(_asks_values, parts))
        case Not(part):
            return _asks_values(part)
        case Text():
            return True
        case Exists(field):
            return isinstance(field, Member)
        case Compare(field) | OneOf(field) | Contains(field) | Like(field):
            return isinstance(field, Member) or field in (Bytes("value"), Number("size"))
    return False


def _asks_keys_alone(where: Where) -> bool:
    match where:
        case All(parts) | Either(parts):
            return all(map(_asks_keys_alone, parts))
        case Not(part):
            return _asks_keys_alone(part)
        case OneOf(Bytes("key")) | Compare(Bytes("key")):
            return True
    return False
