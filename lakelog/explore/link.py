"""Where somebody is on the explorer's page, as the path and query of a URL.

| path               | shows                                                        |
|--------------------|--------------------------------------------------------------|
| ``/``              | all topics                                                   |
| ``/~groups``       | all groups; ``/~groups/nightly``: one                        |
| ``/orders``        | records of all partitions of a topic                         |
| ``/orders/1``      | of one partition; ``/orders/1/600``: a record of it, opened  |
| ``/orders/~about`` | its partitions, settings, columns, schemas, groups           |

Records begin ``?at=`` a position and match ``?where=`` an expression. No topic's name has a tilde.
"""

from __future__ import annotations

from datetime import timezone
from urllib.parse import parse_qs, quote, unquote, urlencode, urlsplit

from msgspec import Struct

from ..values.offsets import Position, position

TOPICS, GROUPS, RECORDS, ABOUT = "topics", "groups", "records", "about"

_GROUPS, _ABOUT = "~groups", "~about"

#: No offset or partition has more digits.
_DIGITS = 19


class Link(Struct, frozen=True):
    """A place on the page.

    Args:
        view: one of `TOPICS`, `GROUPS`, `RECORDS`, `ABOUT`.
        name: the topic; of `GROUPS` the group; empty: all.
        offset: of a record that is open; only with a partition.
        at: where the records begin, as `values.offsets.position` reads it; empty: the earliest.
        where: which records; empty: all.
    """

    view: str = TOPICS
    name: str = ""
    partition: int | None = None
    offset: int | None = None
    at: str = ""
    where: str = ""

    @property
    def path(self) -> str:
        """As a URL has it after the host."""
        parts = {TOPICS: [], GROUPS: [_GROUPS, self.name], ABOUT: [self.name, _ABOUT]}.get(
            self.view, [self.name, _text(self.partition), _text(self.offset)]
        )
        query = {"at": self.at, "where": self.where} if self.view == RECORDS else {}
        asked = urlencode({name: text for name, text in query.items() if text}, quote_via=quote)
        path = "/" + "/".join(quote(part, safe="~") for part in parts if part)
        return f"{path}?{asked}" if asked else path

    @property
    def position(self) -> Position:
        """Where the records begin; a time without a zone is UTC.

        Raises:
            InvalidArgumentError: `at` is no position.
        """
        return position(
            self.offset if self.offset is not None else self.at or "earliest", timezone.utc
        )

    @classmethod
    def parse(cls, url: str) -> Link:
        """What a path and query name; the topics if they name nothing."""
        try:
            split = urlsplit(url)
        except ValueError:
            return cls()
        first, *rest = [unquote(part) for part in split.path.split("/") if part] or [""]
        if first == _GROUPS:
            return cls(GROUPS, rest[0] if rest else "")
        if not first or first.startswith("~"):
            return cls()
        if rest[:1] == [_ABOUT]:
            return cls(ABOUT, first)
        asked = parse_qs(split.query)
        at, where = (asked.get(name, [""])[0] for name in ("at", "where"))
        partition, offset = (_number(one) for one in [*rest, "", ""][:2])
        if partition is None:
            offset = None
        return cls(RECORDS, first, partition, offset, at, where)


def _text(number: int | None) -> str:
    return "" if number is None else str(number)


def _number(text: str) -> int | None:
    is_one = text.isascii() and text.isdecimal() and len(text) <= _DIGITS
    return int(text) if is_one else None
