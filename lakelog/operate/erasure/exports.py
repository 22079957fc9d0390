"""The exports that hold a topic of which records are erased."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timezone

from msgspec import Struct

from ...errors import LakelogError, MissingFileError
from ...values.topic import Topic
from ..transfer.known_exports import KnownExport, KnownExports
from ..transfer.manifest import Manifest


class ExportTold(Struct, frozen=True):
    """One export that holds, or may hold, the topic as it was before."""

    place: str
    host: str | None
    exported_ms: int
    do: str  # what is known of it, and what to do

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.exported_ms / 1000, timezone.utc).isoformat()
        where = self.place if self.host is None else f"{self.place} on {self.host}"
        return f"the export at {where}, of {when}: {self.do}"


def exports_told(
    topic: Topic, known: KnownExports, manifest_at: Callable[[str], Manifest], *, forgets: bool
) -> tuple[ExportTold, ...]:
    """The exports that are known to hold the topic, and are there.

    Args:
        manifest_at: reads that of a place.
        forgets: whether notes of exports that are there no more are deleted.

    Raises:
        ColdTierError: the notes cannot be read.
    """
    told = []
    for export in known.list():
        if not export.holds(topic):
            continue
        try:
            do = _what_to_do(export, topic, manifest_at)
        except MissingFileError:
            if forgets:
                known.forget(export)
            continue
        told.append(ExportTold(export.place, export.host, export.exported_ms, do))
    return tuple(told)


def _what_to_do(export: KnownExport, topic: Topic, manifest_at: Callable[[str], Manifest]) -> str:
    if export.is_elsewhere:
        return "it lies on that machine and was not looked at. Delete it there"
    try:
        held = manifest_at(export.place).topics
    except MissingFileError:
        raise
    except LakelogError as error:
        return f"it cannot be read: {error.message.rstrip('.')}. Delete it, or export there again"
    names = sorted({one.topic.name for one in held} | {topic.name})
    return (
        f"it was made before. Delete it, or export there anew: `lakelog export {' '.join(names)} "
        f"--to {export.place}`"
    )
