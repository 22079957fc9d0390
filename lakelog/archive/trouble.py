"""What an archiver fails at: since when, why, and when it is tried again."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

#: The states of a topic in trouble. One that is not shown is archived, but the catalog lacks its
#: name or its views. What groups have committed is not recorded: that is no topic's trouble, but
#: has the name of the table that it should be in.
NOT_ARCHIVED = "not archived"
NOT_SHOWN = "not shown in the catalog"
NOT_RECORDED = "groups not recorded"

_AGAIN = {
    NOT_SHOWN: "next try when more is archived",
    NOT_RECORDED: "next try by whoever archives next",
}


class Trouble(Struct, frozen=True):
    """One topic's trouble, as an archiver sees it. Times are the archiver's clock, epoch ms."""

    topic: str
    since_ms: int  # the first failure since it last went well
    why: str  # of the last failure
    tries: int  # failures in a row; 0: the first call has not returned
    next_try_ms: int | None  # None: a call is under way, or the next archive run tries
    state: str = NOT_ARCHIVED

    def __str__(self) -> str:
        tries = f"{self.tries} {'try' if self.tries == 1 else 'tries'}"
        if self.next_try_ms is not None:
            again = f"next try {_time(self.next_try_ms)}"
        else:
            again = _AGAIN.get(self.state, "being tried")
        return f"{self.state} since {_time(self.since_ms)} ({tries}, {again}): {self.why}"

    def to_json(self) -> dict[str, Any]:
        """As a beat carries it."""
        return asdict(self)

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Trouble:
        """Reads what `to_json` gave, even in an older or newer release.

        Raises:
            ValueError: it is something else.
        """
        next_try_ms = value.get("next_try_ms")
        try:
            found = cls(
                str(value.get("topic", "")),
                int(value.get("since_ms", 0)),
                str(value.get("why", "")),
                int(value.get("tries", 0)),
                None if next_try_ms is None else int(next_try_ms),
                str(value.get("state", NOT_ARCHIVED)),
            )
            str(found)  # its times are some
        except (TypeError, OverflowError, OSError) as error:
            raise ValueError(f"{value!r} is no trouble") from error
        return found


def reported(beats: Iterable[Mapping[str, Any]]) -> Iterator[Trouble]:
    """The troubles that archivers report; anything else in their place is ignored."""
    for beat in beats:
        said = beat.get("troubles", ())
        for one in said if isinstance(said, list) else ():
            if isinstance(one, dict):
                with suppress(ValueError):
                    yield Trouble.from_json(one)


def why(error: BaseException) -> str:
    """An error as a reason: lakelog's by its message, any other with its type."""
    said = " ".join(str(error).split())
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _time(epoch_ms: int) -> str:
    time = datetime.fromtimestamp(epoch_ms / 1000, timezone.utc)
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
