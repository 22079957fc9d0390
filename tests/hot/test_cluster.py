"""The same on a Redis Cluster: keys on three servers, slots that move, servers that go."""

from __future__ import annotations

import contextlib

import pytest
import redis
from msgspec.structs import replace
from redis.crc import key_slot

from lakelog.errors import (
    HotTierUnavailableError,
    LakelogError,
    RecoveryNeededError,
)
from lakelog.hot import AppendResult, HotLog
from lakelog.hot.connection import connect
from lakelog.hot.keys import Keys
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisClusterServers, free_port

NOW_MS = 1_700_000_000_000
PARTITIONS = 12
GAP = 2**24


@pytest.fixture
def bench(redis_cluster, make_bench):
    return make_bench(PARTITIONS, url=redis_cluster.url)


def server_of(bench, partition):
    return bench.hot._servers.for_key(bench.keys(partition)[0])


class Move:
    """A slot on its way from one node to another, step by step."""

    def __init__(self, cluster, slot):
        self.slot = slot
        self.nodes = [node.client() for node in cluster.nodes]
        self.ids = [self._command(c, "MYID").decode() for c in self.nodes]
        owner = self._owner()
        self.source, self.target = owner, (owner + 1) % 3
        self.target_port = cluster.nodes[self.target].port

    def _command(self, client, *words):
        return client.execute_command(f"CLUSTER {words[0]}", *words[1:])

    def _owner(self):
        for line in self.nodes[0].execute_command("CLUSTER SLOTS"):
            first, last, (_, _, node_id, *_) = line[0], line[1], line[2]
            if first <= self.slot <= last:
                return self.ids.index(node_id.decode())
        raise AssertionError(self.slot)

    def begin(self):
        source, target = self.nodes[self.source], self.nodes[self.target]
        self._command(target, "SETSLOT", self.slot, "IMPORTING", self.ids[self.source])
        self._command(source, "SETSLOT", self.slot, "MIGRATING", self.ids[self.target])

    def move_keys(self, count=1000):
        source = self.nodes[self.source]
        keys = self._command(source, "GETKEYSINSLOT", self.slot, count)
        if keys:
            source.execute_command(
                "MIGRATE", "127.0.0.1", self.target_port, "", 0, 5000, "KEYS", *keys
            )
        return keys

    def end(self):
        for client in (self.nodes[self.target], self.nodes[self.source], *self.nodes):
            self._command(client, "SETSLOT", self.slot, "NODE", self.ids[self.target])


def test_a_partition_has_its_keys_in_one_slot_and_the_partitions_spread(bench):
    slots = [{key_slot(key.encode()) for key in bench.keys(p)} for p in range(PARTITIONS)]
    assert all(len(one) == 1 for one in slots)
    assert len({id(server_of(bench, p)) for p in range(PARTITIONS)}) == 3


def test_appends_to_all_partitions_in_one_trip_a_server(bench, make_batch, redis_cluster):
    calls = [
        bench.call(make_batch([NOW_MS] * 2, first_sequence=2 * n), partition)
        for n in range(3)
        for partition in range(PARTITIONS)
    ]
    answers = bench.hot.append_all(calls)
    assert all(isinstance(answer, AppendResult) for answer in answers)
    assert [a.base_offset for a in answers] == [0] * PARTITIONS + [2] * PARTITIONS + [
        4
    ] * PARTITIONS
    offsets = bench.hot.offsets(bench.topic.topic_partitions())
    assert [o.log_end for o in offsets.values()] == [6] * PARTITIONS
    assert list(offsets) == bench.topic.topic_partitions()


def test_reads_waits_searches_and_trims(bench):
    for partition in range(PARTITIONS):
        bench.append(*[NOW_MS + i for i in range(5)], partition=partition)
    positions = {tp: 4 + tp.partition % 2 for tp in bench.topic.topic_partitions()}
    there = {tp for tp in positions if tp.partition % 2 == 0}
    eventually(lambda: bench.hot.wait(positions, 1000) == there)  # once each server has answered
    assert bench.hot.wait(dict.fromkeys(positions, 5), 60) == set()
    for tp in positions:
        assert bench.hot.offset_for_timestamp(tp, NOW_MS + 3).offset == 3
        bench.hot.trim(tp, 2)
        read = [step.records.num_rows for step in bench.hot.read(tp, 2)]
        assert sum(read) == 3
    assert bench.hot.now_ms() == NOW_MS


def test_topics_grow_change_and_go(bench, redis_cluster):
    topics = bench.hot.topics()
    assert topics.list() == [bench.topic]
    bench.topic = topics.add_partitions("orders", PARTITIONS + 6)
    topics.alter("orders", {"retention.ms": 9})
    for partition in range(PARTITIONS + 6):
        assert bench.append(NOW_MS, partition=partition).base_offset == 0
    deleted = topics.delete("orders")
    kept = []
    for node in redis_cluster.nodes:
        with node.client() as client:
            kept += client.keys("*orders*")
    assert kept
    assert all(b":deleted:" in key for key in kept)
    back = topics.undelete(replace(deleted, config_version=deleted.config_version + 1), {})
    assert back.topic_id == bench.topic.topic_id
    for partition in range(PARTITIONS + 6):
        assert bench.append(NOW_MS, partition=partition).base_offset == 1
    deleted = topics.delete("orders")
    topics.end_purge(topics.begin_purge(deleted))
    for node in redis_cluster.nodes:
        with node.client() as client:
            assert client.keys("*orders*") == []


def test_recovery_and_planned_stops_on_every_server(bench, redis_cluster):
    everything = bench.topic.topic_partitions()
    bench.hot.pause(everything)
    assert all(offsets.paused for offsets in bench.hot.offsets(everything).values())
    assert bench.hot.resume(everything)
    for partition in range(PARTITIONS):
        assert bench.append(NOW_MS, partition=partition).base_offset == 0
        assert bench.hot.recover(bench.tp(partition), 5).log_end == GAP + 5
    for node in redis_cluster.nodes:
        with node.client() as client:
            assert client.config_get("appendfsync") == {"appendfsync": "everysec"}


def test_resume_locks_are_where_their_servers_are(bench):
    recovery, servers = bench.hot._recovery, bench.hot._servers
    for server in servers.all():
        assert servers.for_key(recovery._lock_key(server)) is server


@pytest.mark.parametrize("paused", [True, False])
def test_a_slot_that_moved_is_followed(bench, redis_cluster, make_batch, paused):
    tp = bench.tp(0)
    answer = bench.send(make_batch([NOW_MS] * 3))
    if paused:
        bench.hot.pause([tp])
    # each will ask the wrong server first
    fresh = [HotLog.connect(redis_cluster.url, clock=bench.clock) for _ in range(6)]
    move = Move(redis_cluster, key_slot(bench.keys()[0].encode()))
    move.begin()
    assert len(move.move_keys()) >= 3
    move.end()
    assert fresh[0].offsets([tp])[tp].log_end == 3
    assert [step.next_offset for step in fresh[1].read(tp, 0)][-1] == 3
    assert fresh[2].offset_for_timestamp(tp, NOW_MS).offset == 0
    # its records came along, but under another server's run
    calls = [bench.call(make_batch([NOW_MS], first_sequence=3 + n)) for n in range(2)]
    answers = fresh[3].append_all(calls)
    assert [type(a) for a in answers] == [RecoveryNeededError] * 2
    fresh[4].recover(tp, 3)
    end = fresh[5].offsets([tp])[tp].log_end
    if paused:
        assert end == 3
        resent = fresh[3].append(
            tp, bench.topic.topic_id, make_batch([NOW_MS] * 3), sent_under=answer.run_id
        )
        assert resent.duplicate
    else:
        assert end == GAP + 3
    assert bench.append(NOW_MS).base_offset == end  # the first client, still on the old map
    for hot in fresh:
        hot.close()


def test_a_slot_on_its_way_is_a_retriable_error_and_loses_nothing(bench, redis_cluster, make_batch):
    bench.send(make_batch([NOW_MS]))
    move = Move(redis_cluster, key_slot(bench.keys()[0].encode()))
    move.begin()
    batch = make_batch([NOW_MS], first_sequence=1)
    for _ in range(3):
        if not move.move_keys(2):
            break
        with pytest.raises(HotTierUnavailableError) as caught:
            bench.send(batch)
        assert not caught.value.sent
    move.end()
    bench.hot.recover(bench.tp(), 1)
    assert bench.read_offsets(0, 1) == [0]


def test_a_partition_recovers_while_its_slot_is_on_its_way(bench, redis_cluster):
    """A key that the recovery empties is gone, and what is gone may be on the other server."""

    move = Move(redis_cluster, key_slot(bench.keys()[0].encode()))
    source = move.nodes[move.source]
    bench.append_sized(5_000, NOW_MS)
    source.hset(bench.keys()[1], "run_id", "another")
    bench.hot.recover(bench.tp(), 0)
    bench.append_sized(5_000, NOW_MS + 1)
    assert all(map(source.exists, bench.keys()))
    move.begin()
    source.hset(bench.keys()[1], "run_id", "another")
    with pytest.raises(HotTierUnavailableError):  # it looks at what it recovered
        bench.hot.recover(bench.tp(), 0)
    assert source.hget(bench.keys()[1], "run_id") != b"another"
    while move.move_keys():
        pass
    move.end()
    log_end = bench.hot.recover(bench.tp(), 0).log_end  # for the other server
    assert len(bench.offsets().gaps) == 3
    assert bench.append(NOW_MS).base_offset == log_end


def test_a_server_that_went_is_looked_for_anew(bench, redis_cluster, make_batch):
    """Another may have its slots by now; here it comes back as another run of itself."""
    for partition in range(PARTITIONS):
        bench.append(NOW_MS, partition=partition)
    victim = redis_cluster.nodes[1]
    there = [p for p in range(PARTITIONS) if server_of(bench, p).options["port"] == victim.port]
    assert there
    victim.kill()
    answers = bench.hot.append_all(
        [bench.call(make_batch([NOW_MS]), partition) for partition in range(PARTITIONS)]
    )
    assert all(isinstance(answers[p], HotTierUnavailableError) for p in there)
    assert bench.hot._servers._is_stale
    victim.start()

    def settled():
        with redis.Redis.from_url(victim.url) as client:
            return client.cluster("INFO")["cluster_state"] == "ok"

    eventually(settled)

    def try_all():
        return bench.hot.append_all(
            [bench.call(make_batch([NOW_MS], producer_id=2), p) for p in range(PARTITIONS)]
        )

    def all_answer():
        return not any(isinstance(a, HotTierUnavailableError) for a in try_all())

    eventually(all_answer)
    assert {p for p, a in enumerate(try_all()) if isinstance(a, RecoveryNeededError)} == set(there)
    for p in there:
        assert bench.hot.recover(bench.tp(p), 1).log_end >= GAP
    assert not any(isinstance(a, LakelogError) for a in try_all())


def test_of_what_a_url_names_one_has_to_answer(tmp_path):
    cluster = RedisClusterServers(tmp_path).start()
    try:
        first, second, _ = cluster.nodes
        with contextlib.closing(connect(cluster.url)) as servers:
            there = {server.name for server in servers.all()}
        first.kill()  # with nobody to take its slots over
        named = f"redis://127.0.0.1:{{}},127.0.0.1:{second.port}?cluster=true"
        with contextlib.closing(connect(named.format(first.port))) as servers:
            assert {server.name for server in servers.all()} == there
        nobody = f"redis://127.0.0.1:{free_port()},127.0.0.1:{first.port}?cluster=true"
        with pytest.raises(HotTierUnavailableError, match="the URL may name several") as away:
            connect(nobody)
        assert not away.value.sent
    finally:
        cluster.stop()


def test_no_server_of_the_slot_is_an_error_of_that_call(bench, make_batch, monkeypatch):
    servers = bench.hot._servers
    slot = key_slot(Keys().partition(bench.tp(0)).stream.encode())
    monkeypatch.setattr(servers, "refresh", lambda: None)
    monkeypatch.setattr(servers, "_slots", [s for s in servers._slots if not s[0] <= slot <= s[1]])
    gone = [p for p in range(PARTITIONS) if not _held(servers, bench, p)]
    answers = bench.hot.append_all([bench.call(make_batch([NOW_MS]), p) for p in range(PARTITIONS)])
    assert [p for p, a in enumerate(answers) if isinstance(a, HotTierUnavailableError)] == gone


def _held(servers, bench, partition):
    slot = key_slot(bench.keys(partition)[0].encode())
    return any(first <= slot <= last for first, last, _ in servers._slots)
