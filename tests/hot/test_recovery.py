"""A server that lost its tail, and one that did not: no offset is ever used for two records."""

from __future__ import annotations

import threading

import pytest
import redis
from msgspec.structs import replace

from lakelog.errors import (
    HotTierPausedError,
    InvalidArgumentError,
    RecoveryNeededError,
    UnknownProducerError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot import HotLog
from lakelog.hot.connection import call_script
from lakelog.hot.recovery import Recovery
from lakelog.values.reservation import Reserved
from lakelog.values.topic_partition import OffsetRange, TopicPartition

NOW_MS = 1_700_000_000_000
GAP = 2**24


def lose_tail(server, size):
    server.cut_append_only_file(to_size=size)
    server.start()


def another_run(bench):
    """As if the server had restarted since: what `:state` says of the run that wrote it last."""
    bench.client.hset(bench.keys()[1], "run_id", "f" * 40)


@pytest.fixture
def lost(make_redis, make_bench, redis_program):
    """Five records were appended; the server came back with three."""
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)
    bench.append(NOW_MS, NOW_MS, NOW_MS)
    size = server.append_only_size()
    bench.append(NOW_MS, NOW_MS)
    lose_tail(server, size)
    return bench


# -- a lost tail -------------------------------------------------------------------------------


def test_after_a_lost_tail_no_offset_is_used_twice(lost):
    assert lost.offsets().log_end == 3
    assert not lost.offsets().recovered
    with pytest.raises(RecoveryNeededError, match="orders-0"):
        lost.append(NOW_MS)
    recovered = lost.hot.recover(lost.tp(), 5)
    assert recovered.recovered
    assert recovered.log_end == GAP + 5
    assert recovered.gaps == (OffsetRange(3, GAP + 5),)
    assert [(s.base_offset, s.end_offset) for s in lost.offsets().segments] == [
        (0, 3),
        (GAP + 5, GAP + 5),
    ]
    assert lost.append(NOW_MS).base_offset == GAP + 5
    assert lost.read_offsets() == [0, 1, 2, GAP + 5]
    assert lost.read_offsets(4) == lost.read_offsets(GAP + 4) == [GAP + 5]
    (step,) = list(lost.hot.read(lost.tp(), 100))
    assert step.gaps == (OffsetRange(3, GAP + 5),)
    assert lost.hot.offset_for_timestamp(lost.tp(), NOW_MS).offset == 0


@pytest.mark.parametrize(
    ("at_least", "log_end"), [(0, 3 + GAP), (2, 3 + GAP), (3, 3 + GAP), (50, 50 + GAP)]
)
def test_the_gap_spans_what_anybody_was_told_of(bench, at_least, log_end):
    bench.append(NOW_MS, NOW_MS, NOW_MS)
    another_run(bench)
    assert bench.hot.recover(bench.tp(), at_least).log_end == log_end
    assert bench.append(NOW_MS).base_offset == log_end


def test_a_log_start_above_the_lost_end_is_kept_clear_of_too(bench):
    """Somebody trimmed what cold holds while the server was behind."""
    bench.append(NOW_MS, NOW_MS)
    another_run(bench)
    bench.hot.trim(bench.tp(), 40)
    assert bench.hot.recover(bench.tp(), 2).log_end == 40 + GAP
    assert bench.append(NOW_MS).base_offset == 40 + GAP
    assert bench.read_offsets(40) == [40 + GAP]


def test_recover_does_nothing_twice(bench):
    bench.append(NOW_MS)
    another_run(bench)
    bench.hot.recover(bench.tp(), 1)
    dump = bench.dump()
    for at_least in (0, 1, GAP, GAP + 1):
        bench.hot.recover(bench.tp(), at_least)
    assert bench.dump() == dump


def test_many_recoverers_leave_one_gap(make_bench, redis_url):
    bench = make_bench()
    bench.append(NOW_MS)
    another_run(bench)
    start = threading.Barrier(4)

    def recover():
        hot = HotLog.connect(redis_url)
        start.wait()
        hot.recover(bench.tp(), 1)
        hot.close()

    threads = [threading.Thread(target=recover) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bench.offsets().gaps == (OffsetRange(1, 1 + GAP),)


def test_an_empty_partition_is_recovered_too(bench):
    another_run(bench)
    assert bench.hot.recover(bench.tp(), 0).log_end == GAP
    assert bench.bases() == [GAP]


def test_recover_refuses_what_is_no_offset(bench):
    for at_least in (-1, 2**53 + 1, 1.5, None):
        with pytest.raises(InvalidArgumentError):
            bench.hot.recover(bench.tp(), at_least)
    with pytest.raises(UnknownTopicOrPartitionError):
        bench.hot.recover(TopicPartition("orders", 7), 0)


# -- producers ---------------------------------------------------------------------------------


def test_many_producers_are_looked_through_in_parts(bench):
    """Redis serves one script at a time: one over a million of them would hold up everybody."""
    count = 25_000
    kinds = ("5 1|0 0 0 -1 cafe", "5 1|1 1 9 -1 cafe|0 0 1 -1 cafe", "5 1|0 0 0 -1")
    bench.append(NOW_MS, NOW_MS)
    _, state, _, _, key = bench.keys()
    bench.client.delete(key)
    bench.client.hset(key, mapping={n: kinds[n % 3] for n in range(count)})
    bench.client.hset(state, "producer_count", count)
    bench.client.config_resetstat()
    another_run(bench)
    bench.hot.recover(bench.tp(), 0)
    called = bench.client.info("commandstats")["cmdstat_evalsha"]["calls"]
    left = bench.client.hgetall(key)
    assert called >= 3  # parts, in each of which others wait
    whole, cut, none = b"5 1|0 0 0 -1 cafe", b"5 1|0 0 1 -1 cafe", None
    expected = {b"%d" % n: (whole, cut, none)[n % 3] for n in range(count)}
    assert left == {n: value for n, value in expected.items() if value is not None}
    assert int(bench.client.hget(state, "producer_count")) == len(left)


def test_where_a_search_of_producers_goes_on_counts_in_its_run_alone(bench):
    """What another run held was not looked at: it begins anew."""
    bench.append(NOW_MS)
    producers = bench.keys()[4]
    bench.client.hset(producers, mapping=dict.fromkeys(range(300), "5 1|0 0 0 -1"))
    another_run(bench)
    arguments = [0, 0, NOW_MS, "", "99 an-earlier-run 1", 0, 0, ""]
    call_script(bench.hot.connections, "recover", bench.keys(), arguments)
    assert bench.client.hlen(producers) == 0


def test_recovery_keeps_what_survived_of_producers_with_checksums(bench, make_batch):
    ours = [
        replace(make_batch([NOW_MS], first_sequence=n), checksums=(f"{n:08x}", f"{n + 1:08x}"))
        for n in range(3)
    ]
    for call in ours[:2]:
        bench.send(call)
    bench.send(make_batch([NOW_MS], producer_id=2))
    another_run(bench)
    bench.hot.recover(bench.tp(), 3)
    assert [bench.send(call).duplicate for call in ours] == [True, True, False]
    assert bench.client.hget(bench.keys()[1], "producer_count") == b"1"
    with pytest.raises(UnknownProducerError):
        bench.send(ours[2], sent_under="the run before")


def test_a_call_that_was_sent_before_is_never_sent_again(lost, make_batch):
    """Whether it is among what was lost, nobody knows."""
    lost.hot.recover(lost.tp(), 5)
    with pytest.raises(UnknownProducerError):
        lost.send(make_batch([NOW_MS]), sent_under="the run before")
    assert lost.send(make_batch([NOW_MS])).base_offset == GAP + 5


# -- planned stops -----------------------------------------------------------------------------


def test_a_planned_stop_leaves_no_gap(make_redis, make_bench, make_batch, redis_program):
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)
    first = make_batch([NOW_MS, NOW_MS])
    run_id = bench.send(first).run_id
    bench.hot.pause([bench.tp()])
    assert bench.offsets().paused
    with pytest.raises(HotTierPausedError):
        bench.send(make_batch([NOW_MS], first_sequence=2))
    server.restart()
    with pytest.raises(RecoveryNeededError):
        bench.send(make_batch([NOW_MS], first_sequence=2))
    assert bench.hot.resume([bench.tp()])
    assert bench.offsets().gaps == ()
    # the producer goes on, and a resend of before the stop is known
    assert bench.send(first, sent_under=run_id).duplicate
    answer = bench.send(make_batch([NOW_MS], first_sequence=2))
    assert answer.base_offset == 2
    assert answer.run_id != run_id
    assert bench.client.config_get("appendfsync") == {"appendfsync": "everysec"}


def test_recover_adopts_a_clean_stop_by_itself(make_redis, make_bench):
    server = make_redis()
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    server.restart()
    assert bench.hot.recover(bench.tp(), 1).log_end == 1
    assert bench.append(NOW_MS).base_offset == 1


def test_the_mark_is_off_the_disk_before_anything_is_appended(make_redis, make_bench, monkeypatch):
    """Else a crash could bring it back without the records that came after it."""
    server = make_redis()
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    marked = server.append_only_size()
    server.restart()
    step_each, seen = Recovery._step_each, []

    def observed_steps(self, server, topic_partitions, verb):
        seen.append((verb, *bench.client.config_get("appendfsync").values()))
        return step_each(self, server, topic_partitions, verb)

    monkeypatch.setattr(Recovery, "_step_each", observed_steps)
    assert bench.hot.resume([bench.tp()])
    assert seen == [("unmark", "always"), ("resume", "everysec")]
    # whatever a crash takes from here on, what was synced stays
    size = server.append_only_size()
    assert size > marked
    bench.append(NOW_MS, NOW_MS)
    lose_tail(server, size)
    assert bench.offsets().log_end == 1
    with pytest.raises(RecoveryNeededError):
        bench.append(NOW_MS)
    assert bench.hot.recover(bench.tp(), 3).log_end == GAP + 3


def test_a_crash_after_a_pause_keeps_the_mark_true(make_redis, make_bench):
    """The mark lies behind all that was appended, so it is lost first."""
    server = make_redis(appendfsync="no")  # everysec may hold a write back
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    size = server.append_only_size()
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    server.restart(clean=False)
    assert bench.offsets().log_end == 2
    bench.hot.recover(bench.tp(), 2)
    assert bench.append(NOW_MS).base_offset == 2
    lose_tail(server, size)
    assert bench.hot.recover(bench.tp(), 3).log_end == GAP + 3


def test_who_cannot_be_paused_or_resumed_is_named_among_many(make_bench):
    """More partitions than take a step in one round trip, in each of which one has no mark."""
    bench = make_bench(600)
    lost = [3, 300, 599]
    everything = bench.topic.topic_partitions()
    for partition in lost:
        bench.client.hset(bench.keys(partition)[1], "run_id", "f" * 40)
    refused = bench.hot.pause_each(everything)
    assert [tp.partition for tp in refused] == lost
    assert {type(error) for error in refused.values()} == {RecoveryNeededError}
    seen = bench.hot.offsets(everything)
    assert [tp.partition for tp, one in seen.items() if not one.paused] == lost
    assert [tp.partition for tp in bench.hot.resume_each(everything)] == lost
    assert not any(one.paused for one in bench.hot.offsets(everything).values())


def test_an_adoption_that_died_half_way_is_done_again(make_redis, make_bench):
    """After the mark was taken away, before appends were accepted."""
    server = make_redis()
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    server.restart()
    bench.hot._recovery._step(bench.tp(), "unmark")
    with pytest.raises(RecoveryNeededError):
        bench.append(NOW_MS)
    assert bench.hot.recover(bench.tp(), 1).gaps == ()
    assert bench.append(NOW_MS).base_offset == 1


@pytest.mark.parametrize("stops", [True, False])
def test_without_the_right_to_config_there_is_a_gap(make_redis, make_bench, stops):
    server = make_redis(user=["writer on >secret ~* &* +@all -config"])
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    if stops:
        server.restart()
    hot = HotLog.connect(server.url.replace("//", "//writer:secret@"))
    assert not hot.resume([bench.tp()])
    with pytest.raises(RecoveryNeededError):
        bench.append(NOW_MS)
    assert hot.recover(bench.tp(), 1).gaps == (OffsetRange(1, 1 + GAP),)
    assert bench.append(NOW_MS).base_offset == 1 + GAP
    hot.close()


@pytest.mark.parametrize(
    "conf", [{"appendonly": "no"}, {"no-appendfsync-on-rewrite": "yes"}], ids=str
)
def test_without_a_synced_file_there_is_a_gap(make_redis, make_bench, conf):
    server = make_redis(**conf)
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    assert not bench.hot.resume([bench.tp()])
    assert bench.hot.recover(bench.tp(), 1).gaps == (OffsetRange(1, 1 + GAP),)


def test_a_policy_that_was_set_back_meanwhile_is_noticed(make_bench, monkeypatch):
    """By somebody who held the lock too long: then nobody knows what is on disk."""
    bench = make_bench()
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    step_each = Recovery._step_each

    def step_and_meddle(self, server, topic_partitions, verb):
        refused = step_each(self, server, topic_partitions, verb)
        bench.client.config_set("appendfsync", "everysec")
        return refused

    monkeypatch.setattr(Recovery, "_step_each", step_and_meddle)
    assert not bench.hot.resume([bench.tp()])
    assert bench.hot.recover(bench.tp(), 1).gaps == (OffsetRange(1, 1 + GAP),)


def test_adopters_of_one_server_take_turns(make_redis, make_bench):
    """Each switches the fsync policy to and fro, whatever its partition."""
    server = make_redis()
    bench = make_bench(8, url=server.url)
    for partition in range(8):
        bench.append(NOW_MS, partition=partition)
    bench.hot.pause(bench.topic.topic_partitions())
    server.restart()
    hots = [HotLog.connect(server.url) for _ in range(8)]
    start = threading.Barrier(8)

    def recover(partition):
        start.wait()
        hots[partition].recover(bench.tp(partition), 1)

    threads = [threading.Thread(target=recover, args=(p,)) for p in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [bench.append(NOW_MS, partition=p).base_offset for p in range(8)] == [1] * 8
    assert bench.client.config_get("appendfsync") == {"appendfsync": "everysec"}
    for hot in hots:
        hot.close()


# -- failover ----------------------------------------------------------------------------------


def promote(server):
    with server.client() as client:
        client.replicaof("NO", "ONE")


QUICK = {"repl-diskless-sync-delay": 0}


def test_a_primary_that_was_refilled_meanwhile_asks_for_recovery(
    make_redis, make_bench, redis_program
):
    """The same process under the same run id, with the same connections and cached scripts."""
    first, second = (make_redis(program=redis_program, **QUICK) for _ in range(2))
    bench = make_bench(url=first.url)
    bench.append(NOW_MS)
    second.follow(first)
    promote(second)
    run_id = bench.append(NOW_MS, NOW_MS).run_id  # lost below
    first.follow(second)
    promote(first)
    assert bench.offsets().log_end == 1
    assert not bench.offsets().recovered
    with pytest.raises(RecoveryNeededError):
        bench.append(NOW_MS)
    assert bench.client.info("server")["run_id"] == run_id
    bench.hot.recover(bench.tp(), 3)
    assert bench.append(NOW_MS).base_offset == GAP + 3


def test_a_promoted_replica_does_not_adopt_a_clean_mark(make_redis, make_bench):
    """The server that was stopped may have gone on since."""
    first, second = (make_redis(**QUICK) for _ in range(2))
    bench = make_bench(url=first.url)
    bench.append(NOW_MS)
    bench.hot.pause([bench.tp()])
    second.follow(first)
    promote(second)
    bench.hot.resume([bench.tp()])
    bench.append(NOW_MS)
    hot = HotLog.connect(second.url)
    with pytest.raises(RecoveryNeededError):
        hot.resume([bench.tp()])
    assert hot.recover(bench.tp(), 1).gaps == (OffsetRange(1, 1 + GAP),)
    hot.close()


# -- scripts -----------------------------------------------------------------------------------


def test_no_script_of_an_earlier_run_is_ever_loaded(make_redis, make_bench, make_batch):
    """A connection that outlives the server, as through a proxy, meets NOSCRIPT first."""
    server = make_redis(appendfsync="no")  # everysec may hold a write back
    bench = make_bench(url=server.url)
    bench.append(NOW_MS)
    with bench.hot._servers.for_key("").wire() as wire:
        old = wire.script("append", bench.keys(), ())
    server.restart(clean=False)
    with pytest.raises(redis.exceptions.NoScriptError):
        bench.client.execute_command(*old)


# -- half a transaction (tests/archive/test_half_transactions.py cuts files everywhere) ----------


def test_recovery_forgets_what_half_a_transaction_left_beside_the_entries(bench, make_batch):
    """Redis 7.0 ran an append up to, and without, its change of `:state`."""
    _, _, segments, times, producers = bench.keys()
    bench.send(replace(make_batch([NOW_MS, NOW_MS]), checksums=("", "aa")))
    before = {name: bench.client.hget(producers, name) for name in bench.client.hkeys(producers)}
    value = before[b"1"].decode()
    head, _, calls = value.partition("|")
    bench.client.xadd(bench.keys()[0], {"__ts": "1"}, id="3-2")
    bench.client.hset(producers, "1", f"{head}|2 3 2 -1 bb|{calls}")
    bench.client.zadd(segments, {f"0 4 9 {NOW_MS} {NOW_MS} {NOW_MS} {NOW_MS}": 0})
    bench.client.zadd(times, {"3": NOW_MS + 5})
    another_run(bench)

    assert bench.read_offsets() == [0, 1]
    assert [(s.base_offset, s.end_offset) for s in bench.offsets().segments] == [(0, 2)]
    log_end = bench.hot.recover(bench.tp(), 0).log_end
    assert bench.client.hget(producers, "1").decode() == value
    assert [text.split()[:2] for text in bench.client.zrange(segments, 0, -1)] == [[b"0", b"2"]]
    assert b"3" not in bench.client.zrange(times, 0, -1)
    repeated = replace(make_batch([NOW_MS], first_sequence=2), checksums=("aa", "bb"))
    assert bench.send(repeated).base_offset == log_end  # not taken for one that is there
    assert bench.read_offsets() == [0, 1, log_end]


def test_the_gap_takes_in_an_entry_that_reaches_further_than_the_clock(bench):
    bench.append(NOW_MS)
    bench.client.xadd(bench.keys()[0], {"__ts": "1"}, id="20000000-20000000")
    another_run(bench)
    bench.clock.advance(1)
    log_end = bench.hot.recover(bench.tp(), 0).log_end
    assert log_end > 20_000_000
    assert bench.append(NOW_MS).base_offset == log_end
    assert bench.read_offsets() == [0, log_end]


def test_an_entry_may_be_where_the_gap_has_its_own(make_bench):
    bench = make_bench(remote_storage_enable="true")
    bench.append(NOW_MS)
    last = int(bench.state("reserved_end")) - 1  # as far as half a transaction can reach
    bench.client.xadd(bench.keys()[0], {"__ts": "1"}, id=f"{last}-{last}")
    another_run(bench)

    def reserve(wanted):
        return {tp: Reserved(OffsetRange(e.least, e.least + 100)) for tp, e in wanted.items()}

    assert bench.hot.recover(bench.tp(), 0, reserve).log_end == last + 1
    assert bench.append(NOW_MS).base_offset == last + 1
    assert bench.read_offsets() == [0, last + 1]


def test_an_entry_past_the_log_end_wakes_nobody_for_ever(bench):
    bench.append(NOW_MS)
    bench.client.xadd(bench.keys()[0], {"__ts": "1"}, id="3-3")
    assert bench.read_offsets() == [0]
    bench.hot.wait({bench.tp(): 1}, 0)
    assert bench.hot.wait({bench.tp(): 1}, 20) == set()


def test_a_reservation_keeps_out_an_older_lakelog_that_knows_none(make_bench):
    bench = make_bench(remote_storage_enable="true")
    settings = bench.state("settings").split()
    older = b" ".join(settings[:14])  # as it wrote them, and all that it reads
    bench.client.hset(bench.keys()[1], "settings", older)
    bench.client.hdel(bench.keys()[1], "reserved_end")
    another_run(bench)

    def reserve(wanted):
        return {tp: Reserved(OffsetRange(e.least, e.least + 2**20)) for tp, e in wanted.items()}

    bench.hot.recover(bench.tp(), 0, reserve)
    assert bench.state("settings").split()[:14] == settings[:14]
    assert len(bench.state("settings").split()) == 15
    bench.append(NOW_MS)
