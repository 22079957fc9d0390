"""A second keyspace on the same Redis and the same cold root, with a topic of the same name."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import UUID

from lakelog.errors import AmbiguousTopicError, MissingExtraError, UnknownTopicOrPartitionError
from lakelog.lakelog import Lakelog
from lakelog.testing.model import Difference, require
from lakelog.values.topic import Topic

from .harness import TOPIC, LogHarness, any_new

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

NEIGHBOUR = "neighbour"


class SharedRootRules(LogHarness):
    """Whatever the neighbour does, no record of the machine's topic changes, and the other way."""

    def __init__(self) -> None:
        super().__init__()
        self._neighbours: dict[int, bytes] = {}  # archived values, by offset
        self._deleted: set[UUID] = set()  # creations of its topic

    @precondition(any_new)
    @rule(count=st.integers(1, 5), anew=st.booleans())
    def a_neighbour_writes(self, count: int, anew: bool) -> None:
        """It appends and archives; if Redis has lost its topic, it restores it or begins anew.

        If Redis has lost the deletion of its topic, it says it again.
        """
        lost: list[Topic] = []
        with self._neighbour() as lake:
            there = [topic.topic_id for topic in lake.topics.list() if topic.name == TOPIC]
            if self._deleted.intersection(there):
                lake.topics.delete(TOPIC)
                there = []
            if not there:
                lost = lake.restorable()
                require(
                    bool(lost) == bool(self._neighbours),
                    f"the neighbour has {len(self._neighbours)} archived records, and could "
                    f"restore {lost}",
                )
                if lost and not anew:
                    lake.restore()
                else:
                    lake.topics.create(TOPIC, 1, {"local.retention.ms": 0}, anew=anew)
                    self._neighbours.clear()
            with lake.producer() as producer:
                sent = {
                    value: producer.send(TOPIC, value, partition=0)
                    for value in (b"neighbour %d" % (self.news * 10 + n) for n in range(count))
                }
            lake.archive()
            for value, result in sent.items():
                offset = result.result().offset
                require(offset not in self._neighbours, f"{offset} was given out twice")
                self._neighbours[offset] = value
            if lost and anew:
                self._move_away(lost, lake)
        self._check_both()

    def _move_away(self, lost: Sequence[Topic], lake: Lakelog) -> None:
        """What of a keyspace without topics was lost may be another Redis's: who reads tables
        alone is told of both, and what to do.
        """
        try:
            found = lake.archived.topics.get(TOPIC)
        except AmbiguousTopicError:
            for topic in lost:
                shutil.rmtree(Path(self._cold_root) / TOPIC / str(topic.topic_id))
        else:
            raise Difference(f"of two keyspaces of one name, {found} was taken")

    @precondition(lambda self: bool(self._neighbours))
    @rule(purged=st.booleans(), alone=st.booleans())
    def a_neighbour_deletes(self, purged: bool, alone: bool) -> None:
        """Its topic goes, with all files if it is purged; cleanup by the tables alone follows."""
        with self._neighbour() as lake:
            with suppress(UnknownTopicOrPartitionError):  # Redis may have lost it
                self._deleted.add(lake.topics.get(TOPIC).topic_id)
                lake.topics.delete(TOPIC)
                if purged:
                    gone = lake.purge(TOPIC)
                    require(gone.cold is not None and not gone.cold.left, f"{gone} left something")
                self._neighbours.clear()
            if alone:
                lake.archived.cleanup(steps=["optimize", "vacuum"])
        self._check_both()

    def _neighbour(self) -> Lakelog:
        return Lakelog.connect(
            self.server.url,
            self._cold_root,
            keyspace=NEIGHBOUR,
            engine="inline",
            clock=self.clock,
        )

    def _check_both(self) -> None:
        """Both topics are found under the root by their keyspaces, with what each of them has."""
        with self._neighbour() as lake:
            names = {topic.name for topic in lake.archived.topics.list()}
            require(
                names == ({TOPIC} if self._neighbours else set()),
                f"of the neighbour the root has {names}",
            )
            if self._neighbours:
                log = lake.archived.log(TOPIC)
                found = {record.offset: record.value for record in log.read(0).records()}
                require(found == self._neighbours, f"the neighbour reads {found}")
            root = lake.place.cold
            assert root is not None
            own = root.catalogue(self.topic.keyspace).topics
            require(
                all(topic.keyspace == self.topic.keyspace for topic in own)
                # Else the table of an earlier creation may still be there.
                and (
                    not self._is_table() or [one.topic_id for one in own] == [self.topic.topic_id]
                ),
                f"of the machine's keyspace the root has {own}",
            )
