"""One thing of each kind is damaged, found by its exact offsets, and mended where it can be."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pytest
import redis
from segment_bench import Bench

from lakelog import Lakelog
from lakelog.base import back_off
from lakelog.cli import main as cli
from lakelog.cold.store import object_store
from lakelog.errors import ColdTierError
from lakelog.hot.keys import Keys
from lakelog.operate.check.finding import Kind
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import OffsetRange, TopicPartition
from tests.support.object_store import Fault, FaultyFront, s3_options

HOUR_S = 3600


@dataclass
class World:
    """A topic in both tiers: offsets [0, 300) are cold, [200, 400) are hot."""

    bench: Bench
    url: str
    root: Path

    def connect(self) -> Lakelog:
        return Lakelog.connect(self.url, self.root, engine="inline")

    @property
    def client(self) -> redis.Redis:
        return self.bench.client

    def records(self) -> list[Any]:
        with self.connect() as lake:
            return [
                (one.offset, one.timestamp_ms, one.key, one.value)
                for one in lake.log("orders").read(0).records()
            ]


@pytest.fixture
def world(full: Bench, redis_url: str, tmp_path: Path) -> World:
    return World(full, redis_url, tmp_path / "cold")


Offsets = list[tuple[int, int]]
Damage = Callable[[World], Offsets]


# -- one damage a kind; each returns the offsets that are to be named ----------------------------


def corrupt(world: World) -> Offsets:
    world.bench.flip_a_bit()
    return [(240, 260)]


def foreign(world: World) -> Offsets:
    world.bench.rewrite_stream(lambda entries: [(b"1-500", {b"x": b"y"}), *entries])
    return []


def missing_file(world: World) -> Offsets:
    file = world.bench.files()[1]
    world.bench.path(file).unlink()
    return [(file.start_offset, file.end_offset)]


def order(world: World) -> Offsets:
    file = world.bench.files()[1]
    world.bench.swap_rows(file)
    return [(file.start_offset, file.end_offset)]


def doubled(world: World) -> Offsets:
    file = world.bench.files()[1]
    world.bench.rewrite_file(file, lambda table: pa.concat_tables([table, table.slice(3, 2)]))
    return [(file.start_offset + 3, file.start_offset + 5)]


def hole(world: World) -> Offsets:
    world.client.xdel(world.bench.keys.stream, "259-20", "319-20")
    return [(240, 260), (300, 320)]


def differs(world: World) -> Offsets:
    file = world.bench.files()[-1]
    world.bench.change_value(file)
    return [(file.start_offset, file.start_offset + 1)]


def statistics(world: World) -> Offsets:
    """A closed segment's, the open one's, and the sums."""
    bench = world.bench
    (text, score) = bench.client.zrange(bench.keys.segments, 1, 1, withscores=True)[0]
    base, end, size, first, largest, *rest = (int(part) for part in text.split())
    bench.client.zrem(bench.keys.segments, text)
    lie = " ".join(map(str, (base, end, size + 7, first - 1, largest + 9, *rest)))
    bench.client.zadd(bench.keys.segments, {lie: score})
    opened = bench.client.hget(bench.keys.state, "segment").split()
    opened[1] = b"1"
    bench.client.hset(bench.keys.state, "segment", b" ".join(opened))
    for name, value in (("producer_count", 3), ("largest_entry", 10), ("closed_bytes", "many")):
        bench.client.hset(bench.keys.state, name, value)
    return [(base, end), (int(opened[0]), 400)]


def time_index(world: World) -> Offsets:
    """Entries that lie, one that is of no entry, and one past the end."""
    client, times = world.client, world.bench.keys.times
    (offset, score) = client.zrange(times, 2, 2, withscores=True)[0]
    client.zadd(times, {offset: score + 3, "245": 1_700_000_000_245, "900": 1_800_000_000_000})
    return [(int(offset), int(offset) + 1), (245, 246), (900, 901)]


def segment(world: World) -> Offsets:
    client, keys = world.client, world.bench.keys
    (text,) = client.zrange(keys.segments, 1, 1)
    client.zrem(keys.segments, text)
    base, end, *_ = (int(part) for part in text.split())
    return [(base, end)]


def gap(world: World) -> Offsets:
    world.bench.lose_tail()
    world.bench.append(20)
    (lost,) = world.bench.offsets.gaps
    world.client.hdel(world.bench.keys.state, "gaps")
    return [(lost.start, lost.end)]


def register(world: World) -> Offsets:
    world.client.hset(world.bench.keys.state, "log_end", 250)
    return [(250, 300)]


def table(world: World) -> Offsets:
    for path in (Path(world.bench.table.path) / "_delta_log").glob("*.json"):
        path.write_text("{}")
    return []


def properties(world: World) -> Offsets:
    """Changed by somebody who was given no cold root."""
    world.bench.hot.topics().alter("orders", {"retention.bytes": 10**12})
    return []


def registry(world: World) -> Offsets:
    """A change that was cut short, and settings that somebody else wrote."""
    state = world.bench.keys.state
    said = world.client.hget(state, "settings").split()
    said[3] = b"17"
    world.client.hset(state, mapping={"config_version": 0, "settings": b" ".join(said)})
    return []


def partition(world: World) -> Offsets:
    world.client.delete(*world.bench.keys.all())
    return []


def topic(world: World) -> Offsets:
    world.client.delete(Keys().topics)
    return []


def orphan(world: World) -> Offsets:
    file = world.bench.path(world.bench.files()[0])
    left = file.with_name(file.name.replace(file.stem.split("-")[-1], "0" * 32))
    assert left != file
    shutil.copy(file, left)
    os.utime(left, (left.stat().st_mtime - HOUR_S,) * 2)
    return []


def group_offset(world: World) -> Offsets:
    with world.connect() as lake, lake.consumer(group_id="night") as consumer:
        where = TopicPartition("orders", 0)
        consumer.assign([where])
        consumer.commit({where: OffsetAndMetadata(10)})
    field = Keys().group("night").offsets
    (value,) = world.client.hvals(field)
    world.client.hset(field, "orders-7", value)
    return [(10, 11)]


def unreachable(world: World) -> Offsets:
    shutil.rmtree(world.root)
    world.root.write_text("no folder")
    return []


DAMAGES: dict[Kind, Damage] = {
    Kind.CORRUPT: corrupt,
    Kind.FOREIGN: foreign,
    Kind.MISSING_FILE: missing_file,
    Kind.ORDER: order,
    Kind.DOUBLED: doubled,
    Kind.HOLE: hole,
    Kind.DIFFERS: differs,
    Kind.STATISTICS: statistics,
    Kind.TIME_INDEX: time_index,
    Kind.SEGMENT: segment,
    Kind.GAP: gap,
    Kind.REGISTER: register,
    Kind.TABLE: table,
    Kind.PROPERTIES: properties,
    Kind.REGISTRY: registry,
    Kind.PARTITION: partition,
    Kind.TOPIC: topic,
    Kind.ORPHAN: orphan,
    Kind.GROUP_OFFSET: group_offset,
    Kind.UNREACHABLE: unreachable,
}

MENDED = {
    Kind.STATISTICS,
    Kind.SEGMENT,
    Kind.TIME_INDEX,
    Kind.PROPERTIES,
    Kind.REGISTRY,
    Kind.PARTITION,
    Kind.ORPHAN,
}

#: What needs a store of its own.
ELSEWHERE = {Kind.STORE}


def test_each_kind_is_damaged():
    assert set(DAMAGES) | ELSEWHERE == set(Kind)


def test_a_sound_log_has_no_faults(world: World, capsys: pytest.CaptureFixture[str]):
    with world.connect() as lake:
        report = lake.check()
    assert report.sound
    assert report.findings == report.notices == report.repairs == ()
    # those in both tiers count once
    assert [(one.verdict, one.records) for one in report.partitions] == [("ok", 400)]
    assert [one.name for one in report.store] == [
        "list",
        "write",
        "read",
        "conditional put",
        "delete",
    ]
    assert all(one.flaw is None and one.latency_ms for one in report.store)
    assert [path.name for path in world.root.iterdir()] == ["orders"]
    assert run(world, capsys) == 0


def run(world: World, capsys: pytest.CaptureFixture[str], *more: str, root: bool = True) -> int:
    where = ["--redis", world.url, *(["--cold", str(world.root)] if root else [])]
    code = cli.main([*where, "--engine", "inline", "check", *more])
    said = capsys.readouterr()
    assert "Traceback" not in said.err + said.out
    world.said = said  # type: ignore[attr-defined]
    return code


@pytest.mark.parametrize("kind", DAMAGES, ids=lambda kind: kind.value)
def test_a_damage_is_found_by_its_exact_offsets(
    world: World, kind: Kind, capsys: pytest.CaptureFixture[str]
):
    offsets = DAMAGES[kind](world)
    with world.connect() as lake:
        report = lake.check()
    found = [one for one in report.findings if one.kind is kind]
    assert found, report.findings
    assert all(one.where and one.what for one in found)
    named = {tuple(one) for finding in found for one in finding.offsets}
    assert set(offsets) <= named, (offsets, found)
    assert any(one.repairable for one in found) == (kind in MENDED)
    assert run(world, capsys, "--output", "json") == 1
    told = json.loads(world.said.out)["findings"]  # type: ignore[attr-defined]
    assert kind.value in {one["fault"] for one in told}
    assert run(world, capsys) == 1
    unwrapped = " ".join(world.said.out.split())  # type: ignore[attr-defined]
    assert f"{kind.value}: " in unwrapped


@pytest.mark.parametrize("kind", sorted(MENDED), ids=lambda kind: kind.value)
def test_what_can_be_derived_is_mended(
    world: World, kind: Kind, capsys: pytest.CaptureFixture[str]
):
    before = world.records()
    DAMAGES[kind](world)
    with world.connect() as lake:
        report = lake.check(repair=True)
        assert report.sound, report.findings
        assert report.repairs
        assert all(one.done and one.what for one in report.repairs), report.repairs
        assert lake.check().repairs == ()
        if kind is not Kind.PARTITION:  # what only Redis held is lost with its keys
            assert world.records() == before
            world.bench.append(5)
            assert len(world.records()) == len(before) + 5
        assert lake.check().sound
    assert run(world, capsys, "--repair") == 0


def test_a_time_index_is_rebuilt_with_what_it_lacks(world: World):
    """One that lacks entries is slower and not wrong; but what is rebuilt is rebuilt in full."""
    world.client.delete(world.bench.keys.times)
    with world.connect() as lake:
        assert lake.check().sound
        world.client.zadd(world.bench.keys.times, {"245": 1_700_000_000_245})
        (found,) = lake.check().findings
        assert (found.kind, found.offsets) == (Kind.TIME_INDEX, (OffsetRange(245, 246),))
        assert lake.check(repair=True).sound
        rebuilt = world.client.zrange(world.bench.keys.times, 0, -1, withscores=True)
        assert len(rebuilt) > 5
        assert all(score == 1_700_000_000_000 + int(offset) for offset, score in rebuilt)
        assert lake.log("orders").seek(0, "2023-11-14T22:13:20.321Z") == 321


def test_what_cannot_be_derived_stays_and_the_rest_is_mended(world: World):
    DAMAGES[Kind.HOLE](world)
    DAMAGES[Kind.TIME_INDEX](world)
    with world.connect() as lake:
        report = lake.check(repair=True)
    assert {one.kind for one in report.findings} == {Kind.HOLE}
    assert [one.kind for one in report.repairs] == ["time-index"]


# -- the store ---------------------------------------------------------------------------------


def test_a_store_that_lets_two_commits_win(redis_url: str, s3_server: Any, s3_front: FaultyFront):
    root, options = "s3://lakelog/check", s3_options(s3_front.url)
    with Lakelog.connect(redis_url, root, storage_options=options, engine="inline") as lake:
        assert lake.check().sound
        # Late enough for each writer to have seen that nobody has written yet.
        fault = Fault("PUT", "0001.json", times=None, delay_s=0.3, unconditional=True)
        s3_front.inject(fault)
        (found,) = lake.check().findings
    assert found.kind is Kind.STORE
    assert re.search("it let [234] writers commit the same version", found.what)
    assert not [key for key in s3_server.keys("lakelog") if "lakelog-check" in key]


@pytest.mark.parametrize(
    ("method", "step"), [("GET", "list"), ("PUT", "write"), ("DELETE", "delete")]
)
def test_a_store_that_denies(
    redis_url: str, s3_server: Any, s3_front: FaultyFront, method: str, step: str
):
    root, options = "s3://lakelog/denied", s3_options(s3_front.url)
    with Lakelog.connect(redis_url, root, storage_options=options, engine="inline") as lake:
        s3_front.inject(Fault(method, ".", times=None, status=403))
        found = [one for one in lake.check().findings if one.where.endswith(step)]
    assert [one.kind in (Kind.STORE, Kind.UNREACHABLE) for one in found] == [True]


# -- a store that fails in the middle ----------------------------------------------------------


@pytest.fixture
def stored(
    redis_url: str, s3_front: FaultyFront, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Lakelog]:
    """Two partitions of 60 records: archived up to 40 in two files, and all of it in Redis too."""
    monkeypatch.setattr(object_store, "S3_ATTEMPTS", 4)  # eight take up to a minute
    root, options = f"s3://lakelog/{uuid4().hex}", s3_options(s3_front.url)
    with Lakelog.connect(redis_url, root, storage_options=options, engine="inline") as lake:
        lake.topics.create("orders", 2, {"retention.ms": -1, "local.retention.ms": -1})
        for _ in range(2):
            with lake.producer() as producer:
                for at in range(40):
                    producer.send("orders", f"order {at}", partition=at % 2)
            lake.archive()
        with lake.producer() as producer:
            for at in range(40):
                producer.send("orders", f"order {at}", partition=at % 2)
        yield lake


@pytest.mark.parametrize(("status", "words"), [(403, "ACCESS_DENIED"), (429, "busy or away")])
def test_a_file_that_cannot_be_read_now_is_not_checked_and_no_damage(
    stored: Lakelog,
    s3_front: FaultyFront,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    words: str,
):
    monkeypatch.setattr(back_off, "ASK_AGAIN", back_off.ASK_AGAIN.within(0.02))
    s3_front.inject(Fault("GET", r"partition(=|%3D)0/.*parquet", times=None, status=status))
    report = stored.check(repair=True)
    assert {(one.kind, one.partition, one.tier) for one in report.findings} == {
        (Kind.UNREACHABLE, 0, "cold")
    }
    assert all(words in one.what for one in report.findings)
    assert report.repairs == ()
    first, second = report.partitions
    assert (first.verdict, first.faults) == ("not checked", 0)
    assert words in first.not_checked
    # A store that may be away is not asked for the rest; one that refuses a file may have others.
    assert second.verdict == "ok"
    assert ("stopped answering" in second.not_checked) == (status == 429)
    (file, *_) = [one.where for one in report.findings]
    with pytest.raises(ColdTierError, match=words):  # nor is it skipped
        stored.skips("orders", 0).skip_file(file)
    s3_front.inject()
    assert stored.skips("orders", 0).list() == []
    assert stored.check().sound


def test_whenever_a_store_begins_to_refuse_nothing_is_called_damaged(
    stored: Lakelog, s3_front: FaultyFront
):
    for skip in range(0, 1000, 11):
        fault = Fault("GET", ".", times=None, skip=skip, status=403)
        s3_front.inject(fault)
        report = stored.check(repair=True)
        told = {one.kind for one in report.findings}
        if not fault.happened:
            assert report.sound
            break
        assert told
        assert told <= {Kind.UNREACHABLE, Kind.STORE}, (skip, report.findings)
        assert report.repairs == ()
    assert skip > 10


# -- groups ------------------------------------------------------------------------------------


def test_legal_offsets_of_groups_are_told_and_no_faults(
    world: World, capsys: pytest.CaptureFixture[str]
):
    where = TopicPartition("orders", 0)
    with world.connect() as lake:
        lake.log("orders").table.snapshot()
        for group, offset in (("ahead", 1000), ("in it", 250)):
            with lake.consumer(group_id=group) as consumer:
                consumer.assign([where])
                consumer.commit({where: OffsetAndMetadata(offset)})
        report = lake.check()
    assert report.sound
    assert [(one.kind, one.where, one.offsets) for one in report.notices] == [
        (Kind.GROUP_OFFSET, "group 'ahead'", (OffsetRange(1000, 1001),))
    ]
    assert run(world, capsys) == 0
    assert "lies above the log end 400" in world.said.out  # type: ignore[attr-defined]


# -- with a tier away --------------------------------------------------------------------------


def test_without_redis_the_cold_tier_is_checked(world: World):
    with Lakelog.connect(None, world.root, engine="inline") as lake:
        report = lake.check()
        assert report.sound
        (one,) = report.partitions
        assert (one.verdict, one.records) == ("ok", 300)
        assert one.not_checked == "hot: no Redis was given"
        missing_file(world)
        assert [found.kind for found in lake.check().findings] == [Kind.MISSING_FILE]


def test_redis_away_is_a_fault_and_the_cold_tier_is_checked(
    make_redis: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    server = make_redis()
    root = tmp_path / "root"
    with Lakelog.connect(server.url, root, engine="inline") as lake:
        lake.topics.create("orders", 1, {"retention.ms": -1})
        with lake.producer() as producer:
            for at in range(100):
                producer.send("orders", f"order {at}")
        lake.archive()
        server.stop()
        report = lake.check()
    assert [one.kind for one in report.findings] == [Kind.UNREACHABLE]
    assert [(one.verdict, one.records) for one in report.partitions] == [("ok", 100)]
    code = cli.main(["--redis", server.url, "--cold", str(root), "--engine", "inline", "check"])
    said = capsys.readouterr()
    assert (code, "Traceback" in said.err) == (1, False)
    assert "unreachable: " in said.out
    assert "Redis does not answer" in said.out


def test_the_cold_root_away_is_a_fault_and_the_hot_tier_is_checked(world: World):
    unreachable(world)
    with world.connect() as lake:
        report = lake.check()
    assert [one.kind for one in report.findings] == [Kind.UNREACHABLE]
    (one,) = report.partitions
    assert (one.verdict, one.records) == ("ok", 200)
    assert one.not_checked == "cold: the cold root does not answer"


def test_one_tier_is_checked_if_asked(world: World, capsys: pytest.CaptureFixture[str]):
    hole(world)
    assert run(world, capsys, "--tier", "cold") == 0
    assert run(world, capsys, "--tier", "hot") == 1
    assert run(world, capsys, "orders", "--tier", "hot") == 1


def test_a_fault_of_one_topic_hides_no_other(world: World):
    with world.connect() as lake:
        lake.topics.create("payments", 2)
        table(world)
        report = lake.check()
        assert {one.topic for one in report.findings} == {"orders"}
        assert [(one.topic, one.verdict) for one in report.partitions] == [
            ("orders", "faults"),
            ("payments", "ok"),
            ("payments", "ok"),
        ]
        assert lake.check("payments").sound


# -- beside others -----------------------------------------------------------------------------


def test_values_are_mended_while_somebody_appends(world: World):
    over = threading.Event()

    def append() -> None:
        while not over.is_set():
            world.bench.append(3)

    statistics(world)
    world.client.hset(world.bench.keys.state, "closed_bytes", 5)  # else nothing can be appended
    time_index(world)
    thread = threading.Thread(target=append)
    thread.start()
    try:
        with world.connect() as lake:
            report = lake.check(repair=True)
    finally:
        over.set()
        thread.join()
    # The open segment's figures move with each append: they may have to wait until it is closed.
    left = {one.where for one in report.findings}
    assert all(one.kind is Kind.STATISTICS for one in report.findings), report.findings
    assert all(where.startswith("segment ") for where in left), left
    with world.connect() as lake:
        assert lake.check(repair=True).sound


# -- other servers -------------------------------------------------------------------------------


def filled(url: str, cold: Path, partitions: int) -> Lakelog:
    """A topic in both tiers, 40 records of each partition of which 20 are hot alone, and groups."""
    lake = Lakelog.connect(url, cold, engine="inline")
    lake.topics.create("orders", partitions, {"local.retention.ms": -1, "retention.ms": -1})
    for archives in (True, False):
        with lake.producer() as producer:
            for n in range(20 * partitions):
                producer.send("orders", b"v%d" % n, partition=n % partitions)
        if archives:
            lake.archive()
    with lake.consumer("orders", group_id="night", auto_offset_reset="earliest") as consumer:
        while not consumer.poll(1000):
            pass
        consumer.commit()
    with lake.share_consumer(
        "orders", group_id="shared", share_auto_offset_reset="earliest"
    ) as shared:
        while not shared.poll(1000):
            pass
        shared.commit_sync()
    return lake


def test_a_cluster_is_checked(redis_cluster: Any, tmp_path: Path):
    """Partitions and groups lie on several servers; each is looked at where it is."""
    with filled(redis_cluster.url, tmp_path / "cold", 4) as lake:
        report = lake.check()
        assert (report.findings, report.notices) == ((), ())
        assert [one.verdict for one in report.partitions] == ["ok"] * 4
        damaged = TopicPartition("orders", 2)
        keys = Keys().partition(damaged)
        with redis.RedisCluster.from_url(redis_cluster.url.partition("?")[0]) as client:
            entry, *_ = client.xrevrange(keys.stream, count=1)
            client.xdel(keys.stream, entry[0])
            client.zadd(keys.times, {"900": 1_800_000_000_000})
        number, count = (int(part) for part in entry[0].split(b"-"))
        report = lake.check()
        assert {(one.kind, one.partition, one.offsets) for one in report.findings} == {
            (Kind.HOLE, 2, (OffsetRange(number - count + 1, number + 1),)),
            (Kind.TIME_INDEX, 2, (OffsetRange(900, 901),)),
        }
        assert [one.verdict for one in report.partitions] == ["ok", "ok", "faults", "ok"]


def test_where_a_share_group_stands_is_compared_with_the_log(world: World):
    with world.connect() as lake:
        with lake.share_consumer(
            "orders", group_id="ahead", share_auto_offset_reset="latest"
        ) as shared:
            shared.poll(0)
        assert (lake.check().findings, lake.check().notices) == ((), ())
        world.client.hset(world.bench.keys.state, "log_end", 380)  # as after a lost tail
        told = [one for one in lake.check().notices if one.kind is Kind.GROUP_OFFSET]
        assert [(one.where, one.offsets) for one in told] == [
            ("share group 'ahead'", (OffsetRange(400, 401),))
        ]
