"""What a run over topics does with each, beginning with one look at many of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from uuid import UUID

from ..cold.opening import snapshots
from ..cold.table import ColdTable
from ..errors import LakelogError
from ..hot.hot_log import HotLog
from ..hot.registry import TopicRegistry
from ..values.topic import Topic
from .archiver import Archiver, HotAnswer, Until, calls_needed
from .first_answers import first_answers
from .kept_archivers import KeptArchivers
from .report import ArchiveReport


class Attempts:
    """The attempts of one run. Thread-safe, but for `look`.

    Args:
        table_of: gives a topic's cold tier.
        until: see `Archiver.run_once`.
        adopt: see `Archiver.adopt`.
    """

    def __init__(
        self,
        hot: HotLog,
        registry: TopicRegistry,
        archivers: KeptArchivers,
        table_of: Callable[[Topic], ColdTable | None],
        until: Until,
        *,
        adopt: bool,
    ) -> None:
        self._hot = hot
        self._registry = registry
        self._archivers = archivers
        self._table_of = table_of
        self._until = until
        self._adopt = adopt
        self._version: tuple[int, int] | None = None  # of the registry when topics were listed
        self._topics: dict[UUID, Topic] = {}
        self._first: dict[UUID, tuple[Archiver, HotAnswer]] = {}

    def look(self, topics: Sequence[Topic]) -> None:
        """Ask Redis of those that are attempted next; of one alone, or while tables are adopted,
        each archiver asks for itself.
        """
        self._first = {}
        if len(topics) == 1 or self._adopt:
            return
        try:
            now = self._as_they_are(topics)
        except LakelogError:
            return  # each topic tells
        taken: dict[UUID, Archiver] = {}
        for topic in now:
            with suppress(LakelogError):
                taken[topic.topic_id] = self._archivers.taken(topic)
        seen = {topic_id: one.seen for topic_id, one in taken.items() if one.seen is not None}
        unseen = [one for one in now if one.topic_id in taken and one.topic_id not in seen]
        seen |= snapshots(unseen, self._table_of)
        asked = [(topic, seen[topic.topic_id]) for topic in now if topic.topic_id in seen]
        answers = first_answers(self._hot, asked, calls_needed(self._until))
        for topic_id, archiver in taken.items():
            if topic_id in answers:
                self._first[topic_id] = archiver, answers[topic_id]
            else:
                self._archivers.put_back(archiver)

    def waits(self, topic: Topic) -> bool:
        """Whether an attempt will wait for a store, or for records that are copied, as far as the
        look tells.
        """
        held = self._first.get(topic.topic_id)
        if held is None:
            return True
        answer, table = held[1], self._table_of(topic)
        is_far = table is None or not table.is_local
        return is_far or any(
            seen.unarchived_since_ms is not None
            or seen.appended_from(answer.planned_from.archive_start(number))
            for number, seen in answer.partitions.items()
        )

    def attempt(self, topic: Topic) -> tuple[ArchiveReport, Sequence[LakelogError]]:
        """See `Archiver.attempt`."""
        held = self._first.pop(topic.topic_id, None)
        archiver, answer = held or (self._archivers.taken(topic), None)
        if self._adopt:
            archiver.adopt()
        outcome = archiver.attempt(self._until, answer)
        self._archivers.put_back(archiver)
        return outcome

    def _as_they_are(self, topics: Sequence[Topic]) -> list[Topic]:
        """The topics by their newest definitions, without those that were deleted."""
        version = self._registry.version()
        if version != self._version:
            self._topics = {topic.topic_id: topic for topic in self._registry.list()}
            self._version = version
        return [self._topics[one.topic_id] for one in topics if one.topic_id in self._topics]
