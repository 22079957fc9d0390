"""A real topic of two partitions beside its models, for the rules of the machine to build on.

`LogHarness` produces, archives and looks, and compares each answer with `ModelLog`'s.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, ClassVar
from unittest import mock
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from msgspec import Struct
from msgspec.structs import replace

from lakelog.archive.archiver import Archiver
from lakelog.archive.copy import HotRows
from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch
from lakelog.codec.encryption.of_topic import sealing
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.emptying import table_starts
from lakelog.cold.segment import archived_start
from lakelog.cold.store.storage import Storage
from lakelog.cold.table import ColdTable
from lakelog.engines.engine import Engine, InlineEngine
from lakelog.errors import (
    InvalidRecordError,
    LakelogError,
    MissingExtraError,
    PolicyViolationError,
    RecoveryNeededError,
)
from lakelog.hot import TopicRegistry
from lakelog.hot.append import AppendCall, AppendResult
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.place import LogPlace
from lakelog.read.tiers import Values
from lakelog.read.topic_log import TopicLog
from lakelog.testing import strategies
from lakelog.testing.model import Answer, ModelLog, Row, require, require_same
from lakelog.testing.strategies import BASE_TIME_MS, Batch
from lakelog.values import reservation
from lakelog.values.config import MIB
from lakelog.values.keyspace_defaults import KeyspaceDefaults
from lakelog.values.offsets import HotSegments
from lakelog.values.producer_calls import REMEMBERED_CALLS
from lakelog.values.record import Record, to_records
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition
from tests.support.later_clock import LaterClock
from tests.support.servers import RedisServer

from .readers import DeltaFile, Readers
from .watched_writers import Answers, Watch, WatchedProducer, WatchedSink, Writer

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

TOPIC = "orders"
PARTITIONS = 2

#: How many offsets a partition has reserved at a time: so few that appends soon pass them, or as
#: many as in real use. Or where it begins with few, as it does in one folder.
RESERVED_OFFSETS = (100, reservation.LEAST_OFFSETS, BEGINS_WITH := 16)
#: A server whose append-only file is larger than this is replaced by a new one, since a restart
#: reads all of it.
MAX_APPEND_ONLY_BYTES = 8 * MIB


partitions = st.integers(0, PARTITIONS - 1)
producers = st.integers(1, 3)


class TableTold:
    """Tells a topic's table where the log starts, and nothing else.

    Args:
        table: opens it.
    """

    def __init__(self, table: Callable[[Topic], ColdTable]) -> None:
        self._table = table

    @property
    def has_root(self) -> bool:
        """See `Copies.has_root`."""
        return True

    def log_starts(self, topic: Topic) -> Mapping[int, int]:
        """See `Copies.log_starts`."""
        return table_starts(self._table(topic), topic)

    def mirrored(self, topic: Topic) -> Topic | None:
        """See `Copies.mirrored`."""
        return self._table(topic).mirrored()

    def foreign_columns(self, topic: Topic) -> Mapping[str, str]:
        return {}

    def unwritten_columns(self, topic: Topic) -> tuple[str, ...]:
        return ()

    def settled(self, topic: Topic) -> None:
        """Nothing."""

    def deleted(self, topic: Topic) -> None:
        """Nothing."""

    def defaults_set(self, defaults: KeyspaceDefaults) -> None:
        """Nothing."""

    def lost(self, keyspace_id: UUID | None, name: str | None) -> Sequence[Topic]:
        """None."""
        return ()


class Death(BaseException):
    """The archiver's process dies here."""


class Sent(Struct, frozen=True):
    """A call, as its producer remembers it."""

    call: AppendCall
    rows: tuple[Row, ...]
    run_id: str  # of the server it was sent to

    def again(self) -> Sent:
        return replace(self, call=replace(self.call, sent_under=self.run_id))


class FileRows(Struct, frozen=True):
    """What one file of the Delta table holds."""

    records: list[Record]
    horizons_ms: dict[int, int]  # by offset


def any_records(machine: LogHarness) -> bool:
    return any(model.records for model in machine.models)


def any_new(machine: LogHarness) -> bool:
    """Whether anything was appended since the last upheaval; without that, a new one is dull."""
    return machine.news > 0


class LogHarness(RuleBasedStateMachine):
    """One tiered topic of two partitions: real tiers on one side, `ModelLog` on the other.

    Its one rule compares everything.
    """

    directory: ClassVar[Path]
    server: ClassVar[RedisServer]

    #: What writes: calls that the machine makes up, a `Producer`, or the tasks of Spark's sink.
    WRITERS: ClassVar[tuple[str, ...]] = ("calls", "producer", "sink")
    #: What may happen while an archiver is at work.
    MEANWHILE: ClassVar[tuple[str, ...]] = ("all", "part", "produce", "delete")

    def __init__(self) -> None:
        super().__init__()
        self._cold_root = Path(tempfile.mkdtemp(dir=self.directory, prefix="cold-"))
        self._empty_server()
        self.clock = ManualClock(BASE_TIME_MS)
        self._patches = ExitStack()
        self.run_id = self._run_id()
        self.models: list[ModelLog] = []
        self.epochs: dict[tuple[int, int], int] = {}  # by producer and partition
        self.sequences: dict[tuple[int, int], int] = {}
        self.sent: list[list[Sent]] = [[] for _ in range(PARTITIONS)]
        self.sizes: list[int] = []  # of the append-only file, after each step
        self.news = 0  # calls appended since the last upheaval
        self.writer_kind = self.WRITERS[0]
        self._writers: dict[int, Writer] = {}  # by producer
        self._queries = 0
        self._files_read: dict[Path, FileRows] = {}
        self._delta_files: dict[str, DeltaFile] = {}

    def teardown(self) -> None:
        try:
            if self.models and sys.exc_info()[0] is None:
                self.compare_everything()
        finally:
            self._patches.close()
            if self.models:
                self._close()
            shutil.rmtree(self._cold_root)

    @initialize(
        data=st.data(),
        config=strategies.topic_settings(),
        reserved=st.sampled_from(RESERVED_OFFSETS),
    )
    def create_topic(self, data: st.DataObject, config: dict[str, object], reserved: int) -> None:
        self.writer_kind = data.draw(st.sampled_from(self.WRITERS), "writer")
        grows = reserved == BEGINS_WITH
        for name in ("FEW_OFFSETS",) if grows else ("FIRST_OFFSETS", "LEAST_OFFSETS"):
            self._patches.enter_context(mock.patch.object(reservation, name, reserved))
        self.hot = HotLog.connect(self.server.url, clock=self.clock)
        topics = self.hot.topics()
        topics.first_offsets = reserved
        self.topic = topics.create(TOPIC, PARTITIONS, config)
        self._begin()

    # -- what always holds -------------------------------------------------------------------------

    @invariant()
    def the_tiers_cover_the_log(self) -> None:
        if not self.models:
            return
        snapshot = self.table.snapshot()
        for tp, seen in self._observe().items():
            model = self.models[tp.partition]
            model.check_segments(seen, self.topic.config.segment_bytes)
            require(
                seen.recovered == (model.run_id == self.run_id),
                f"{tp}: recovered={seen.recovered}, but written under {model.run_id}",
            )
            reserved_end = snapshot.reserved_end(tp.partition)
            require(
                max(model.told_end, seen.reserved_end or 0) <= reserved_end,
                f"{tp}: offsets below {model.told_end} have been given out and Redis may give out "
                f"those below {seen.reserved_end}, but {reserved_end} is where the reserved ones "
                "end",
            )
        for partition, offsets in self.log.offsets().items():
            model = self.models[partition]
            model.check_offsets(offsets, self.run_id)
        self.sizes.append(self.server.append_only_size())

    @precondition(any_records)
    @rule()
    def compare_everything(self) -> None:
        """The whole log by each reader, the hot tier by itself, and the Delta table by pyarrow."""
        readers = self._readers()
        for model in self.models:
            tp, held = model.topic_partition, model.read()
            readers.compare(tp.partition, held, [(model.log_start, model.log_end)])
            readers.compare_frames(tp.partition, held)
            readers.compare_archived(tp.partition, held, [(model.log_start, model.log_end)])
            steps = self.hot.read(tp, model.local_log_start)
            opened = (self._values().of_step(tp, step).records for step in steps)
            hot = [record for records in opened for record in to_records(tp, records)]
            require_same(hot, model.hot())
        self._check_delta_rows()

    # -- how ---------------------------------------------------------------------------------------

    def _begin(self) -> None:
        self.models = [
            ModelLog(
                tp,
                self.run_id,
                self.topic.config["message.timestamp.type"],
                keys_required=self.topic.config.compacted,
            )
            for tp in self.topic.topic_partitions()
        ]
        self.sent = [[] for _ in range(PARTITIONS)]
        self.epochs.clear()
        self.sequences.clear()
        self._open()
        self._cannot_be_lost()

    def _open(self) -> None:
        """Opens everything again that a process holds in memory."""
        self._close()
        self.hot = HotLog.connect(self.server.url, clock=self.clock)
        self.table = self._new_table()
        self.archiver = self._new_archiver()
        self.log = TopicLog(self.topic, self.hot, self.table, self.clock)

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers.clear()
        self.hot.close()

    def _readers(self) -> Readers:
        place = LogPlace.of(self.server.url, self._cold_root)
        return Readers(self.log, place, self._delta_files)

    def _engine(self) -> Engine:
        return InlineEngine()

    def _new_table(self) -> ColdTable:
        topic, rows_of = self.topic, HotRows(HotSource(self.server.url))
        return PathTable(
            self.topic,
            Storage(str(self._cold_root)),
            self._engine(),
            rows_of,
            newest_config=lambda: self._current(topic).config_version,
            store_clock=LaterClock(),
        )

    def _current(self, topic: Topic) -> Topic:
        return self.hot.renewed(topic)

    def _registry(self) -> TopicRegistry:
        return self.hot.topics()

    def _new_archiver(self) -> Archiver:
        topic = self.topic
        return Archiver(
            topic, self.hot, self._new_table(), current_topic=lambda: self._current(topic)
        )

    def _values(self) -> Values:
        """What decrypts stored values."""
        return Values(self.topic, self.hot.renewed)

    def _run_id(self) -> str:
        with self.server.client() as client:
            return str(client.info("server")["run_id"])

    def _empty_server(self) -> None:
        if self.server.append_only_size() > MAX_APPEND_ONLY_BYTES:
            self.server.kill(at_once=True)
            shutil.rmtree(self.server.directory)
            self.server.start()
        with self.server.client() as client:
            client.flushall()

    def _reconnect(self, *, reopen: bool) -> None:
        self.run_id = self._run_id()
        if reopen:
            self._open()

    def _lose_tail(self, size_bytes: int, *, clock_ms: int = 0, reopen: bool = False) -> None:
        """The server comes back with that much of its file, and its clock has jumped."""
        kept = min(size_bytes, self.server.append_only_size())
        self.server.cut_append_only_file(to_size=kept)
        # Twice: if a file ends within a command of a transaction, Redis cuts it after the previous
        # command, not before the MULTI, and would append to that. The next start mends it.
        self.server.start()
        self.server.restart(clean=False)
        self.clock.advance(clock_ms)
        self._reconnect(reopen=reopen)
        self.sizes = [size for size in self.sizes if size <= kept]
        for tp, seen in self._observe().items():
            model = self.models[tp.partition]
            model.lose_tail(seen.log_end)
            model.local_log_start = seen.local_log_start

    def _cannot_be_lost(self) -> None:
        """From now on, no restart goes back to before this moment."""
        self.sizes = [self.server.append_only_size()]

    def _observe(self) -> dict[TopicPartition, HotSegments]:
        partitions = self.topic.topic_partitions()
        return self.hot.segments(partitions, topic_id=self.topic.topic_id, calls=REMEMBERED_CALLS)

    # producing

    def _produce(self, partition: int, producer: int, batches: Sequence[Batch]) -> None:
        """Writes as producers do: if the server changed, recover, take a new epoch, try again."""
        if self.writer_kind != "calls":
            rows = [row for batch in batches for row in self._fitting(batch).rows]
            self._writer(producer).write(self.models[partition], rows, self.run_id)
            return
        if not self._send(partition, self._calls(partition, producer, batches)):
            self._recover_as_producer(partition)
            self._new_epoch(partition, producer)
            self._send(partition, self._calls(partition, producer, batches))

    def _position(self, partition: int, producer: int) -> tuple[int, int]:
        key = producer, partition
        return self.epochs.get(key, 0), self.sequences.get(key, 0)

    def _new_epoch(self, partition: int, producer: int) -> None:
        self.epochs[producer, partition] = self.epochs.get((producer, partition), 0) + 1
        self.sequences[producer, partition] = 0

    def _calls(self, partition: int, producer: int, batches: Sequence[Batch]) -> list[Sent]:
        """The producer's next calls, which use up their sequence numbers."""
        calls = []
        for batch in batches:
            epoch, sequence = self._position(partition, producer)
            fitting = self._fitting(batch)
            calls.append(self._call(partition, fitting, producer, epoch, sequence))
            self.sequences[producer, partition] = sequence + len(batch.rows)
        return calls

    def _fitting(self, batch: Batch) -> Batch:
        """The batch as a producer that knows the time and the topic would send it."""
        batch = batch.at(self.clock.now_ms())
        return batch.keyed() if self.topic.config.compacted else batch

    def _call(self, partition: int, batch: Batch, producer: int, epoch: int, sequence: int) -> Sent:
        produced = ProducedBatch(
            batch.entries(sealing(self.topic)),
            producer,
            epoch,
            sequence,
            sequence + len(batch.rows) - 1,
        )
        tp = self.topic.partition(partition)
        return Sent(AppendCall(tp, self.topic.topic_id, produced), batch.rows, self.run_id)

    def _send(self, partition: int, calls: list[Sent]) -> bool:
        """Sends the calls and compares the answers; False if the partition must be recovered."""
        answers = self._append(calls)
        for sent, answer in zip(calls, answers, strict=True):
            if not isinstance(answer, AppendResult | RecoveryNeededError):
                # A definite refusal: the producer takes a new epoch.
                self._new_epoch(partition, sent.call.batch.producer_id)
        return not any(isinstance(answer, RecoveryNeededError) for answer in answers)

    def _append(self, calls: Sequence[Sent]) -> Sequence[AppendResult | LakelogError]:
        """Appends the calls, and compares each answer with the model's."""
        self._observe_reserved()
        answers = self.hot.append_all([sent.call for sent in calls])
        for sent, answer in zip(calls, answers, strict=True):
            batch, partition = sent.call.batch, sent.call.topic_partition.partition
            expected = self.models[partition].append(
                sent.rows,
                batch.producer_id,
                batch.epoch,
                batch.first_sequence,
                run_id=self.run_id,
                now_ms=self.clock.now_ms(),
                sent_under=sent.call.sent_under,
                has_checksum=batch.checksums is not None,
            )
            _check_answer(answer, expected)
            if isinstance(answer, InvalidRecordError):
                keys = [row[1] for row in sent.rows]
                require(answer.fields["index"] == keys.index(None), f"the wrong record: {answer}")
            if isinstance(expected, Answer) and not expected.duplicate:
                self.sent[partition].append(sent)
                self.news += 1
        return answers

    def _writer(self, producer: int) -> Writer:
        if producer not in self._writers:
            self._writers[producer] = (
                WatchedProducer(self._watch())
                if self.writer_kind == "producer"
                else WatchedSink(self._watch(), self._new_query())
            )
        return self._writers[producer]

    def _new_query(self) -> str:
        self._queries += 1
        return f"query {self._queries}"

    def _watch(self) -> Watch:
        def append(calls: Sequence[tuple[AppendCall, Sequence[Row]]]) -> Answers:
            return self._append([Sent(call, tuple(rows), self.run_id) for call, rows in calls])

        def recover(topic_partition: TopicPartition, at_least: int) -> None:
            self.log.recover(topic_partition.partition, at_least)
            self._settle_recoveries()

        return Watch(self.topic, self.hot, append, recover)

    def _recover_as_producer(self, partition: int) -> None:
        model = self.models[partition]
        self.log.recover(partition, model.told_end)
        self._settle_recoveries()

    def _observe_reserved(self) -> None:
        """Tells the models how many offsets each partition may give out."""
        for tp, seen in self._observe().items():
            self.models[tp.partition].reserved_end = seen.reserved_end

    def _settle_recoveries(self) -> None:
        """Tells the models which partitions were recovered."""
        for tp, seen in self._observe().items():
            model = self.models[tp.partition]
            if model.run_id == self.run_id and seen.log_end > model.hot_end:
                model.skip_to(seen.log_end)  # the next reserved offsets do not follow on
            if seen.recovered and model.run_id != self.run_id:
                was_clean = model.clean
                model.recover(self.run_id, seen.log_end, seen.calls)
                if was_clean:  # a takeover is answered only once it is on disk
                    self._cannot_be_lost()

    # archiving

    def _draw_ends(self, data: st.DataObject) -> dict[int, int]:
        """Where to archive up to, for one or both partitions."""
        chosen = data.draw(st.sets(partitions, min_size=1), "partitions")
        return {partition: self._draw_offset(data, partition) for partition in sorted(chosen)}

    def _draw_offset(self, data: st.DataObject, partition: int) -> int:
        """An offset of the log, mostly where something begins or ends."""
        model = self.models[partition]
        edges = {model.log_start, model.log_end, model.archived_end, model.local_log_start}
        edges |= {edge for gap in model.gaps for edge in (gap.start, gap.end)}
        edges |= {record.offset for record in model.read()[:: max(1, len(model.records) // 16)]}
        near = {edge + step for edge in edges for step in (-1, 0, 1)}
        legal = sorted(offset for offset in near if model.log_start <= offset <= model.log_end)
        return data.draw(st.sampled_from(legal), "offset")

    def _archive(self, archiver: Archiver, ends: dict[int, int] | None) -> None:
        before = {model.topic_partition: model.archived_end for model in self.models}
        report = archiver.run_once("latest" if ends is None else ends)
        self._settle_recoveries()
        moved = 0
        for model in self.models:
            end = self._predict(model, ends)
            moved += self._settle_archived(model, end, end)
        require(report.records == moved, f"{report.records} reported, {moved} archived")
        ranges = {p.topic_partition: p.end_offset for p in report.partitions}
        expected = {
            model.topic_partition: model.archived_end
            for model in self.models
            if model.archived_end != before[model.topic_partition]
        }
        require(ranges == expected, f"reported {ranges}, archived {expected}")
        self._check_trimmed()

    def _predict(self, model: ModelLog, ends: dict[int, int] | None) -> int:
        bound = None if ends is None else ends.get(model.topic_partition.partition, 0)
        return model.archivable_end(bound)

    def _settle_archived(self, model: ModelLog, low: int, high: int) -> int:
        """Tells the model how far its partition is archived now, which must be in [low, high]."""
        tp = model.topic_partition
        end = self.log.offsets([tp.partition])[tp.partition].archived_end
        require(low <= end <= high, f"{tp} is archived up to {end}, expected {low}..{high}")
        moved = model.archive(end)
        model.local_log_start = self._observe()[tp].local_log_start
        return moved

    def _check_trimmed(self) -> None:
        if self.topic.config.local_retention_ms == 0:
            for tp, seen in self._observe().items():
                model = self.models[tp.partition]
                end = min(model.archive_start, seen.log_end)
                require(seen.local_log_start >= end, f"{tp} was not trimmed up to {end}: {seen}")

    def _delete_records(self, partition: int, offset: int) -> None:
        if self.topic.config["cleanup.policy"] == {"compact"}:
            self._refused(PolicyViolationError, lambda: self.log.raise_log_start(partition, offset))
            return
        start = self.log.raise_log_start(partition, offset)
        model = self.models[partition]
        model.raise_log_start(offset)
        require(start == model.log_start, f"log start {start}, expected {model.log_start}")
        tp = model.topic_partition
        model.local_log_start = self._observe()[tp].local_log_start

    def _draw_meanwhile(self, data: st.DataObject) -> Callable[[], None]:
        """Something that another process does; it tells the models what it changes."""
        return self._meanwhile(data.draw(st.sampled_from(self.MEANWHILE), "meanwhile"), data)

    def _meanwhile(self, what: str, data: st.DataObject) -> Callable[[], None]:
        partition = data.draw(partitions, "partition")
        if what == "produce":
            batch = data.draw(strategies.batches(), "batch")
            return lambda: self._produce(partition, 3, [batch])
        if what == "delete":
            return lambda: self._delete_records(partition, self._draw_offset(data, partition))
        return lambda: self._archive(
            self._new_archiver(), self._draw_ends(data) if what == "part" else None
        )

    # the Delta table, without lakelog

    def _check_delta_rows(self) -> dict[tuple[int, int], list[Record]]:
        """Checks that the table's rows are the records that must be archived, each of them once.

        Returns:
            The rows by partition and segment, in offset order.
        """
        rows: dict[int, list[Record]] = {number: [] for number in range(PARTITIONS)}
        horizons_ms: dict[int, dict[int, int]] = {number: {} for number in range(PARTITIONS)}
        segments: dict[tuple[int, int], list[Record]] = {}
        for path, partition, segment in self._active_files():
            found = self._rows_of(path, partition)
            require(
                all(record.offset >= segment for record in found.records),
                f"{path} holds records from before its segment",
            )
            rows[partition] += found.records
            segments.setdefault((partition, segment), []).extend(found.records)
            horizons_ms[partition] |= found.horizons_ms
        for number, model in enumerate(self.models):
            model.check_rows(rows[number], horizons_ms[number])
        for records in segments.values():
            records.sort(key=lambda record: record.offset)
        return segments

    def _rows_of(self, path: Path, partition: int) -> FileRows:
        """The content of a file of the table; files never change, so each is read once."""
        require(path.exists(), f"{path} is gone, though the table names it")
        if path not in self._files_read:
            table = pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read()
            self._files_read[path] = self._file_rows(table, partition)
        return self._files_read[path]

    def _file_rows(self, table: pa.Table, partition: int) -> FileRows:
        topic_partition = self.topic.partition(partition)
        values = self._values().of_columns(
            table["key"].combine_chunks().cast(pa.binary()),
            table["value"].combine_chunks().cast(pa.binary()),
            lambda row: (topic_partition, table["offset"][row].as_py()),
        )
        place = table.schema.get_field_index("value")
        records = to_records(topic_partition, table.set_column(place, "value", values))
        horizons_us = table["delete_horizon"].cast("int64").to_pylist()
        horizons_ms = {
            record.offset: horizon_us // 1000
            for record, horizon_us in zip(records, horizons_us, strict=True)
            if horizon_us is not None
        }
        return FileRows(records, horizons_ms)

    def _active_files(self) -> list[tuple[Path, int, int]]:
        """Path, partition and segment of each file, as delta-rs lists them."""
        if not self._is_table():
            return []
        directory = self._table_directory()
        actions: Any = self._delta_table().get_add_actions(flatten=True)
        names = ("path", "partition.partition", "partition.segment")
        columns = (actions.column(name).to_pylist() for name in names)
        return [
            (directory / path, int(partition), int(segment))
            for path, partition, segment in zip(*columns, strict=True)
        ]

    def _check_orphans(self) -> None:
        """Checks that no archived file is left that no commit can name any more."""
        for path in self._uncommitted():
            start = archived_start(str(path))
            partition = int(path.parent.parent.name.partition("=")[2])
            require(
                start is None or start >= self.models[partition].archived_end,
                f"{path} is left over, though it can never be committed",
            )

    def _committed(self) -> set[Path]:
        """The files that a commit named at some time."""
        directory = self._table_directory()
        paths = set()
        for commit in (directory / "_delta_log").glob("*.json"):
            for line in commit.read_text().splitlines():
                action = json.loads(line)
                paths |= {directory / action[a]["path"] for a in ("add", "remove") if a in action}
        return paths

    def _uncommitted(self) -> set[Path]:
        return set(self._table_directory().glob("partition=*/*/*.parquet")) - self._committed()

    def _is_table(self) -> bool:
        return bool(DeltaTable.is_deltatable(str(self._table_directory())))

    def _delta_table(self) -> DeltaTable:
        return DeltaTable(str(self._table_directory()))

    def _table_directory(self) -> Path:
        return self._cold_root / self.topic.name / str(self.topic.topic_id)

    # comparing

    def _refused(
        self,
        errors: type[LakelogError] | tuple[type[LakelogError], ...],
        action: Callable[[], object],
    ) -> None:
        try:
            answer = action()
        except errors:
            return
        require(False, f"expected {errors}, got {answer!r}")


def _check_answer(
    answer: AppendResult | LakelogError, expected: Answer | type[LakelogError]
) -> None:
    if isinstance(expected, Answer):
        found = (
            Answer(answer.base_offset, answer.append_time_ms, answer.duplicate)
            if isinstance(answer, AppendResult)
            else answer
        )
        require(found == expected, f"the append answered {found!r}, expected {expected}")
    else:
        require(type(answer) is expected, f"the append answered {answer!r}, not {expected}")
