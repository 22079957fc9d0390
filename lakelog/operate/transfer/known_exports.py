"""The exports that a log knows of: a note of each place, kept under its cold root.

``{root}/_lakelog_exports/{SHA-256 of the place}.json``:

| member | |
|---|---|
| place, host | where; on which machine, if it is a folder or file of one |
| exported_ms, who | when it was begun last, by whom |
| topics | name and id of each that was exported there, at any time |

A note is written before anything is copied: a copy that was cut short holds records, too.
"""

from __future__ import annotations

import hashlib
import logging
import socket
from collections.abc import Callable, Iterable
from datetime import datetime, timezone

import msgspec
from msgspec import Struct

from ...base.json_text import parse_json
from ...cold.store.storage import Storage
from ...errors import ColdTierError, LakelogError, MissingFileError
from ...values.topic import EXPORTS_FOLDER, Topic
from ..who import who
from .manifest import Manifest

logger = logging.getLogger(__name__)


class KnownExport(Struct, frozen=True):
    """One place, and what was exported there."""

    place: str
    host: str | None  # None: a place that is the same from everywhere
    exported_ms: int
    who: str
    topics: tuple[tuple[str, str], ...]  # name, id

    @property
    def is_elsewhere(self) -> bool:
        """Whether it lies on another machine's disk."""
        return self.host is not None and self.host != socket.gethostname()

    def holds(self, topic: Topic) -> bool:
        """Whether the topic was exported there."""
        return (topic.name, str(topic.topic_id)) in self.topics


class KnownExports:
    """The notes of one log.

    Args:
        storage: of its cold root.
    """

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._folder = f"{storage.root.rstrip('/')}/{EXPORTS_FOLDER}"

    def note(self, place: str, topics: Iterable[Topic], exported_ms: int) -> None:
        """Notes an export that begins. A root that takes no note is told of, and stops nothing."""
        host = None if "://" in place else socket.gethostname()
        now = {(topic.name, str(topic.topic_id)) for topic in topics}
        try:
            before = self._read(self._file(place))
            now |= set() if before is None else set(before.topics)
            said = KnownExport(place, host, exported_ms, who(), tuple(sorted(now)))
            self._storage.make_folder(self._folder)
            self._storage.write_bytes(self._file(place), msgspec.json.encode(said))
        except ColdTierError as error:
            logger.warning(
                "the export to %s could not be noted under the cold root, so that `lakelog erase` "
                "will not know of it: %s",
                place,
                error,
            )

    def list(self) -> list[KnownExport]:
        """All, by place.

        Raises:
            ColdTierError: the root cannot be read.
        """
        names = self._storage.file_names(self._folder)
        found = [self._read(f"{self._folder}/{name}") for name in names if name.endswith(".json")]
        return sorted((one for one in found if one is not None), key=lambda one: one.place)

    def forget(self, export: KnownExport) -> None:
        """It is there no more."""
        self._storage.delete_file(self._file(export.place))

    def _file(self, place: str) -> str:
        return f"{self._folder}/{hashlib.sha256(place.encode()).hexdigest()[:32]}.json"

    def _read(self, path: str) -> KnownExport | None:
        content = self._storage.read_bytes(path)
        if content is None:
            return None
        try:
            return msgspec.convert(parse_json(content), KnownExport)
        except ValueError as error:  # msgspec's is one
            logger.warning("%s is no note of an export, and is passed over: %r", path, error)
            return None


# -- for an erasure ----------------------------------------------------------------------------


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
