"""What a cold table answers to those who change it and tidy it up. Values."""

from __future__ import annotations

from msgspec import Struct

from ..base.text_table import counted
from ..values.topic import Topic
from .segment import SegmentFile


class Purged(Struct, frozen=True):
    """A table that was removed with all that it had."""

    place: str  # where it was
    files: int
    size_bytes: int | None  # None: the platform does not say
    left: tuple[str, ...] = ()  # what a listing found afterwards, but for the mark of a purge


class PurgedTopic(Struct, frozen=True):
    """A deleted topic that is gone for good. As a string, a sentence."""

    topic: Topic
    cold: Purged | None  # None: it had no cold tier

    def __str__(self) -> str:
        gone = f"{self.topic.name}: what was deleted (id {self.topic.topic_id}) is gone for good"
        if self.cold is None or not self.cold.files:
            return gone
        size = "" if self.cold.size_bytes is None else f", {self.cold.size_bytes:,} bytes"
        return f"{gone}: {counted(self.cold.files, 'file')}{size} at {self.cold.place}"


#: Why a file lies there. The first two are nobody's any more; the others may be needed.
REMOVED = "removed"  # a commit took it out of the table, and vacuum has still to delete it
ORPHAN = "orphan"  # a failed change left it, and no commit can name it any more
PENDING = "pending"  # a change under way may still name it, or somebody else wrote it
QUARANTINED = "quarantined"  # an older version moved it aside


class Leftover(Struct, frozen=True):
    """One such file. Nothing is known of what it holds."""

    file: SegmentFile
    kind: str

    @property
    def may_go(self) -> bool:
        """Whether nothing of lakelog needs it; older versions of the table do."""
        return self.kind in (REMOVED, ORPHAN)


class Leftovers(Struct, frozen=True):
    """What lies beside a table's newest version."""

    files: tuple[Leftover, ...] = ()
    beyond: tuple[
        str, ...
    ] = ()  # sentences: what there is that lakelog can neither read nor delete


class Discarded(Struct, frozen=True):
    """A file that was deleted at once."""

    path: str  # relative to the table
    size_bytes: int
    sha256: str  # of its bytes, in hex


class Vacuumed(Struct, frozen=True):
    """What a vacuum deleted, or would delete."""

    files: int
    size_bytes: int | None  # None: the platform does not say
    retention_ms: int  # how long the table keeps files that a commit removed
    #: Where the catalog alone may delete: files that are due, as far as the table's history tells.
    left_files: int | None = None


class Orphans(Struct, frozen=True):
    """What failed changes left, as paths relative to the table."""

    old: tuple[str, ...] = ()  # those that may go
    young: tuple[str, ...] = ()  # those that are still too young to go
    foreign: tuple[str, ...] = ()  # somebody else's, which stay


class RowGroupTimes(Struct, frozen=True):
    """What a file says of one of its row groups, without any row being read."""

    start_offset: int
    end_offset: int  # exclusive
    records: int
    min_timestamp_ms: int  # -1: a record has none
    max_timestamp_ms: int  # inclusive
