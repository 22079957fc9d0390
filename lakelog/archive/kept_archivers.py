"""Archivers that outlast a run."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING
from uuid import UUID

from ..values.topic import Topic

if TYPE_CHECKING:
    from .archiver import Archiver


class KeptArchivers:
    """Archivers that outlast a run, with what they know of their tables. Thread-safe.

    Args:
        archiver_of: makes a topic's.
    """

    def __init__(self, archiver_of: Callable[[Topic], Archiver]) -> None:
        self._archiver_of = archiver_of
        self._kept: dict[UUID, Archiver] = {}

    def taken(self, topic: Topic) -> Archiver:
        """The topic's archiver, which is the caller's alone until it is put back.

        Raises:
            InvalidArgumentError: the topic cannot be archived.
        """
        return self._kept.pop(topic.topic_id, None) or self._archiver_of(topic)

    def put_back(self, archiver: Archiver) -> None:
        """Keep it for the next run."""
        self._kept[archiver.topic.topic_id] = archiver

    def only(self, topic_ids: Collection[UUID]) -> None:
        """Forget those of other topics."""
        for gone in self._kept.keys() - topic_ids:
            self._kept.pop(gone, None)
