"""Appends as transactions: what keeps an entry out keeps it out by whichever way it comes.

The tests of appends, retention, rolling, recovery, quotas and clusters run by both ways; here is
what only a transaction can meet.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import socket
import threading

import pytest
import redis
from msgspec.structs import replace

from lakelog import Lakelog
from lakelog.errors import (
    ForeignEntryError,
    HotTierAccessError,
    HotTierFullError,
    HotTierUnavailableError,
    LakelogError,
)
from lakelog.hot import HotLog
from lakelog.hot.append_transaction import AppendTransaction
from lakelog.operate.acl.acl import acl
from lakelog.testing.eventually import eventually

NOW_MS = 1_700_000_000_000  # where the manual clock begins
UNTIERED = {"remote.storage.enable": False, "retention.ms": -1}
LARGE = 100_000
LARGEST_ID = f"{2**64 - 1}-{2**64 - 1}"


def placed(bench, batch, base_offset):
    return replace(bench.call(batch), base_offset=base_offset)


def append_at(bench, batch, base_offset):
    (answer,) = bench.hot.append_all([placed(bench, batch, base_offset)])
    return answer


def executed(client, command):
    return client.info("commandstats").get(f"cmdstat_{command}", {"calls": 0})["calls"]


@pytest.fixture
def begun(make_redis, make_bench, make_batch, redis_program):
    """A partition with three records."""
    bench = make_bench(url=make_redis(program=redis_program).url)
    bench.send(make_batch([NOW_MS] * 3))
    return bench


def test_entries_go_beside_the_scripts(begun, make_batch):
    begun.client.config_resetstat()
    answer = append_at(begun, make_batch([NOW_MS] * 2, first_sequence=3, value_bytes=LARGE), 3)
    assert answer.base_offset == 3
    assert executed(begun.client, "exec") == 2  # one of them asks whether there are transactions
    assert executed(begun.client, "evalsha") == 2
    assert executed(begun.client, "xadd") == 2
    assert begun.read_offsets() == list(range(5))
    assert begun.state("appending") is None


def test_a_wrong_guess_of_the_end_costs_a_second_trip_and_nothing_else(begun, make_batch):
    for base_offset in (0, 2, 4, 2**53 - 1):
        sequence = begun.offsets().log_end
        answer = append_at(begun, make_batch([NOW_MS], first_sequence=sequence), base_offset)
        assert answer.base_offset == sequence
    assert begun.read_offsets() == list(range(7))


def test_calls_behind_one_that_began_elsewhere_follow_it(begun, make_batch):
    batches = [make_batch([NOW_MS] * 2, first_sequence=3 + 2 * n) for n in range(3)]
    calls = [placed(begun, batch, 10 + 2 * n) for n, batch in enumerate(batches)]
    answers = begun.hot.append_all(calls)
    assert [answer.base_offset for answer in answers] == [3, 5, 7]


def test_scripts_that_the_server_forgot_add_nothing_and_are_loaded_again(begun, make_batch):
    append_at(begun, make_batch([NOW_MS], first_sequence=3), 3)
    begun.client.script_flush()
    assert append_at(begun, make_batch([NOW_MS], first_sequence=4), 4).base_offset == 4
    assert begun.read_offsets() == list(range(5))
    begun.client.script_flush()  # and whoever comes next by the script alone finds it open
    assert begun.send(make_batch([NOW_MS], first_sequence=5)).base_offset == 5


def test_a_stream_that_was_left_closed_takes_entries_again(begun, make_batch):
    """As a transaction leaves it whose scripts are unknown, and whose client then dies."""
    begun.client.execute_command("XSETID", begun.keys()[0], LARGEST_ID)
    assert begun.send(make_batch([NOW_MS], first_sequence=3)).base_offset == 3
    begun.client.execute_command("XSETID", begun.keys()[0], LARGEST_ID)
    assert append_at(begun, make_batch([NOW_MS], first_sequence=4), 4).base_offset == 4
    begun.client.execute_command("XSETID", begun.keys()[0], LARGEST_ID)
    begun.client.hset(begun.keys()[1], "run_id", "another")
    assert begun.hot.recover(begun.tp(), 0).log_end > 5


@pytest.mark.parametrize("foreign_id", ["3-1", "3-2", "900-1"])
def test_a_foreign_entry_from_the_end_on_is_told_as_the_script_tells_it(
    begun, make_batch, foreign_id
):
    begun.client.xadd(begun.keys()[0], {"by": "hand"}, id=foreign_id)
    batch = make_batch([NOW_MS], first_sequence=3)
    answer = append_at(begun, batch, 3)
    by_script = begun.hot.append_all([begun.call(batch)])[0]
    assert type(answer) is type(by_script)
    assert begun.client.xlen(begun.keys()[0]) == 4
    begun.client.xadd(begun.keys()[0], {"by": "hand"}, id="901-1")  # it can go on, too


def test_a_key_that_is_no_stream_is_told_as_the_script_tells_it(begun, make_batch):
    begun.client.delete(begun.keys()[0])
    begun.client.set(begun.keys()[0], "by hand")
    batch = make_batch([NOW_MS], first_sequence=3)
    answer = append_at(begun, batch, 3)
    assert isinstance(answer, LakelogError)
    assert type(answer) is type(begun.hot.append_all([begun.call(batch)])[0])
    assert begun.client.get(begun.keys()[0]) == b"by hand"


def test_no_stream_is_made_for_a_topic_that_is_gone(begun, make_batch):
    call = placed(begun, make_batch([NOW_MS], first_sequence=3), 3)
    begun.hot.topics().delete("orders")
    (answer,) = begun.hot.append_all([call])
    assert isinstance(answer, LakelogError)
    assert not begun.client.exists(begun.keys()[0])


@pytest.mark.parametrize("missing", ["multi", "exec", "xsetid"])
def test_who_lacks_a_right_for_it_appends_by_the_script(
    make_redis, make_bench, make_batch, redis_program, missing
):
    server = make_redis(program=redis_program, user=[f"half on >secret ~* &* +@all -{missing}"])
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    half = HotLog.connect(server.url.replace("//", "//half:secret@"), clock=bench.clock)
    for sequence in (1, 2):
        call = placed(bench, make_batch([NOW_MS], first_sequence=sequence), sequence)
        (answer,) = half.append_all([call])
        assert answer.base_offset == sequence
    tried = bench.client.info("commandstats")
    assert tried.get("cmdstat_exec", {}).get("failed_calls", 0) <= 1  # it is not tried again
    half.close()


def test_a_server_without_one_of_its_commands(make_redis, make_bench, make_batch, redis_program):
    server = make_redis(program=redis_program, rename_command=["XSETID ''"])
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    bench.client.config_resetstat()
    for sequence in (1, 2):
        answer = append_at(bench, make_batch([NOW_MS], first_sequence=sequence), sequence)
        assert answer.base_offset == sequence
    assert executed(bench.client, "exec") == 2  # it is not tried again


def test_a_server_without_transactions(make_redis, make_bench, make_batch, redis_program):
    server = make_redis(program=redis_program, rename_command=["MULTI ''", "EXEC ''"])
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    assert append_at(bench, make_batch([NOW_MS], first_sequence=1), 1).base_offset == 1
    assert bench.read_offsets() == [0, 1]


def test_rights_of_a_role_are_enough(make_redis, make_bench, make_batch, redis_program):
    server = make_redis(program=redis_program)
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    with server.client() as client:
        rules = acl("producer", topics=["orders"]).redis
        client.execute_command("ACL", "SETUSER", "ada", "on", ">secret", *rules)
    ada = HotLog.connect(server.url.replace("//", "//ada:secret@"), clock=bench.clock)
    bench.client.config_resetstat()
    call = placed(bench, make_batch([NOW_MS], first_sequence=1), 1)
    (answer,) = ada.append_all([call])
    assert answer.base_offset == 1
    assert executed(bench.client, "exec") == 2
    ada.close()


def test_a_full_server_refuses_it_whole(make_redis, make_bench, make_batch, redis_program):
    bench = make_bench(url=make_redis(program=redis_program).url)
    bench.send(make_batch([NOW_MS]))
    before = bench.dump()
    bench.client.config_set("maxmemory", 1)
    answer = append_at(bench, make_batch([NOW_MS], first_sequence=1, value_bytes=LARGE), 1)
    assert isinstance(answer, HotTierFullError)
    assert bench.dump() == before
    bench.client.config_set("maxmemory", 0)
    assert append_at(bench, make_batch([NOW_MS], first_sequence=1), 1).base_offset == 1


def test_who_waits_for_a_record_gets_it(begun, make_batch):
    found = []

    def wait():
        with redis.Redis.from_url(begun.url.partition("?")[0]) as client:
            found.extend(client.xread({begun.keys()[0]: "2-1"}, block=20_000, count=1))

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not begun.client.info("clients")["blocked_clients"]:
        pass
    refused = make_batch([NOW_MS], first_sequence=77)
    assert isinstance(append_at(begun, refused, 3), LakelogError)
    assert append_at(begun, make_batch([NOW_MS], first_sequence=3), 3).base_offset == 3
    waiting.join(20)
    assert [entry_id for _, entries in found for entry_id, _ in entries] == [b"3-1"]


def test_a_replica_gets_all_of_it(make_redis, make_bench, make_batch, redis_program):
    at_once = {"repl-diskless-sync-delay": 0}
    primary = make_redis(program=redis_program, **at_once)
    replica = make_redis(program=redis_program)
    bench = make_bench(url=primary.url)
    bench.send(make_batch([NOW_MS]))
    replica.follow(primary)
    with replica.client() as client:
        for sequence in range(1, 4):
            append_at(bench, make_batch([NOW_MS], first_sequence=sequence), sequence)
        assert bench.client.wait(1, 5_000) == 1
        stream, state = bench.keys()[:2]
        assert client.xrange(stream) == bench.client.xrange(stream)
        assert client.hgetall(state) == bench.client.hgetall(state)


@pytest.mark.parametrize(
    "taken", [("multi", "exec", "xsetid"), ("multi",), ("exec",), ("xadd",), ("hset",)], ids=str
)
def test_rights_that_are_taken_amid_appends_leave_nothing_by_halves(
    make_redis, make_bench, make_batch, redis_program, taken
):
    """Without MULTI the server executes one by one what it can of the others."""
    server = make_redis(program=redis_program, user=["half on >secret ~* &* +@all"])
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    half = HotLog.connect(server.url.replace("//", "//half:secret@"), clock=bench.clock)

    def append(*sequences):
        batches = [make_batch([NOW_MS] * 2, first_sequence=one) for one in sequences]
        calls = [placed(bench, batch, batch.first_sequence) for batch in batches]
        return half.append_all(calls)

    assert [answer.base_offset for answer in append(1)] == [1]
    bench.client.acl_setuser("half", enabled=True, commands=[f"-{right}" for right in taken])
    answers = append(3, 5)
    if isinstance(answers[0], LakelogError):
        assert isinstance(answers[0], HotTierAccessError)
        bench.client.acl_setuser("half", enabled=True, commands=[f"+{right}" for right in taken])
        answers = append(3, 5)
    assert [answer.base_offset for answer in answers] == [3, 5]
    assert bench.send(make_batch([NOW_MS], producer_id=2)).base_offset == 7
    assert bench.read_offsets() == list(range(8))
    assert bench.client.xlen(bench.keys()[0]) == 8
    assert bench.state("appending") is None
    half.close()


def test_who_may_not_open_a_stream_waits_for_whoever_may(
    make_redis, make_bench, make_batch, redis_program
):
    server = make_redis(program=redis_program, user=["old on >secret ~* &* +@all -xsetid"])
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    old = HotLog.connect(server.url.replace("//", "//old:secret@"), clock=bench.clock)
    bench.client.execute_command("XSETID", bench.keys()[0], LARGEST_ID)
    call = bench.call(make_batch([NOW_MS], producer_id=2))
    (answer,) = old.append_all([call])
    assert isinstance(answer, HotTierUnavailableError)
    assert not answer.sent
    assert bench.send(make_batch([NOW_MS], first_sequence=1)).base_offset == 1
    (answer,) = old.append_all([call])
    assert answer.base_offset == 2
    old.close()


def test_an_entry_that_was_deleted_by_hand_above_the_end_leaves_recovery_its_way(begun, make_batch):
    """Some servers refuse the stream an id below it for ever."""
    begun.client.xadd(begun.keys()[0], {"by": "hand"}, id="900-1")
    begun.client.xdel(begun.keys()[0], "900-1")
    answer = append_at(begun, make_batch([NOW_MS], first_sequence=3), 3)
    assert not isinstance(answer, LakelogError) or isinstance(answer, ForeignEntryError)
    begun.client.hset(begun.keys()[1], "run_id", "another")
    log_end = begun.hot.recover(begun.tp(), 0).log_end
    assert log_end > 900
    assert begun.send(make_batch([NOW_MS], producer_id=2)).base_offset == log_end


def test_what_a_server_that_loads_refuses_is_not_unknown(
    make_redis, make_bench, make_batch, redis_program
):
    """It takes MULTI, which says nothing of what follows."""
    full = make_redis(program=redis_program, **{"repl-diskless-sync-delay": 0})
    server = make_redis(program=redis_program, **{"replica-read-only": "no"})
    bench = make_bench(url=server.url)
    bench.send(make_batch([NOW_MS]))
    append_at(bench, make_batch([NOW_MS], first_sequence=1), 1)
    with full.client() as client:
        client.mset({f"key {number}": "" for number in range(100_000)})
    bench.client.config_set("key-load-delay", 1_000)
    bench.client.config_set("loading-process-events-interval-bytes", 1_024)
    bench.client.replicaof("127.0.0.1", full.port)
    eventually(lambda: bench.client.info("persistence")["loading"] == 1)
    answer = append_at(bench, make_batch([NOW_MS], first_sequence=2), 2)
    assert isinstance(answer, HotTierUnavailableError)
    assert not answer.sent


def test_a_proxy_that_closes_the_connection_at_multi(begun, make_batch):
    with Closing(begun.client.connection_pool.connection_kwargs["port"]) as port:
        hot = HotLog.connect(f"redis://127.0.0.1:{port}", clock=begun.clock)
        for sequence in (3, 4):
            call = placed(begun, make_batch([NOW_MS], first_sequence=sequence), sequence)
            (answer,) = hot.append_all([call])
            assert answer.base_offset == sequence
        hot.close()


class Closing:
    """A proxy of connections that it closes when MULTI comes."""

    def __init__(self, port):
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets = []

    def __enter__(self):
        threading.Thread(target=self._accept, daemon=True).start()
        return self._listener.getsockname()[1]

    def __exit__(self, *_):
        for one in (self._listener, *self._sockets):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._port))
                self._sockets += (client, server)
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=ends, daemon=True).start()

    def _pump(self, source, target):
        with contextlib.suppress(OSError):
            while data := source.recv(65_536):
                if b"MULTI" in data and b"SCRIPT" not in data:
                    break
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)


def test_a_proxy_that_executes_one_by_one_is_no_transaction(begun, make_batch):
    call = placed(begun, make_batch([NOW_MS], first_sequence=3), 3)
    transaction = AppendTransaction(begun.keys(), call, None, 0)
    replies = [b"OK", b"OK", [b"READY"], b"3-1", [b"OK", 3, -1, 0, 0], []]
    assert transaction.answer(replies)[0] == b"ELSEWHERE"


# -- producers ---------------------------------------------------------------------------------


def produce(url, folder, name, count):
    with Lakelog.connect(url, folder, engine="inline") as lake, lake.producer() as producer:
        for number in range(count):
            producer.send("orders", b"%s %d" % (name, number) + bytes(LARGE), partition=0)


def test_producers_of_large_records_beside_each_other(redis_url, tmp_path):
    """Each guesses the end, and is often wrong."""
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1, UNTIERED)
        spawned = multiprocessing.get_context("spawn")
        names, count = [b"ada", b"bob", b"eve"], 40
        processes = [
            spawned.Process(target=produce, args=(redis_url, tmp_path, name, count))
            for name in names
        ]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        values = [value[:-LARGE] for value in values_of(lake)]
        for name in names:
            own = [value for value in values if value.startswith(name)]
            assert own == [b"%s %d" % (name, number) for number in range(count)]
        assert len(values) == len(names) * count


def values_of(lake):
    tp = lake.topics.get("orders").partition(0)
    steps = lake.hot.read(tp, 0)
    return [value for step in steps for value in step.records.column("value").to_pylist()]


def test_a_producer_alone_appends_large_calls_as_transactions(redis_url, tmp_path):
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1, UNTIERED)
        with redis.Redis.from_url(redis_url) as client, lake.producer(linger_ms=0) as producer:
            producer.send("orders", os.urandom(LARGE)).result()
            client.config_resetstat()
            for _ in range(4):
                producer.send("orders", os.urandom(LARGE)).result()
            assert executed(client, "exec") == 4 + 1  # one asks whether there are transactions
            for _ in range(4):
                producer.send("orders", b"small").result()
            assert executed(client, "exec") == 4 + 1


def test_entries_with_redis_own_time_go_by_the_script(redis_url, tmp_path):
    with Lakelog.connect(redis_url, tmp_path, engine="inline") as lake:
        lake.topics.create("orders", 1, {**UNTIERED, "message.timestamp.type": "LogAppendTime"})
        with redis.Redis.from_url(redis_url) as client, lake.producer(linger_ms=0) as producer:
            client.config_resetstat()
            for _ in range(3):
                producer.send("orders", os.urandom(LARGE)).result()
            assert executed(client, "exec") == 0
