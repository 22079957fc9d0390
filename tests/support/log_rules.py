"""What happens to a log and how it is read, as rules of a Hypothesis state machine.

Producing, resending, archiving, trimming, deleting, reading, seeking, crashes, restarts and lost
tails. Cleanup is in `cleanup_rules`.
"""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from lakelog.archive.plan import FlushLimit, plan
from lakelog.base import failpoints
from lakelog.codec.entry import VERSION_FIELD
from lakelog.cold.change import Change
from lakelog.cold.emptying import empty
from lakelog.cold.registers import ArchivedEnd
from lakelog.cold.table import ColdSnapshot
from lakelog.errors import (
    ContradictionError,
    CorruptRecordError,
    HotTierPausedError,
    MissingExtraError,
    NewerVersionError,
    OffsetOutOfRangeError,
    RecoveryNeededError,
    TrimmedError,
    UnknownTopicIdError,
)
from lakelog.hot.keys import Keys
from lakelog.operate.restore import purge, restore, undelete
from lakelog.read.topic_log import TopicLog
from lakelog.testing import strategies
from lakelog.testing.model import REMEMBERED_CALLS, ModelLog, require, require_same
from lakelog.testing.strategies import BASE_TIME_MS, Batch
from lakelog.values.config import DATA_KEYS, ENCRYPTION_KEY, HOUR_MS, MIB, Compression, EntryFormat

from .harness import (
    PARTITIONS,
    TOPIC,
    Death,
    LogHarness,
    TableTold,
    any_new,
    any_records,
    partitions,
    producers,
)
from .watched_writers import WatchedSink

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

#: Failpoints that an archive run passes, before its commit and after it.
FAILPOINTS = [name for name in failpoints.NAMES if name.startswith(("archive.", "cold."))]


#: What happens to a log between two attempts of a task.
_AMID_A_TASK = (
    "nothing",
    "archive",
    "archive in part",
    "lose the tail",
    "lose redis",
    "archive and lose the tail",
    "archive and lose redis",
    "archive in part and lose redis",
)

#: How far a server's clock is off after a restart.
_steps_ms = st.sampled_from([0, 100, -100, -1]) | strategies.clock_jumps()

_SMALL_BATCH = Batch(
    rows=((BASE_TIME_MS, b"key", b"value", ()),),
    layout=(EntryFormat.FIELDS,),
    compression=Compression.NONE,
    flatten=False,
    fresh=False,
)


class HeldPlan(Struct, frozen=True):
    """The plan of an archiver that is then held up for a while."""

    change: Change
    planned_on: ColdSnapshot
    starts: dict[int, tuple[int, int]]  # the model's archive_start and log_start, by partition
    recoveries: dict[int, int]  # that the model knew of, by partition


class LogRules(LogHarness):
    """One log from its producers to its readers."""

    def __init__(self) -> None:
        super().__init__()
        self.held: HeldPlan | None = None

    # -- producing -------------------------------------------------------------------------------

    @rule(
        partition=partitions,
        producer=producers,
        batches=st.lists(strategies.batches(), min_size=1, max_size=3),
        restarted=st.sampled_from([False, False, True]),
        seconds=st.sampled_from([0, 0, 1, 11]),
    )
    def produce(
        self, partition: int, producer: int, batches: list[Batch], restarted: bool, seconds: int
    ) -> None:
        """Some time passes, then several calls are in flight together."""
        self.clock.advance(1000 * seconds)
        if restarted and producer in self._writers:
            self._writers.pop(producer).close()
        elif restarted:
            self._new_epoch(partition, producer)
        self._produce(partition, producer, batches)

    @rule(producer=producers, batches=st.tuples(*[strategies.batches()] * PARTITIONS))
    def produce_everywhere(self, producer: int, batches: tuple[Batch, ...]) -> None:
        for partition, batch in enumerate(batches):
            self._produce(partition, producer, [batch])

    @rule(
        partition=partitions,
        producer=producers,
        batch=strategies.batches(),
        reply_lost=st.booleans(),
        times=st.integers(1, 3),
    )
    def produce_without_answer(
        self, partition: int, producer: int, batch: Batch, reply_lost: bool, times: int
    ) -> None:
        """Either the request or its reply is lost; the producer cannot tell, and resends."""
        if self.writer_kind != "calls":
            rows = self._fitting(batch).rows
            lost = ["reply" if reply_lost else "request"] * times
            self._writer(producer).write(self.models[partition], rows, self.run_id, lost)
            return
        (sent,) = self._calls(partition, producer, [batch])
        if reply_lost:
            self._send(partition, [sent])
        self._send(partition, [sent.again()])

    @precondition(any_records)
    @rule(partition=partitions)
    def resend(self, partition: int) -> None:
        """The same calls again: they get the first answer or a refusal, and add no second copy."""
        for sent in self.sent[partition][-2 * REMEMBERED_CALLS :]:
            self._send(partition, [sent.again()])

    @rule(partition=partitions, producer=producers, batch=strategies.batches())
    def produce_wrongly(self, partition: int, producer: int, batch: Batch) -> None:
        """A hole in the sequence, an unknown producer, a fenced one, a timestamp far off.

        On compacted topics, also a record without a key.
        """
        batch = self._fitting(batch)
        epoch, sequence = self._position(partition, producer)
        late = (self.clock.now_ms() + 2 * HOUR_MS, b"late", None, ())
        calls = [
            self._call(partition, batch, producer, epoch, sequence + 1),
            self._call(partition, batch, 99, 0, 7),
            self._call(partition, replace(batch, rows=(*batch.rows, late)), 98, 0, 0),
        ]
        if self.topic.config.compacted:
            keyless = (BASE_TIME_MS, None, b"keyless", ())
            rows = (*batch.rows, keyless, *batch.rows)
            calls.append(self._call(partition, replace(batch, rows=rows), 97, 0, 0))
        for fenced, known in self.models[partition].producers.items():
            if known.epoch > 0:
                calls.append(self._call(partition, batch, fenced, known.epoch - 1, 0))
        for call in calls:
            self._send(partition, [call])

    # -- archiving -------------------------------------------------------------------------------

    @precondition(any_records)
    @rule(data=st.data(), in_part=st.booleans(), anew=st.booleans())
    def archive(self, data: st.DataObject, in_part: bool, anew: bool) -> None:
        """Archives everything, or up to some offsets. A new archiver cleans up after dead ones."""
        if anew:
            self.archiver = self._new_archiver()
        self._archive(self.archiver, self._draw_ends(data) if in_part else None)
        if anew:
            self._check_orphans()

    @precondition(any_records)
    @rule(failpoint=st.sampled_from(FAILPOINTS), data=st.data())
    def crash_archiver(self, failpoint: str, data: st.DataObject) -> None:
        """The archiver dies there and is opened again. Only what it committed stays."""

        def die() -> None:
            raise Death

        ends = data.draw(st.sampled_from([None, self._draw_ends(data)]), "ends")
        with failpoints.armed(failpoint, die):
            try:
                self.archiver.run_once("latest" if ends is None else ends)
            except Death:
                self._open()
        self._settle_recoveries()
        for model in self.models:
            self._settle_archived(model, model.archived_end, self._predict(model, ends))

    @precondition(any_records)
    @rule(failpoint=st.sampled_from(FAILPOINTS), data=st.data())
    def race_archivers(self, failpoint: str, data: st.DataObject) -> None:
        """While an archiver is there, another one runs, or records are appended or deleted."""
        meanwhile = self._draw_meanwhile(data)
        interfered: list[Exception | None] = []

        def interfere() -> None:
            if interfered:
                return
            interfered.append(None)
            try:
                self._settle_recoveries()
                for model in self.models:  # at this failpoint it may have committed already
                    self._settle_archived(model, model.archived_end, model.archivable_end())
                meanwhile()
            except Exception as error:  # kept from the archiver, which may take it for the store's
                interfered[0] = error

        ends = {model.topic_partition.partition: model.log_end for model in self.models}
        with failpoints.armed(failpoint, interfere):
            self.archiver.run_once()
        if interfered and interfered[0] is not None:
            raise interfered[0]
        self._settle_recoveries()
        for model in self.models:
            before = ends[model.topic_partition.partition]
            last = max((record.offset + 1 for record in model.records), default=0)
            self._settle_archived(model, model.archivable_end(before), last)

    @precondition(any_records)
    @rule(data=st.data())
    def hold_plan(self, data: st.DataObject) -> None:
        """An archiver plans and is then held up."""
        if any(model.run_id != self.run_id for model in self.models):
            return  # it would recover first
        snapshot = self.table.snapshot()
        change = plan(
            self.topic,
            {tp.partition: seen for tp, seen in self._observe().items()},
            snapshot,
            FlushLimit(ends=self._draw_ends(data)),
            self.clock.now_ms(),
        )
        if change.adds:
            starts = {
                p: (self.models[p].archive_start, self.models[p].log_start)
                for p in change.partitions
            }
            recoveries = {p: self.models[p].recoveries for p in change.partitions}
            self.held = HeldPlan(change, snapshot, starts, recoveries)

    @precondition(lambda self: self.held is not None)
    @rule()
    def apply_held_plan(self) -> None:
        """The archiver goes on, whatever others did meanwhile; outdated parts must not land."""
        held, self.held = self.held, None
        assert held is not None
        models = {p: self.models[p] for p in held.starts}
        # What a recovery declared lost, nobody who copied it before may bring back.
        standing = {
            p
            for p, (start, _) in held.starts.items()
            if models[p].archive_start == start and models[p].recoveries == held.recoveries[p]
        }
        # A log start that was raised below what is archived may stop it or not, and so may an
        # archiver that reserved more.
        now = self.table.snapshot()
        if now.config_version > (held.change.config_version or 0):
            standing = set()  # by newer settings it would be planned otherwise
        untouched = {
            p
            for p in standing
            if held.starts[p][1] == models[p].log_start
            and held.planned_on.reserved_end(p) == now.reserved_end(p)
        }
        landed: frozenset[int] = frozenset()
        try:
            applied = self._new_table().apply(held.change, held.planned_on)
        except (TrimmedError, ContradictionError) as error:
            # What it was to copy was trimmed by others, or the server lost it.
            gone = any(
                p not in untouched
                or models[p].local_log_start > start
                or models[p].lost(start, held.change.registers[ArchivedEnd(p)])
                for p, (start, _) in held.starts.items()
            )
            require(gone, f"a plan that still stood was refused: {error}")
        else:
            landed = held.change.partitions - applied.superseded
            require(
                untouched <= landed <= standing,
                f"of a held plan {set(landed)} landed, expected {untouched} to {standing}",
            )
        for partition in landed:
            end = held.change.registers[ArchivedEnd(partition)]
            self._settle_archived(self.models[partition], end, end)

    @precondition(any_new)
    @rule(partition=partitions, data=st.data())
    def delete_records(self, partition: int, data: st.DataObject) -> None:
        self.news = 0
        self._delete_records(partition, self._draw_offset(data, partition))

    # -- restarting ------------------------------------------------------------------------------

    @precondition(any_new)
    @rule(data=st.data(), reopen=st.booleans(), resume=st.booleans())
    def stop_and_start_redis(self, data: st.DataObject, reopen: bool, resume: bool) -> None:
        """After a planned stop nothing is lost, and producers go on, whichever comes first."""
        self.news = 0
        for model in self.models:
            if model.run_id != self.run_id:
                self._recover_as_producer(model.topic_partition.partition)
        self.hot.pause(self.topic.topic_partitions())
        for model in self.models:
            model.pause()
        refused = self._call(0, _SMALL_BATCH, 98, 0, 0)
        (answer,) = self.hot.append_all([refused.call])
        require(type(answer) is HotTierPausedError, f"a paused partition answered {answer}")
        self.server.restart()
        self._reconnect(reopen=reopen)
        self._cannot_be_lost()
        if not resume:
            return
        require(self.hot.resume(self.topic.topic_partitions()), "it was not resumed")
        self._settle_recoveries()
        self._produce(0, 1, [data.draw(strategies.batches(), "batch")])
        if data.draw(st.booleans(), "killed at once"):
            self._lose_tail(self.sizes[0])
            self._archive(self.archiver, None)

    @precondition(any_new)
    @rule(data=st.data(), reopen=st.booleans(), archive=st.booleans())
    def lose_tail_of_redis(self, data: st.DataObject, reopen: bool, archive: bool) -> None:
        """Redis is killed, and comes back with a file of some steps ago, or one cut anywhere."""
        self.news = 0
        steps_back = data.draw(st.integers(0, 8), "steps back")
        size = self.sizes[max(0, len(self.sizes) - 1 - steps_back)]
        size += data.draw(st.integers(0, 400), "more bytes")
        self._lose_tail(size, clock_ms=data.draw(_steps_ms, "clock"), reopen=reopen)
        if archive:  # an archiver, which knows less than the producers, comes first
            self._archive(self.archiver, None)

    @precondition(any_new)
    @rule(
        data=st.data(),
        partition=partitions,
        archivers=st.lists(st.booleans(), min_size=2, max_size=3),
    )
    def lose_tail_of_redis_again(
        self, data: st.DataObject, partition: int, archivers: list[bool]
    ) -> None:
        """Each loss takes the last recovery and all that followed it, while the clock jumps."""
        self.news = 0
        size = self.sizes[-1]
        for archive in archivers:
            size = max(size, self.sizes[0])  # a takeover after a planned stop is on the disk
            self._lose_tail(size, clock_ms=data.draw(_steps_ms, "clock"), reopen=True)
            if archive:
                self._archive(self.archiver, None)
            self._produce(partition, 1, [data.draw(strategies.batches(), "batch")])

    @precondition(any_new)
    @rule(data=st.data(), reopen=st.booleans(), twice=st.booleans())
    def lose_redis(self, data: st.DataObject, reopen: bool, twice: bool) -> None:
        """Redis comes back empty, and the topic out of its table: all that was archived."""
        if not self._is_table():
            return
        self.news = 0
        self._lose_redis(twice=twice)
        if reopen:
            self._open()
        elif data.draw(st.booleans(), "archived"):
            self._archive(self.archiver, None)

    def _lose_redis(self, *, twice: bool = False) -> None:
        self.held = None
        before = self._observe()
        with self.server.client() as client:
            client.flushall()
        for tp in before:
            self.models[tp.partition].lose_hot(self.run_id)
        lost = self.table.mirrored()
        require(lost is not None, "the table does not tell its topic")
        assert lost is not None
        # Of encryption it may know what was there at the last archive run: of what it holds, all.
        keys: dict[str, object | None] = dict.fromkeys((ENCRYPTION_KEY, DATA_KEYS))
        require(
            (lost.topic_id, lost.partitions, lost.config.replace(keys))
            == (self.topic.topic_id, self.topic.partitions, self.topic.config.replace(keys)),
            f"the table tells {lost} of {self.topic}",
        )
        for _ in range(1 + twice):
            restore(lost, self.hot, self.hot.topics(), self.table)
        for tp, seen in self._observe().items():
            model = self.models[tp.partition]
            model.recover(self.run_id, seen.log_end, seen.calls)
            model.local_log_start = seen.local_log_start
        self.topic = self.hot.topics().get(TOPIC)
        self._cannot_be_lost()

    @precondition(lambda self: self.writer_kind == "sink" and self.models)
    @rule(
        partition=partitions,
        epoch=st.integers(0, 2),
        steps=st.lists(st.tuples(st.integers(1, 9), st.sampled_from(_AMID_A_TASK)), max_size=4),
        data=st.data(),
    )
    def lose_amid_a_task(
        self, partition: int, epoch: int, steps: list[tuple[int, str]], data: st.DataObject
    ) -> None:
        """A task of the sink dies, is archived and lost, whole or in part, and is tried again.

        In the end each of its rows is there once. Or it was refused, and nothing was appended.
        """
        model, query = self.models[partition], self._new_query()
        calls = sum(count for count, _ in steps) + 1
        rows = [
            (BASE_TIME_MS, b"key", b"%s/%d" % (query.encode(), number), ())
            for number in range(calls * WatchedSink.ROWS)
        ]
        made = 0
        for count, what in (*steps, (1, "ends")):
            made += count
            there = len(model.records)
            sink = WatchedSink(self._watch(), query, epoch)
            if not sink.begin(model, rows, self.run_id, made):
                require(len(model.records) == there, "a task that was refused was appended to")
                return
            self.sizes.append(self.server.append_only_size())
            if what.startswith("archive"):
                self._archive(self.archiver, self._draw_ends(data) if "part" in what else None)
            if what.endswith("tail"):
                self._lose_tail(data.draw(st.sampled_from(self.sizes[-4:]), "size"))
            elif what.endswith("redis") and self._is_table():
                self._lose_redis()
        values = [row[2] for row in rows]
        found = [record.value for record in model.records if record.value in set(values)]
        require(found == values, f"of the rows of a task {found} are there, not {values}")

    @precondition(any_new)
    @rule(expired=st.booleans(), told=st.booleans(), twice=st.booleans())
    def delete_and_undelete(self, expired: bool, told: bool, twice: bool) -> None:
        """The topic is deleted and comes back: whole, or without what expired in Redis."""
        expired = expired or self.topic.config["file.delete.delay.ms"] == 0
        if expired and not self._is_table():
            return
        self.news = 0
        self._settle_recoveries()
        topics = self.hot.topics()
        deleted = topics.delete(TOPIC)
        require(topics.list() == [], "a deleted topic is still there")
        if told:
            version = deleted.config_version + 1
            self.table.mirror(replace(deleted, config_version=version))
        if expired:
            self.held = None
            with self.server.client() as client:
                for key in client.keys("*:deleted:*"):
                    client.delete(key)
            for model in self.models:
                model.lose_hot(self.run_id)
        back = undelete(deleted, self.hot, topics, self.table)
        require(back.kept_hot == (not expired), f"what was kept of Redis: {back.kept_hot}")
        if twice:
            undelete(deleted, self.hot, topics, self.table)
        self.topic = topics.get(TOPIC)
        require(
            (self.topic.topic_id, self.topic.config) == (deleted.topic_id, deleted.config),
            f"{deleted} came back as {self.topic}",
        )
        require(deleted not in topics.deleted(), "a topic that is back is among the deleted ones")
        if expired:
            for tp, seen in self._observe().items():
                model = self.models[tp.partition]
                model.recover(self.run_id, seen.log_end, seen.calls)
                model.local_log_start = seen.local_log_start
        else:
            self._settle_recoveries()
        self._cannot_be_lost()
        self._open()  # it has newer settings, as after any change of them

    @precondition(any_new)
    @rule(data=st.data(), told=st.booleans(), batches=st.tuples(*[strategies.batches()] * 2))
    def switch_tiering_off_and_on(
        self, data: st.DataObject, told: bool, batches: tuple[Batch, Batch]
    ) -> None:
        """The topic is untiered for a while, with or without its table being told and emptied.

        What only the table held is gone; then what Redis holds by then is archived.
        """
        for model in self.models:
            if model.run_id != self.run_id:
                self._recover_as_producer(model.topic_partition.partition)
        self.news = 0
        topics = self.hot.topics(TableTold(lambda topic: self._new_table()))
        off: dict[str, object] = {"remote.storage.enable": False}
        off["remote.log.delete.on.disable"] = True
        unset: dict[str, object | None] = dict.fromkeys(off)
        if self.topic.config.compacted:  # only a tiered topic can be
            unset["cleanup.policy"] = self.topic.config.text("cleanup.policy")
            off["cleanup.policy"] = "delete"
            batches = batches[0].keyed(), batches[1]
        for tp, seen in self._observe().items():
            self.models[tp.partition].local_log_start = seen.local_log_start
        self.topic = topics.alter(TOPIC, off)
        for tp, seen in self._observe().items():
            self.models[tp.partition].untier(seen.log_start)
        if told:
            self._empty_table()
        self._produce(data.draw(partitions, "partition"), 2, [batches[0]])
        alone = TopicLog(self.topic, self.hot, None, self.clock, open_table=self._new_table)
        self._compare_untiered(alone)
        self.topic = topics.alter(TOPIC, unset)
        for tp, seen in self._observe().items():  # retention may have dropped segments meanwhile
            model = self.models[tp.partition]
            model.raise_log_start(seen.log_start)
            model.local_log_start = seen.local_log_start
        self._open()
        self._produce(data.draw(partitions, "partition"), 1, [batches[1]])
        for number, model in enumerate(self.models):
            require_same(alone.read(number).records(), model.read())
        self._archive(self.archiver, None)  # it also reserves offsets again
        for number, model in enumerate(self.models):
            require_same(alone.read(number).records(), model.read())
        self._cannot_be_lost()

    def _empty_table(self) -> None:
        starts = {tp.partition: seen.log_start for tp, seen in self._observe().items()}
        cold = self._new_table().snapshot()
        empty(self._new_table(), self.topic, starts)
        for model in self.models:
            partition = model.topic_partition.partition
            if cold.files.of_partition(partition) or model.archived_end > cold.log_start(partition):
                model.emptied(starts[partition])
        rows = self._check_delta_rows()
        require(not any(rows.values()), f"an emptied table holds {rows}")

    def _compare_untiered(self, log: TopicLog) -> None:
        for tp, seen in self._observe().items():
            model = self.models[tp.partition]
            model.raise_log_start(seen.log_start)  # retention works at appends
            model.local_log_start = seen.local_log_start
            # Of a tail that the hot tier lost, cold may still have the first records. Tiered again
            # before the table was emptied, the log has them back.
            hot = [record for record in model.hot() if record.offset >= model.log_start]
            require_same(log.read(tp.partition).records(), hot)

    @precondition(any_new)
    @rule(config=strategies.topic_settings(), purged=st.booleans())
    def create_topic_again(self, config: dict[str, object], purged: bool) -> None:
        """The topic is dropped and created again by that name: nothing of the old one reappears."""
        self.news = 0
        held, self.held = self.held, None
        old_table, old_log, old_archiver = self.table, self.log, self.archiver
        topics = self._registry()
        deleted = topics.delete(TOPIC)
        if purged:
            gone = purge(deleted, topics, self._new_table())
            require(gone.cold is not None and not gone.cold.left, f"{gone} left something")
            require(deleted not in topics.deleted(), "a purged topic is still kept")
            with self.server.client() as client:
                left = client.keys(f"*{deleted.topic_id}*")
            require(left == [], f"a purge left {left}")
        self.topic = topics.create(TOPIC, PARTITIONS, config)
        self._begin()
        self._refused(UnknownTopicIdError, old_archiver.run_once)
        self._refused(UnknownTopicIdError, lambda: old_log.read(0).to_arrow())
        if held is not None:
            try:
                applied = old_table.apply(held.change, held.planned_on)
                require(applied.superseded == held.change.partitions, "an old plan landed")
            except UnknownTopicIdError:
                pass

    # -- reading ---------------------------------------------------------------------------------

    @precondition(any_records)
    @rule(partition=partitions, data=st.data(), max_bytes=st.sampled_from([1, 500, 8 * MIB]))
    def read(self, partition: int, data: st.DataObject, max_bytes: int) -> None:
        """Reads a range by each reader, and fetches at its start and just outside of the log."""
        model = self.models[partition]
        start, end = sorted(self._draw_offset(data, partition) for _ in range(2))
        self._readers().compare(partition, model.read(), [(start, end)])
        found = self.log.read(partition, start, end, max_bytes=max_bytes)
        require_same(found.records(), model.read(start, end))
        model.check_fetched(self.log.fetch(partition, start, max_bytes=max_bytes), start)
        if model.log_start > 0:
            before = model.log_start - 1
            self._refused(OffsetOutOfRangeError, lambda: self.log.fetch(partition, before))
        # If the server lost its tail, there may have been records past the end.
        error = OffsetOutOfRangeError if model.run_id == self.run_id else RecoveryNeededError
        self._refused(error, lambda: self.log.fetch(partition, model.log_end + 1))

    @precondition(any_records)
    @rule(partition=partitions, data=st.data())
    def seek(self, partition: int, data: st.DataObject) -> None:
        """Seeks by timestamps that are there, by those next to them, and by every name."""
        model = self.models[partition]
        known = sorted({record.timestamp_ms for record in model.read()} | {BASE_TIME_MS})
        near = data.draw(st.integers(0, 7), "every eighth from")
        for target in {max(0, time_ms + step) for time_ms in known[near::8] for step in (-1, 0, 1)}:
            expected = model.offset_for_timestamp(target)
            found = self.log.offset_for_timestamp(partition, target)
            require(found == expected, f"timestamp {target}: found {found}, expected {expected}")
        self._seek_by_name(model)

    def _seek_by_name(self, model: ModelLog) -> None:
        partition, top = model.topic_partition.partition, model.max_timestamp()
        expected = {
            "earliest": model.log_start,
            "latest": model.log_end,
            "latest-tiered": model.latest_tiered,
            "earliest-pending-upload": max(model.archived_end, model.log_start),
            "max-timestamp": None if top is None else top.offset,
        }
        found = {name: self.log.seek(partition, name) for name in expected}
        require(found == expected, f"sought {found}, expected {expected}")
        local = self.log.seek(partition, "earliest-local")
        require(
            local is not None
            and model.log_start <= local <= max(model.log_start, model.archived_end),
            f"earliest-local is {local}, archived up to {model.archived_end}",
        )

    @precondition(any_records)
    @rule(partition=partitions, data=st.data())
    def damage_an_entry(self, partition: int, data: st.DataObject) -> None:
        """A bit of a stored entry flips: reading it raises an error. Then it is mended."""
        model = self.models[partition]
        tp = model.topic_partition
        stream = Keys().partition(tp).stream
        with self.server.client() as client:
            # Not as a mapping: names repeat.
            client.set_response_callback("XRANGE", lambda reply, **_: reply)
            entries = client.execute_command("XRANGE", stream, "-", "+")
            holding = [n for n, (_, fields) in enumerate(entries) if fields[0] != b"__gap"]
            if not holding:
                return
            number = data.draw(st.sampled_from(holding), "entry")
            entry_id, fields = entries[number]
            at = data.draw(st.integers(0, 8 * len(fields[1]) - 1), "bit")
            byte, bit = divmod(at, 8)
            flipped = bytearray(fields[1])
            flipped[byte] ^= 1 << bit
            damaged = (entry_id, [fields[0], bytes(flipped), *fields[2:]])
            self._write_stream(stream, [*entries[:number], damaged, *entries[number + 1 :]])
            last = int(entry_id.split(b"-")[0])
            # Where the bit is of the format's version, a newer lakelog may as well have written it.
            refusals = (CorruptRecordError, NewerVersionError)
            refused = refusals[: 1 + (fields[0] == VERSION_FIELD)]
            try:
                self._refused(refused, lambda: [*self.hot.read(tp, last, last + 1)])
            finally:
                self._write_stream(stream, entries)
        self._cannot_be_lost()

    def _write_stream(self, stream: str, entries: list[tuple[bytes, list[bytes]]]) -> None:
        with self.server.client() as client:
            client.delete(stream)
            for entry_id, fields in entries:
                client.execute_command("XADD", stream, entry_id, *fields)
