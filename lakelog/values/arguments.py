"""What callers hand over as a number, a time, a duration or partitions: Python's types and others'.

Who works with frames has `numpy.int64`, `numpy.datetime64`, `pandas.Timestamp` and Arrow's scalars
at hand. Each public call takes its arguments by one of these functions, and goes on with Python's.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NoReturn, TypeGuard

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import force_setattr

from ..errors import InvalidArgumentError
from .topic_partition import TopicPartition
from .typed_time import rounded_up_ms

#: Partitions, or one of them.
Partitions = Iterable[TopicPartition | tuple[str, int]] | TopicPartition

_EPOCH_DAY = date(1970, 1, 1)
_DAY_US = 86_400_000_000
#: NumPy's units of one length: so many microseconds, and so many of them in one.
_US = {
    "W": (7 * _DAY_US, 1),
    "D": (_DAY_US, 1),
    "h": (3_600_000_000, 1),
    "m": (60_000_000, 1),
    "s": (1_000_000, 1),
    "ms": (1_000, 1),
    "us": (1, 1),
    "ns": (1, 10**3),
    "ps": (1, 10**6),
    "fs": (1, 10**9),
    "as": (1, 10**12),
}


def whole(value: object) -> int | None:
    """The whole number that a value is; None: it is none, as a float, a text and True are not."""
    if type(value) is int:
        return value
    if isinstance(value, pa.Scalar):  # which older versions of Arrow do not let `index` read
        return value.as_py() if pa.types.is_integer(value.type) else None
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None


def plain(value: Any) -> Any:
    """A whole number as an int; anything else as it is, for whoever checks it."""
    number = whole(value)
    return value if number is None else number


def settle_numbers(settings: Struct) -> None:
    """Makes ints of the whole numbers that a new struct was given."""
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if type(value) is not int and (number := whole(value)) is not None:
            force_setattr(settings, name, number)


def whole_ms(value: object) -> int | None:
    """Epoch milliseconds: that whole number, or a moment's; None: it is neither."""
    number = whole(value)
    return moment_ms(value) if number is None else number


def moment_ms(value: object) -> int | None:
    """Epoch milliseconds of a moment; None: the value is no time.

    A datetime, `pandas.Timestamp` or Arrow timestamp must have a zone. A `date` (its begin) and a
    `numpy.datetime64` cannot have one, and are UTC. What is finer is rounded up, so that a search
    never finds an earlier record.

    Raises:
        InvalidArgumentError: it has no zone and could have one, or is a missing value (NaT).
    """
    us = moment_us(value)
    return None if us is None else -(-us // 1_000)


def moment_us(value: object) -> int | None:
    """As `moment_ms`, in microseconds."""
    if isinstance(value, pa.Scalar):
        value = _of_arrow(value)
    if isinstance(value, datetime):
        if value != value:
            _refuse_missing(value)
        if hasattr(value, "to_datetime64") and value.tzinfo is not None:
            return _numpy_us(value.to_datetime64())  # which has nanoseconds, and other years
        finer = value.microsecond % 1_000
        return rounded_up_ms(value) * 1_000 - (1_000 - finer if finer else 0)
    if isinstance(value, date):
        return (value - _EPOCH_DAY).days * _DAY_US
    return _numpy_us(value) if isinstance(value, np.datetime64) else None


def duration(value: object) -> timedelta | None:
    """A timedelta, or what NumPy and pandas have for it; None: the value is none."""
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, np.timedelta64):
        return None
    us = _numpy_us(value)
    try:
        return None if us is None else timedelta(microseconds=us)
    except OverflowError:
        return timedelta.max if us is not None and us > 0 else timedelta.min


def checked_duration(name: str, value: object) -> timedelta:
    """How long something may take.

    Raises:
        InvalidArgumentError: it is no duration, or a negative one.
    """
    found = duration(value)
    if found is None or found < timedelta(0):
        raise InvalidArgumentError(
            f"{name}={value!r} is not a duration ≥ 0: give a datetime.timedelta, such as "
            "timedelta(seconds=30)",
            value=value,
        )
    return found


def optional_duration(name: str, value: object) -> timedelta | None:
    """As `checked_duration`; None: no limit."""
    return None if value is None else checked_duration(name, value)


def optional_seconds(name: str, value: object) -> float | None:
    """How long to wait, in seconds, also of a duration; None: no limit.

    Raises:
        InvalidArgumentError: it is no number ≥ 0 and no duration.
    """
    if value is None:
        return None
    found = duration(value)
    if found is not None:
        return found.total_seconds()
    number = plain(value)
    if isinstance(number, int | float | np.floating):
        return float(number)
    raise InvalidArgumentError(
        f"{name}={value!r} is no time to wait: give seconds, or a datetime.timedelta", value=value
    )


def check_timeout(name: str, value: object) -> int:
    """A time to wait, in milliseconds.

    Raises:
        InvalidArgumentError: not a whole number ≥ 0.
    """
    number = whole(value)
    if number is None or number < 0:
        raise InvalidArgumentError(f"{name}={value!r} is not a number of milliseconds ≥ 0")
    return number


def check_callback(callback: object) -> None:
    """Refuse what would fail when it is called, in the midst of another call."""
    if callback is not None and not callable(callback):
        raise InvalidArgumentError(
            f"callback={callback!r:.200} cannot be called: give a function of the offsets and the "
            "error"
        )


def checked_partition(value: object) -> TopicPartition:
    """A partition of a topic, also as a pair of its name and number.

    Raises:
        InvalidArgumentError: it is none.
    """
    if not _is_pair(value):
        raise InvalidArgumentError(
            f"{value!r:.200} is not a partition of a topic: give TopicPartition('orders', 0), or "
            "the pair ('orders', 0)",
            value=value,
        )
    topic, partition = value
    number = whole(partition)
    if number is None:
        raise InvalidArgumentError(
            f"partition {partition!r:.200} of topic {topic!r} is not a whole number, such as 0",
            value=partition,
        )
    return TopicPartition(topic, number)


def checked_partitions(given: object) -> list[TopicPartition]:
    """Several partitions, or one.

    Raises:
        InvalidArgumentError: it is neither.
    """
    if _is_pair(given):
        return [checked_partition(given)]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidArgumentError(
            f"{given!r:.200} is no list of partitions: give [TopicPartition('orders', 0), …]",
            value=given,
        )
    return [checked_partition(one) for one in given]


def numbers(name: str, given: object) -> list[Any]:
    """Several numbers, such as those of partitions, or one; each is for its user to check.

    Raises:
        InvalidArgumentError: it is neither.
    """
    one = whole(given)
    if one is not None:
        return [one]
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise InvalidArgumentError(
            f"{name}={given!r:.200} is no list of whole numbers, such as [0, 1]", value=given
        )
    return [plain(number) for number in given]


def some_of(what: str, given: object, among: Sequence[str]) -> tuple[str, ...]:
    """Some of several words, or one of them, in the order of all.

    Args:
        what: what one of them is: ``a tier``.

    Raises:
        InvalidArgumentError: it is neither.
    """
    words = [given] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    for word in words:
        if not isinstance(word, str) or word not in among:
            raise InvalidArgumentError(
                f"{word!r:.200} is not {what}: give some of {', '.join(among)}, as [{among[0]!r}]",
                value=given,
            )
    return tuple(word for word in among if word in words)


def optional_event(name: str, value: object) -> threading.Event | None:
    """What another thread sets to end a call; None: nobody does.

    Raises:
        InvalidArgumentError: it is something else.
    """
    if value is None or callable(getattr(value, "is_set", None)):
        return value  # type: ignore[return-value]
    raise InvalidArgumentError(
        f"{name}={value!r:.200} is nothing that can be set: give a threading.Event",
        name=name,
        value=value,
    )


def _is_pair(value: object) -> TypeGuard[tuple[str, object]]:
    return isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)


def _of_arrow(value: pa.Scalar) -> object:
    """A scalar as Python's or NumPy's."""
    if not isinstance(value, pa.TimestampScalar) or not value.is_valid:
        return value.as_py()
    at = np.datetime64(value.value, value.type.unit)  # `as_py` ends with the year 9999
    if value.type.tz is None:
        raise InvalidArgumentError(
            f"{at} of Arrow has no time zone, so it names no moment; if it is UTC, say "
            "pa.timestamp('us', tz='UTC')",
            value=value,
        )
    return at


def _numpy_us(value: np.datetime64 | np.timedelta64) -> int | None:
    """Microseconds, rounded up, of any year; None: months and years have no fixed length."""
    if np.isnat(value):
        _refuse_missing(value)
    if isinstance(value, np.datetime64) and np.datetime_data(value.dtype)[0] in "YM":
        value = value.astype("datetime64[D]")
    unit, step = np.datetime_data(value.dtype)
    if unit not in _US:
        return None
    us, per_us = _US[unit]
    return -(-int(value.astype(np.int64)) * step * us // per_us)


def _refuse_missing(value: object) -> NoReturn:
    raise InvalidArgumentError(
        f"{value} is a missing value, so it names no time: leave it out, or give a time",
        value=value,
    )
