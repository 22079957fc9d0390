"""Real Redis servers for tests: start, restart, kill, and cut off their tail."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
import ssl
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

import redis
from redis.exceptions import NoPermissionError

from lakelog.base.back_off import POLL, wait_until
from lakelog.hot.embedded.redis_program import RedisProgram, redis_conf, redis_programs

START_TIMEOUT_S = 60.0  # a machine under load starts a server in a second or two
ANSWER_TIMEOUT_S = 1.0
STALLED_S = 5.0  # what is only busy has answered by then
STARTING = POLL.within(START_TIMEOUT_S)

Conf = Mapping[str, str | int | Sequence[str]]


class RedisServer:
    """A server in a directory of its own, with the hot tier's settings, on a free loopback port.

    Args:
        directory: where its files lie; made if missing. A restart finds the data there.
        conf: directives that replace or add to the settings (``{"maxmemory": "8mb"}``); a list
            gives the directive several times, an underscore may stand for a dash.
        program: which server; default the preferred one of the machine.
    """

    def __init__(
        self, directory: Path, conf: Conf | None = None, program: RedisProgram | None = None
    ) -> None:
        self.directory = directory
        self.program = program or redis_programs()[0]
        self.conf = {name.replace("_", "-"): value for name, value in (conf or {}).items()}
        self._choose_ports()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        password = self.conf.get("requirepass")
        credentials = f":{quote(str(password), safe='')}@" if password else ""
        return f"redis://{credentials}127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def client(self) -> redis.Redis:
        """A new client; the caller closes it."""
        return redis.Redis.from_url(self.url)

    def start(self) -> RedisServer:
        self.directory.mkdir(parents=True, exist_ok=True)
        for _ in range(3):  # another process may take a port between its choice and the start
            self._launch()
            if self._await_answer():
                return self
            self.kill(at_once=True)
            if "Address already in use" not in self.log():
                break
            self._choose_ports()
        raise RuntimeError(f"{self.program} did not start:\n{self.log()[-4000:]}")

    def stop(self) -> None:
        """A clean stop: what was appended is on disk. Nothing happens if it is not running."""
        self._end(signal.SIGTERM)

    def kill(self, *, at_once: bool = False) -> None:
        """Kill it, as a crash would, once what it has answered is in its files.

        Args:
            at_once: what it still holds back while the disk is slow is lost, as when it crashes.
        """
        if not at_once:
            self._await_written()
        self._end(signal.SIGKILL)

    def restart(self, *, clean: bool = True) -> None:
        """Stop or kill it and start it again on the same port, with what its files hold."""
        if clean:
            self.stop()
        else:
            self.kill()
        self.start()

    def follow(self, primary: RedisServer) -> None:
        """Become its replica; returns once it may hand over: both say so."""

        def follows() -> bool:
            return bool(client.info("replication")["master_link_status"] == "up")

        with self.client() as client:
            client.replicaof("127.0.0.1", str(primary.port))
            if not wait_until("the replica", lambda: follows() and primary.is_followed(), STARTING):
                raise RuntimeError(f"it does not follow:\n{self.log()[-4000:]}")

    def is_followed(self) -> bool:
        """Whether it is a primary, and counts a replica as online."""
        with self.client() as client:
            info = client.info("replication")
        state: str | None = info.get("slave0", {}).get("state")
        return bool(info["role"] == "master") and state == "online"

    def append_only_size(self) -> int:
        """Bytes in the append-only file's growing part, once every answered write is in it."""
        self._await_written()
        return self.append_only_size_now()

    def append_only_size_now(self) -> int:
        """Bytes in that part now: what a power cut at this moment would leave."""
        return self._append_only_file().stat().st_size

    def cut_append_only_file(self, *, to_size: int | None = None, drop: int | None = None) -> None:
        """Lose the tail, as a power cut does: kill the server, then shorten its file.

        Args:
            to_size: bytes to keep, from `append_only_size` at an earlier moment.
            drop: bytes to lose instead.
        """
        self.kill()
        file = self._append_only_file()
        if to_size is None:
            to_size = file.stat().st_size - (drop or 0)
        with file.open("r+b") as stream:
            stream.truncate(max(0, to_size))

    def log(self) -> str:
        file = self.directory / "redis.log"
        return file.read_text(errors="replace") if file.exists() else ""

    def _choose_ports(self) -> None:
        self.port = free_port()
        self.bus_port = free_port()  # of a cluster's node

    def _launch(self) -> None:
        # Paths stay relative to the working directory, so that none needs quoting.
        lines = [redis_conf(), f"port {self.port}\n"]
        if "cluster-enabled" in self.conf:
            # The default is port + 10000, beyond 65535 for a high port.
            lines.append(f"cluster-port {self.bus_port}\n")
        for name, value in self.conf.items():
            values = [value] if isinstance(value, str | int) else value
            lines += [f"{name} {one}\n" for one in values]
        (self.directory / "redis.conf").write_text("".join(lines))
        with (self.directory / "redis.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self.program.path, "redis.conf"],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _await_answer(self) -> bool:
        assert self._process is not None
        process = self._process

        def answers() -> bool:
            # Another process on the port may accept connections and never answer.
            client = redis.Redis.from_url(self.url, socket_timeout=ANSWER_TIMEOUT_S, protocol=2)
            with contextlib.closing(client):
                try:
                    client.ping()
                except (redis.AuthenticationError, NoPermissionError):
                    return True  # permissions are up to the test
                except redis.RedisError:  # not listening yet, or loading
                    return process.poll() is not None
            return True

        return wait_until("the server's answer", answers, STARTING) and process.poll() is None

    def _await_written(self) -> None:
        if self.conf.get("appendfsync", "everysec") == "everysec":  # which holds writes back
            wait_until("the append-only file", self._has_written_all, STARTING)

    def _has_written_all(self) -> bool:
        """Whether no write waits for a sync to end; True if nobody can tell."""
        if self._process is None or self._process.poll() is not None:
            return True
        client = redis.Redis.from_url(self.url, socket_timeout=STALLED_S, protocol=2)
        with contextlib.closing(client):
            try:
                return not int(client.info("persistence").get("aof_buffer_length", 0))
            except (redis.AuthenticationError, redis.ResponseError, redis.TimeoutError):
                return True  # it refuses us, is paused or stands still
            except redis.RedisError:
                return False

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        if self._process.poll() is None:
            self._process.send_signal(how)
        try:
            self._process.wait(START_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def _append_only_file(self) -> Path:
        # Redis 7 splits it: a base that a rewrite made, and the part that grows.
        growing = (self.directory / "appendonlydir").glob("*.incr.aof")
        return max(growing, key=lambda file: int(file.name.split(".")[-3]))


class RedisClusterServers:
    """Three masters on loopback that share the 16,384 slots."""

    NODES = 3
    SLOTS = 16_384

    def __init__(self, directory: Path, program: RedisProgram | None = None) -> None:
        self.nodes = [
            RedisServer(
                directory / f"node-{number}",
                {"cluster-enabled": "yes"},
                program,
            )
            for number in range(self.NODES)
        ]

    @property
    def url(self) -> str:
        return f"{self.nodes[0].url}?cluster=true"

    def start(self) -> RedisClusterServers:
        for node in self.nodes:
            node.start()
        with contextlib.ExitStack() as stack:
            clients = [stack.enter_context(node.client()) for node in self.nodes]
            share = -(-self.SLOTS // self.NODES)
            for number, client in enumerate(clients):
                first = number * share
                last = min(first + share, self.SLOTS) - 1
                client.execute_command("CLUSTER ADDSLOTSRANGE", first, last)
            for node in self.nodes[1:]:
                clients[0].execute_command("CLUSTER MEET", "127.0.0.1", node.port, node.bus_port)
            if not wait_until(
                "the cluster to form",
                lambda: all(self._joined(client) for client in clients),
                STARTING,
            ):
                raise RuntimeError(f"the cluster did not form:\n{self.nodes[0].log()[-4000:]}")
        return self

    def flush(self) -> None:
        for node in self.nodes:
            with node.client() as client:
                client.flushall()

    def stop(self) -> None:
        for node in self.nodes:
            node.kill(at_once=True)  # nothing of a test cluster is worth a clean stop

    def _joined(self, client: redis.Redis) -> bool:
        info: dict[str, str] = client.cluster("INFO")
        return info["cluster_state"] == "ok" and int(info["cluster_known_nodes"]) == self.NODES


class TlsFront:
    """TLS on a loopback port in front of a server that speaks none.

    Not every server program is built with TLS (the wheel's is not); a client sees no difference.
    """

    def __init__(self, server: RedisServer, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._loop = asyncio.new_event_loop()
        self._listening = threading.Event()
        self._thread = threading.Thread(target=self._run, name="tls-front", daemon=True)
        self.port = 0

    def start(self) -> TlsFront:
        self._thread.start()
        self._listening.wait(START_TIMEOUT_S)
        return self

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(START_TIMEOUT_S)

    def _run(self) -> None:
        front = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self._context)
        )
        self.port = front.sockets[0].getsockname()[1]
        self._listening.set()
        self._loop.run_forever()
        front.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    async def _serve(self, outside: asyncio.StreamReader, to_outside: asyncio.StreamWriter) -> None:
        inside, to_inside = await asyncio.open_connection("127.0.0.1", self._server.port)
        await asyncio.gather(_pump(outside, to_inside), _pump(inside, to_outside))


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):  # either side may be gone; the close tells the other
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
    target.close()


def free_port() -> int:
    """A loopback port that no process listens on, and that the kernel gives nobody for a minute.

    Without that, another process that asks for any port, or connects from one, may get it before
    the server of it listens: of a thousand ports taken one after another, 36 were given twice.
    """
    return reserved_port(0)


def two_free_ports() -> int:
    """A free port whose next one is free too."""
    while True:
        port = free_port()
        with contextlib.suppress(OSError, OverflowError):
            reserved_port(port + 1)
            return port


def reserved_port(port: int) -> int:
    """That port, with 0 any, reserved as `free_port` says; OSError where another has it.

    A connection that its accepting side ended first leaves the port in TIME_WAIT for a minute.
    The kernel gives out no such port, but lets who names it listen (with SO_REUSEADDR, which every
    server sets).
    """
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(("127.0.0.1", port))
        listening.listen(1)
        with socket.create_connection(listening.getsockname()):
            listening.accept()[0].close()
        return int(listening.getsockname()[1])
