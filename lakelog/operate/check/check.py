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
from ...groups.recorded_offset import GroupType, RecordedOffset
from ...hot.hot_log import HotLog
from ...hot.registry import TopicRegistry
from ...place import ColdRoot
from ...read.topic_log import TopicLog
from ...values.offsets import LogOffsets
from ...values.topic import Topic
from ...values.topic_partition import OffsetRange, TopicPartition
from .copies import offset_flaw, partition_flaw, settings_mend, table_flaws
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
        found = self._catalogue() if topics is None and not self.cold_away else None
        chosen = topics
        if chosen is None:
            registry = self.log.registry
            chosen = registry.list() if registry is not None else found.topics if found else ()
        for topic in chosen:
            self._topic(topic)
        if found is not None:
            self._tables(found)
        if committed:
            self._groups(committed, chosen, is_all=topics is None)
        return CheckReport(
            tuple(self.verdicts),
            tuple(self.findings),
            tuple(self.notices),
            tuple(store),
            engines=self.engines,
        )

    def _told(
        self,
        kind: Kind,
        tier: str,
        topic: str | None,
        where: str,
        what: str,
        *,
        partition: int | None = None,
        repairable: bool = False,
        is_fault: bool = True,
    ) -> None:
        finding = Finding(kind, tier, topic, partition, where, what, repairable=repairable)
        (self.findings if is_fault else self.notices).append(finding)

    # -- the root --------------------------------------------------------------------------------

    def _store(self) -> Sequence[Ability]:
        root = self.log.root
        if COLD not in self.tiers:
            self.cold_away = "was not asked for"
            return ()
        if root is None:
            self.cold_away = "no cold root was given"
            return ()
        try:
            store = root.abilities()
        except LakelogError as error:
            store = [Ability("open", None, error.message)]
        if store[0].flaw is not None:
            self.cold_away = "the cold root does not answer"
        for at, one in enumerate(store):
            if one.flaw is not None:
                kind = Kind.STORE if at else Kind.UNREACHABLE
                self._told(kind, COLD, None, f"{root}: {one.name}", one.flaw)
        return store

    def _catalogue(self) -> Catalogue | None:
        try:
            return self.log.catalogue()
        except LakelogError as error:
            self.cold_away = "the cold root cannot be listed"
            self._told(Kind.UNREACHABLE, COLD, None, str(self.log.root), error.message)
            return None

    def _tables(self, found: Catalogue) -> None:
        """What lies under the root and is none of the topics."""
        of_tables = {Kind.TABLE, Kind.UNREACHABLE}
        told = {one.topic for one in self.findings if one.kind in of_tables}
        for error in found.untold(self.log.root):
            name = getattr(error, "topic", None)
            place, is_fault = str(getattr(error, "path", self.log.root)), True
            if isinstance(error, AmbiguousTopicError):
                is_fault = False
            elif name in told:
                continue
            self._told(_kind_of(error), COLD, name, place, error.message, is_fault=is_fault)
        for left in found.purged:
            what = "is what is left of a topic that was removed for good: cleanup removes it"
            path = f"{left.name}/{left.topic_id}"
            self._told(Kind.TABLE, COLD, left.name, path, what, is_fault=False)
        if self.log.registry is None:
            return
        deleted = {topic.topic_id for topic in self.log.registry.deleted()}
        known = self.log.registry.list()
        for topic in found.lost(known[0].keyspace_id if known else None, known):
            if topic.topic_id not in deleted:
                what = "is a topic's that Redis does not know: `lakelog restore` brings it back"
                self._told(Kind.TOPIC, COLD, topic.name, f"{topic.name}/{topic.topic_id}", what)

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
                self._registered(topic, self.log.registry)
            if is_cold and not self.cold_away:
                self._table(topic)
        except (HotTierUnavailableError, HotTierAccessError):
            raise
        except (UnknownTopicIdError, UnknownTopicOrPartitionError):
            why = "it was deleted meanwhile"
        except LakelogError as error:
            if not any(one.topic == topic.name and one.tier != HOT for one in self.findings):
                self._told(_kind_of(error), COLD, topic.name, "the table", error.message)
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

    # -- the copies of its settings ----------------------------------------------------------------

    def _registered(self, topic: Topic, registry: TopicRegistry) -> None:
        """Compares each partition's copy of the settings with the topic's."""
        assert self.log.redis is not None
        inspection = self.log.redis.inspection()
        for tp in topic.topic_partitions():
            for is_last in _looks():
                newest = registry.renewed(topic)
                try:
                    look = inspection.look(tp, topic.topic_id)
                except UnknownTopicOrPartitionError:
                    break  # told already
                what = partition_flaw(newest, look)
                if what is None:
                    break
                if is_last:
                    is_behind = (look.number("config_version") or 0) < newest.config_version
                    can = is_behind or settings_mend(newest, look) is not None
                    where = look.keys.state
                    self._told(
                        *(Kind.REGISTRY, HOT, topic.name, where, what),
                        partition=tp.partition,
                        repairable=can,
                    )
                    for at, one in enumerate(self.verdicts):
                        if (one.topic, one.partition) == tp:
                            more = replace(one, verdict=FAULTS, faults=one.faults + 1)
                            self.verdicts[at] = more

    def _table(self, topic: Topic) -> None:
        """Compares the table's copy of the settings, and looks for files that nobody names."""
        table = self.log.table_of(topic)
        if self.log.registry is not None:
            self._mirrored(topic, self.log.registry, table)
        for what in table.warnings():
            where = "the table's properties"
            self._told(Kind.PROPERTIES, COLD, topic.name, where, what, is_fault=False)
        orphans = table.orphans()
        for path in orphans.old:
            what = "is a file that no commit names or can name: cleanup removes it"
            self._told(Kind.ORPHAN, COLD, topic.name, path, what, repairable=True)
        for path in orphans.young:
            what = "is a file that no commit names yet, too young to be removed"
            self._told(Kind.ORPHAN, COLD, topic.name, path, what, is_fault=False)
        for path in orphans.foreign:
            what = "is somebody else's file, which no commit names: no reader of the table sees it"
            self._told(Kind.FOREIGN, COLD, topic.name, path, what, is_fault=False)

    def _mirrored(self, topic: Topic, registry: TopicRegistry, table: ColdTable) -> None:
        assert self.log.root is not None
        for is_last in _looks():
            newest, mirrored = registry.renewed(topic), table.mirrored()
            flaws = [] if mirrored is None else list(table_flaws(newest, mirrored))
            if not flaws or mirrored is None:
                return
            if is_last:
                # By name, a change waits for the next archive run: its process may have no Spark.
                is_behind = mirrored.config_version < newest.config_version
                self._told(
                    *(Kind.PROPERTIES, COLD, topic.name, "the table's properties"),
                    "; ".join(flaws),
                    repairable=mirrored.config_version <= newest.config_version,
                    is_fault=self.log.root.opens_in_tasks or not is_behind,
                )

    # -- groups ----------------------------------------------------------------------------------

    def _committed(self) -> Sequence[RecordedOffset]:
        if self.log.groups is None or not self._is_hot:
            return ()
        try:
            return self.log.groups.read().offsets
        except (HotTierUnavailableError, HotTierAccessError):
            raise
        except LakelogError as error:
            self._told(Kind.FOREIGN, HOT, None, "the groups", error.message)
            return ()

    def _groups(
        self, committed: Iterable[RecordedOffset], chosen: Sequence[Topic], *, is_all: bool
    ) -> None:
        known = {topic.name: topic for topic in chosen}
        asked = [one for one in committed if is_all or one.topic_partition.topic in known]
        ranges: dict[TopicPartition, LogOffsets] = {}
        of_groups = {one.topic_partition.topic for one in asked}
        for topic in chosen:
            if topic.name in of_groups:
                ranges |= self._offsets(topic)
        deleted = [] if self.log.registry is None else self.log.registry.deleted()
        kept = {topic.topic_id for topic in deleted}
        for one in asked:
            tp, offset = one.topic_partition, one.committed.offset
            judged = offset_flaw(one, known.get(tp.topic), ranges.get(tp), kept)
            if judged is not None:
                what, is_fault = judged
                kind = "share group" if one.group_type is GroupType.SHARE else "group"
                finding = Finding(
                    *(Kind.GROUP_OFFSET, HOT, *tp, f"{kind} {one.group_id!r}"),
                    f"offset {offset} {what}",
                    (OffsetRange(offset, offset + 1),),
                )
                (self.findings if is_fault else self.notices).append(finding)

    def _offsets(self, topic: Topic) -> dict[TopicPartition, LogOffsets]:
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
                where = f"groups of {topic.name}"
                self._told(Kind.UNREACHABLE, COLD, topic.name, where, error.message)
            return {}  # it is damaged, which is told
        return {topic.partition(number): one for number, one in found.items()}


def _looks() -> Iterator[bool]:
    """A look after another, with a pause before the next; whether it is the last one."""
    for attempt in range(_LOOKS):
        if attempt:
            time.sleep(_PAUSE_S)
        yield attempt == _LOOKS - 1


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
