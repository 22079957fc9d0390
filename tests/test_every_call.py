"""Whatever became of a tier, each public call answers, or ends in an error of lakelog's own.

`CALLS` has every call that asks a tier; a public one that is in no list fails the first tests. Each
outage is made once, under a log that is open, and then all calls are made, one after the other: of
a library's error, or a builtin one, none may come out. That no call waits for ever, the clients'
timeouts see to.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import itertools
import os
import pkgutil
import random
import re
import shutil
import signal
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

import lakelog.explore.charts
import lakelog.jobs
import lakelog.operate
import lakelog.operate.check
from lakelog import Lakelog, TopicLog, TopicPartition
from lakelog.archive import continuous
from lakelog.archive.archiver import Archiver
from lakelog.archive.continuous import ContinuousArchive
from lakelog.base import back_off
from lakelog.base.back_off import BackOff
from lakelog.cleanup.cleanup import Cleanup
from lakelog.cli.main import parser
from lakelog.cli.output import Failed
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.by_path import path_table
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.committing import CommitBackOff
from lakelog.cold.scan import ScanTask
from lakelog.cold.store import object_store
from lakelog.errors import (
    InvalidArgumentError,
    LakelogError,
    PolicyViolationError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.explore.charts.compaction_savings import compaction_rows
from lakelog.explore.charts.ingest_rate import ingest_rates
from lakelog.explore.charts.partition_map import partition_ranges
from lakelog.explore.charts.segment_map import segment_rows
from lakelog.explore.explorer.widget import LogExplorer
from lakelog.groups.admin import GroupAdmin, ShareGroupAdmin
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.group_values import Joined, JoinRequest, Leaving, Pending
from lakelog.groups.reset import ResetOffset, ToLatest
from lakelog.groups.share.share_partitions import SharePartitions
from lakelog.groups.share.share_values import Acknowledgement, Outcome
from lakelog.hot import AppendCall, HotLog, TopicRegistry, hot_log, lock
from lakelog.hot.activity import Beats
from lakelog.hot.appender import Appender
from lakelog.hot.fetch import Fetcher
from lakelog.hot.inspection import Inspection
from lakelog.hot.looks import Looks, ServerLooks
from lakelog.hot.recovery import Recovery
from lakelog.hot.skip import HotSkips
from lakelog.hot.trimmer import Trimmer
from lakelog.hot.waits import Waits
from lakelog.ingest.producer import Producer
from lakelog.jobs import (
    JobRun,
    add_readings,
    failures,
    group_history,
    group_lags,
    run_history,
    servers,
    standing,
    status_history,
    warnings,
)
from lakelog.jobs.run_record import TroubleRows, recent_troubles
from lakelog.jobs.status_table import open_status_table
from lakelog.lakelog import ArchivedTopics
from lakelog.operate.check.time_index import index_mends
from lakelog.operate.check.verification import verify
from lakelog.operate.diagnosis import diagnose
from lakelog.operate.group_offsets import GroupOffsetsAdmin, ShareGroupOffsets
from lakelog.operate.groups_table import open_groups_table
from lakelog.operate.headroom import high_water_marks
from lakelog.operate.segments import (
    cold_records,
    dump_cold,
    dump_hot,
    inspection_of,
    segment_range,
    segments,
)
from lakelog.operate.skip import Skips, noted
from lakelog.operate.status import hot_segments, status
from lakelog.place.tenants.tenants import Tenants
from lakelog.read.consumer import Consumer
from lakelog.read.range_read import RangeRead
from lakelog.read.search import Search
from lakelog.read.share_consumer import ShareConsumer
from lakelog.read.where import parse
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import OffsetAndMetadata, produced_batch
from tests.support.object_store import Fault, FaultyFront, s3_options
from tests.support.servers import RedisClusterServers, RedisServer

TP = TopicPartition("orders", 0)
FIRST_MS = 1_700_000_000_000
AT_ONCE = timedelta(0)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")


def held(lock: contextlib.AbstractContextManager[None]) -> None:
    with lock:
        pass


def follow(world: World) -> None:
    """Reads by a subscription what comes in a moment."""
    with world.lake.consumer("orders", auto_offset_reset="earliest") as consumer:
        consumer.poll(50)


def drained(found: Iterable[Any]) -> list[Any]:
    """What an iterator gives, if it ends; else the beginning of it."""
    return list(itertools.islice(found, 50))


@dataclass
class World:
    """A log with records in both tiers, open in every way before something happens to it."""

    url: str
    cold: str
    declared: Path  # the file that declares a topic
    options: dict[str, str] | None = None
    opened: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __post_init__(self) -> None:
        self.lake = self.opened.enter_context(self.connect())
        tiered = {"retention.ms": -1, "local.retention.ms": 0, "segment.ms": 500}
        for name in ("orders", "doomed", "altered", "gone", "dropped", "over"):
            self.lake.topics.create(name, 2, tiered)
        self.gone, *_ = [self.lake.topics.delete(name) for name in ("gone", "dropped", "over")]
        self.lake.topics.create("local", 1, {"remote.storage.enable": "false"})
        key = self.declared.with_name("key")
        key.write_text("11" * 32)
        self.lake.topics.create("sealed", 1, {**tiered, "lakelog.encryption.key": f"file:{key}"})
        for batch in range(3):
            with self.lake.producer() as producer:
                for n in range(40):
                    time_ms = FIRST_MS + 1000 * batch + n
                    key = b"k%d" % (n % 5)
                    producer.send("orders", b"{}", key=key, timestamp_ms=time_ms, partition=n % 2)
                    producer.send("local", b"{}")
            if batch < 2:
                self.lake.archive("orders")
        self.folder = self.declared.parent
        self.export = self.folder / "exported"
        self.lake.export(self.export, "orders")
        self.topic = self.lake.topics.get("orders")
        self.hot = self.lake.hot
        self.log = self.lake.log("orders")
        table = self.log.table
        assert isinstance(table, PathTable)
        self.table = table
        self.snapshot = table.snapshot()
        self.file = self.snapshot.files.of_partition(0)[0]
        self.archived = self.connect_cold()
        self.archived_log = self.archived.log("orders")
        self.producer = self.lake.producer(**IMPATIENT)
        send_one(self.producer)
        self.consumer = self.lake.consumer()
        self.consumer.assign([TP])
        self.consumer.poll(100)
        self.member = self.lake.consumer("orders", group_id="polled", auto_offset_reset="earliest")
        while not self.member.poll(100):
            pass
        self.skips = self.lake.skips("orders", 0)
        self.hot_skips = self.hot.skips(TP, self.topic.topic_id)
        self.archiver = self.lake.archiver("orders")
        self.server_looks = self.hot.server_looks()
        self.coordinator = GroupCoordinator(self.hot.connections)
        self.joined = joined_member(self.coordinator)
        self.coordinator.commit("idle", {TP: OffsetAndMetadata(3)})
        self.shares = SharePartitions(self.hot.connections, "workers")
        self.shares.acquire(TP, self.topic.topic_id, "ada", 5, begin=0)
        self.worker = self.lake.share_consumer(
            "orders", group_id="others", share_auto_offset_reset="earliest"
        )
        while not self.worker.poll(100, 5):
            pass
        entries = encode(
            produced_batch([(FIRST_MS, b"k", b"v", ())]),
            EntryFormat.FIELDS,
            Compression.NONE,
            max_entry_bytes=1 << 20,
        )
        self.batch = ProducedBatch(entries, 99, 0, 0, 0)

    @property
    def offsets(self) -> Path:
        """A file of what a group is to have committed."""
        file = self.declared.with_name("offsets.csv")
        file.write_text("orders,0,3\n")
        return file

    def connect(self) -> Lakelog:
        return Lakelog.connect(self.url, self.cold, engine="inline", storage_options=self.options)

    def connect_cold(self) -> Lakelog:
        return Lakelog.connect(None, self.cold, engine="inline", storage_options=self.options)

    def settle(self) -> None:
        """Let go of all, whatever state it is in."""
        with contextlib.suppress(LakelogError):
            self.producer.close(timeout_ms=0)
        self.opened.close()

    # -- what takes more than a line -----------------------------------------------------------

    def cli(self, *command: str) -> Any:
        """What a command returns, with its lines."""
        where = ["--redis", self.url, "--cold", self.cold, "--engine", "inline"]
        for name, value in (self.options or {}).items():
            shown = "env:LAKELOG_TEST_SECRET" if "SECRET" in name else value
            where += ["--storage-option", f"{name}={shown}"]
        arguments = parser().parse_args([*where, *command])
        result = arguments.run(arguments)
        return drained(result) if isinstance(result, Iterator) else result

    def produced(self, act: Callable[[Producer], Any]) -> Any:
        with self.lake.producer(**IMPATIENT) as producer:
            return act(producer)

    def polled(self, log: Lakelog) -> Any:
        with contextlib.closing(log.consumer()) as consumer:
            consumer.assign([TP])
            return consumer.poll(50)

    def explored(self, act: Callable[[LogExplorer], Any], log: Lakelog | None = None) -> None:
        """Errors of what an explorer does by itself stand on its page."""
        with contextlib.closing((log or self.lake).explore("orders", 0)) as explorer:
            explorer.wait(5)
            act(explorer)
            explorer.wait(5)
            if explorer.error is not None:
                raise explorer.error

    def continuous(self) -> ContinuousArchive:
        return self.lake.archive_continuously("orders", max_duration=timedelta(seconds=0.1))

    def job(self) -> JobRun:
        return JobRun(self.lake, "archive", uuid4().hex, topics=["orders"])


MEMBER = JoinRequest((("range", b""),), rebalance_timeout_ms=50)  # others wait no longer for it
NEW_MEMBER = replace(MEMBER, requires_known_member_id=False)


def joined_member(coordinator: GroupCoordinator) -> Joined:
    """A member that is in. It joins anew where this machine was away for longer than its time."""
    while True:
        joined = coordinator.join("readers", MEMBER)
        with contextlib.suppress(UnknownMemberIdError):
            coordinator.sync("readers", joined, {joined.member_id: b""})
            return joined


#: A producer that waits for nothing for long.
IMPATIENT = {
    "delivery_timeout_ms": 100,
    "max_block_ms": 50,
    "retry_backoff_ms": 1,
    "retry_backoff_max_ms": 10,
}


def send_one(producer: Producer) -> None:
    """Send a record, again where this machine was away for longer than the producer waits."""
    while True:
        with contextlib.suppress(TimeoutError):
            producer.send("orders", b"x").result()
            return


#: Each public call that asks a tier; what stands behind the name tells variants apart.
CALLS: dict[str, Callable[[World], Any]] = {
    "Lakelog.connect": lambda w: w.connect().close(),
    "Lakelog.archive": lambda w: w.lake.archive(patience=AT_ONCE),
    "Lakelog.archive one": lambda w: w.lake.archive("orders", patience=AT_ONCE),
    "Lakelog.archive_continuously": lambda w: drained(w.continuous()),
    "Lakelog.archived": lambda w: w.lake.archived.status(),
    "Lakelog.archiver": lambda w: w.lake.archiver("orders").run_once(),
    "Lakelog.cleanup": lambda w: w.lake.cleanup(),
    "Lakelog.log": lambda w: w.lake.log("orders").offsets(),
    "Lakelog.producer": lambda w: w.produced(lambda p: p.send("orders", b"v").result(5)),
    "Lakelog.producer local": lambda w: w.produced(lambda p: p.send("local", b"v").result(5)),
    "Lakelog.restorable": lambda w: w.lake.restorable(),
    "Lakelog.restorable_groups": lambda w: w.lake.restorable_groups(),
    "Lakelog.restore": lambda w: w.lake.restore("orders"),
    "Lakelog.import_topics": lambda w: w.lake.import_topics(w.export, name="copied"),
    "Lakelog.export": lambda w: w.archived.export(w.folder / "archived", "orders"),
    "Lakelog.export hot": lambda w: w.lake.export(w.folder / uuid4().hex),
    "Lakelog.deleted": lambda w: w.lake.deleted(),
    "Lakelog.undelete": lambda w: w.lake.undelete("gone"),
    "Lakelog.deleted cold": lambda w: w.archived.deleted(),
    "Lakelog.group_troubles": lambda w: w.archived.group_troubles(),
    "Lakelog.erase": lambda w: w.archived.erase("orders", "nobody"),
    "Lakelog.erase hot": lambda w: w.lake.erase("orders", ["nobody"]),
    "Lakelog.erase dry": lambda w: w.lake.erase("orders", where='value = "no"', dry_run=True),
    "Lakelog.purge": lambda w: w.lake.purge("dropped"),
    "TopicRegistry.deleted": lambda w: w.lake.topics.deleted(),
    "TopicRegistry.deleted_into": lambda w: w.lake.topics.deleted_into(w.gone),
    "TopicRegistry.has_kept": lambda w: w.lake.topics.has_kept(w.gone),
    "TopicRegistry.may_return": lambda w: w.lake.topics.may_return(w.gone),
    "TopicRegistry.finish_deletion": lambda w: w.lake.topics.finish_deletion(w.gone),
    "TopicRegistry.undelete": lambda w: w.lake.topics.undelete(w.gone, {}),
    "TopicRegistry.begin_purge": lambda w: w.lake.topics.begin_purge(w.lake.topics.delete("gone")),
    "TopicRegistry.end_purge": lambda w: w.lake.topics.end_purge(w.gone),
    "TopicRegistry.restore": lambda w: w.lake.topics.restore(w.topic, {}),
    "Lakelog.quotas": lambda w: w.lake.quotas(),
    "Lakelog.tenants": lambda w: w.lake.tenants.list(),
    "Tenants.create": lambda w: w.lake.tenants.create(f"made-{uuid4().hex[:8]}", {"topics": 2}),
    "Tenants.get": lambda w: w.lake.tenants.get("shared"),
    "Tenants.list": lambda w: w.lake.tenants.list(),
    "Tenants.describe": lambda w: w.lake.tenants.describe("shared"),
    "Tenants.set_quotas": lambda w: w.lake.tenants.set_quotas("shared", {"topics": 9}),
    "Tenants.delete": lambda w: w.lake.tenants.delete("shared"),
    "Lakelog.skips": lambda w: w.lake.skips("orders", 0).list(),
    "Lakelog.status": lambda w: w.lake.status(),
    "Lakelog.metrics": lambda w: (w.lake.metrics(), w.archived.metrics()),
    "Lakelog.check": lambda w: w.lake.check(),
    "Lakelog.cleanup cold": lambda w: w.archived.cleanup(),
    "Lakelog.clean_continuously": lambda w: drained(
        w.archived.clean_continuously(max_duration=timedelta(seconds=0.1))
    ),
    "Lakelog.cleanup_plan": lambda w: w.archived.cleanup_plan(),
    "Lakelog.cleanup_plan hot": lambda w: w.lake.cleanup_plan("orders"),
    "Lakelog.consumer": lambda w: w.polled(w.archived),
    "Lakelog.consumer hot": lambda w: w.polled(w.lake),
    "Lakelog.explore": lambda w: w.explored(lambda e: e.forward(), w.archived),
    "Lakelog.explore hot": lambda w: w.explored(lambda e: e.seek("latest")),
    "Lakelog.log cold": lambda w: w.archived.log("orders").offsets(),
    "Lakelog.at": lambda w: w.connect_cold().status(),
    "Lakelog.status cold": lambda w: w.archived.status(),
    "Lakelog.check cold": lambda w: w.archived.check(),
    "ArchivedTopics.catalogue": lambda w: w.archived.topics.list(),
    "ArchivedTopics.list": lambda w: w.connect_cold().topics.list(),
    "ArchivedTopics.get": lambda w: w.connect_cold().topics.get("orders"),
    "TopicLog.count": lambda w: w.log.count(0),
    "TopicLog.count cold": lambda w: w.archived_log.count(0),
    "TopicLog.explore": lambda w: w.log.explore().close(),
    "TopicLog.fetch": lambda w: w.log.fetch(0, 0),
    "TopicLog.fetch hot": lambda w: w.log.fetch(0, 55),
    "TopicLog.fetches": lambda w: drained(itertools.islice(w.log.fetches(0, 0), 5)),
    "TopicLog.fetches hot": lambda w: drained(itertools.islice(w.log.fetches(0, 55), 5)),
    "TopicLog.offset_for_timestamp": lambda w: w.log.offset_for_timestamp(0, FIRST_MS + 1000),
    "TopicLog.offset_for_timestamp hot": lambda w: w.log.offset_for_timestamp(0, FIRST_MS + 2020),
    "TopicLog.offsets": lambda w: w.log.offsets(),
    "TopicLog.offsets cold": lambda w: w.archived_log.offsets(),
    "TopicLog.read": lambda w: w.log.read(0),
    "TopicLog.sample": lambda w: w.log.sample(),
    "TopicLog.seek": lambda w: w.log.seek(0, "max-timestamp"),
    "TopicLog.seek cold": lambda w: w.archived_log.seek(0, "max-timestamp"),
    "TopicLog.seek_each": lambda w: w.log.seek_each("latest-tiered"),
    "TopicLog.search": lambda w: w.log.search('key = "k1"'),
    "TopicLog.search_ranges": lambda w: w.log.search_ranges({0: (0, 9)}, parse("k1")),
    "TopicLog.last": lambda w: w.log.last(0, 3),
    "Search.page": lambda w: w.log.search("k1").page(5),
    "Search.records": lambda w: drained(w.log.search("k1").records()),
    "Search.to_arrow": lambda w: w.log.search("k1").to_arrow(),
    "RangeRead.to_arrow": lambda w: w.log.read(0).to_arrow(),
    "RangeRead.to_arrow hot": lambda w: w.log.read(0, 45, 58).to_arrow(),
    "RangeRead.to_arrow cold": lambda w: w.archived_log.read(0).to_arrow(),
    "RangeRead.records": lambda w: drained(w.log.read(0).records()),
    "RangeRead.matching": lambda w: drained(w.log.read(0).matching('key = "k1"')),
    "TopicLog.records_below": lambda w: w.log.records_below(0, 30),
    "TopicLog.recover": lambda w: w.log.recover(0, 0),
    "TopicLog.raise_log_start": lambda w: w.log.raise_log_start(0, 3),
    "Lakelog.sql": lambda w: w.archived.sql("select max(timestamp) from orders").read_all(),
    "Lakelog.sql hot": lambda w: w.lake.sql("select max(timestamp) from orders").read_all(),
    "Consumer.subscribe": lambda w: follow(w),
    "Consumer.topics": lambda w: w.consumer.topics(),
    "Consumer.partitions_for_topic": lambda w: w.consumer.partitions_for_topic("orders"),
    "Consumer.poll": lambda w: w.consumer.poll(50),
    "Consumer.poll_arrow": lambda w: w.consumer.poll_arrow(50),
    "Consumer.beginning_offsets": lambda w: w.consumer.beginning_offsets([TP]),
    "Consumer.end_offsets": lambda w: w.consumer.end_offsets([TP]),
    "Consumer.offsets_for_times": lambda w: w.consumer.offsets_for_times({TP: FIRST_MS}),
    "Consumer.seek": lambda w: (w.consumer.seek(TP, 3), w.consumer.poll(50)),
    "Consumer.seek_to_beginning": lambda w: (w.consumer.seek_to_beginning(TP), w.consumer.poll(9)),
    "Consumer.seek_to_end": lambda w: (w.consumer.seek_to_end(TP), w.consumer.poll(9)),
    "Consumer.position": lambda w: w.consumer.position(TP),
    "Consumer.seek_to_timestamp": lambda w: w.consumer.seek_to_timestamp(TP, FIRST_MS + 1000),
    "Consumer.commit": lambda w: w.member.commit(timeout_ms=50),
    "Consumer.commit_async": lambda w: w.member.commit_async().result(30),
    "Consumer.committed": lambda w: w.member.committed(TP),
    "Consumer.lag": lambda w: w.consumer.lag(TP),
    "Consumer.highwater": lambda w: w.consumer.highwater(TP),
    "TopicLog.lag": lambda w: w.log.lag(0, 3),
    "Consumer.poll of a member": lambda w: w.member.poll(50),
    "Producer.send": lambda w: w.producer.send("orders", b"v").result(5),
    "Producer.send unknown": lambda w: w.producer.send("unknown", b"v").result(5),
    "Producer.send_batch": lambda w: w.producer.send_batch("orders", [b"v"] * 5),
    "Producer.flush": lambda w: w.producer.flush(500),
    "TopicRegistry.create": lambda w: w.lake.topics.create("created"),
    "TopicRegistry.get": lambda w: w.lake.topics.get("orders"),
    "TopicRegistry.list": lambda w: w.lake.topics.list(),
    "TopicRegistry.version": lambda w: w.lake.topics.version(),
    "TopicRegistry.alter": lambda w: w.lake.topics.alter("altered", {"retention.ms": 10**15}),
    "TopicRegistry.add_partitions": lambda w: w.lake.topics.add_partitions("orders", 3),
    "TopicRegistry.rotate_key": lambda w: w.lake.topics.rotate_key("sealed"),
    "TopicRegistry.defaults": lambda w: w.lake.topics.defaults(),
    "TopicRegistry.set_defaults": lambda w: w.lake.topics.set_defaults({"log.roll.ms": 10**9}),
    "TopicRegistry.renewed": lambda w: w.lake.topics.renewed(w.topic),
    "TopicRegistry.repair": lambda w: w.lake.topics.repair(w.topic),
    "Appender.append": lambda w: w.hot.append(TP, w.topic.topic_id, w.batch),
    "Appender.append_all": lambda w: w.hot.append_all([AppendCall(TP, w.topic.topic_id, w.batch)]),
    "HotLog.connect": lambda w: HotLog.connect(w.url).now_ms(),
    "HotLog.renewed": lambda w: w.hot.renewed(w.topic),
    "HotLog.inspection": lambda w: w.hot.inspection().look(TP, w.topic.topic_id),
    "Fetcher.max_timestamp": lambda w: w.hot.max_timestamp(TP),
    "Looks.server_names": lambda w: w.hot.server_names([TP]),
    "Looks.memory_percent": lambda w: w.hot.memory_percent([TP]),
    "Looks.server_name": lambda w: w.hot.server_name(TP),
    "Looks.memory_bytes": lambda w: w.hot.memory_bytes([TP]),
    "Trimmer.nodes": lambda w: w.hot.nodes(TP),
    "Trimmer.end_of_first": lambda w: w.hot.end_of_first(TP, 1),
    "Looks.now_ms": lambda w: w.hot.now_ms(),
    "Fetcher.offset_for_timestamp": lambda w: w.hot.offset_for_timestamp(TP, 0),
    "Looks.offsets": lambda w: w.hot.offsets([TP]),
    "Looks.segments": lambda w: w.hot.segments([TP]),
    "HotLog.skips": lambda w: w.hot.skips(TP, w.topic.topic_id).notes(),
    "Trimmer.raise_log_start": lambda w: w.hot.raise_log_start(TP, 1),
    "Fetcher.read": lambda w: drained(w.hot.read(TopicPartition("local", 0), 0)),
    "HotLog.recover": lambda w: w.hot.recover(TP, 0),
    "HotLog.check_own": lambda w: w.hot.check_own(w.topic, w.table),
    "HotLog.naming": lambda w: held(w.hot.naming(w.topic)),
    "HotLog.naming_status": lambda w: held(w.hot.naming_status()),
    "Recovery.recover_all": lambda w: w.hot.recover_all({TP: 0}),
    "Trimmer.retain": lambda w: w.hot.retain(TopicPartition("local", 0)),
    "Trimmer.roll": lambda w: w.hot.roll(TP, 60, w.topic.topic_id),
    "Trimmer.holds_entries": lambda w: w.hot.holds_entries(TP),
    "Trimmer.holds_unread": lambda w: w.hot.holds_unread(TP, w.hot.offsets([TP])[TP]),
    "HotLog.rewrite_persistence": lambda w: w.hot.rewrite_persistence(),
    "Looks.servers": lambda w: w.hot.servers(),
    "HotLog.topics": lambda w: w.hot.topics().list(),
    "Trimmer.trim": lambda w: w.hot.trim(TP, 1, archived_end=1),
    "Waits.wait": lambda w: w.hot.wait({TP: 10**6}, 50),
    "GroupCoordinator.heartbeat": lambda w: w.coordinator.heartbeat(
        "readers", w.joined.member_id, w.joined.generation_id
    ),
    "GroupCoordinator.try_sync": lambda w: w.coordinator.try_sync("readers", w.joined),
    "GroupCoordinator.sync": lambda w: w.coordinator.sync("readers", w.joined),
    "GroupCoordinator.commit": lambda w: w.coordinator.commit(
        "readers",
        {TP: OffsetAndMetadata(3)},
        member_id=w.joined.member_id,
        generation_id=w.joined.generation_id,
    ),
    "GroupCoordinator.committed": lambda w: w.coordinator.committed("readers"),
    "GroupCoordinator.assignments": lambda w: w.coordinator.assignments("readers"),
    "GroupCoordinator.await_change": lambda w: w.coordinator.await_change("readers", 0, 50),
    "GroupCoordinator.await_news": lambda w: w.coordinator.await_news(
        "readers", Pending(w.joined.member_id, 0, 50), 50
    ),
    "GroupCoordinator.await_join": lambda w: w.coordinator.await_join(
        "readers", replace(MEMBER, member_id=w.joined.member_id)
    ),
    "GroupCoordinator.try_join": lambda w: w.coordinator.try_join("readers", NEW_MEMBER),
    "GroupCoordinator.join": lambda w: w.coordinator.join("readers", NEW_MEMBER),
    "GroupCoordinator.leave": lambda w: w.coordinator.leave(
        "readers", [Leaving(w.joined.member_id)]
    ),
    "GroupAdmin.list": lambda w: w.lake.groups.list(),
    "GroupAdmin.describe": lambda w: w.lake.groups.describe("readers"),
    "GroupAdmin.delete_offsets": lambda w: w.lake.groups.delete_offsets("idle", [TP]),
    "GroupAdmin.expire_offsets": lambda w: w.lake.groups.expire_offsets("readers"),
    "GroupOffsetsAdmin.describe": lambda w: w.lake.group_offsets.describe("idle"),
    "GroupOffsetsAdmin.described": lambda w: w.lake.group_offsets.described(
        [w.lake.groups.describe("idle")]
    ),
    "GroupOffsetsAdmin.committed": lambda w: w.lake.group_offsets.committed("idle"),
    "GroupOffsetsAdmin.plan": lambda w: w.lake.group_offsets.plan("idle", ToLatest(), [TP]),
    "GroupOffsetsAdmin.apply": lambda w: w.lake.group_offsets.apply("idle", [ResetOffset(TP, 1)]),
    "Lakelog.record_groups": lambda w: w.lake.record_groups(),
    "Lakelog.group_troubles hot": lambda w: w.lake.group_troubles(),
    "Lakelog.group_lags": lambda w: w.lake.group_lags(),
    "TopicRegistry.keyspace_id": lambda w: w.lake.topics.keyspace_id(),
    "GroupAdmin.delete": lambda w: w.lake.groups.delete("idle"),
    "GroupAdmin.expire_some_offsets": lambda w: w.lake.groups.expire_some_offsets(),
    "GroupAdmin.expiry_interval_ms": lambda w: w.lake.groups.expiry_interval_ms,
    "TopicRegistry.keyspace_defaults": lambda w: w.lake.topics.keyspace_defaults(),
    "GroupAdmin.expire_all_offsets": lambda w: w.lake.groups.expire_all_offsets(),
    "SharePartitions.acquire": lambda w: w.shares.acquire(TP, w.topic.topic_id, "ada", 5, begin=0),
    "SharePartitions.acknowledge": lambda w: w.shares.acknowledge(
        TP, w.topic.topic_id, "ada", [Acknowledgement(0, 5, 1, Outcome.RENEW)]
    ),
    "SharePartitions.describe": lambda w: w.shares.describe(TP),
    "SharePartitions.move": lambda w: w.shares.move(TP, w.topic.topic_id, 0),
    "SharePartitions.forget": lambda w: w.shares.forget(TP),
    "ShareConsumer.poll": lambda w: w.worker.poll(50),
    "ShareConsumer.commit_sync": lambda w: w.worker.commit_sync(),
    "ShareConsumer.commit_async": lambda w: w.worker.commit_async(),
    "ShareGroupAdmin.list": lambda w: w.lake.share_groups.list(),
    "ShareGroupAdmin.describe": lambda w: w.lake.share_groups.describe("others"),
    "ShareGroupAdmin.described": lambda w: w.lake.share_groups.described(["others"]),
    "ShareGroupOffsets.described": lambda w: w.lake.share_group_offsets.described(
        w.lake.share_groups.list()
    ),
    "ShareGroupOffsets.partitions": lambda w: w.lake.share_group_offsets.partitions("others"),
    "ShareGroupOffsets.plan": lambda w: w.lake.share_group_offsets.plan("nobody", ToLatest(), [TP]),
    "ShareGroupOffsets.apply": lambda w: w.lake.share_group_offsets.apply(
        "nobody", [ResetOffset(TP, 1)]
    ),
    "ShareGroupOffsets.delete_offsets": lambda w: w.lake.share_group_offsets.delete_offsets(
        "nobody", [TP]
    ),
    "Lakelog.share_consumer": lambda w: w.lake.share_consumer(
        "orders", group_id="more", errors_deadletterqueue_topic_name="local"
    ).poll(50),
    "Beats.alive": lambda w: w.hot.beats().alive(),
    "Beats.leave": lambda w: w.hot.beats().leave("a", {}, 1000),
    "Beats.end": lambda w: w.hot.beats().end("a"),
    "ServerLooks.look": lambda w: [one.look([TP]) for one in w.server_looks],
    "Inspection.look": lambda w: w.hot.inspection().look(TP, w.topic.topic_id),
    "Inspection.pages": lambda w: drained(w.hot.inspection().pages(TP, w.topic.topic_id, 0)),
    "Inspection.time_index": lambda w: drained(w.hot.inspection().time_index(TP)),
    "Inspection.producer_calls": lambda w: w.hot.inspection().producer_calls(TP, 0),
    "HotSkips.look": lambda w: w.hot_skips.look("81-1"),
    "HotSkips.note": lambda w: w.hot_skips.note(
        "a file", b'{"gap":[0,1],"reason":"","who":"","moved_at_ms":0}'
    ),
    "HotSkips.notes": lambda w: w.hot_skips.notes(),
    "HotSkips.kept_by_older": lambda w: w.hot_skips.kept_by_older(),
    "HotSkips.drop_kept_by_older": lambda w: w.hot_skips.drop_kept_by_older(),
    "HotSkips.drop_copy": lambda w: w.hot_skips.drop_copy(),
    "Skips.list": lambda w: w.skips.list(),
    "Skips.skip_entry": lambda w: w.skips.skip_entry("81-1", dry_run=True),
    "Skips.skip_file": lambda w: w.skips.skip_file(w.file.path, dry_run=True),
    "Archiver.adopt": lambda w: w.archiver.adopt(),
    "Archiver.attempt": lambda w: w.archiver.attempt(),
    "Archiver.drain": lambda w: w.archiver.drain(),
    "Archiver.flush": lambda w: w.archiver.flush(),
    "Archiver.run_once": lambda w: w.archiver.run_once(),
    "Archiver.trim": lambda w: w.archiver.trim(),
    "Cleanup.plan": lambda w: w.lake.cleanup_plan(),
    "Cleanup.run": lambda w: w.lake.cleanup("orders"),
    "PathTable.snapshot": lambda w: w.table.snapshot(),
    "PathTable.table_id": lambda w: w.table.table_id(),
    "PathTable.data_files": lambda w: w.table.data_files(0),
    "PathTable.missing": lambda w: w.table.missing([w.file]),
    "PathTable.newest_columns": lambda w: w.table.newest_columns(),
    "PathTable.warnings": lambda w: w.table.warnings(),
    "PathTable.unchecked": lambda w: w.table.unchecked(),
    "PathTable.last_calls": lambda w: w.table.last_calls([0]),
    "PathTable.mirror": lambda w: w.table.mirror(w.topic),
    "PathTable.mirrored": lambda w: w.table.mirrored(),
    "PathTable.leftovers": lambda w: w.table.leftovers(),
    "PathTable.discard": lambda w: w.table.discard([w.file]),
    "PathTable.forget_history": lambda w: w.table.forget_history(),
    "PathTable.purge": lambda w: w.lake.place.table(w.gone).purge(),
    "PathTable.orphans": lambda w: w.table.orphans(),
    "PathTable.remove_orphans": lambda w: w.table.remove_orphans(),
    "PathTable.vacuum": lambda w: w.table.vacuum(),
    "PathTable.read": lambda w: drained(w.table.read([w.file], 0, 100)),
    "PathTable.with_keys": lambda w: w.table.with_keys([w.file], 0, 100, frozenset({b"k"})),
    "PathTable.row_groups": lambda w: w.table.row_groups([w.file], 0, 100),
    "PathTable.scan": lambda w: drained(w.table.scan(w.snapshot, [ScanTask(w.file)])),
    "PathTable.spacing": lambda w: w.table.spacing(w.snapshot, [w.file], ()),
    "LogExplorer.choose": lambda w: w.explored(lambda e: e.choose("local")),
    "LogExplorer.data": lambda w: w.explored(lambda e: e.data()),
    "LogExplorer.history": lambda w: w.explored(lambda e: e.history("k1")),
    "LogExplorer.record": lambda w: w.explored(lambda e: e.record(5)),
    "hot_log.pause_all": lambda w: hot_log.pause_all(w.hot),
    "hot_log.resume_all": lambda w: hot_log.resume_all(w.hot),
    "segments.segments": lambda w: segments(w.log),
    "segments.segments cold": lambda w: segments(w.archived_log),
    "skip.noted": lambda w: noted(w.hot, TP, w.topic.topic_id),
    "segments.dump_hot": lambda w: drained(dump_hot(w.log, 0)),
    "segments.dump_cold": lambda w: drained(dump_cold(w.log, 0)),
    "segments.cold_records": lambda w: [
        drained(cold_records(w.log, scan, 0, None)) for scan in dump_cold(w.log, 0)
    ],
    "segments.segment_range": lambda w: segment_range(w.log, 0, 0),
    "segments.inspection_of": lambda w: inspection_of(w.log).look(TP, w.topic.topic_id),
    "status.hot_segments": lambda w: hot_segments(w.hot, [w.topic]),
    "headroom.high_water_marks": lambda w: high_water_marks(w.hot, [w.topic], w.hot.servers()),
    "status.status": lambda w: status(w.hot, [w.topic], lambda _: w.table),
    "time_index.index_mends": lambda w: drained(index_mends(w.hot, w.topic, TP)),
    "verification.verify": lambda w: drained(verify(w.log)),
    "verification.verify cold": lambda w: drained(verify(w.archived_log)),
    "diagnosis.diagnose": lambda w: diagnose(
        redis_url=w.url, cold=w.cold, storage_options=w.options
    ),
    "compaction_savings.compaction_rows": lambda w: compaction_rows(w.log),
    "ingest_rate.ingest_rates": lambda w: ingest_rates(w.log),
    "partition_map.partition_ranges": lambda w: partition_ranges(w.log),
    "segment_map.segment_rows": lambda w: segment_rows(w.log),
    "JobRun.once": lambda w: w.job().once(lambda: w.lake.archive(patience=AT_ONCE)),
    "JobRun.continuously": lambda w: w.job().continuously(1e-5, max_stall_hours=1e-5),
    "JobRun.rows": lambda w: w.job().rows(),
    "history.run_history": lambda w: run_history(w.lake),
    "history.status_history": lambda w: status_history(w.lake),
    "looks.group_lags": lambda w: group_lags(w.lake),
    "history.group_history": lambda w: group_history(w.lake),
    "readings.add_readings": lambda w: add_readings(w.lake, "local", 2),
    "looks.standing": lambda w: standing(w.lake),
    "looks.failures": lambda w: failures(w.lake),
    "looks.servers": lambda w: servers(w.lake),
    "looks.warnings": lambda w: warnings(w.lake),
    "groups_table.open_groups_table": lambda w: open_groups_table(w.lake.place.cold).read(
        w.topic.keyspace_id
    ),
    "status_table.open_status_table": lambda w: open_status_table(w.lake.place.cold).read(),
    "run_record.recent_troubles": lambda w: recent_troubles(w.lake.place.cold),  # type: ignore[arg-type]
    "TroubleRows.__call__": lambda w: TroubleRows(w.lake.place.cold)([]),  # type: ignore[arg-type]
    "lakelog archive": lambda w: w.cli("archive", "local"),
    "lakelog cleanup plan": lambda w: w.cli("cleanup", "plan"),
    "lakelog cleanup run": lambda w: w.cli("cleanup", "run"),
    "lakelog consume": lambda w: w.cli("consume", "orders"),
    "lakelog grep": lambda w: w.cli("grep", "1"),
    "lakelog sql": lambda w: w.cli("sql", "select sum(length(value)) from orders"),
    "lakelog delete-records": lambda w: w.cli("delete-records", "orders", "-p", "0", "--before=2"),
    "lakelog erase": lambda w: w.cli("erase", "orders", "--key", "nobody"),
    "lakelog doctor": lambda w: w.cli("doctor"),
    "lakelog groups list": lambda w: w.cli("groups", "list", "--state"),
    "lakelog groups describe": lambda w: w.cli("groups", "describe", "--all-groups"),
    "lakelog groups export": lambda w: w.cli("groups", "export", "--group", "idle"),
    "lakelog groups reset-offsets": lambda w: w.cli(
        *("groups", "reset-offsets", "--group", "idle", "--topic", "orders", "--to-latest")
    ),
    "lakelog groups import": lambda w: w.cli(
        "groups", "import", str(w.offsets), "--group", "idle", "--execute"
    ),
    "lakelog groups delete-offsets": lambda w: w.cli(
        "groups", "delete-offsets", "--group", "idle", "--topic", "orders:1"
    ),
    "lakelog groups record": lambda w: w.cli("groups", "record"),
    "lakelog groups delete": lambda w: w.cli("groups", "delete", "--group", "idle"),
    "lakelog share-groups list": lambda w: w.cli("share-groups", "list", "--state"),
    "lakelog share-groups describe": lambda w: w.cli("share-groups", "describe", "--all-groups"),
    "lakelog share-groups reset-offsets": lambda w: w.cli(
        *("share-groups", "reset-offsets", "--group=new", "--topic=orders", "--to-latest"),
        "--execute",
    ),
    "lakelog share-groups delete-offsets": lambda w: w.cli(
        *("share-groups", "delete-offsets", "--group=more", "--topic=orders")
    ),
    "lakelog share-groups delete": lambda w: w.cli("share-groups", "delete", "--group=new"),
    "lakelog hot pause": lambda w: w.cli("hot", "pause"),
    "lakelog hot resume": lambda w: w.cli("hot", "resume"),
    "lakelog offsets": lambda w: w.cli("offsets", "--topic", "orders", "--time=-3"),
    "lakelog skip add": lambda w: w.cli(
        "skip", "add", "orders", "-p", "0", "--file", w.file.path, "--dry-run"
    ),
    "lakelog skip list": lambda w: w.cli("skip", "list", "orders"),
    "lakelog segments dump": lambda w: w.cli("segments", "dump", "orders", "-p", "0"),
    "lakelog segments list": lambda w: w.cli("segments", "list", "orders", "--verify"),
    "lakelog history": lambda w: w.cli("history"),
    "lakelog status": lambda w: w.cli("status"),
    "lakelog metrics": lambda w: w.cli("metrics"),
    "lakelog check": lambda w: w.cli("check", "orders"),
    "lakelog topics add": lambda w: w.cli("topics", "alter", "orders", "-p", "4"),
    "lakelog topics apply": lambda w: w.cli("topics", "apply", str(w.declared)),
    "lakelog topics alter": lambda w: w.cli("topics", "alter", "altered", "--config=segment.ms=9"),
    "lakelog topics create": lambda w: w.cli("topics", "create", "made"),
    "lakelog topics defaults": lambda w: w.cli("topics", "defaults"),
    "lakelog restore": lambda w: w.cli("restore", "orders"),
    "lakelog export": lambda w: w.cli("export", "orders", "--to", str(w.folder / "orders")),
    "lakelog import": lambda w: w.cli("import", str(w.export), "--as", "imported"),
    "lakelog topics describe": lambda w: w.cli("topics", "describe", "orders"),
    "lakelog topics infer": lambda w: w.cli("topics", "infer", "orders"),
    "lakelog topics list": lambda w: w.cli("topics", "list"),
    "lakelog tenants create": lambda w: w.cli("tenants", "create", f"new-{uuid4().hex[:8]}"),
    "lakelog tenants list": lambda w: w.cli("tenants", "list"),
    "lakelog tenants describe": lambda w: w.cli("tenants", "describe", "shared"),
    "lakelog tenants quota": lambda w: w.cli("tenants", "quota", "shared", "--set", "topics=9"),
    "lakelog tenants delete": lambda w: w.cli("tenants", "delete", "shared"),
    # From here on, something is over.
    "lakelog topics rotate-key": lambda w: w.cli("topics", "rotate-key", "sealed"),
    "lakelog topics delete": lambda w: w.cli("topics", "delete", "doomed"),
    "lakelog topics undelete": lambda w: w.cli("topics", "undelete", "doomed"),
    "lakelog topics purge": lambda w: w.cli("topics", "purge", "over"),
    "TopicRegistry.delete": lambda w: w.lake.topics.delete("altered"),
    "Consumer.close": lambda w: w.consumer.close(),
    "ShareConsumer.unsubscribe": lambda w: w.worker.unsubscribe(),
    "ShareConsumer.close": lambda w: w.worker.close(),
    "ShareGroupAdmin.delete": lambda w: w.lake.share_groups.delete("others"),
    "Producer.close": lambda w: w.producer.close(200),
    "HotLog.close": lambda w: HotLog.connect(w.url).close(),
    "Lakelog.close": lambda w: w.lake.close(),
}

#: Public names that ask no tier, or only what others above ask, by the same way.
QUIET = {
    *("Lakelog.embedded", "Lakelog.close", "Lakelog.place"),  # tests/embedded
    *("Lakelog.hot", "Lakelog.groups", "Lakelog.share_groups"),
    *("Lakelog.acl", "lakelog acl"),
    *("Lakelog.dataframe", "Lakelog.register", "TopicLog.dataframe"),  # Spark's: tests/spark
    *("Consumer.subscription", "Consumer.unsubscribe", "Consumer.group_metadata"),
    "Lakelog.log_look",  # what `metrics` looks with
    "TopicLog.is_below_hot",
    *("ShareConsumer.subscribe", "ShareConsumer.subscription"),
    *("ShareConsumer.acknowledge", "ShareConsumer.acknowledge_offset"),
    *(
        "ShareConsumer.acquisition_lock_timeout_ms",
        "ShareConsumer.set_acknowledgement_commit_callback",
    ),
    *("Consumer.assign", "Consumer.assignment", "Consumer.pause", "Consumer.paused"),
    *(
        "Consumer.resume",
        "HotLog.archived_into",
        "HotLog.beats",
        "HotLog.cleanups",
        "HotLog.cold_quota",
        "HotLog.connections",
        "Looks.server_looks",
        "Waits.taken",
        "HotLog.keyspace",
        "HotLog.mending",
        "Recovery.pause",
    ),
    *("Recovery.pause_each", "Recovery.resume_each", "HotLog.rebuilding"),
    *(
        "HotLog.reserve_more",
        "Recovery.reserve_more",
        "Recovery.refused",
        "Recovery.resume",
        "HotSkips.skip",
        "ServerLooks.name",
    ),
    *("TopicLog.table", "TopicLog.tiers", "TopicLog.redis", "TopicRegistry.is_hot_alone"),
    *(
        "ServerLooks.holds",
        "Archiver.seen",
        "Archiver.topic",
        "Cleanup.topic",
        "ContinuousArchive.abandoned",
    ),
    *("ContinuousArchive.close", "ContinuousArchive.troubles", "PathTable.path"),
    *("PathTable.is_local", "PathTable.where"),
    *("PathTable.apply", "PathTable.map"),  # archivers' and cleanups'
    *("PathTable.columns", "PathTable.create_with", "PathTable.described"),  # export's and import's
    "PathTable.last_calls",  # a recovery's
    *("LogExplorer.view", "LogExplorer.expression", "LogExplorer.to_pandas", "LogExplorer.wait"),
    *("LogExplorer.seek", "LogExplorer.forward", "LogExplorer.back", "LogExplorer.search"),
    *("LogExplorer.code", "LogExplorer.error", "LogExplorer.export"),
    *("LogExplorer.follow", "LogExplorer.stop", "LogExplorer.close"),
    "segments.tiers_of",
    "connection.connect",  # jobs open what Lakelog.connect opens
    *("lakelog demo", "lakelog help", "lakelog register", "lakelog produce"),
}

CLASSES = (
    *(
        Lakelog,
        ArchivedTopics,
        TopicLog,
        RangeRead,
        Search,
        Consumer,
        Producer,
    ),
    *(
        TopicRegistry,
        HotLog,
        Appender,
        Looks,
        Fetcher,
        Waits,
        Trimmer,
        Recovery,
        Beats,
        ServerLooks,
        Inspection,
        HotSkips,
        Skips,
        Archiver,
    ),
    *(ContinuousArchive, Cleanup, PathTable, LogExplorer, JobRun, GroupCoordinator, GroupAdmin),
    *(SharePartitions, ShareConsumer, ShareGroupAdmin, GroupOffsetsAdmin, ShareGroupOffsets),
    Tenants,
)


def methods() -> Iterator[str]:
    for one in CLASSES:
        for name, member in vars(one).items():
            asks = callable(member) or isinstance(member, (classmethod, property))
            if asks and not name.startswith("_"):
                yield f"{one.__name__}.{name}"


def functions() -> Iterator[str]:
    """Those that are given a log, or its place."""
    given = {"TopicLog", "Lakelog", "HotLog", "ColdRoot", "ColdRoot | None"}
    for package in (lakelog.operate, lakelog.operate.check, lakelog.jobs, lakelog.explore.charts):
        for found in pkgutil.iter_modules(package.__path__):
            module = import_module(f"{package.__name__}.{found.name}")
            for name, one in inspect.getmembers(module, inspect.isfunction):
                first = next(iter(inspect.signature(one).parameters.values()), None)
                is_own = one.__module__ == module.__name__ and not name.startswith("_")
                if is_own and first is not None and first.annotation in given:
                    yield f"{found.name}.{name}"


def commands(of: argparse.ArgumentParser, name: str = "lakelog") -> Iterator[str]:
    nested = [a for a in of._actions if isinstance(a, argparse._SubParsersAction)]
    if not nested:
        yield name
    for action in nested:
        for verb, one in action.choices.items():
            yield from commands(one, f"{name} {verb}")


@pytest.mark.parametrize(
    "public",
    [pytest.param(set(methods()), id="methods"), pytest.param(set(functions()), id="functions")],
)
def test_every_public_call_is_made_below_or_asks_nobody(public: set[str]) -> None:
    assert public - QUIET - {name.partition(" ")[0] for name in CALLS} == set()


def test_every_command_is_made_below_or_asks_nobody() -> None:
    assert set(commands(parser())) - QUIET - set(CALLS) == set()


# -- outages -------------------------------------------------------------------------------------


class Breaking:
    """A network in front of a server, which from some time on breaks each connection somewhere."""

    def __init__(self, port: int, seed: int) -> None:
        self._server = ("127.0.0.1", port)
        self._draw = random.Random(seed)
        self._is_breaking = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def begin(self) -> None:
        self._is_breaking = True
        self._break()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._break()

    def _break(self) -> None:
        for one in tuple(self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:
                    client.close()
                    continue
                self._sockets += (client, server)
                for source, target in ((client, server), (server, client)):
                    # A handshake takes 130 kB there, most of it scripts, and 2 kB back.
                    most = 300_000 if source is client else 20_000
                    left = self._draw.randrange(most) if self._is_breaking else 1 << 60
                    thread = threading.Thread(target=_pump, args=(source, target, left))
                    thread.daemon = True
                    thread.start()


def _pump(source: socket.socket, target: socket.socket, left: int) -> None:
    with contextlib.suppress(OSError):
        while left and (data := source.recv(min(left, 1 << 16))):
            target.sendall(data)
            left -= len(data)
    for one in (source, target):
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@dataclass
class Harm:
    """What an outage is made with."""

    server: RedisServer
    network: Breaking
    front: FaultyFront
    world: World | None = None

    def redis(self, *command: object) -> None:
        with self.server.client() as client:
            client.execute_command(*command)

    def lock_out(self) -> None:
        with self.server.client() as client:
            client.config_set("requirepass", "another")
            own = client.client_id()
            for one in client.client_list():
                if int(one["id"]) != own:
                    client.execute_command("CLIENT", "KILL", "ID", one["id"])

    def take_keys(self, put: Callable[[Any, bytes], Any]) -> None:
        with self.server.client() as client:
            for key in client.scan_iter():
                client.delete(key)
                put(client, key)

    def spin(self) -> None:
        """A script of somebody else's that never ends."""

        def run() -> None:
            with contextlib.suppress(Exception), self.server.client() as client:
                client.eval("while true do end", 0)

        self.redis("CONFIG", "SET", "busy-reply-threshold", 1)
        threading.Thread(target=run, daemon=True).start()

        def is_busy() -> bool:
            with self.server.client() as client:
                try:
                    client.ping()
                except Exception as error:
                    return "BUSY" in str(error)
            return False

        assert back_off.wait_until("the script", is_busy, back_off.POLL.within(60))

    def store(self, *methods: str, **fault: Any) -> None:
        self.front.inject(*(Fault(method, ".", times=None, **fault) for method in methods))

    def store_at_random(self, seed: int) -> None:
        draw = random.Random(seed)
        kinds: list[dict[str, Any]] = [{"status": status} for status in (403, 404, 500, 503)]
        kinds += [{"cut_body": True}, {"lose_reply": True}]
        self.front.inject(
            *(
                Fault(method, ".", times=1, skip=draw.randrange(400), **draw.choice(kinds))
                for method in METHODS
                for _ in range(60)
            )
        )

    @property
    def table(self) -> Path:
        assert self.world is not None
        return Path(self.world.table.path)

    @property
    def newest(self) -> Path:
        return max((self.table / "_delta_log").glob("*.json"))

    def next_commit(self) -> Path:
        return self.newest.with_name(f"{int(self.newest.stem) + 1:020}.json")

    def files(self, do: Callable[[Path], Any]) -> None:
        for file in self.table.rglob("*.parquet"):
            do(file)


def into_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def into_a_file(path: Path) -> None:
    shutil.rmtree(path)
    path.write_text("in the way")


OUTAGES: dict[str, Callable[[Harm], Any]] = {
    "Redis is gone": lambda h: h.server.kill(at_once=True),
    "Redis is full": lambda h: h.redis("CONFIG", "SET", "maxmemory", 1),
    "the store denies": lambda h: h.store(*METHODS, status=403),
}

MORE_OUTAGES: dict[str, Callable[[Harm], Any]] = {
    "Redis forbids the clock": lambda h: h.redis("ACL", "SETUSER", "default", "-time", "-hgetall"),
    "the table is gone": lambda h: shutil.rmtree(h.table),
    "a commit is garbage": lambda h: h.next_commit().write_bytes(b"\x00\xffjunk"),
    "files are garbage": lambda h: h.files(lambda file: file.write_bytes(b"PAR1junk" * 20)),
    "the store is busy": lambda h: h.store(*METHODS, status=503),
    "Redis has others' strings": lambda h: h.take_keys(lambda c, key: c.set(key, "precious")),
    "Redis wants a password": lambda h: h.lock_out(),
    "Redis breaks off": lambda h: h.network.begin(),
    "Redis stands still": lambda h: os.kill(h.server.pid, signal.SIGSTOP),
    "Redis is busy": lambda h: h.spin(),
    "Redis forbids all": lambda h: h.redis("ACL", "SETUSER", "default", "-@all", "+ping"),
    "Redis forbids the keys": lambda h: h.redis("ACL", "SETUSER", "default", "resetkeys", "~a"),
    "Redis is a replica": lambda h: h.redis("REPLICAOF", "127.0.0.1", 1),
    "Redis is empty": lambda h: h.redis("FLUSHALL"),
    "Redis has others' lists": lambda h: h.take_keys(lambda c, key: c.rpush(key, "precious")),
    "Redis has others' hashes": lambda h: h.take_keys(lambda c, key: c.hset(key, b"\xff", b"\0")),
    "the store fails": lambda h: h.store(*METHODS, status=500),
    "the store knows nothing": lambda h: h.store(*METHODS, status=404),
    "the store does not understand": lambda h: h.store(*METHODS, status=400),
    "the store is elsewhere": lambda h: h.store(*METHODS, status=301),
    "the store takes nothing": lambda h: h.store("PUT", "POST", "DELETE", status=503),
    "the store lets nobody write": lambda h: h.store("PUT", "POST", "DELETE", status=403),
    "the store breaks off": lambda h: h.store(*METHODS, cut_body=True),
    "the store loses replies": lambda h: h.store(*METHODS, lose_reply=True),
    **{
        f"the store is moody, {seed}": lambda h, seed=seed: h.store_at_random(seed)
        for seed in range(3)
    },
    "the store is gone": lambda h: h.front.stop(),
    "the root is gone": lambda h: shutil.rmtree(h.table.parent.parent),
    "the root is a file": lambda h: into_a_file(h.table.parent.parent),
    "the table is a file": lambda h: into_a_file(h.table),
    "the log is gone": lambda h: shutil.rmtree(h.table / "_delta_log"),
    "the log is a file": lambda h: into_a_file(h.table / "_delta_log"),
    "a commit is a folder": lambda h: h.next_commit().mkdir(),
    "the newest commit is garbage": lambda h: h.newest.write_bytes(b"\xff\xfejunk\n{"),
    "files are gone": lambda h: h.files(Path.unlink),
    "files are empty": lambda h: h.files(lambda file: file.write_bytes(b"")),
    "files are folders": lambda h: h.files(into_a_folder),
}


@pytest.fixture
def harm(
    make_redis: Callable[..., RedisServer], s3_front: FaultyFront, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Harm]:
    """Everybody asks again, but not for long."""
    soon = BackOff(0.001, 0.01, tries=3)
    monkeypatch.setattr(back_off, "ASK_AGAIN", back_off.ASK_AGAIN.within(0.02))
    monkeypatch.setattr(path_table, "BACK_OFF", CommitBackOff(soon, soon, soon))
    monkeypatch.setattr(object_store, "S3_ATTEMPTS", 1)
    monkeypatch.setitem(object_store.DELTA_RETRIES, "max_retries", "1")
    monkeypatch.setitem(object_store.DELTA_RETRIES, "backoff_config.init_backoff", "1ms")
    monkeypatch.setattr(continuous, "STOP_TIMEOUT_S", 0.1)
    monkeypatch.setattr(lock, "LOCK_MS", 100)  # of who was cut off before he let go of it
    monkeypatch.setenv("LAKELOG_TEST_SECRET", "a secret word")
    server = make_redis()
    with contextlib.closing(Breaking(server.port, seed=1)) as network:
        harm = Harm(server, network, s3_front)
        try:
            yield harm
        finally:
            s3_front.inject()
            server.kill(at_once=True)  # so that nobody waits for it
            if harm.world is not None:
                harm.world.settle()


#: What is refused for good reason: nothing is damaged.
REFUSED: dict[str, type[Exception]] = {
    "Producer.send unknown": UnknownTopicOrPartitionError,
    "HotSkips.look": InvalidArgumentError,
    "Skips.skip_entry": InvalidArgumentError,
    "Skips.skip_file": PolicyViolationError,
    "lakelog archive": Failed,  # of a topic without a cold tier
    "lakelog skip add": PolicyViolationError,
}


#: delta-rs keeps Python to itself while it writes a table's settings, so that a front in this very
#: process could not answer it. Where a store still lets tables be read, none are written.
WRITES_SETTINGS = {
    "TopicRegistry.add_partitions",
    "TopicRegistry.set_defaults",
    "lakelog topics add",
}
LETS_READ = re.compile("the store (takes|lets|is moody)")


def escaped(world: World, left_out: Collection[str] = ()) -> dict[str, str]:
    """The calls that end in an error that is not ours."""
    found = {}
    for name, call in CALLS.items():
        if name in left_out:
            continue
        try:
            call(world)
        except (LakelogError, Failed):
            pass
        except BaseException as error:  # a panic of delta-rs is none of Exception's
            if isinstance(error, KeyboardInterrupt):
                raise
            found[name] = repr(error)
    return found


def declared_in(folder: Path) -> Path:
    file = folder / "topic.yml"
    file.write_text("name: declared")
    return file


def world_of(harm: Harm, outage: str, tmp_path: Path) -> World:
    # A busy machine is no outage; one that stands still is waited for by each call.
    patience_s = 0.3 if outage == "Redis stands still" else 5
    url = (
        f"redis://127.0.0.1:{harm.network.port}"
        f"?socket_timeout={patience_s}&socket_connect_timeout={patience_s}"
    )
    declared = declared_in(tmp_path)
    if "store" in outage:
        return World(url, f"s3://lakelog/{uuid4().hex}", declared, s3_options(harm.front.url))
    return World(url, str(tmp_path / "cold"), declared)


def check(harm: Harm, outage: str, tmp_path: Path) -> None:
    harm.world = world_of(harm, outage, tmp_path)
    (OUTAGES | MORE_OUTAGES)[outage](harm)
    left_out = WRITES_SETTINGS if LETS_READ.match(outage) else ()
    assert escaped(harm.world, left_out) == {}


def test_all_calls_answer_while_all_is_well(harm: Harm, tmp_path: Path) -> None:
    """So that none of them fails for its arguments alone."""
    world = harm.world = world_of(harm, "none", tmp_path)
    refused = {}
    for name, call in CALLS.items():
        try:
            call(world)
        except (LakelogError, Failed) as error:
            refused[name] = type(error)
    assert refused == REFUSED


@pytest.mark.parametrize("outage", OUTAGES)
def test_an_outage_ends_calls_in_errors_of_ours(harm: Harm, tmp_path: Path, outage: str) -> None:
    check(harm, outage, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("outage", MORE_OUTAGES)
def test_a_rarer_outage_does_so_too(harm: Harm, tmp_path: Path, outage: str) -> None:
    check(harm, outage, tmp_path)


@pytest.mark.slow
def test_a_cluster_that_lost_a_node_does_so_too(harm: Harm, tmp_path: Path) -> None:
    cluster = RedisClusterServers(tmp_path / "cluster").start()
    try:
        patience = "&socket_timeout=5&socket_connect_timeout=5"
        harm.world = World(cluster.url + patience, str(tmp_path / "cold"), declared_in(tmp_path))
        cluster.nodes[0].kill(at_once=True)
        assert escaped(harm.world) == {}
    finally:
        cluster.stop()
