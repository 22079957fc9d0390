"""Which files in a table's folders can never become part of it. Pure.

A change writes its files first and names them in its commit; one that fails leaves files that no
commit names. Nobody else knows whether it failed or is still at work, so a file may go only when
the commit that would name it can no longer succeed. The file's name says when that is:

- ``archive-{start}-{end}-…``: its commit moves archived_end from `start` on, and archived_end only
  grows. So: once it lies above `start`.
- ``clean-{start}-{end}-{digest of the sources}…``: its commit removes the sources, which are all
  files that lay within [start, end) when it was planned. So: once the files that lie there are
  others, since then a source was removed, and what was removed never comes back. (Somebody's
  RESTORE does bring it back; that is why a commit looks whether its files are still there.)

Both say something of files that were there before the snapshot was taken, and of no others: one
that was committed since is in neither. So files are listed first, and judged by a look that is
newer than the list, however long whoever does it stands still in between. What is found stays true
for ever, so a pause before the deletion harms nobody.

As a second line, nothing that came into being within `SETTLING_MS` goes, by the store's own clock.
"""

from __future__ import annotations

from ...config import MINUTE_MS
from ..segment import archived_start, clean_sources, sources_digest
from ..table import ColdSnapshot

#: How old a file must be to be deleted, by the clock that stamped it. More than any commit takes,
#: and than any two of a store's servers disagree about the time.
SETTLING_MS = 10 * MINUTE_MS


def may_be_orphan(path: str, snapshot: ColdSnapshot) -> bool:
    """Whether it is worth asking if the table's log names it: all but `is_settled`, quickly."""
    partition = _partition(path)
    if partition is None:
        return False
    start = archived_start(path)
    if start is not None:
        return start < snapshot.archived_end(partition)
    return clean_sources(path) is not None


def is_settled(path: str, snapshot: ColdSnapshot) -> bool:
    """Whether no commit that is still to come can name the file.

    Of a file that a commit named already this says nothing: ask the snapshot and the tombstones.
    """
    partition = _partition(path)
    sources = clean_sources(path)
    if partition is None or sources is None:
        return may_be_orphan(path, snapshot)
    start, end, digest = sources
    return sources_digest(snapshot.files.within(partition, start, end)) != digest


def _partition(path: str) -> int | None:
    number = path.partition("/")[0].removeprefix("partition=")
    return int(number) if number.isdecimal() else None
