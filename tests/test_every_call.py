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
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import lakelog.explore.charts
import lakelog.jobs
from lakelog import Lakelog, TopicLog, TopicPartition
from lakelog.archive import continuous
from lakelog.archive.archiver import Archiver
from lakelog.archive.continuous import ContinuousArchive
from lakelog.base import back_off
from lakelog.base.back_off import BackOff
from lakelog.cleanup.cleanup import Cleanup
from lakelog.cli.main import parser
from lakelog.cli.output import Failed
from lakelog.cold.by_path import path_table
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.committing import CommitBackOff
from lakelog.cold.store import object_store
from lakelog.errors import (
    InvalidArgumentError,
    LakelogError,
    PolicyViolationError,
    UnknownTopicOrPartitionError,
)
from lakelog.explore.charts.compaction_savings import compaction_rows
from lakelog.explore.charts.ingest_rate import ingest_rates
from lakelog.explore.charts.partition_map import partition_ranges
from lakelog.explore.charts.segment_map import segment_rows
from lakelog.explore.explorer.widget import LogExplorer
from lakelog.groups.admin import GroupAdmin, ShareGroupAdmin
from lakelog.groups.reset import ResetOffset, ToLatest
from lakelog.hot import TopicRegistry, lock
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
from lakelog.lakelog import ArchivedTopics
from lakelog.operate.group_offsets import GroupOffsetsAdmin, ShareGroupOffsets
from lakelog.operate.skip import Skips
from lakelog.place.tenants.tenants import Tenants
from lakelog.read.consumer import Consumer
from lakelog.read.range_read import RangeRead
from lakelog.read.search import Search
from lakelog.read.share_consumer import ShareConsumer
from lakelog.read.where import parse
from lakelog.values.record import OffsetAndMetadata
from tests.support.object_store import Fault, FaultyFront, s3_options
from tests.support.servers import RedisClusterServers, RedisServer

TP = TopicPartition("orders", 0)
FIRST_MS = 1_700_000_000_000
AT_ONCE = timedelta(0)
METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
USERS, SECRET = ("gateway", "users"), ("--user-password-ref", "env:PATH")


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
        self.rows = self.folder / "rows.jsonl"
        self.rows.write_text('{"a": 1}\n')
        self.export = self.folder / "orders.tar"
        self.lake.export(self.export, "orders")
        self.topic = self.lake.topics.get("orders")
        self.log = self.lake.log("orders")
        table = self.log.table
        assert isinstance(table, PathTable)
        self.table = table
        self.file = table.snapshot().files.of_partition(0)[0]
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
        self.archiver = self.lake.archiver("orders")
        with self.lake.consumer(group_id="idle") as idle:
            idle.assign([TP])
            idle.commit({TP: OffsetAndMetadata(3)})
        self.worker = self.lake.share_consumer(
            "orders", group_id="others", share_auto_offset_reset="earliest"
        )
        while not self.worker.poll(100, 5):
            pass

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
    "Lakelog.as_user": lambda w: w.lake.as_user("default", "any, as it has none").close(),
    "Lakelog.archiver": lambda w: w.lake.archiver("orders").run_once(),
    "Lakelog.gateway": lambda w: w.lake.gateway("127.0.0.1:0").close(),
    "Lakelog.cleanup": lambda w: w.lake.cleanup(),
    "Lakelog.log": lambda w: w.lake.log("orders").offsets(),
    "Lakelog.producer": lambda w: w.produced(lambda p: p.send("orders", b"v").result(5)),
    "Lakelog.producer local": lambda w: w.produced(lambda p: p.send("local", b"v").result(5)),
    "Lakelog.restorable": lambda w: w.lake.restorable(),
    "Lakelog.restorable_groups": lambda w: w.lake.restorable_groups(),
    "Lakelog.restore": lambda w: w.lake.restore("orders"),
    "Lakelog.import_topics": lambda w: w.lake.import_topics(w.export, name="copied"),
    "Lakelog.export": lambda w: w.archived.export(w.folder / "archived", "orders"),
    "Lakelog.export hot": lambda w: w.lake.export(w.folder / f"{uuid4().hex}.tar"),
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
    "TopicLog.max_timestamp": lambda w: w.log.max_timestamp(0),
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
    "Producer.send_rows": lambda w: w.producer.send_rows("orders", [{"a": 1}]),
    "Lakelog.append": lambda w: w.lake.append("orders", [{"a": 1}], **IMPATIENT),
    "Lakelog.load": lambda w: w.lake.load("orders", w.rows, timeout_s=0.5),
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
    "GroupAdmin.list": lambda w: w.lake.groups.list(),
    "GroupAdmin.describe": lambda w: w.lake.groups.describe("polled"),
    "GroupAdmin.delete_offsets": lambda w: w.lake.groups.delete_offsets("idle", [TP]),
    "GroupAdmin.expire_offsets": lambda w: w.lake.groups.expire_offsets("polled"),
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
    "LogExplorer.choose": lambda w: w.explored(lambda e: e.choose("local")),
    "LogExplorer.data": lambda w: w.explored(lambda e: e.data()),
    "LogExplorer.history": lambda w: w.explored(lambda e: e.history("k1")),
    "LogExplorer.record": lambda w: w.explored(lambda e: e.record(5)),
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
    "lakelog gateway users set": lambda w: w.cli(*USERS, "set", "ada", *SECRET),
    "lakelog gateway users list": lambda w: w.cli(*USERS, "list"),
    "lakelog gateway users delete": lambda w: w.cli(*USERS, "delete", "ada"),
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
    "Lakelog.close": lambda w: w.lake.close(),
}

#: Public names that ask no tier, or only what others above ask, by the same way.
QUIET = {
    *("Lakelog.embedded", "Lakelog.close", "Lakelog.place"),  # tests/embedded
    *("Lakelog.hot", "Lakelog.groups", "Lakelog.share_groups"),
    *("Lakelog.acl", "lakelog acl"),
    *("Lakelog.dataframe", "Lakelog.register", "TopicLog.dataframe"),  # Spark's: tests/spark
    "Lakelog.log_look",  # what `metrics` looks with
    *("Consumer.subscription", "Consumer.unsubscribe", "Consumer.group_metadata"),
    *("Consumer.assign", "Consumer.assignment", "Consumer.pause", "Consumer.paused"),
    "Consumer.resume",
    *("ShareConsumer.subscribe", "ShareConsumer.subscription"),
    *("ShareConsumer.acknowledge", "ShareConsumer.acknowledge_offset"),
    "ShareConsumer.acquisition_lock_timeout_ms",
    "ShareConsumer.set_acknowledgement_commit_callback",
    *("TopicLog.table", "TopicLog.tiers", "TopicLog.redis", "TopicLog.is_below_hot"),
    *("TopicRegistry.is_hot_alone", "Archiver.seen", "Archiver.topic", "Cleanup.topic"),
    *("ContinuousArchive.abandoned", "ContinuousArchive.close", "ContinuousArchive.troubles"),
    *("LogExplorer.view", "LogExplorer.expression", "LogExplorer.to_pandas", "LogExplorer.wait"),
    *("LogExplorer.seek", "LogExplorer.forward", "LogExplorer.back", "LogExplorer.search"),
    *("LogExplorer.code", "LogExplorer.error", "LogExplorer.export"),
    *("LogExplorer.follow", "LogExplorer.stop", "LogExplorer.close"),
    *("LogExplorer.go", "LogExplorer.link", "LogExplorer.on_shown", "LogExplorer.open_record"),
    "connection.connect",  # jobs open what Lakelog.connect opens
    *("lakelog demo", "lakelog help", "lakelog register", "lakelog produce"),
    "lakelog gateway",  # until it is stopped: tests/gateway
    "lakelog explore",  # likewise: tests/explore/page
}

CLASSES = (
    *(Lakelog, ArchivedTopics, TopicLog, RangeRead, Search, Consumer, Producer, TopicRegistry),
    *(Skips, Archiver, ContinuousArchive, Cleanup, LogExplorer, JobRun, GroupAdmin),
    *(ShareConsumer, ShareGroupAdmin, GroupOffsetsAdmin, ShareGroupOffsets, Tenants),
)


def methods() -> Iterator[str]:
    for one in CLASSES:
        for name, member in vars(one).items():
            asks = callable(member) or isinstance(member, (classmethod, property))
            if asks and not name.startswith("_"):
                yield f"{one.__name__}.{name}"


def functions() -> Iterator[str]:
    """Those that are given a log."""
    given = {"TopicLog", "Lakelog"}
    for package in (lakelog.jobs, lakelog.explore.charts):
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


@dataclass
class Harm:
    """What an outage is made with."""

    server: RedisServer
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
}

MORE_OUTAGES: dict[str, Callable[[Harm], Any]] = {
    "Redis is full": lambda h: h.redis("CONFIG", "SET", "maxmemory", 1),
    "the store denies": lambda h: h.store(*METHODS, status=403),
    "Redis forbids the clock": lambda h: h.redis("ACL", "SETUSER", "default", "-time", "-hgetall"),
    "the table is gone": lambda h: shutil.rmtree(h.table),
    "a commit is garbage": lambda h: h.next_commit().write_bytes(b"\x00\xffjunk"),
    "files are garbage": lambda h: h.files(lambda file: file.write_bytes(b"PAR1junk" * 20)),
    "the store is busy": lambda h: h.store(*METHODS, status=503),
    "Redis has others' strings": lambda h: h.take_keys(lambda c, key: c.set(key, "precious")),
    "Redis wants a password": lambda h: h.lock_out(),
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
    harm = Harm(server, s3_front)
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
        f"redis://127.0.0.1:{harm.server.port}"
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
