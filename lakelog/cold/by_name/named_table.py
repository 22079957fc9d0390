"""The cold tier of a topic as a Delta table of a catalog, which only Spark may write.

So Spark writes and commits the rows, and lakelog keeps what it must know of the table in the
commits' ``userMetadata`` (see `notes`). It is read where it lies, if the catalog lets us, or else
through Spark too (see `either_view`).

A commit carries its kind's epoch as Delta's txn version. Of two commits planned on the same epoch,
Delta refuses or skips the second. It skips in silence, so each commit is looked for in the table's
history afterwards.

Runs on: driver. Needs no more than the DataFrame API and SQL, so Spark Connect will do.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from msgspec.structs import replace

from ...base.back_off import BackOff, Tries
from ...base.failpoints import failpoint
from ...engines.engine import BY_NAME, chosen
from ...engines.shared_tasks import sharing
from ...errors import (
    ColdTierError,
    ColdTierRefusedError,
    ContradictionError,
    ForeignTableError,
    InvalidArgumentError,
)
from ...tracing.switch import step
from ...values.config import DAY_MS, PARQUET_COMPRESSION
from ...values.format_version import check_format
from ...values.producer_calls import ProducerCall
from ...values.topic import Topic
from .. import contradictions
from ..answers import Discarded, Leftovers, Orphans, Purged, Vacuumed
from ..change import Change, HotRange, Rewrite, RowsOf
from ..committing import (
    VACUUM_S,
    Attempt,
    CommitBackOff,
    Committing,
    LostCommits,
    NotLanded,
    read_back,
    refuse_loss,
    tell_purge,
)
from ..planned import check_plan
from ..properties import (
    FORMAT_PROPERTY,
    TOPIC_ID_PROPERTY,
    TOPIC_NAME_PROPERTY,
    AddColumns,
    Alteration,
    SetComment,
    SetProperties,
    file_retention_ms,
    is_deleted,
    is_untiered,
    mirrored_properties,
    mirrored_topic,
    mirrored_version,
    next_alteration,
    warnings,
)
from ..registers import ArchivedEnd, Register
from ..schema import (
    PARTITION_COLUMNS,
    TABLE_SCHEMA,
    columns_beyond_own,
    columns_to_write,
    value_columns,
)
from ..segment import SegmentFile
from ..store_errors import one_line
from ..table import Applied, ColdSnapshot, Making, unguarded
from .commit import NamedCommit
from .definition import add_columns, create_table, set_comment, set_properties, table_columns
from .either_view import EitherView
from .entry import look_up as look_up_entry
from .entry import read_details
from .location import Location
from .log_view import LogView
from .lookup import find, look_up
from .names import TableName, quoted, unquoted
from .notes import ARCHIVE, CLEANUP, MOST_CALLS, Commit, State, copy_to_json, parse_copy
from .spark_errors import TaskErrors, is_left_to_catalog, naming
from .spark_view import SparkView, read_history, removed_files
from .tasks import ArchivedRows, RewrittenRows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

#: After each lost race the rows are written again. Its winner is a commit of the same kind.
BACK_OFF = CommitBackOff(
    races=BackOff(0.1, 2.0, tries=20),
    refusals=BackOff(0.2, 2.0, tries=3),
    reads=BackOff(0.2, 2.0, tries=3),
)

#: When two create a table at once, Delta fails one before the catalog knows the other's table.
CREATE_BACK_OFF = BackOff(1.0, 2.0, tries=3)

#: A copy of the registers. Delta deletes its old history, and the notes with it; the properties
#: stay. Written when the newest note is older than `COPY_AFTER_MS`.
REGISTERS_PROPERTY = "lakelog.registers"
COPY_AFTER_MS = DAY_MS


class NamedTable(EitherView):
    """A `ColdTable` in a catalog, by name. Thread-safe.

    The first change creates it. A `SegmentFile` of it stands for a range of offsets of a segment;
    only Spark knows which files hold the rows. So there are no `orphans` here: Delta's own VACUUM
    finds what a failed write left.

    Args:
        spark: gives the session, Spark Connect or not, when it is first needed; None where there
            is none, and the table can but be read.
        location: finds the table, so that it is read where it lies; None: Spark reads it.
        name: ``catalog.schema.table``, quoted as SQL wants it.
        rows_of: how hot ranges are read, on executors.
        newest_config: as for `PathTable`.
        naming: held while the table is made, so that nobody else makes it at that time.
        making: as for `PathTable`.
    """

    def __init__(
        self,
        topic: Topic,
        spark: Callable[[], SparkSession] | None,
        name: str,
        rows_of: RowsOf,
        newest_config: Callable[[], int] | None = None,
        *,
        location: Location | None = None,
        naming: Callable[[], AbstractContextManager[None]] = nullcontext,
        making: Making = unguarded,
    ) -> None:
        super().__init__(
            None if location is None else LogView(location, name, self._active),
            None if spark is None else SparkView(spark, name, self._active),
            name,
        )
        self._newest_config = newest_config
        self._naming = naming
        self._making = making
        self._topic = topic
        self._spark = spark
        self._rows_of = rows_of
        self._lock = threading.RLock()  # guards what follows
        self._noted = State()  # what the notes add up to
        self._state = State()  # the same, with what was looked up since
        self._noted_ms = 0  # when the newest note was made
        self._landed: set[str] = set()  # commits whose notes were read
        self._properties: dict[str, str] | None = None  # None: to be read again
        self._columns: StructType | None = None
        self._unchecked = ColdSnapshot()  # the newest seen
        self._latest = ColdSnapshot()  # the newest that holds no contradiction
        self._settings_version = 0
        self._is_vacuumed = False  # whether the history tells of a VACUUM
        self._is_optimized_by_catalog = False  # found out when it is tried

    @property
    def spark(self) -> SparkSession:
        if self._spark is None:
            raise ColdTierRefusedError(
                f"{self.name} is a table that Spark alone changes, and there is none here",
                path=self.name,
            )
        return self._spark()

    @property
    def where(self) -> str:
        return str(self.name)

    @property
    def is_local(self) -> bool:
        """See `ColdTable.is_local`: its catalog tells."""
        return False

    def table_id(self) -> str | None:
        with naming(self.name):
            if not self.exists():
                return None
            (detail,) = self.spark.sql(f"DESCRIBE DETAIL {self.name}").select("id").collect()
        return str(detail["id"])

    def version_frame(self, version: int) -> DataFrame:
        return self._of_spark().version_frame(version)

    # -- looking -----------------------------------------------------------------------------------

    def snapshot(self, newer_than: ColdSnapshot | None = None) -> ColdSnapshot:
        with self._lock:
            self.unchecked()
            latest = self._checked()
        if newer_than is not None and latest.version < newer_than.version:
            self._refuse_older(latest.version, newer_than.version)
        return latest

    def _checked(self) -> ColdSnapshot:
        """The newest snapshot seen, checked for contradictions."""
        with self._lock:
            latest = self._unchecked
            if latest is not self._latest:
                contradictions.check(self._topic.name, latest.files, latest.registers)
                self._latest = latest
            return latest

    def data_files(self, partition: int) -> Sequence[SegmentFile]:
        return self.newest_files(partition) if self.unchecked().version >= 0 else []

    def value_columns(
        self, files: Sequence[SegmentFile], start: int, end: int, schema: pa.Schema
    ) -> None:
        return None

    def missing(self, files: Iterable[SegmentFile]) -> Sequence[SegmentFile]:
        """See `ColdTable.missing`: slices of a data file that is gone. They are seen where the
        table is read where it lies.
        """
        wanted = list(files)
        storage = self._storage() if wanted else None
        if storage is None:
            return []
        if self._is_vacuumed:
            time.sleep(VACUUM_S)
        numbers = sorted({file.partition for file in wanted})

        def named() -> dict[str, SegmentFile]:
            files = (file for number in numbers for file in self.newest_files(number))
            return {f"{storage.root}/{file.path}": file for file in files}

        absent = storage.missing(list(named()))
        if not absent:
            return []
        self.unchecked()  # somebody may have put others in their place meanwhile
        newest = named()
        gone = [newest[path] for path in absent if path in newest]
        return [
            one
            for one in wanted
            if any(
                (one.partition, one.segment) == (file.partition, file.segment)
                and one.start_offset < file.end_offset
                and file.start_offset < one.end_offset
                for file in gone
            )
        ]

    def unchecked(self) -> ColdSnapshot:
        with self._lock:
            self._take_news()
            return self._unchecked

    def _take_news(self) -> None:
        """Go to the newest version."""
        with self._lock:
            with naming(self.name):
                try:
                    self._refresh()
                except Exception:
                    self._check_no_view()
                    raise
            if self._state.version != self._unchecked.version:
                self._show()

    def _show(self) -> None:
        """Make a snapshot of the state."""
        state, properties = self._state, self._read_properties()
        self._unchecked = ColdSnapshot(
            state.version,
            state.index(),
            state.registers,
            mirrored_version(properties),
            is_deleted(properties),
            is_untiered(properties),
        )

    def _refresh(self) -> None:
        since = self._state.version
        if since < 0 and not self.exists():
            return
        try:
            commits = self.news(self._topic.topic_id, since)
        except Exception:
            if since < 0:
                self._properties = None
                self._check_ours()  # a table without a history may not be Delta's
            raise
        if commits is None:
            return
        self._is_vacuumed |= any(commit.operation == "VACUUM START" for commit in commits)
        newest = commits[0].version if commits else -1
        if newest < since:
            self._refuse_older(newest, since)
        if newest == since:
            return
        if since < 0 or not all(commit.moves_rows_alone for commit in commits):
            # After the history: the next look sees what changes meanwhile.
            self._properties = self._columns = None
            self._check_ours()
            if since < 0:
                self._check_by_name(commits)
            self._check_columns()
        notes = [(commit.version, commit.note) for commit in commits if commit.note is not None]
        # A cleanup's note covers the foreign commits up to the version it was planned on.
        seen = [note.on for _, note in notes if note.kind == CLEANUP]
        bare = False
        if since < 0:
            base = self._base(commits)
            bare = base is None
            base = base or self._copied(commits)
            self._noted = self._state = base
            seen.append(base.version)
        self._noted = self._noted.after(newest, notes)
        state = self._state.after(newest, notes)
        strange = any(one.is_strange and one.version > max(seen, default=-1) for one in commits)
        self._state = self._looked_up(state, strange=strange or bare)
        self._landed |= {note.commit for _, note in notes}
        times_ms = [commit.time_ms for commit in commits if commit.note is not None]
        self._noted_ms = max([self._noted_ms, *times_ms])

    def _base(self, commits: Sequence[Commit]) -> State | None:
        """Where the first look starts; None if the history no longer goes back to it."""
        bases = [commit.note.base for commit in commits if commit.note and commit.note.base]
        if bases:
            return max(bases, key=lambda base: base.version)
        if commits[-1].version == 0:
            return State()  # nothing was noted yet
        return None

    def _copied(self, commits: Sequence[Commit]) -> State:
        """A state of the registers alone, from the properties."""
        content = self._read_properties().get(REGISTERS_PROPERTY)
        if content is None:
            raise ColdTierRefusedError(
                f"the history of {self.name} goes back to version {commits[-1].version} and no "
                "longer holds lakelog's registers: others have committed, and lakelog has not, for "
                "longer than delta.logRetentionDuration. Bring back an older copy of the table, or "
                f"set its property {REGISTERS_PROPERTY} to what the registers were",
                path=self.name,
            )
        epochs = {
            ARCHIVE: commits[0].version,
            CLEANUP: commits[0].version,
        }  # above earlier epochs
        try:
            copied = parse_copy(content)
        except ContradictionError as error:
            raise ContradictionError(
                f"property {REGISTERS_PROPERTY} of {self.name}: {error.message}", path=self.name
            ) from error
        return replace(copied, epochs=epochs)

    def _looked_up(self, state: State, *, strange: bool) -> State:
        """The state with what the notes do not say of the slices."""
        unknown = [one for one in state.slices.values() if not one.is_known]
        slices = dict(state.slices)
        if unknown:
            found = look_up(self, self.name, state.version, unknown)
            slices.update({one.key: one for one in found})
        if strange:
            slices = find(self, self.name, state.version, slices)
        return replace(state, slices=slices)

    def _active(self, paths: Iterable[str]) -> tuple[int, set[str]]:
        """The newest version known, and those of the paths that it does not have."""
        newest = self._unchecked
        return newest.version, newest.files.missing(paths)

    # -- changing ----------------------------------------------------------------------------------

    def apply(self, change: Change, planned_on: ColdSnapshot) -> Applied:
        """See `ColdTable.apply`. The loser of a race writes its rows again."""
        check_plan(self._topic, change, planned_on)
        hot = any(isinstance(add, HotRange) for add in change.adds)
        if hot and change.removes:
            raise InvalidArgumentError("a change of a table by name archives or cleans, not both")
        if any(isinstance(add, Rewrite) and add.hot is not None for add in change.adds):
            raise ColdTierRefusedError("Spark writes no single file of a table by name again")
        with self._lock:
            current = self._latest
        # An archive planned on an old look finds out when its commit does not land. A cleanup would
        # put back rows that were deleted since.
        if not hot or current.version < 0 or current.version != planned_on.version:
            current = self.snapshot(planned_on)
        if not change.partitions:
            return Applied(current)
        if change.adds:
            chosen(BY_NAME)
        if current.version < 0:
            self._create()
            self._write_settings()  # another process may have made it with older settings
        lost = LostCommits(f"the table {self.name}", self.name, BACK_OFF)

        def prepare() -> tuple[ColdSnapshot, Attempt]:
            with self._lock:
                current, noted, state = self._checked(), self._noted, self._state

            def attempt(standing: frozenset[int]) -> Applied | NotLanded:
                superseded = change.partitions - standing
                commit = self._commit_of(change, standing, noted, state)
                if not commit.is_needed:
                    return Applied(current, superseded=superseded, left=commit.left)
                error = self._write(commit, current)
                if error is not None and self._is_news_of_catalog(error):
                    return attempt(standing)
                if self._has_landed(commit.note.commit, error):
                    return self._applied(commit, superseded)
                to_others = self._state.version != current.version
                return NotLanded(error, to_others, "Check that it may be written by this user")

            return current, attempt

        committing = Committing(self._topic, change, planned_on, self._newest_config)
        with step("commit", self._topic.name):
            return committing.run(prepare, lost)

    def _create(self) -> None:
        """Make the table, unless it is there. A process without Redis may make it meanwhile."""
        tries = Tries(f"creating the table {self.name}", CREATE_BACK_OFF)
        while True:
            with self._making(self), self._naming(), naming(self.name):
                try:
                    create_table(self.spark, self.name, self._topic)
                    return
                except Exception as error:
                    if self.spark.catalog.tableExists(self.name):
                        return
                    pause_s = tries.failed(one_line(error))
                    if pause_s is None:
                        raise
            time.sleep(pause_s)

    def _commit_of(
        self, change: Change, standing: frozenset[int], noted: State, state: State
    ) -> NamedCommit:
        return NamedCommit.of(
            change,
            standing,
            noted,
            state,
            max(1, MOST_CALLS // self._topic.partitions),
            leaves_newest=self._is_optimized_by_catalog,
        )

    def _is_news_of_catalog(self, error: Exception) -> bool:
        """Whether a write failed as OPTIMIZE is the catalog's; noted for the next ones."""
        is_news = not self._is_optimized_by_catalog and is_left_to_catalog(error)
        self._is_optimized_by_catalog |= is_news
        return is_news

    def _write(self, commit: NamedCommit, current: ColdSnapshot) -> Exception | None:
        """Have Spark write and commit. The history tells whether that succeeded.

        Raises:
            Exception: what a task raised, as it was; then nothing was committed.
        """
        errors = TaskErrors()
        try:
            self._commit(commit, current, errors)
            failpoint("cold.after_commit")
        except Exception as error:
            carried = errors.found_in(str(error))
            if carried is not None:
                raise carried from None
            self._columns = None  # columns may have been added
            return error
        return None

    def _commit(self, commit: NamedCommit, current: ColdSnapshot, errors: TaskErrors) -> None:
        from pyspark.sql.functions import expr

        merged = commit.where_merged(current.files)
        if merged and not self._is_optimized_by_catalog:
            self.spark.sql(f"OPTIMIZE {self.name} WHERE {merged}")
            merged = ""
        note = commit.note
        if merged:
            rows = _by_segment(self._of_spark().frame(current.version).where(merged))
        else:
            rows = self._rows(commit, current, errors)
        writer = (
            rows.writeTo(self.name)
            .option("txnAppId", f"lakelog/{self._topic.topic_id}/{note.kind}")
            .option("txnVersion", str(note.epoch))
            .option("userMetadata", note.to_json(self._topic.topic_id))
            .option("compression", self._topic.config[PARQUET_COMPRESSION])
        )
        if merged:  # readers of the Delta table see no new data
            writer.option("dataChange", "false").overwrite(expr(merged))
        elif commit.removed:
            writer.overwrite(expr(commit.where(current.files)))
        else:
            writer.append()

    def _rows(self, commit: NamedCommit, current: ColdSnapshot, errors: TaskErrors) -> DataFrame:
        """The rows to write: small ranges share a task; and one for each rewritten segment."""
        from pyspark.sql.functions import col, lit

        columns = self._read_columns()
        values = columns_to_write(self._topic, table_columns(columns))
        if commit.ranges:
            tasks = sharing(commit.ranges)
            # The largest first, so that the long ones run beside the rest.
            numbers = self.spark.range(0, len(tasks), 1, len(tasks))
            names = [*TABLE_SCHEMA.names, *values.names]
            rows = ArchivedRows(tasks, self._rows_of, names, values, errors)
            schema = type(columns)([columns[name] for name in names])
            return numbers.mapInArrow(rows, schema).select(
                *(
                    col(quoted(field.name))
                    if field.name in names
                    else lit(None).cast(field.dataType).alias(field.name)
                    for field in columns
                )
            )
        if commit.removed and commit.rewrites:
            rewritten = RewrittenRows(commit.rewrites, columns.names, values)
            there = self._of_spark().frame(current.version).where(commit.where(current.files))
            return _by_segment(there.mapInArrow(rewritten, columns))
        return self.spark.createDataFrame([], columns)

    def _has_landed(self, commit_id: str, error: Exception | None) -> bool:
        """Whether a commit landed, by the table's history.

        Raises:
            CommitUnknownError: the history cannot be read.
        """

        def ask() -> bool:
            if commit_id not in self._landed:
                self._take_news()
            return commit_id in self._landed

        where = f"the table {self.name}"
        return read_back(where, self.name, ask, error, BACK_OFF.reads, (ContradictionError,))

    def _applied(self, commit: NamedCommit, superseded: frozenset[int]) -> Applied:
        with self._lock:
            snapshot, state = self._checked(), self._state
        added = [one.key for one in commit.note.added]
        paths = {state.slices[key].path for key in added if key in state.slices}
        files = tuple(file for file in snapshot.files if file.path in paths)
        unparsed: Mapping[int, int] = {}
        if files and len(value_columns(self._topic)):
            with naming(self.name):
                unparsed = self._of_spark().unparsed(snapshot.version, files)
        return Applied(snapshot, files, superseded, unparsed, commit.left)

    def archived_at(
        self, partition: int, offset: int, since: int, newest: ColdSnapshot
    ) -> ColdSnapshot | None:
        """See `ColdTable.archived_at`: the notes say which slices each commit added."""
        with self._lock, naming(self.name):
            for commit in self.history(self._topic.topic_id, since):
                added = () if commit.note is None else commit.note.added
                mine = [
                    replace(one, version=commit.version)
                    for one in added
                    if one.partition == partition and one.version < 0 and one.kind == "archive"
                ]
                if any(one.start_offset <= offset < one.end_offset for one in mine):
                    slices = look_up(self, self.name, commit.version, mine)
                    state = State(commit.version, slices={one.key: one for one in slices})
                    end = max(one.end_offset for one in slices)
                    return ColdSnapshot(state.version, state.index(), {ArchivedEnd(partition): end})
        return None

    # -- properties and vacuum ---------------------------------------------------------------------

    def last_calls(self, partitions: Iterable[int]) -> Mapping[int, Sequence[ProducerCall]]:
        with self._lock:
            self.snapshot()
            calls = self._state.calls
        return {number: calls[number] for number in partitions if number in calls}

    def mirror(self, topic: Topic) -> None:
        """See `ColdTable.mirror`. Also keeps a copy of the registers in the properties."""
        if topic.config_version <= self._settings_version:
            return
        with self._lock:
            self._topic = topic
        if self.unchecked().version >= 0:
            self._write_settings()
            self._settings_version = topic.config_version

    def _write_settings(self) -> None:
        """Write the topic into the properties, unless they hold a newer one."""
        tries = Tries(f"writing the settings of {self.name}", BACK_OFF.races)
        while True:
            alteration = self._alteration()
            if alteration is None:
                return
            try:
                with naming(self.name):
                    self._alter(alteration)
            except ColdTierError as error:  # it may have landed: the next look tells
                tries.pause(error)
            self._properties = self._columns = None

    def _alteration(self) -> Alteration | None:
        """The next change of properties or columns for the topic; None if none is needed."""
        self.unchecked()
        with self._lock:
            topic, held = self._topic, self._read_properties()
        found = next_alteration(topic, held, lambda: table_columns(self._read_columns()))
        if isinstance(found, AddColumns | SetComment):
            return found
        changes = {} if found is None else dict(found.properties)
        changes |= self._registers_copy(held, at_once=bool(changes))
        return SetProperties(changes) if changes else None

    def _alter(self, alteration: Alteration) -> None:
        if isinstance(alteration, AddColumns):
            add_columns(self.spark, self.name, self._topic, alteration.columns)
        elif isinstance(alteration, SetComment):
            set_comment(self.spark, self.name, alteration.column, alteration.comment)
        else:
            set_properties(self.spark, self.name, dict(alteration.properties))

    def _registers_copy(self, held: Mapping[str, str], *, at_once: bool) -> dict[str, str]:
        """The registers as a property, if it is time to keep them there."""
        with self._lock:
            state, age_ms = self._state, time.time_ns() // 1_000_000 - self._noted_ms
        copied: State | None = State()
        if REGISTERS_PROPERTY in held:
            copied = None  # the property cannot be read
            with suppress(ContradictionError):
                copied = parse_copy(held[REGISTERS_PROPERTY])
        is_old = age_ms > COPY_AFTER_MS
        if not (is_old or at_once):
            return {}
        # Each checkpoint has the properties whole: of producers only those that notes may outlive.
        lasts = is_old and age_ms <= self._topic.config["producer.id.expiration.ms"]
        kept = replace(state, calls=state.calls if lasts else {})
        if copied is not None and _kept(copied) == _kept(kept):
            return {}
        return {REGISTERS_PROPERTY: copy_to_json(kept)}

    def mirrored(self) -> Topic | None:
        with self._lock:
            if self.unchecked().version < 0:
                return None
            return mirrored_topic(self._read_properties())

    def newest_columns(self) -> pa.Schema:
        with self._lock:
            if self.unchecked().version < 0:
                return pa.schema([])
            return columns_beyond_own(table_columns(self._read_columns()))

    def warnings(self) -> Sequence[str]:
        with self._lock:
            if self.unchecked().version < 0:
                return []
            return list(warnings(self._read_properties()))

    def vacuum(self, *, dry_run: bool = False) -> Vacuumed:
        """See `ColdTable.vacuum`. Runs Delta's own; a dry run counts at most 1,000 files."""
        with self._lock:
            if self.snapshot().version < 0:
                properties = mirrored_properties(self._topic)
                return Vacuumed(0, 0, file_retention_ms(properties))
            retention_ms = file_retention_ms(self._read_properties())
        with naming(self.name):
            try:
                paths = self.spark.sql(f"VACUUM {self.name} LITE DRY RUN").collect()
            except Exception as error:
                if not is_left_to_catalog(error):
                    raise
                before_ms = time.time_ns() // 1_000_000 - retention_ms
                left = removed_files(self.spark, self.name, before_ms)
                return Vacuumed(0, 0, retention_ms, left)
            if dry_run or not paths:
                return Vacuumed(len(paths), None if paths else 0, retention_ms)
            refuse_loss(self, self.missing(self.snapshot().files))
            since = self._state.version
            self.spark.sql(f"VACUUM {self.name} LITE").collect()
            commits = read_history(self.spark, self.name, self._topic.topic_id, since)
        for commit in commits:  # not every platform records it
            if commit.operation == "VACUUM START":
                metrics = commit.metrics
                return Vacuumed(
                    int(metrics["numFilesToDelete"]),
                    int(metrics["sizeOfDataToDelete"]),
                    retention_ms,
                )
        return Vacuumed(len(paths), None, retention_ms)

    def orphans(self) -> Orphans:
        """No orphans: the platform's own vacuum finds what a failed write left."""
        return Orphans()

    def remove_orphans(self) -> Orphans:
        return Orphans()

    def leftovers(self) -> Leftovers:
        """See `ColdTable.leftovers`: the files are the catalog's, and its VACUUM's to delete."""
        if self.snapshot().version < 0:
            return Leftovers()
        days = file_retention_ms(self._read_properties()) / DAY_MS
        return Leftovers(
            beyond=(
                f"older versions of {self.name}, with their files and what the table's log says of "
                "them: the catalog deletes the files by VACUUM once they were removed longer than "
                f"{days:g} days ago (file.delete.delay.ms), and log entries after "
                "delta.logRetentionDuration",
                f"files of {self.name} that no version names, written by runs that others overtook "
                "or that were killed: a full VACUUM (without LITE, which cleanup's has) deletes "
                f"them once they were written longer than {days:g} days ago",
            )
        )

    def discard(self, files: Iterable[SegmentFile]) -> Sequence[Discarded]:
        """See `ColdTable.discard`: no file is lakelog's to delete; `leftovers` says so."""
        return ()

    def forget_history(self) -> bool:
        """See `ColdTable.forget_history`: the log is the catalog's; `leftovers` says so."""
        return False

    def purge(self, *, decided: bool = False) -> Purged:
        """See `ColdTable.purge`. Drops the table; Unity Catalog's UNDROP may bring it back. Where
        nobody can tell whose table it is, it is not dropped.

        Its files are the catalog's: a managed table's go when the catalog says.
        """
        if not self._is_there():
            return Purged(self.name, 0, 0)
        if self._read_properties().get(TOPIC_ID_PROPERTY) != str(self._topic.topic_id):
            return Purged(self.name, 0, 0)  # another's has the name: this topic never got one
        try:
            tell_purge(self, decided=decided)
            files = len(self.unchecked().files)
        except (ColdTierRefusedError, ContradictionError):
            if not decided:
                raise
            files = 0
        with naming(self.name):
            self.spark.sql(f"DROP TABLE IF EXISTS {self.name}").collect()
        return Purged(self.name, files, None, (self.name,) if self._is_there() else ())

    def _is_there(self) -> bool:
        """Whether the catalog has something of the name."""
        with naming(self.name):
            return bool(self.spark.catalog.tableExists(self.name))

    def _read_properties(self) -> dict[str, str]:
        if self._properties is None:
            with naming(self.name):
                self._properties = self.properties()
        return self._properties

    def _read_columns(self) -> StructType:
        """The columns of the newest version; they change only when its properties do."""
        with self._lock:
            if self._columns is None:
                with naming(self.name):
                    self._columns = self.spark.table(self.name).schema
            return self._columns

    def _check_ours(self) -> None:
        properties = self._read_properties()
        check_format(properties.get(FORMAT_PROPERTY), f"the table {self.name}", path=self.name)
        owner = properties.get(TOPIC_ID_PROPERTY)
        if owner == str(self._topic.topic_id):
            return
        if owner is None:
            what = "a table that lakelog did not make"
            advice = "Archive this topic to another schema, or drop that table if nobody needs it"
        else:
            name = properties.get(TOPIC_NAME_PROPERTY)
            what = f"the table of topic {name!r} with id {owner}"
            anew = (
                f"To give this one a table of another name, delete it and create it again: "
                f"`lakelog topics create {self._topic.name} --anew`"
            )
            if is_deleted(properties):
                what += ", which was deleted"
                purge = f"`lakelog topics purge {name} --id {owner}` drops that table now, cleanup"
                advice = f"{purge} does later. {anew}"
            elif name == self._topic.name:
                advice = (
                    f"If Redis was lost, delete this topic, and `lakelog restore {name}` brings "
                    f"that one back. {anew}"
                )
            else:
                advice = (
                    "Names that differ in '.', '-', '_' or case alone are one name in a catalog: "
                    f"archive this topic to another schema. {anew}"
                )
        raise ForeignTableError(
            f"{self.name} should hold the table of topic {self._topic.name!r} with id "
            f"{self._topic.topic_id}, but holds {what}. {advice}",
            path=self.name,
        )

    def _check_no_view(self) -> None:
        """Say so if somebody's view has the name: what else fails for it tells less."""
        if self._state.version >= 0 or self._spark is None:
            return
        entry = None
        with suppress(ColdTierError):  # what failed first is told
            entry = look_up_entry(self.spark, TableName(*unquoted(self.name)))
        if entry is not None and entry.kind == "VIEW":
            raise ForeignTableError(
                f"{self.name} should hold the table of topic {self._topic.name!r}, but is {entry}. "
                "Drop the view if nobody needs it, or archive this topic to another schema",
                path=self.name,
            )

    def _check_by_name(self, commits: Sequence[Commit]) -> None:
        """Refuse a table at a path that was given a name in the catalog."""
        noted = REGISTERS_PROPERTY in self._read_properties() or any(one.note for one in commits)
        if noted or not any(one.is_strange for one in commits):
            return
        if read_details(self.spark, self.name).get("Type") == "EXTERNAL":
            raise ForeignTableError(
                f"{self.name} should be a table that Spark alone commits to, but it is an external "
                "one, committed to by path: none of its commits says how far it is archived. Say "
                "where the schema's tables lie: location='…' (--location) besides cold='catalog."
                "schema'. DESCRIBE DETAIL shows the table's own folder, {location}/{topic}/{id}",
                path=self.name,
            )

    def _check_columns(self) -> None:
        with naming(self.name):
            there = self.column_names()
        lost = [name for name in TABLE_SCHEMA.names if name not in there]
        if lost:
            raise ColdTierRefusedError(
                f"the table {self.name} has no column {', '.join(lost)}: somebody renamed or "
                "dropped it. Nothing was changed. Give it its name back with ALTER TABLE … RENAME "
                "COLUMN … TO …, or if it was dropped RESTORE the table to the version before",
                path=self.name,
            )

    def _refuse_older(self, version: int, known: int) -> NoReturn:
        raise ContradictionError(
            f"the table {self.name} is at version {version}, but was seen at version {known} "
            "before: somebody put another table in its place. Bring the newest one back, or delete "
            "the topic and create it again",
            path=self.name,
        )


def _kept(state: State) -> tuple[Mapping[Register, int], Mapping[int, Sequence[ProducerCall]]]:
    """What a copy in the properties says of a state."""
    return state.registers, {number: calls for number, calls in state.calls.items() if calls}


def _by_segment(rows: DataFrame) -> DataFrame:
    """The rows in one task, and so in one file, for each segment, by offset."""
    parted = rows.repartition(*PARTITION_COLUMNS)
    return parted.sortWithinPartitions(*PARTITION_COLUMNS, "offset")
