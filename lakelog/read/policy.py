"""What a consumer does without a position, or with one the log does not hold."""

from __future__ import annotations

from msgspec import Struct

from ..errors import InvalidArgumentError, InvalidConfigError
from ..values.offsets import Ago, Earliest, Latest, Position
from ..values.typed_time import parse_duration

_BY_DURATION = "by_duration:"


class OffsetReset(Struct, frozen=True):
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


def _illegal(text: object, why: str = "") -> InvalidConfigError:
    return InvalidConfigError(
        f"auto_offset_reset={text!r} is not legal: it takes 'earliest', 'latest', 'none' or "
        f"'by_duration:<ISO-8601 duration>' such as 'by_duration:PT10M'{why}",
        name="auto_offset_reset",
        value=text,
    )
