"""The exports that hold a topic of which records are erased: told, or made anew without them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timezone

from msgspec import Struct

from ...errors import LakelogError, MissingFileError
from ...values.topic import Topic
from ..transfer.known_exports import KnownExport, KnownExports
from ..transfer.manifest import Manifest

REWRITTEN = "rewritten"
STAYS = "stays"


class ExportTold(Struct, frozen=True):
    """What became of one export that holds, or may hold, the topic as it was before."""

    place: str
    host: str | None
    exported_ms: int
    outcome: str  # `REWRITTEN`: exported anew, and holds no match; `STAYS`
    why: str = ""  # it stays

    def __str__(self) -> str:
        when = datetime.fromtimestamp(self.exported_ms / 1000, timezone.utc).isoformat()
        where = self.place if self.host is None else f"{self.place} on {self.host}"
        return f"the export at {where}, of {when}: {self.why}"


def exports_told(
    topic: Topic,
    known: KnownExports,
    manifest_at: Callable[[str], Manifest],
    renew: Callable[[str, Sequence[str]], object] | None,
    there: Callable[[], Sequence[Topic]],
    *,
    forgets: bool,
) -> tuple[ExportTold, ...]:
    """What becomes of each export that is known to hold the topic.

    Args:
        manifest_at: reads that of a place.
        renew: exports topics by name to a place anew; None: they are only told.
        there: the log's topics.
        forgets: whether notes of exports that are there no more are deleted.

    Raises:
        ColdTierError: the notes cannot be read.
    """
    told = []
    for export in known.list():
        if not export.holds(topic):
            continue
        why = _told(export, topic, manifest_at, renew, there)
        if why is None:
            if forgets:
                known.forget(export)
            continue
        outcome = STAYS if why else REWRITTEN
        told.append(ExportTold(export.place, export.host, export.exported_ms, outcome, why))
    return tuple(told)


def _told(
    export: KnownExport,
    topic: Topic,
    manifest_at: Callable[[str], Manifest],
    renew: Callable[[str, Sequence[str]], object] | None,
    there: Callable[[], Sequence[Topic]],
) -> str | None:
    """Why it stays; empty: it was made anew; None: it is there no more."""
    if export.is_elsewhere:
        return (
            "it lies on that machine and was not looked at. Erase there with --exports, or delete "
            "it"
        )
    try:
        held = {(one.topic.name, one.topic.topic_id) for one in manifest_at(export.place).topics}
    except MissingFileError:
        return None
    except LakelogError as error:
        return f"it cannot be read: {error.message.rstrip('.')}. Delete it, or export there again"
    names = sorted({name for name, _ in held} | {topic.name})
    again = f"`lakelog export {' '.join(names)} --to {export.place}`"
    if renew is None:
        return f"it was made before. --exports, or {again}, makes it anew; or delete it"
    gone = held - {(one.name, one.topic_id) for one in there()}
    if gone:
        return (
            f"it also has topics that are there no more ({', '.join(sorted(n for n, _ in gone))}), "
            "so it was not made anew: delete it, or import it, erase there, and export that"
        )
    try:
        renew(export.place, names)
    except LakelogError as error:
        return f"it could not be made anew: {error.message.rstrip('.')}. Do it by {again}"
    return ""
