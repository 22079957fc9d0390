"""Files that lie beside those of a table's newest version, and may hold records that it has not."""

from __future__ import annotations

from msgspec import Struct

from .segment import SegmentFile

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
