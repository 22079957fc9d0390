"""The servers of a round: one Redis or a cluster with replicas, a folder or an object store."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import redis

from lakelog.base.back_off import POLL, wait_until
from tests.support.object_store import Fault, FaultyFront, S3Server, s3_options
from tests.support.servers import STARTING, RedisServer

from .history import Partition, Span

#: `appendfsync everysec` may hold writes back for two seconds while a sync runs: what a kill takes.
EVERYSEC_HELD_BACK_S = 2.0

#: The most that a cut takes: everysec syncs what is older. What the server was made to sync stays.
CUT_S = 1.0

_SAMPLE_S = 0.05
_METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD")
_FOR_EVER = 1 << 30


class SingleServer:
    """One Redis, which is killed, cut, stopped and filled.

    Attributes:
        sizes: how long its append-only file was, and when (monotonic).
        synced_size: what a disk surely has of it.
    """

    def __init__(self, folder: Path, conf: Mapping[str, str]) -> None:
        self.server = RedisServer(folder, dict(conf))
        self.losses: list[Span] = []
        self.restarts = 0
        self._is_synced = conf.get("appendfsync") == "always"
        self.sizes: deque[tuple[float, int]] = deque(maxlen=int(4 / _SAMPLE_S))
        self.synced_size = 0
        self._own_settings = 0  # how many this class has made since the server started
        self._others_settings = 0  # and lakelog
        self._measuring = threading.Event()

    @property
    def url(self) -> str:
        return self.server.url

    def start(self) -> None:
        self.server.start()
        threading.Thread(target=self._measure, name="chaos-sizes", daemon=True).start()

    def stop(self) -> None:
        self._measuring.set()
        _go_on(self.server)
        self.server.kill(at_once=True)

    def heal(self) -> None:
        """Running, and with room."""
        _go_on(self.server)
        self.make_room()

    def kill(self, down_s: float) -> str:
        """Ends the process; what it had answered is in its file, or held back."""
        killed_s = time.monotonic()
        self.server.kill(at_once=True)
        if not self._is_synced:
            self.losses.append(Span(killed_s - EVERYSEC_HELD_BACK_S, killed_s + _SAMPLE_S))
        self._start_after(down_s)
        return f"down for {down_s:.1f} s"

    def cut(self, draws: random.Random, down_s: float) -> str:
        """A power cut: what was written in the last second before is gone, in part or whole."""
        killed_s = time.monotonic()
        self.server.kill(at_once=True)
        size = self.server.append_only_size_now()
        oldest_s = killed_s - draws.uniform(0.0, CUT_S)
        sizes = list(self.sizes)
        least = min((n for _, n in sizes), default=size)  # since it started, if that is later
        kept = max((n for at_s, n in sizes if at_s <= oldest_s), default=least)
        kept = max(kept, self.synced_size)
        # Anywhere above: in the middle of a command, or of a transaction, as a disk's block ends.
        to_size = draws.randint(min(kept, size), size)
        self.server.cut_append_only_file(to_size=to_size)
        self.losses.append(
            Span(oldest_s - EVERYSEC_HELD_BACK_S - 2 * _SAMPLE_S, killed_s + _SAMPLE_S)
        )
        self._start_after(down_s)
        return f"lost {size - to_size} bytes, down for {down_s:.1f} s"

    def gaps(
        self, partitions: Mapping[Partition, tuple[str, int]], *, emptied: bool = False
    ) -> dict[Partition, tuple[Span, ...]]:
        """The gaps that Redis declares now.

        Args:
            partitions: the topic's name and the number of each that is asked about.
            emptied: in the same step, it forgets everything.
        """
        with self.server.client() as client:
            step = client.pipeline(transaction=True)
            for name, number in partitions.values():
                step.hmget(f"{{lakelog:stream:{name}:{number}}}:state", "topic_id", "gaps")
            if emptied:
                step.flushall()
            said = step.execute()[: len(partitions)]
        return {
            where: tuple(Span(*map(int, gap.split(b"-"))) for gap in gaps.split(b","))
            for where, (topic_id, gaps) in zip(partitions, said, strict=True)
            if topic_id == where.topic_id.encode() and gaps
        }

    def empty(
        self, partitions: Mapping[Partition, tuple[str, int]]
    ) -> dict[Partition, tuple[Span, ...]]:
        """Forgets everything, for good; gives the gaps that it had declared until then."""
        with self.server.client() as client:
            # Else a power cut soon after could bring everything back.
            client.config_set("appendfsync", "always")
            declared = self.gaps(partitions, emptied=True)
            if not self._is_synced:
                client.config_set("appendfsync", "everysec")
        self._forget_sizes()
        self.restarts += 1
        return declared

    def lose_disk(self, down_s: float) -> None:
        """The process ends, and its files are gone."""
        self.server.kill(at_once=True)
        shutil.rmtree(self.server.directory / "appendonlydir")
        for file in self.server.directory.glob("*.rdb"):
            file.unlink()
        self._start_after(down_s)

    def fill(self) -> None:
        """Takes no more writes."""
        self._configure("maxmemory", "1mb")

    def make_room(self) -> None:
        self._configure("maxmemory", "0")

    def pause(self) -> None:
        os.kill(self.server.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        _go_on(self.server)

    def _start_after(self, down_s: float) -> None:
        time.sleep(down_s)
        self._forget_sizes()
        self.server.start()
        self.restarts += 1

    def _forget_sizes(self) -> None:
        self.sizes.clear()
        self.synced_size = self._own_settings = self._others_settings = 0

    def _configure(self, name: str, value: str) -> None:
        with contextlib.suppress(redis.RedisError), self.server.client() as client:
            client.config_set(name, value)
            self._own_settings += 1

    def _measure(self) -> None:
        """How long the file was at each moment, and what is on the disk: what a cut may take.

        lakelog has the server sync everything with ``appendfsync always``, and sets it back: from
        the outside that is told by the settings that the server was given.
        """
        with redis.Redis.from_url(self.url, socket_timeout=1) as client:
            while not self._measuring.wait(_SAMPLE_S):
                # Between a kill and a start, or while it is stopped.
                with contextlib.suppress(OSError, ValueError, redis.RedisError):
                    counts = client.info("commandstats").get("cmdstat_config|set", {})
                    policy = client.config_get("appendfsync")["appendfsync"]
                    at_s, size = time.monotonic(), self.server.append_only_size_now()
                    others = counts.get("calls", 0) - self._own_settings
                    if policy == "always" or others > self._others_settings:
                        self.synced_size = size
                    self._others_settings = others
                    self.sizes.append((at_s, size))


class ReplicatedCluster:
    """Three masters that share the slots, a replica each; a master that fails is replaced."""

    MASTERS = 3
    SLOTS = 16_384
    NODE_TIMEOUT_MS = 1500

    def __init__(self, folder: Path, conf: Mapping[str, str]) -> None:
        self._nodes = [
            RedisServer(
                folder / f"node-{number}",
                {
                    **conf,
                    "cluster-enabled": "yes",
                    "cluster-node-timeout": self.NODE_TIMEOUT_MS,
                    "cluster-replica-validity-factor": 0,
                    "repl-diskless-sync-delay": 0,
                },
            )
            for number in range(2 * self.MASTERS)
        ]
        self.losses: list[Span] = []
        self.restarts = 0

    @property
    def url(self) -> str:
        return f"{self._nodes[0].url}?cluster=true"

    def start(self) -> None:
        for node in self._nodes:
            node.start()
        share = -(-self.SLOTS // self.MASTERS)
        for number, node in enumerate(self._nodes[: self.MASTERS]):
            last = min((number + 1) * share, self.SLOTS) - 1
            _ask(node, "CLUSTER ADDSLOTSRANGE", number * share, last)
        first = self._nodes[0]
        for node in self._nodes[1:]:
            _ask(first, "CLUSTER MEET", "127.0.0.1", node.port, node.bus_port)
        self._await(lambda: all(len(self._known(node)) == len(self._nodes) for node in self._nodes))
        for number, node in enumerate(self._nodes[self.MASTERS :]):
            master_id = _ask(self._nodes[number], "CLUSTER MYID")
            _ask(node, "CLUSTER REPLICATE", master_id)
        self._await(self._is_whole)

    def stop(self) -> None:
        for node in self._nodes:
            _go_on(node)
            node.kill(at_once=True)

    def heal(self) -> None:
        for node in self._nodes:
            _go_on(node)
        self._await(self._is_whole)

    def fail_over(self, draws: random.Random, seconds: float, *, kill: bool) -> str:
        """A master ends, or stands still; its replica takes over; then it comes back as a replica.

        One that stood still may still answer, with what it will lose when it learns of it.
        """
        self._await(self._is_whole)  # a replica that is not filled yet must not take over
        number = draws.choice([n for n, node in enumerate(self._nodes) if _is_master(node)])
        failed = self._nodes[number]
        began_s = time.monotonic()
        masters = self._masters()
        if kill:
            failed.kill(at_once=True)
        else:
            os.kill(failed.pid, signal.SIGSTOP)
        self._await(lambda: len(self._masters() - masters) == 1)
        time.sleep(seconds)
        if kill:
            failed.start()
        else:
            _go_on(failed)
        self._await(self._is_whole)
        self.losses.append(Span(began_s - EVERYSEC_HELD_BACK_S, time.monotonic()))
        self.restarts += 1
        return f"node {number}, {'killed' if kill else 'stopped'} for {seconds:.1f} s"

    def depose(self, draws: random.Random) -> str:
        """A master hands over to its replica, as for a planned stop: nothing may be lost by that.

        Its clients' connections stay open.
        """
        self._await(self._is_whole)
        number = draws.choice([n for n, node in enumerate(self._nodes) if _is_master(node)])
        port = self._nodes[number].port
        heir = next(node for node in self._nodes if _replication(node).get("master_port") == port)
        self.restarts += 1
        while not _is_master(heir):
            _ask(heir, "CLUSTER FAILOVER")
            # It gives up after five seconds.
            wait_until("a new master", lambda: _is_master(heir), POLL.within(6.0))
        self._await(self._is_whole)
        return f"node {number}"

    def _masters(self) -> set[int]:
        return {node.port for node in self._nodes if _is_master(node)}

    def _known(self, node: RedisServer) -> list[str]:
        return [line for line in _ask(node, "CLUSTER NODES").splitlines() if " connected" in line]

    def _is_whole(self) -> bool:
        """Each master has its replica filled and following, and all say that all is well."""
        masters = 0
        for node in self._nodes:
            role = _replication(node)
            if role["role"] == "master":
                masters += 1
                if role["connected_slaves"] != 1 or role["slave0"]["state"] != "online":
                    return False
            elif role["master_link_status"] != "up":
                return False
            if "cluster_state:ok" not in _ask(node, "CLUSTER INFO"):
                return False
        return masters == self.MASTERS

    def _await(self, holds: Callable[[], bool]) -> None:
        def is_so() -> bool:
            with contextlib.suppress(redis.RedisError, OSError):
                return holds()
            return False

        if not wait_until("the cluster to heal", is_so, STARTING):
            raise RuntimeError(f"the cluster did not heal:\n{self._nodes[0].log()[-2000:]}")


class ObjectStore:
    """S3 in memory behind a front that makes it fail."""

    BUCKET = "chaos"

    def __init__(self) -> None:
        self._server = S3Server()
        self._front: FaultyFront | None = None

    def start(self) -> None:
        self._server.start()
        self._server.make_bucket(self.BUCKET)
        self._front = FaultyFront(self._server.port).start()

    def stop(self) -> None:
        if self._front is not None:
            self._front.stop()
        self._server.stop()

    @property
    def root(self) -> str:
        return f"s3://{self.BUCKET}/log"

    @property
    def options(self) -> dict[str, str]:
        """What opens it, through the front."""
        assert self._front is not None
        return s3_options(self._front.url)

    @property
    def plain_options(self) -> dict[str, str]:
        """What opens it past the front, which is in this process: deltalake holds Python's lock."""
        return s3_options(self._server.url)

    def fail(self, how: str, draws: random.Random) -> str:
        """Every request, or of each method so many, fails this way until `heal`."""
        assert self._front is not None
        made, said = faults(how, draws)
        self._front.inject(*made)
        self._front.requests.clear()
        return said

    def heal(self) -> None:
        assert self._front is not None
        self._front.inject()


def faults(how: str, draws: random.Random) -> tuple[list[Fault], str]:
    """What has requests fail in a way, and how many, said."""
    kinds: dict[str, dict[str, Any]] = {
        "503": {"status": 503},
        "500": {"status": 500},
        "429": {"status": 429},
        "hangs": {"delay_s": draws.uniform(0.5, 4.0)},
        "loses-replies": {"lose_reply": True},
        "cuts-answers": {"cut_body": True},
    }
    # Half of the time only some requests fail: what is half done is worse than what is not.
    times = draws.choice([_FOR_EVER, draws.randrange(1, 12)])
    said = "each request" if times == _FOR_EVER else f"{times} of each method"
    return [Fault(name, "", times=times, **kinds[how]) for name in _METHODS], said


def _ask(node: RedisServer, command: str, *arguments: object) -> str:
    with redis.Redis.from_url(node.url, socket_timeout=1.0) as client:
        # Word by word: redis-py would parse the answer of "CLUSTER NODES".
        answer = client.execute_command(*command.split(), *arguments)
    return answer.decode() if isinstance(answer, bytes) else str(answer)


def _replication(node: RedisServer) -> dict[str, Any]:
    with redis.Redis.from_url(node.url, socket_timeout=1.0) as client:
        return dict(client.info("replication"))


def _is_master(node: RedisServer) -> bool:
    with contextlib.suppress(redis.RedisError, OSError, RuntimeError):
        return bool(_replication(node)["role"] == "master")
    return False


def _go_on(server: RedisServer) -> None:
    with contextlib.suppress(RuntimeError, ProcessLookupError):
        os.kill(server.pid, signal.SIGCONT)
