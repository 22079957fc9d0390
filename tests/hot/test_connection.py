"""Connecting, and what each fault of a server becomes."""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import traceback

import pytest
import redis

from lakelog.errors import (
    HotTierAccessError,
    HotTierFullError,
    HotTierUnavailableError,
    InvalidArgumentError,
    NotEnoughReplicasAfterAppendError,
    NotEnoughReplicasError,
)
from lakelog.hot import Acks, AppendCall, HotLog, HotSource
from lakelog.hot.connection import connect
from lakelog.hot.redis_url import connection_options
from lakelog.operate.acl.acl import acl
from lakelog.testing.eventually import eventually
from tests.support.servers import free_port

NOW_MS = 1_700_000_000_000
SECRET = "s3cr3t"
QUICK = {"repl-diskless-sync-delay": 0}  # a replica gets its data at once, not after 5 s


# -- URLs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        "",
        "localhost",
        "http://localhost",
        f"user:{SECRET}@localhost",
        f"http://:{SECRET}@localhost",
        f"redis://:{SECRET}@localhost:port",
        f"redis://:{SECRET}/with/slashes@localhost:6379",
        f"redis://:{SECRET}?with=mark@localhost:6379",
        f"redis://:{SECRET}#with-hash@localhost:6379",
        f"redis://:a@{SECRET}@localhost:6379x",
        f"redis://[::1:{SECRET}@localhost",
        f"redis://localhost?password={SECRET}&unknown=1",
        f"redis://localhost?password={SECRET}&socket_timeout=soon",
        "redis://localhost/not-a-number",
        "redis://localhost:99999",
        "redis://localhost?maint_notifications_config=on",
        None,
        b"redis://localhost",
        5,
    ],
)
def test_what_is_no_redis_url_is_refused_without_its_password(url):
    with pytest.raises(InvalidArgumentError, match="not a Redis URL") as caught:
        connect(url)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    "place",
    [
        "a..b:6379",
        f"{'a' * 64}:6379",
        "a\u202eb:6379",
        "HERE?socket_timeout=-1",
        "HERE?socket_connect_timeout=nan",
        "HERE?socket_timeout=inf",
        "HERE?socket_type=stream",
        "HERE?socket_keepalive_options=on",
        ":\udcff@HERE",
    ],
)
def test_what_no_connection_can_be_made_of_is_refused(redis_url, place):
    hot = HotLog.connect("redis://" + place.replace("HERE", redis_url.removeprefix("redis://")))
    with contextlib.closing(hot), pytest.raises(InvalidArgumentError, match="no connection to"):
        hot.now_ms()


def test_a_socket_leads_to_no_cluster(tmp_path):
    with pytest.raises(InvalidArgumentError, match="Redis Cluster"):
        connect(f"unix://{tmp_path}/redis.sock?cluster=true")


@pytest.mark.parametrize(
    ("url", "checked"),
    [
        ("rediss://localhost", True),
        ("rediss://localhost?ssl_ca_certs=ca.pem&cluster=true", True),
        ("rediss://localhost?ssl_check_hostname=false", False),
        ("rediss://localhost?ssl_cert_reqs=none", False),
        ("redis://localhost", None),
    ],
)
def test_a_certificate_is_that_of_the_host_whatever_the_client_librarys_default(url, checked):
    options, _ = connection_options(url)
    assert options.get("ssl_check_hostname") is checked


@pytest.mark.parametrize(
    "name", ["max_connections", "decode_responses", "timeout", "retry", "redis_connect_func"]
)
def test_a_parameter_that_is_lakelogs_to_choose_is_named(name):
    for more in ("", "&cluster=true", "&socket_timeout=5"):
        with pytest.raises(InvalidArgumentError, match=f"has the parameter {name}, ") as refused:
            connection_options(f"redis://:{SECRET}@localhost:6379/0?{name}=1{more}")
        assert refused.value.name == name
        assert SECRET not in str(refused.value)


def test_a_server_without_hello_says_what_to_add_to_the_url(make_redis, redis_program):
    server = make_redis(program=redis_program, rename_command=['HELLO ""'])
    with pytest.raises(HotTierUnavailableError, match=r"add \?protocol=2 to the URL"):
        HotLog.connect(f"{server.url}?protocol=3").now_ms()
    hot = HotLog.connect(f"{server.url}?protocol=2")
    topic = hot.topics().create("orders", 1)
    assert hot.topics().list() == [topic]
    hot.close()


def test_a_server_without_a_command_that_is_needed_is_told_to_be_too_old(make_redis, redis_program):
    server = make_redis(program=redis_program, rename_command=['SCRIPT ""'])
    with pytest.raises(HotTierUnavailableError, match="no Redis 7 or newer, or a proxy"):
        HotLog.connect(server.url).now_ms()


def test_a_database_number_a_socket_and_resp3_work(make_redis, make_bench, tmp_path):
    socket_path = f"/tmp/lakelog-{os.getpid()}.sock"  # a path may have 107 characters
    server = make_redis(unixsocket=socket_path)
    for url in (f"{server.url}/3", f"unix://{socket_path}?db=5", f"{server.url}/7?protocol=3"):
        hot = HotLog.connect(url)
        topic = hot.topics().create("orders", 2)
        assert hot.topics().list() == [topic]
        assert hot.wait({topic.partition(0): 0}, 0) == set()
        hot.close()
    for number in (3, 5, 7):
        with redis.Redis.from_url(f"{server.url}/{number}") as client:
            assert client.exists("lakelog:topics")


def test_a_server_behind_tls(redis_tls_url, make_batch):
    hot = HotLog.connect(redis_tls_url)
    topic = hot.topics().create("orders")
    assert hot.append(topic.partition(0), topic.topic_id, make_batch([-1])).base_offset == 0
    hot.close()
    stranger = HotLog.connect(redis_tls_url.partition("?")[0])
    with pytest.raises(HotTierUnavailableError, match=r"(?i)certificate") as caught:
        stranger.topics().list()
    assert not caught.value.sent


# -- out of reach ------------------------------------------------------------------------------


def test_nobody_listens(make_batch, bench):
    hot = HotLog.connect(f"redis://127.0.0.1:{free_port()}")
    (error,) = hot.append_all([AppendCall(bench.tp(), bench.topic.topic_id, make_batch([-1]))])
    assert isinstance(error, HotTierUnavailableError)
    assert (error.sent, error.run_id, error.retriable) == (False, None, True)
    for ask in (hot.topics().list, hot.now_ms, lambda: hot.offsets([bench.tp()])):
        with pytest.raises(HotTierUnavailableError, match="Check the URL"):
            ask()


@pytest.mark.parametrize("credentials", ["", f":{SECRET}-not@", f"nobody:{SECRET}@"])
def test_a_wrong_or_missing_password(make_redis, credentials):
    server = make_redis(requirepass="the-right-one")
    hot = HotLog.connect(f"redis://{credentials}127.0.0.1:{server.port}")
    with pytest.raises(HotTierAccessError, match="check user and password") as caught:
        hot.topics().list()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_a_password_of_its_own_argument(make_redis):
    server = make_redis(requirepass="p@ss:w/%")
    hot = HotLog.connect(f"redis://127.0.0.1:{server.port}", password="p@ss:w/%")
    assert hot.topics().list() == []
    hot.close()


# -- rights ------------------------------------------------------------------------------------


def test_the_advised_rights_are_enough_and_no_more_than_that(
    make_redis, make_bench, make_batch, redis_program
):
    server = make_redis(
        program=redis_program, user=["poor on >secret ~* +@read", "lake on >secret resetkeys"]
    )
    with pytest.raises(HotTierAccessError, match="lakelog acl ROLE"):
        HotLog.connect(server.url.replace("//", "//poor:secret@")).topics().list()
    resuming = ("+config|get", "+config|set")
    with server.client() as client:
        client.execute_command("ACL", "SETUSER", "lake", *acl("admin").redis, *resuming)
    bench = make_bench(
        2,
        url=server.url.replace("//", "//lake:secret@"),
        remote_storage_enable=False,
        retention_ms=1000,
    )
    bench.client = server.client()
    batch = make_batch([NOW_MS])
    bench.send(batch)
    assert bench.send(batch).duplicate
    bench.append(NOW_MS)
    assert bench.hot.wait({bench.tp(): 0}, 1000) == {bench.tp()}
    assert bench.read_offsets() == [0, 1]
    assert bench.hot.offset_for_timestamp(bench.tp(), 0).offset == 0
    bench.hot.raise_log_start(bench.tp(), 1)
    with pytest.raises(NotEnoughReplicasError):
        HotLog.connect(f"{bench.url}?socket_timeout=2").append(
            bench.tp(1), bench.topic.topic_id, batch, acks=Acks.parse("replicas=1")
        )
    bench.hot.pause([bench.tp()])
    assert bench.hot.resume([bench.tp()])
    bench.client.hset(bench.keys()[1], "run_id", "another")
    bench.hot.recover(bench.tp(), 2)
    bench.clock.advance(1001)
    bench.hot.retain(bench.tp())
    topics = bench.hot.topics()
    topics.alter("orders", {"retention.ms": 5})
    topics.add_partitions("orders", 3)
    topics.delete("orders")
    with redis.Redis.from_url(bench.url) as client:
        for forbidden in (("FLUSHALL",), ("KEYS", "*"), ("SHUTDOWN",), ("SET", "other", 1)):
            with pytest.raises(redis.exceptions.NoPermissionError):
                client.execute_command(*forbidden)


def test_a_right_that_is_missing_only_inside_a_script(
    make_redis, make_bench, make_batch, redis_program
):
    server = make_redis(program=redis_program, user=["half on >secret ~* +@all -xadd"])
    bench = make_bench(url=server.url)
    half = HotLog.connect(server.url.replace("//", "//half:secret@"))
    before = bench.dump()
    with pytest.raises(HotTierAccessError, match="lacks a right"):
        half.append(bench.tp(), bench.topic.topic_id, make_batch([NOW_MS]))
    assert bench.dump() == before


def test_a_read_only_replica(make_redis, make_bench, make_batch):
    primary, replica = make_redis(**QUICK), make_redis()
    bench = make_bench(url=primary.url)
    bench.append(NOW_MS)
    replica.follow(primary)
    hot = HotLog.connect(replica.url)
    with pytest.raises(HotTierUnavailableError, match="connect to the primary") as refused:
        hot.append(bench.tp(), bench.topic.topic_id, make_batch([NOW_MS]))
    assert not refused.value.sent
    with pytest.raises(HotTierUnavailableError, match="read-only replica"):
        hot.topics().create("more")
    assert hot.offsets([bench.tp()])[bench.tp()].log_end == 1
    bench.hot.close()
    bench.hot = hot
    assert bench.read_offsets() == [0]


# -- full --------------------------------------------------------------------------------------


def test_a_full_redis_refuses_appends_and_lets_room_be_made(make_redis, make_bench, make_batch):
    server = make_redis(maxmemory="3mb")
    bench = make_bench(url=server.url, name="other")
    bench = make_bench(url=server.url)
    fill_up = (bench.append(NOW_MS, value_bytes=50_000) for _ in range(1000))
    with pytest.raises(HotTierFullError, match="Archive and trim") as caught:
        list(fill_up)
    assert caught.value.retriable
    # What Redis uses wavers with its connections' buffers: from here on it is surely full.
    bench.client.config_set("maxmemory", "2mb")
    before, end = bench.dump(), bench.offsets().log_end
    with pytest.raises(HotTierFullError):
        bench.append(NOW_MS)
    with pytest.raises(HotTierFullError):
        bench.hot.topics().create("more")
    assert bench.dump() == before
    assert [topic.name for topic in bench.hot.topics().list()] == ["orders", "other"]
    # a new connection too, which loads its scripts
    hot = HotLog.connect(server.url)
    assert hot.offsets([bench.tp()])[bench.tp()].log_end == end
    assert hot.wait({bench.tp(): 0}, 1000) == {bench.tp()}
    assert len(bench.read_offsets(end - 3)) == 3
    assert hot.offset_for_timestamp(bench.tp(), NOW_MS).offset == 0
    hot.pause([bench.tp()])
    assert hot.resume([bench.tp()])
    hot.topics().delete("other")
    hot.trim(bench.tp(), end)
    bench.client.config_set("maxmemory", "3mb")
    assert bench.append(NOW_MS).base_offset == end
    hot.close()


def test_a_full_redis_can_be_recovered(make_redis, make_bench):
    server = make_redis()
    bench = make_bench(url=server.url)
    bench.append(NOW_MS, value_bytes=50_000)
    bench.client.hset(bench.keys()[1], "run_id", "another")
    bench.client.config_set("maxmemory", "1mb")
    assert bench.hot.recover(bench.tp(), 1).log_end == 2**24 + 1


# -- silence -----------------------------------------------------------------------------------


def test_a_server_that_stands_still_is_an_error_in_time(make_redis, make_bench, make_batch):
    server = make_redis()
    bench = make_bench(url=f"{server.url}?socket_timeout=2&socket_connect_timeout=2")
    run_id = bench.append(NOW_MS).run_id
    os.kill(server.pid, signal.SIGSTOP)
    try:
        batch = make_batch([NOW_MS])
        with pytest.raises(HotTierUnavailableError, match="unknown") as caught:
            bench.send(batch)
        assert (caught.value.sent, caught.value.run_id) == (True, run_id)
        # its connection is gone, and a new one gets no answer to its handshake
        with pytest.raises(HotTierUnavailableError) as caught:
            bench.send(batch, sent_under=run_id)
        assert not caught.value.sent
    finally:
        os.kill(server.pid, signal.SIGCONT)
    answer = bench.send(batch, sent_under=run_id)
    assert answer.base_offset == 1  # the first attempt may have been executed after all
    assert bench.offsets().log_end == 2


# -- acks --------------------------------------------------------------------------------------


def test_acks_of_replicas(make_redis, make_bench, make_batch):
    primary, replica = make_redis(**QUICK), make_redis()
    bench = make_bench(url=f"{primary.url}?socket_timeout=2")
    batch, second = make_batch([NOW_MS]), make_batch([NOW_MS], first_sequence=1)
    state = bench.keys()[1]

    def send(acks, batch=batch):
        return bench.hot.append(bench.tp(), bench.topic.topic_id, batch, acks=Acks.parse(acks))

    def outcome(acks):
        try:
            return "a duplicate" if send(acks).duplicate else "written"
        except NotEnoughReplicasError as error:
            assert bench.client.hget(state, "log_end") == b"0"
            return str(error)
        except NotEnoughReplicasAfterAppendError as error:
            return str(error)

    with pytest.raises(NotEnoughReplicasError, match="has 0 online; nothing was written") as caught:
        send("replicas=1")
    assert (caught.value.retriable, caught.value.replicas) == (True, 0)
    assert bench.client.hget(state, "log_end") == b"0"
    with replica.client() as client:
        client.replicaof("127.0.0.1", primary.port)
        # It has only just come, and a wait is short here: asked again, as the errors say.
        eventually(lambda: outcome("replicas=1") in {"written", "a duplicate"})
        assert client.hget(state, "log_end") == b"1"
        # What is there already is confirmed, or not, whoever is online.
        eventually(lambda: "but 1 of 2 replicas confirmed" in outcome("replicas=2"))
        with pytest.raises(NotEnoughReplicasError, match=r"2 replicas .* has 1 online"):
            send("replicas=2", second)
    os.kill(replica.pid, signal.SIGSTOP)  # online, as far as the server knows
    with pytest.raises(NotEnoughReplicasAfterAppendError, match="0 of 1") as late:
        send("replicas=1", second)
    assert late.value.result.base_offset == 1
    assert bench.client.hget(state, "log_end") == b"2"


def test_acks_of_fsync(make_redis, make_bench, make_batch):
    server = make_redis(appendfsync="always")
    bench = make_bench(url=server.url)

    def send(batch):
        return bench.hot.append(bench.tp(), bench.topic.topic_id, batch, acks=Acks.parse("fsync"))

    first, second = make_batch([NOW_MS]), make_batch([NOW_MS], first_sequence=1)
    assert send(first).base_offset == 0
    bench.client.config_set("appendfsync", "everysec")
    with pytest.raises(NotEnoughReplicasAfterAppendError, match="appendfsync always"):
        send(second)
    with pytest.raises(InvalidArgumentError, match="appendfsync always"):
        send(second)
    bench.client.config_set("appendfsync", "always")
    assert send(second).base_offset == 1


@pytest.mark.parametrize(
    "conf",
    [
        {"appendfsync": "everysec"},
        {"appendfsync": "always", "appendonly": "no"},
        {"appendfsync": "always", "no-appendfsync-on-rewrite": "yes"},
    ],
    ids=str,
)
def test_acks_of_fsync_need_a_server_that_syncs(make_redis, make_bench, make_batch, conf):
    bench = make_bench(url=make_redis(**conf).url)
    before = bench.dump()
    with pytest.raises(InvalidArgumentError, match="acks='fsync'"):
        bench.hot.append(
            bench.tp(), bench.topic.topic_id, make_batch([NOW_MS]), acks=Acks.parse("fsync")
        )
    assert bench.dump() == before


# -- proxies -----------------------------------------------------------------------------------


class StickyProxy:
    """Keeps its clients' connections while the server behind it comes and goes."""

    def __init__(self, port):
        self.port_behind = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        inside = None
        while True:
            ready, _, _ = select.select([client, *([inside] if inside else [])], [], [])
            if inside in ready:
                data = inside.recv(1 << 16)
                if data:
                    client.sendall(data)
                else:
                    inside = None
                continue
            data = client.recv(1 << 20)
            if not data:
                return
            inside = inside or socket.create_connection(("127.0.0.1", self.port_behind))
            inside.sendall(data)

    def close(self):
        self._listener.close()


def test_a_server_that_restarts_behind_a_proxy_is_noticed(make_redis, make_bench, make_batch):
    server = make_redis()
    proxy = StickyProxy(server.port)
    bench = make_bench(url=server.url)
    hot = HotLog.connect(f"redis://127.0.0.1:{proxy.port}")
    tp, topic_id = bench.tp(), bench.topic.topic_id
    batch = make_batch([NOW_MS])
    run_id = hot.append(tp, topic_id, batch).run_id
    server.restart(clean=False)
    # the connection stands, but the scripts it knows are not there
    (error,) = hot.append_all([AppendCall(tp, topic_id, make_batch([NOW_MS], first_sequence=1))])
    assert type(error).__name__ == "RecoveryNeededError"
    hot.recover(tp, 1)
    answer = hot.append(tp, topic_id, make_batch([NOW_MS], epoch=1))
    (gap,) = hot.offsets([tp])[tp].gaps
    assert answer.base_offset == gap.end > 1
    assert answer.run_id != run_id
    hot.close()
    proxy.close()


def test_the_first_refusal_of_a_demoted_server_ends_all_its_connections(make_redis):
    """They were opened before it stepped down, and its name may lead to another one by now."""
    old, new = make_redis(), make_redis()
    proxy = StickyProxy(old.port)
    servers = connect(f"redis://127.0.0.1:{proxy.port}")
    server = servers.for_key("key")

    def runs():
        with contextlib.ExitStack() as held:
            return {held.enter_context(server.wire()).run_id for _ in range(5)}

    before = runs()
    with old.client() as client:
        client.replicaof("127.0.0.1", new.port)
    proxy.port_behind = new.port
    assert runs() == before
    with pytest.raises(HotTierUnavailableError, match="read-only replica"):
        server.call(("SET", "key", "value"))
    assert len(runs()) == 1
    assert runs() != before
    server.call(("SET", "key", "value"))
    servers.close()
    proxy.close()


# -- sources -----------------------------------------------------------------------------------


def test_a_source_opens_once_a_process(make_redis, monkeypatch):
    server = make_redis(requirepass=SECRET)
    source = HotSource(
        f"redis://127.0.0.1:{server.port}", keyspace="mine", password_ref="env:LAKE_PASSWORD"
    )
    monkeypatch.setenv("LAKE_PASSWORD", SECRET)
    hot = source.open()
    assert hot is pickle.loads(pickle.dumps(source)).open()
    assert hot.keyspace == "mine"
    assert hot.topics().list() == []


@pytest.mark.parametrize("reference", ["env:NOT_THERE", "file:password", "", "LAKE_PASSWORD"])
def test_a_reference_that_names_no_password(reference):
    with pytest.raises(InvalidArgumentError, match="env:NAME"):
        HotSource("redis://h:1", password_ref=reference).open()


FORK = """
import os, sys
from lakelog.codec import ProducedBatch, encode
from lakelog.values.config import Compression, EntryFormat
from lakelog.hot import HotLog
from lakelog.values.record import produced_batch
hot = HotLog.connect(sys.argv[1])
topic = hot.topics().create("orders")
tp = topic.partition(0)

def append(producer, count):
    rows = produced_batch([(-1, None, b"%d" % producer, ())])
    entries = encode(rows, EntryFormat.FIELDS, Compression.NONE)
    for n in range(count):
        hot.append(tp, topic.topic_id, ProducedBatch(entries, producer, 0, n, n))

append(1, 3)
child = os.fork()
append(3 if child else 2, 50)
if not child:
    os._exit(0)
_, status = os.waitpid(child, 0)
assert status == 0, status
values = [v for step in hot.read(tp, 0) for v in step.records.column("value").to_pylist()]
assert sorted(values) == [b"1"] * 3 + [b"2"] * 50 + [b"3"] * 50, values
print("fine")
"""


def test_a_fork_takes_no_connection_of_its_parent(redis_url):
    done = subprocess.run(
        [sys.executable, "-c", FORK, redis_url], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("fine\n", "")
