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
import json
import logging
import socket
from collections.abc import Iterable

from msgspec import Struct

from ...base.json_text import parse_json
from ...cold.store.storage import Storage
from ...errors import ColdTierError
from ...values.topic import EXPORTS_FOLDER, Topic
from ..who import who

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
            held = set() if before is None else set(before.topics)
            said = {
                "place": place,
                "host": host,
                "exported_ms": exported_ms,
                "who": who(),
                "topics": sorted(now | held),
            }
            self._storage.make_folder(self._folder)
            self._storage.write_bytes(self._file(place), json.dumps(said).encode())
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
            said = parse_json(content)
            return KnownExport(
                str(said["place"]),
                None if said["host"] is None else str(said["host"]),
                int(said["exported_ms"]),
                str(said["who"]),
                tuple((str(name), str(topic_id)) for name, topic_id in said["topics"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("%s is no note of an export, and is passed over: %r", path, error)
            return None
