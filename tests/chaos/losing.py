"""Loses a Redis altogether, and has `lakelog restore` make its topics again, as an operator would.

What is known of the moment comes without lakelog: how far the tables hold each partition by
deltalake, and the gaps that Redis had declared in one step with its end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from lakelog.base.back_off import BackOff, Tries
from lakelog.errors import KeyspaceInUseError, LakelogError, RestoreFailedError
from lakelog.lakelog import Lakelog
from lakelog.operate.restore import RestoredTopic
from lakelog.values.topic import Topic

from . import keeping
from .history import Partition, Span, TotalLoss
from .places import SingleServer
from .scenario import TOPICS
from .worker import Process

#: How often a restore is tried again; retriable errors, and what was begun anew unawares.
RESTORING = BackOff(0.2, 1.0, tries=20)


@dataclass(frozen=True, slots=True)
class _Known:
    at_s: float
    names: Mapping[Partition, tuple[str, int]]  # the topic's name, and the number
    archived: Mapping[Partition, int]


@dataclass(slots=True)
class Losing:
    """Empties the server of a round, and brings its topics back.

    Args:
        harness: journals the topics that are made anew.
        last_lives: the id of the newest known life of each topic, by its name.
    """

    harness: Process
    server: SingleServer
    last_lives: Callable[[], dict[str, str]]
    losses: list[TotalLoss] = field(default_factory=list)

    def lose(self, down_s: float, *, with_its_disk: bool) -> str:
        """Redis is emptied, perhaps by a new one in its place, and after a while restored."""
        known = self._known()
        gaps = self.server.empty(known.names)
        if with_its_disk:
            self.server.lose_disk(down_s)
        else:
            time.sleep(down_s)
        return f"for {down_s:.1f} s{self._restored(known, gaps)}"

    def hurt(self, act: Callable[[], str]) -> str:
        """Does what may take the last restore back: then Redis was lost once more."""
        known = self._known()
        return act() + self._restored(known, {})

    def _restored(self, known: _Known, gaps: Mapping[Partition, Sequence[Span]]) -> str:
        restored, anew = self.restore()
        if not restored and not anew:
            return ""
        declared = self.server.gaps(self._known().names)
        span = Span(known.at_s, time.monotonic())
        gaps = {
            where: (*gaps.get(where, ()), *declared.get(where, ()))
            for where in gaps.keys() | declared.keys()
        }
        self.losses.append(TotalLoss(span, known.archived, gaps))
        return f"; {restored} topics restored, {anew} made anew"

    def _known(self) -> _Known:
        """What can be told before Redis is hurt."""
        at_s = time.monotonic()
        with self.harness.place.connect() as log:
            topics = log.topics.list()
        return _Known(
            at_s,
            {
                Partition(str(topic.topic_id), number): (topic.name, number)
                for topic in topics
                for number in range(topic.partitions)
            },
            {
                Partition(str(topic.topic_id), number): end
                for topic in topics
                for number, end in self._archived_ends(topic).items()
            },
        )

    def restore(self) -> tuple[int, int]:
        """Brings back what is lost, and makes anew what no table tells of; how many of each.

        Also of a restore that a power cut took back.
        """
        tries = Tries("restoring", RESTORING)
        while True:
            try:
                with self.harness.place.connect() as log:
                    restored = [one.topic for one in _brought_back(log)]
                    there = {topic.name for topic in log.topics.list()}
                    anew = [name for name in TOPICS if name not in there]
                    for name in anew:
                        keeping.create(self.harness, log, name, anew=True)
                last = self.last_lives()
                for topic in restored:
                    if last.get(topic.name) != str(topic.topic_id):  # an earlier life is back
                        self.harness.journal.write("created", topic.name, str(topic.topic_id))
                return len(restored), len(anew)
            except LakelogError as error:
                tries.pause(error)

    def _archived_ends(self, topic: Topic) -> dict[int, int]:
        """By partition, one past the last offset that the topic's table holds."""
        if not topic.config.tiered:
            return {}
        try:
            table = DeltaTable(f"{self.harness.place.cold}/{topic.name}/{topic.topic_id}")
        except TableNotFoundError:
            return {}
        actions = pa.RecordBatchReader.from_stream(table.get_add_actions(flatten=True)).read_all()
        if not actions.num_rows:
            return {}
        ends = actions.group_by("partition.partition").aggregate([("max.offset", "max")])
        return {
            int(number): int(last) + 1
            for number, last in zip(
                ends["partition.partition"].to_pylist(),
                pc.fill_null(ends["max.offset_max"], -1).to_pylist(),
                strict=True,
            )
        }


def _brought_back(log: Lakelog) -> Iterable[RestoredTopic]:
    try:
        return log.restore()
    except RestoreFailedError as error:
        if any(isinstance(one, KeyspaceInUseError) for one in error.errors.values()):
            # Somebody made a topic at the very moment: it has to go first.
            for topic in log.topics.list():
                log.topics.delete(topic.name)
        raise
