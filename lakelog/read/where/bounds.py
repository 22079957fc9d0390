"""What an expression leaves of a log: the times, offsets, partitions and keys a match can have."""

from __future__ import annotations

import math
from typing import TypeVar

from msgspec import Struct

from .expression import (
    EQ,
    GE,
    GT,
    LE,
    LT,
    All,
    Bytes,
    Compare,
    Either,
    Number,
    OneOf,
    Time,
    Where,
    as_bytes,
)

T = TypeVar("T")

_Keys = frozenset[bytes] | None
_Numbers = frozenset[int] | None


class Bounds(Struct, frozen=True):
    """Where matches may be. None and the infinities bound nothing.

    Args:
        times_ms: from, to; both within. Only records with a timestamp, if either is finite.
        offsets: from, to; both within.
    """

    times_ms: tuple[float, float] = (-math.inf, math.inf)
    offsets: tuple[float, float] = (-math.inf, math.inf)
    partitions: _Numbers = None
    keys: _Keys = None

    @classmethod
    def of(cls, where: Where) -> Bounds:
        """Those that the expression is sure of."""
        match where:
            case All(parts):
                bounds = cls()
                for part in parts:
                    bounds = bounds & cls.of(part)
                return bounds
            case Either(parts):
                bounds = cls.of(parts[0])
                for part in parts[1:]:
                    bounds = bounds | cls.of(part)
                return bounds
            case Compare(Time(), sign, int(literal)):
                return cls(times_ms=_range(sign, literal))
            case Compare(Number("offset"), sign, int() | float() as literal):
                return cls(offsets=_range(sign, literal))
            case Compare(Number("partition"), "=", int(literal)):
                return cls(partitions=frozenset({literal}))
            case OneOf(Number("partition"), literals):
                return cls(partitions=frozenset(int(n) for n in literals if isinstance(n, int)))
            case Compare(Bytes("key"), "=", str() | bytes() as literal):
                return cls(keys=frozenset({as_bytes(literal)}))
            case OneOf(Bytes("key"), literals):
                keys = [as_bytes(one) for one in literals if isinstance(one, (str, bytes))]
                return cls(keys=frozenset(keys)) if len(keys) == len(literals) else cls()
        return cls()

    def __and__(self, other: Bounds) -> Bounds:
        return Bounds(
            _both(self.times_ms, other.times_ms),
            _both(self.offsets, other.offsets),
            _common(self.partitions, other.partitions),
            _common(self.keys, other.keys),
        )

    def __or__(self, other: Bounds) -> Bounds:
        return Bounds(
            _around(self.times_ms, other.times_ms),
            _around(self.offsets, other.offsets),
            None if None in (self.partitions, other.partitions) else _joined(self, other),
            None if self.keys is None or other.keys is None else self.keys | other.keys,
        )

    def may_match(self, min_ms: int, max_ms: int) -> bool:
        """Whether records with timestamps from one to the other may match.

        Args:
            max_ms: -1 if none of them has a timestamp.
        """
        low, high = self.times_ms
        if (low, high) == (-math.inf, math.inf):
            return True
        return max_ms >= low and min_ms <= high


def _joined(one: Bounds, other: Bounds) -> _Numbers:
    assert one.partitions is not None
    assert other.partitions is not None
    return one.partitions | other.partitions


def _range(sign: str, literal: float) -> tuple[float, float]:
    if sign == EQ:
        return (literal, literal)
    if sign in (LT, LE):
        return (-math.inf, literal)
    if sign in (GT, GE):
        return (literal, math.inf)
    return (-math.inf, math.inf)


def _both(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (max(one[0], other[0]), min(one[1], other[1]))


def _around(one: tuple[float, float], other: tuple[float, float]) -> tuple[float, float]:
    return (min(one[0], other[0]), max(one[1], other[1]))


def _common(one: frozenset[T] | None, other: frozenset[T] | None) -> frozenset[T] | None:
    if one is None or other is None:
        return other if one is None else one
    return one & other
