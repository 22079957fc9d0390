"""What a consumer does without a position, or with one the log does not hold."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

from ..errors import InvalidArgumentError, InvalidConfigError
from ..offsets import Ago, Earliest, Latest, Position

_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?=.)(?:(?P<days>[-+]?\d+)D)?"
    r"(?:T(?=.)(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?"
    r"(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class OffsetReset:
    """``auto_offset_reset``: ``earliest``, ``latest``, ``none`` or ``by_duration:PT1H``.

    Source: Kafka ``AutoOffsetResetStrategy``, KIP-1106.
    """

    text: str
    position: Position | None  # where to go; None: nowhere, the error is raised

    @classmethod
    def parse(cls, text: object) -> OffsetReset:
        """The policy of that name.

        Raises:
            InvalidConfigError: not one of the four, not in lower case, or a duration that
                is negative or not ISO-8601.
        """
        match text:
            case "earliest":
                return cls("earliest", Earliest())
            case "latest":
                return cls("latest", Latest())
            case "none":
                return cls("none", None)
            case str() if text.startswith(_BY_DURATION):
                try:
                    return cls(text, Ago(parse_duration(text[len(_BY_DURATION) :])))
                except InvalidArgumentError as error:
                    raise _illegal(text, f": {error}") from error
        raise _illegal(text)


def parse_duration(text: str) -> timedelta:
    """An ISO-8601 duration of days and smaller units: ``PT10M``, ``P1DT2H3.5S``.

    Raises:
        InvalidArgumentError: not of that form (weeks, months and years have no fixed place in it),
            or too long.
    """
    found = _DURATION.fullmatch(text)
    if not found:
        raise InvalidArgumentError(
            f"{text!r} is not an ISO-8601 duration of days, hours, minutes and seconds, such as "
            "PT10M or P1DT12H"
        )
    try:
        duration = timedelta(
            days=int(found["days"] or 0),
            hours=int(found["hours"] or 0),
            minutes=int(found["minutes"] or 0),
            seconds=float((found["seconds"] or "0").replace(",", ".")),
        )
    except OverflowError:
        raise InvalidArgumentError(f"the duration {text!r} is too long") from None
    return -duration if found["sign"] == "-" else duration


def _illegal(text: object, why: str = "") -> InvalidConfigError:
    return InvalidConfigError(
        f"auto_offset_reset={text!r} is not legal: it takes 'earliest', 'latest', 'none' or "
        f"'by_duration:<ISO-8601 duration>' such as 'by_duration:PT10M'{why}",
        name="auto_offset_reset",
        value=text,
    )
