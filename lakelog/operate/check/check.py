"""Whether all of a log is as it should be: every topic, both tiers, and what is said of them.

It may run beside everything else that works on the log. What is compared in two places is looked at
again before it is called wrong, since a change reaches one of them first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, MutableSequence, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ...cold.catalogue import Catalogue
from ...cold.store.abilities import Ability
from ...cold.table import ColdTable
from ...engines.engine import Choice
from ...errors import (
    AmbiguousTopicError,
    HotTierAccessError,
    HotTierUnavailableError,
    LakelogError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ...groups.group_records import GroupRecords
from ...groups.recorded_offset import RecordedOffset
from ...hot.hot_log import HotLog
from ...hot.registry import TopicRegistry
from ...place import ColdRoot
from ...read.topic_log import TopicLog
from ...values.topic import Topic
from .finding import (
    COLD,
    FAULTS,
    HOT,
    NOT_CHECKED,
    OK,
    CheckReport,
    Finding,
    Kind,
    PartitionVerdict,
    Progress,
    is_no_answer,
)
from .group_positions import LogRange, judged
from .settings import partition_flaw, settings_mend, table_flaws
from .verification import verify

#: How often two copies are compared that do not agree, and the pause in between: whoever changes
#: settings writes the second copy within milliseconds.
_LOOKS = 5
_PAUSE_S = 0.2


class Checked(Struct, frozen=True):
    """The log that is checked, as far as there is one.

    Args:
        root: None: no cold root was given.
        redis: None: no Redis was.
        log_of: a topic over the tiers that are given.
        table_of: a topic's table, opened anew; of a tiered topic, with a root.
        catalogue: what the root tells of its tables.
    """

    root: ColdRoot | None
    redis: HotLog | None
    registry: TopicRegistry | None
    groups: GroupRecords | None
    log_of: Callable[[Topic, bool], TopicLog]
    table_of: Callable[[Topic], ColdTable]
    catalogue: Callable[[], Catalogue]


def check(
    log: Checked,
    topics: Sequence[Topic] | None,
    tiers: Collection[str],
    progress: Progress | None = None,
) -> CheckReport:
    """Looks at everything once; changes nothing.

    Args:
        topics: None for all there are, and what else lies under the root.

    Raises:
        HotTierUnavailableError, HotTierAccessError: Redis does not answer, or refuses us.
    """
    return _Check(log, tiers, progress).run(topics)


class _Check(Struct):
    log: Checked
    tiers: Collection[str]
    progress: Progress | None
    findings: list[Finding] = field(default_factory=list)
    notices: list[Finding] = field(default_factory=list)
    verdicts: list[PartitionVerdict] = field(default_factory=list)
    engines: dict[str, tuple[Choice, ...]] = field(default_factory=dict)
    cold_away: str = ""  # why the cold tier is not checked

    def run(self, topics: Sequence[Topic] | None) -> CheckReport:
        store = self._store()
        # Before the logs: then no offset was committed above an end that is seen later.
        committed = self._committed()
        found = None if self.cold_away else self._catalogue(topics is None)
        chosen = self._all(found) if topics is None else topics
        for topic in chosen:
            self._topic(topic)
        if found is not None:
            self._tables(found, chosen)
        if committed:
            self._groups(committed, chosen, is_all=topics is None)
        return CheckReport(
            tuple(self.verdicts),
            tuple(self.findings),
            tuple(self.notices),
            tuple(store),
            engines=self.engines,
        )

    def _all(self, found: Catalogue | None) -> Sequence[Topic]:
        if self.log.registry is not None:
            return self.log.registry.list()
        return () if found is None else found.topics

    # -- the root --------------------------------------------------------------------------------

    def _store(self) -> Sequence[Ability]:
        if COLD not in self.tiers:
            self.cold_away = "was not asked for"
            return ()
        if self.log.root is None:
            self.cold_away = "no cold root was given"
            return ()
        try:
            store = self.log.root.abilities()
        except LakelogError as error:
            store = [Ability("open", None, error.message)]
        if store[0].flaw is not None:
            self.cold_away = "the cold root does not answer"
        for at, one in enumerate(store):
            if one.flaw is not None:
                kind = Kind.STORE if at else Kind.UNREACHABLE
                where = f"{self.log.root}: {one.name}"
                self.findings.append(Finding(kind, COLD, None, None, where, one.flaw))
        return store

    def _catalogue(self, is_all: bool) -> Catalogue | None:
        if not is_all:
            return None
        try:
            return self.log.catalogue()
        except LakelogError as error:
            self.cold_away = "the cold root cannot be listed"
            where = str(self.log.root)
            self.findings.append(Finding(Kind.UNREACHABLE, COLD, None, None, where, error.message))
            return None

    def _tables(self, found: Catalogue, topics: Sequence[Topic]) -> None:
        """What lies under the root and is none of the topics."""
        of_tables = {Kind.TABLE, Kind.UNREACHABLE}
        told = {one.topic for one in self.findings if one.kind in of_tables}
        for error in found.untold(self.log.root):
            name = getattr(error, "topic", None)
            place = str(getattr(error, "path", self.log.root))
            finding = Finding(_kind_of(error), COLD, name, None, place, error.message)
            if isinstance(error, AmbiguousTopicError):
                self.notices.append(finding)
            elif name not in told:
                self.findings.append(finding)
        for left in found.purged:
            what = "is what is left of a topic that was removed for good: cleanup removes it"
            path = f"{left.name}/{left.topic_id}"
            self.notices.append(Finding(Kind.TABLE, COLD, left.name, None, path, what))
        if self.log.registry is None:
            return
        deleted = {topic.topic_id for topic in self.log.registry.deleted()}
        known = self.log.registry.list()
        for topic in found.lost(known[0].keyspace_id if known else None, known):
            if topic.topic_id not in deleted:
                what = "is a topic's that Redis does not know: `lakelog restore` brings it back"
                path = f"{topic.name}/{topic.topic_id}"
                self.findings.append(Finding(Kind.TOPIC, COLD, topic.name, None, path, what))

    # -- a topic ---------------------------------------------------------------------------------

    def _topic(self, topic: Topic) -> None:
        is_cold = topic.config.tiered and not self.cold_away
        left = list(range(topic.partitions))
        asked = [*([HOT] if self._is_hot else []), *([COLD] if is_cold else [])]
        why = self._not_checked(topic)
        try:
            self._partitions(topic, asked, why, left)
            if left:  # the cold root has stopped answering
                why = self._not_checked(topic)
                self._partitions(topic, [one for one in asked if one == HOT], why, left)
            if self._is_hot and self.log.registry is not None:
                self._registered(topic)
            if is_cold:
                self._table(topic)
        except (HotTierUnavailableError, HotTierAccessError):
            raise
        except (UnknownTopicIdError, UnknownTopicOrPartitionError):
            why = "it was deleted meanwhile"
        except LakelogError as error:
            if not any(one.topic == topic.name and one.tier != HOT for one in self.findings):
                self.findings.append(
                    Finding(_kind_of(error), COLD, topic.name, None, "the table", error.message)
                )
            self._away(error)
            why = "its table cannot be used"
        for partition in left:
            self._verdict(topic, partition, None, why)

    def _partitions(
        self, topic: Topic, tiers: Sequence[str], why: str, left: MutableSequence[int]
    ) -> None:
        """Checks the records of the partitions that are left, and takes each off the list."""
        if not tiers:
            return
        log = self.log.log_of(topic, COLD in tiers)
        for verified in verify(log, list(left), tiers=tiers, progress=self.progress):
            partition = verified.topic_partition.partition
            left.remove(partition)
            self.findings += verified.findings
            engines = (*self.engines.get(topic.name, ()), *verified.engines)
            self.engines[topic.name] = tuple(dict.fromkeys(engines))
            beyond = "; ".join(filter(None, (why, verified.not_checked)))
            self._verdict(topic, partition, verified.findings, beyond, verified.records)
            if self._away(verified.away):
                return

    def _away(self, error: LakelogError | None) -> bool:
        """Leaves out the rest of the cold tier if its store does not answer, asked long enough."""
        if error is None or not error.retriable:
            return False
        self.cold_away = f"the cold root stopped answering ({error.message.rstrip('.')})"
        return True

    @property
    def _is_hot(self) -> bool:
        return self.log.redis is not None and HOT in self.tiers

    def _not_checked(self, topic: Topic) -> str:
        said = []
        if not self._is_hot:
            why = "no Redis was given" if self.log.redis is None else "was not asked for"
            said.append(f"hot: {why}")
        if topic.config.tiered and self.cold_away:
            said.append(f"cold: {self.cold_away}")
        return "; ".join(said)

    def _verdict(
        self,
        topic: Topic,
        partition: int,
        findings: Sequence[Finding] | None,
        why: str,
        records: int = 0,
    ) -> None:
        count = sum(one.kind is not Kind.UNREACHABLE for one in findings or ())
        is_checked = findings is not None and len(findings) == count
        verdict = FAULTS if count else OK if is_checked else NOT_CHECKED
        self.verdicts.append(PartitionVerdict(topic.name, partition, verdict, records, count, why))

    def _registered(self, topic: Topic) -> None:
        """Compares each partition's copy of the settings with the topic's."""
        assert self.log.redis is not None
        assert self.log.registry is not None
        inspection = self.log.redis.inspection()
        for topic_partition in topic.topic_partitions():
            for attempt in range(_LOOKS):
                newest = self.log.registry.renewed(topic)
                try:
                    look = inspection.look(topic_partition, topic.topic_id)
                except UnknownTopicOrPartitionError:
                    break  # told already
                what = partition_flaw(newest, look)
                if what is None:
                    break
                if attempt == _LOOKS - 1:
                    is_behind = (look.number("config_version") or 0) < newest.config_version
                    can = is_behind or settings_mend(newest, look) is not None
                    name, number = topic_partition
                    where = look.keys.state
                    self.findings.append(
                        Finding(Kind.REGISTRY, HOT, name, number, where, what, repairable=can)
                    )
                    self._blame(topic, number)
                else:
                    time.sleep(_PAUSE_S)

    def _blame(self, topic: Topic, partition: int) -> None:
        """One more fault of a partition that has its verdict."""
        for at, one in enumerate(self.verdicts):
            if (one.topic, one.partition) == (topic.name, partition):
                self.verdicts[at] = replace(one, verdict=FAULTS, faults=one.faults + 1)

    def _table(self, topic: Topic) -> None:
        """Compares the table's copy of the settings, and looks for files that nobody names."""
        if self.cold_away:
            return
        table = self.log.table_of(topic)
        if self.log.registry is not None:
            self._mirrored(topic, self.log.registry, table)
        for what in table.warnings():
            self.notices.append(
                Finding(Kind.PROPERTIES, COLD, topic.name, None, "the table's properties", what)
            )
        orphans = table.orphans()
        for path in orphans.old:
            what = "is a file that no commit names or can name: cleanup removes it"
            self.findings.append(
                Finding(Kind.ORPHAN, COLD, topic.name, None, path, what, repairable=True)
            )
        for path in orphans.young:
            what = "is a file that no commit names yet, too young to be removed"
            self.notices.append(Finding(Kind.ORPHAN, COLD, topic.name, None, path, what))
        for path in orphans.foreign:
            what = "is somebody else's file, which no commit names: no reader of the table sees it"
            self.notices.append(Finding(Kind.FOREIGN, COLD, topic.name, None, path, what))

    def _mirrored(self, topic: Topic, registry: TopicRegistry, table: ColdTable) -> None:
        assert self.log.root is not None
        for attempt in range(_LOOKS):
            newest, mirrored = registry.renewed(topic), table.mirrored()
            if mirrored is None:
                return
            flaws = list(table_flaws(newest, mirrored))
            if not flaws:
                return
            if attempt < _LOOKS - 1:
                time.sleep(_PAUSE_S)
                continue
            finding = Finding(
                *(Kind.PROPERTIES, COLD, topic.name, None, "the table's properties"),
                "; ".join(flaws),
                repairable=mirrored.config_version <= newest.config_version,
            )
            # By name, a change waits for the next archive run: its process may have no Spark.
            is_behind = mirrored.config_version < newest.config_version
            is_due = self.log.root.opens_in_tasks or not is_behind
            (self.findings if is_due else self.notices).append(finding)

    # -- groups ----------------------------------------------------------------------------------

    def _committed(self) -> Sequence[RecordedOffset]:
        if self.log.groups is None or not self._is_hot:
            return ()
        try:
            return self.log.groups.read().offsets
        except (HotTierUnavailableError, HotTierAccessError):
            raise
        except LakelogError as error:
            self.findings.append(
                Finding(Kind.FOREIGN, HOT, None, None, "the groups", error.message)
            )
            return ()

    def _groups(
        self, committed: Iterable[RecordedOffset], chosen: Sequence[Topic], *, is_all: bool
    ) -> None:
        names = {topic.name for topic in chosen}
        asked = [one for one in committed if is_all or one.topic_partition.topic in names]
        ranges: dict[tuple[str, int], LogRange] = {}
        of_groups = {one.topic_partition.topic for one in asked}
        for topic in chosen:
            if topic.name in of_groups:
                ranges |= self._ranges(topic)
        deleted = [] if self.log.registry is None else self.log.registry.deleted()
        known = {topic.name: topic for topic in chosen}
        for finding, is_fault in judged(asked, known, ranges, (t.topic_id for t in deleted)):
            (self.findings if is_fault else self.notices).append(finding)

    def _ranges(self, topic: Topic) -> dict[tuple[str, int], LogRange]:
        is_cold = topic.config.tiered and not self.cold_away
        if topic.config.tiered and not is_cold:
            return {}  # where the log starts, the table says
        try:
            found = self.log.log_of(topic, is_cold).offsets()
        except (HotTierUnavailableError, HotTierAccessError):
            raise
        except LakelogError as error:
            if is_no_answer(error):
                self._away(error)
                where, what = f"groups of {topic.name}", error.message
                self.findings.append(Finding(Kind.UNREACHABLE, COLD, topic.name, None, where, what))
            return {}  # it is damaged, which is told
        return {
            (topic.name, partition): LogRange(one.log_start, one.log_end)
            for partition, one in found.items()
        }


def _kind_of(error: LakelogError) -> Kind:
    """Of a table that cannot be used."""
    return Kind.UNREACHABLE if is_no_answer(error) else Kind.TABLE


def with_unreachable(report: CheckReport, error: LakelogError) -> CheckReport:
    """The report of a log whose Redis was given, but does not answer."""
    finding = Finding(Kind.UNREACHABLE, HOT, None, None, "Redis", error.message)
    why = "hot: Redis does not answer"
    return replace(
        report,
        findings=(finding, *report.findings),
        partitions=tuple(replace(one, not_checked=why) for one in report.partitions),
    )


def repairable(report: CheckReport) -> Iterator[Finding]:
    """What can be put right of what was found."""
    return (one for one in (*report.findings, *report.notices) if one.repairable)
