"""Imports topics from an export: each becomes a new topic, with the offsets it had.

An export is a log as it was at one moment, and the log that it was made of has gone on since: it
gave the offsets from there on to records of its own. So what is imported gets an id of its own, and
nothing that goes by the old one takes the two for the same. (A topic that Redis has lost comes back
under its own id by `restore`, whose table knows how far the offsets went.)

Order, so that whoever is cut short anywhere can do it again:

1. The manifest is checked against itself and against the list of files; nothing is written.
2. The files are copied, each against its checksum, into a folder that is no table: nobody reads it.
3. One commit makes the table, with all files and registers.
4. Redis gets the topic, unless somebody else's got the name meanwhile, or the quota is used up.
5. The groups' offsets come last, as they are of a topic that is there.

The new id follows from the export's and the name, so that the next call finds what was begun.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from uuid import UUID, uuid4, uuid5

from msgspec import Struct
from msgspec.structs import replace

from ...base.failpoints import failpoint
from ...cold.by_path.path_table import PathTable
from ...cold.by_path.purging import is_marked
from ...cold.by_path.segment_writer import WrittenFile
from ...cold.registers import Register, ReservedEnd
from ...cold.reserve import reserving
from ...cold.store.storage import side_by_side
from ...cold.table import ColdTable
from ...errors import (
    CorruptRecordError,
    InvalidArgumentError,
    QuotaExceededError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from ...groups.group_records import GroupRecords
from ...groups.recorded_offset import RecordedOffset
from ...hot.hot_log import HotLog
from ...hot.registry import Ends, TopicRegistry
from ...hot.topic_definition import TIERED, check_not_ours, with_data_keys
from ...values import reservation
from ...values.config import QUOTA_TOPICS, SETTINGS, TopicConfig, check_keys_kept
from ...values.record import MAX_OFFSET
from ...values.reservation import Reserved, Wanted
from ...values.topic import Topic, check_new_topic_name
from ...values.topic_partition import OffsetRange, TopicPartition
from ..restore import RestoredTopic, brought_back, table_ends
from .checking import check_sizes, checked_index
from .copying import AT_ONCE, Copied, checksum, copy_file
from .exporting import Progress, Telling
from .manifest import ExportedFile, ExportedTopic, Manifest, refuse
from .places import ArchiveReader, FolderReader

logger = logging.getLogger(__name__)

#: Imports of one export under one name that were deleted again, before somebody looks what goes on.
_MOST_TIMES = 1000


Reader = FolderReader | ArchiveReader


class ImportedTopic(Struct, frozen=True):
    """A topic that was imported."""

    source: Topic  # as it was exported
    topic: Topic  # as it is now
    records: int
    partitions: tuple[tuple[int, int, int], ...]  # number, log start, log end
    groups: int  # whose offsets came along
    is_new: bool  # False: an earlier call had imported it, and nothing was left to do


class Importer(Struct, frozen=True):
    """Imports topics into one log.

    Args:
        table: opens a topic's table; None where there is no cold root.
        keyspace: the log's.
    """

    hot: HotLog
    topics: TopicRegistry
    groups: GroupRecords
    table: Callable[[Topic], ColdTable] | None
    keyspace: str

    def run(
        self,
        reader: Reader,
        names: Iterable[str] | None,
        name: str | None,
        config: Mapping[str, object],
        progress: Callable[[Progress], None] | None,
    ) -> list[ImportedTopic]:
        """Imports; see `Lakelog.import_topics`."""
        manifest = Manifest.parse(reader.manifest(), reader.where)
        chosen = _chosen(manifest, names, name, reader.where)
        everything = [f"{t.folder}/{f.path}" for t in manifest.topics for f in t.all_files()]
        sizes = reader.sizes(everything)
        for one in chosen:
            check_sizes(reader.where, one, sizes)
            checked_index(reader.where, one)
        begun = [self._begin(manifest, one, name or one.topic.name, config) for one in chosen]
        self._check_quota(begun)
        telling = Telling(progress)
        telling.expect(sum(one.exported.size_bytes for one in begun if not one.is_there))
        imported: list[ImportedTopic] = []
        for each in begun:
            if imported and not each.is_there:  # the first topic gives an empty keyspace its id
                each = self._begin(manifest, each.exported, each.topic.name, config)
            imported.append(self._import(each, reader, telling))
        return imported

    # -- how -----------------------------------------------------------------------------------

    def _begin(
        self, manifest: Manifest, exported: ExportedTopic, name: str, config: Mapping[str, object]
    ) -> _Begun:
        """What the topic is to be, or is already. Nothing is changed.

        Raises:
            TopicExistsError: another topic has the name.
            InvalidArgumentError: it is tiered, and there is no cold root; or not at a path.
        """
        check_new_topic_name(name)
        there = {topic.name: topic for topic in self.topics.list()}
        gone = {topic.topic_id: topic for topic in self.topics.deleted()}
        keyspace_id = self.topics.keyspace_id()
        defaults = self.topics.keyspace_defaults()
        check_not_ours(config)
        exported_settings = _settings(exported.topic.config, defaults.for_topics)
        settings = with_data_keys(name, exported_settings.replace(config), clear=True)
        check_keys_kept(exported_settings, settings)
        if not settings.tiered:
            raise InvalidArgumentError(
                f"topic {exported.topic.name!r} lives in Redis alone ({TIERED}=false), and an "
                f"import goes into the cold tier: give {TIERED}=true for it "
                f"(config={{'{TIERED}': True}}, --config {TIERED}=true)",
                topic=exported.topic.name,
            )
        if self.table is None:
            raise InvalidArgumentError(
                f"topic {name!r} is imported into the cold tier, and no cold root was given; pass "
                "cold=… (--cold)",
                topic=name,
            )
        for times in range(_MOST_TIMES):
            topic_id = uuid5(
                manifest.export_id, f"{self.keyspace}/{exported.folder}/{name}/{times}"
            )
            if topic_id in gone:
                continue
            topic = Topic(
                name,
                topic_id,
                exported.topic.partitions,
                settings,
                config_version=1 + defaults.version,
                generation=self.hot.now_ms() * 1000,
                defaults_version=defaults.version,
                keyspace=self.keyspace,
                keyspace_id=keyspace_id or uuid4(),
                keyspace_defaults=defaults.settings,
            )
            current = there.get(name)
            if current is not None and current.topic_id == topic_id:
                topic = current
            table = self.table(topic)
            if not isinstance(table, PathTable):
                raise InvalidArgumentError(
                    f"topic {name!r} would be imported into {table.where}, a table by name, whose "
                    "files are its catalog's. Import where tables lie at a path",
                    topic=name,
                )
            if is_marked(table.storage, table.path):
                continue
            # Files without a log are what an earlier call has begun.
            held = table.mirrored() if _has_log(table) else None
            if held is not None and not _is_ours(held, keyspace_id):
                continue
            if held is not None and current is None:
                topic = held  # as it was begun
            if current is not None and current.topic_id != topic_id:
                raise _taken(name)
            return _Begun(exported, topic, table, held is not None, current is not None)
        raise TopicExistsError(
            f"topic {name!r} was imported from this export and deleted {_MOST_TIMES} times; export "
            "again",
            topic=name,
        )

    def _import(self, begun: _Begun, reader: Reader, telling: Telling) -> ImportedTopic:
        is_fresh = False
        if not begun.is_there:
            is_fresh = self._make_table(begun, reader, telling)
        failpoint("import.after_table")
        ends = {}
        for number, one in table_ends(begun.topic, begun.table.snapshot()).items():
            gaps = tuple(begun.exported.gaps.get(number, ()))
            ends[number] = replace(one, gaps=gaps)
            if is_fresh:  # what is reserved starts where the log ends, and nobody has had any of it
                end = max(one.archived_end, one.log_start)
                ends[number] = replace(one, gaps=gaps, reserved_end=end, was_lost=False)
        topic = self._in_redis(begun, ends, is_fresh=is_fresh)
        failpoint("import.after_topic")
        partitions = self._recovered(topic, begun, is_fresh=is_fresh)
        failpoint("import.before_groups")
        groups = self._bring_groups(topic, begun.exported)
        records = sum(max(0, one.records) for one in begun.table.snapshot().files)
        return ImportedTopic(
            begun.exported.topic,
            topic,
            records,
            tuple((one.partition, one.log_start, one.log_end) for one in partitions.partitions),
            groups,
            is_new=not begun.is_known,
        )

    def _in_redis(self, begun: _Begun, ends: Mapping[int, Ends], *, is_fresh: bool) -> Topic:
        """The topic, once Redis has it.

        Where somebody else was faster, the table that was made just now goes, for good: it is the
        table of no topic. One that an earlier call made stays: Redis may have had its topic since.

        Raises:
            TopicExistsError: another topic got the name while this one was copied.
            QuotaExceededError: others got what was left of the quota meanwhile.
            TopicExistsError: an empty keyspace got topics from somebody else meanwhile.
        """
        try:
            return self.topics.restore(begun.topic, ends, is_one_more=not begun.is_known)
        except (TopicExistsError, QuotaExceededError) as error:
            if is_fresh:
                begun.table.purge(decided=True)
            if isinstance(error, TopicExistsError) and error.keyspace is None:
                raise _taken(begun.topic.name) from None
            raise

    def _check_quota(self, begun: Sequence[_Begun]) -> None:
        """Refuses more topics than there may be before anything is copied.

        Raises:
            QuotaExceededError: there would be too many.
        """
        defaults = self.topics.keyspace_defaults()
        limit = TopicConfig().with_defaults(defaults.for_topics).quota(QUOTA_TOPICS)
        used, more = len(self.topics.list()), sum(not one.is_known for one in begun)
        if limit is not None and more and used + more > limit:
            raise QuotaExceededError(
                f"{more} topics were to be imported into keyspace {self.keyspace!r}, which has "
                f"{used}, and {QUOTA_TOPICS}={limit}; nothing was changed. Name the topics that "
                "are meant, delete some, or have the quota raised",
                quota=QUOTA_TOPICS,
                used=used,
                limit=limit,
            )

    def _make_table(self, begun: _Begun, reader: Reader, telling: Telling) -> bool:
        """Copies what is not there yet, checks it, and commits; False: somebody else did."""
        exported, table = begun.exported, begun.table
        wanted = [one.file for one in exported.files]
        index = checked_index(reader.where, exported)
        try:
            side_by_side(
                lambda file: self._copy(file, exported, table, reader, telling), wanted, AT_ONCE
            )
        except CorruptRecordError:
            _remove(table)
            raise
        table.storage.make_folder(table.path)  # a topic without records has no files
        table.storage.sync(*_folders(table, wanted))
        failpoint("import.after_files")
        registers: dict[Register, int] = {}
        for number, one in enumerate(exported.partitions):
            registers |= one.registers(number)
            registers[ReservedEnd(number)] = _reserved(one.log_end).end
        stats = {one.file.path: one.stats for one in exported.files}
        files = [WrittenFile(file, stats[file.path]) for file in index]
        return table.create_with(files, registers, exported.calls)

    def _copy(
        self,
        file: ExportedFile,
        exported: ExportedTopic,
        table: PathTable,
        reader: Reader,
        telling: Telling,
    ) -> None:
        target = f"{table.path}/{file.path}"
        source = reader.opened(f"{exported.folder}/{file.path}")
        (found,) = table.storage.stamps([target])
        if found is not None and found[0] == file.size_bytes:
            opened = partial(table.storage.opened, target)
            held = checksum(opened, target, file.size_bytes, telling.tell)
            if held.sha256 == file.sha256:
                return

        def check(copied: Copied) -> None:
            if (copied.size_bytes, copied.sha256) != (file.size_bytes, file.sha256):
                refuse(
                    reader.where,
                    f"{exported.folder}/{file.path} is damaged: its sha256 is {copied.sha256}, and "
                    f"the manifest says {file.sha256}",
                )

        copy_file(source, table.storage, target, file.size_bytes, telling.tell, check)

    def _recovered(self, topic: Topic, begun: _Begun, *, is_fresh: bool) -> RestoredTopic:
        """Has the partitions take appends.

        Of a table that was made just now, nobody has got any of the offsets that it reserves: the
        log goes on in them without a gap. Else an earlier call may have, and there is one.
        """
        if is_fresh:
            unused = {
                number: _reserved(one.log_end)
                for number, one in enumerate(begun.exported.partitions)
            }
            later = reserving(topic, begun.table, self.hot.archived_into().settle)

            def reserve(wanted: Mapping[TopicPartition, Wanted]) -> dict[TopicPartition, Reserved]:
                first = {
                    tp: unused.pop(tp.partition)
                    for tp, one in wanted.items()
                    if tp.partition in unused and unused[tp.partition].start >= one.least
                }
                others = {tp: one for tp, one in wanted.items() if tp not in first}
                calls = begun.exported.calls
                return {
                    **{tp: Reserved(r, calls.get(tp.partition, ())) for tp, r in first.items()},
                    **(later(others) if others else {}),
                }

            ends = {
                topic.partition(number): one.log_end
                for number, one in enumerate(begun.exported.partitions)
            }
            self.hot.recover_all(ends, reserve, topic_id=topic.topic_id)
        return brought_back(topic, self.hot, begun.table)

    def _bring_groups(self, topic: Topic, exported: ExportedTopic) -> int:
        """Offsets of groups, under the topic's name and id; later ones of theirs stay."""
        offsets = [_of(topic, one) for one in exported.groups]
        self.groups.bring_back(offsets)
        return len({(one.group_id, one.group_type) for one in offsets})


class _Begun(Struct, frozen=True):
    """One topic that is to be imported."""

    exported: ExportedTopic
    topic: Topic
    table: PathTable
    is_there: bool  # the table was made by an earlier call
    is_known: bool  # Redis has the topic already


def _chosen(
    manifest: Manifest, names: Iterable[str] | None, name: str | None, where: str
) -> list[ExportedTopic]:
    held = {one.topic.name: one for one in manifest.topics}
    wanted = sorted(held) if names is None else list(names)
    for one in wanted:
        if one not in held:
            raise UnknownTopicOrPartitionError(
                f"the export {where} has no topic {one!r}, but {', '.join(sorted(held)) or 'none'}",
                topic=one,
            )
    if name is not None and len(wanted) != 1:
        raise InvalidArgumentError(
            f"{len(wanted)} topics cannot all be imported as {name!r}: name the one that is meant",
            name="name",
            value=name,
        )
    return [held[one] for one in wanted]


def _taken(name: str) -> TopicExistsError:
    return TopicExistsError(
        f"there is a topic {name!r}, so none of that name is imported beside it: give the import "
        "another name (name=…, --as NAME), or delete that one first. Nothing was changed",
        topic=name,
    )


def _is_ours(held: Topic, keyspace_id: UUID | None) -> bool:
    """Whether a table is that of an import into this keyspace that may go on.

    Args:
        keyspace_id: the keyspace's; None if it may become any.
    """
    if held.deleted_ms is not None:
        return False
    return keyspace_id is None or held.keyspace_id in (None, keyspace_id)


def _settings(config: TopicConfig, defaults: Iterable[tuple[str, str]]) -> TopicConfig:
    """The settings that a topic had, in a keyspace of other defaults: what followed from the old
    ones and would not from these is the topic's own now. Quotas are the keyspace's alone.
    """
    moved = config.with_defaults(defaults)
    named = {name for name, _ in (*config.defaults, *moved.defaults)} & SETTINGS.keys()
    changes = {name: config[name] for name in sorted(named) if moved[name] != config[name]}
    return moved.replace(changes) if changes else moved


def _reserved(log_end: int) -> OffsetRange:
    return OffsetRange(log_end, min(log_end + reservation.FIRST_OFFSETS, MAX_OFFSET))


def _of(topic: Topic, one: RecordedOffset) -> RecordedOffset:
    tp = topic.partition(one.topic_partition.partition)
    return replace(one, topic_partition=tp, topic_id=topic.topic_id)


def _has_log(table: PathTable) -> bool:
    return bool(table.storage.names(f"{table.path}/_delta_log"))


def _remove(table: PathTable) -> None:
    """Removes what was copied for a table that is not made."""
    if _has_log(table):
        return
    table.storage.delete_files(
        f"{table.path}/{path}" for path in table.storage.files_below(table.path)
    )


def _folders(table: PathTable, files: Iterable[ExportedFile]) -> list[str]:
    found: set[str] = set()
    for file in files:
        parts = file.path.split("/")[:-1]
        found |= {"/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
    return [*(f"{table.path}/{folder}" for folder in sorted(found)), table.path]
