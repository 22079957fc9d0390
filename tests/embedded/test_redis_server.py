"""One server a directory, whoever comes, goes, or is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import redis

from lakelog.errors import EmbeddedRedisError, HotTierUnavailableError
from lakelog.hot.embedded import redis_server
from lakelog.hot.embedded.redis_program import redis_programs
from lakelog.hot.embedded.redis_server import EmbeddedRedis

# A user in another process: says where the server is, then stops when told to.
OTHER_USER = """
import sys
from lakelog.hot.embedded.redis_server import EmbeddedRedis
server = EmbeddedRedis(sys.argv[1]).start()
print(server.pid, server.url, flush=True)
sys.stdin.readline()
print(server.stop(), flush=True)
"""


class OtherUser:
    def __init__(self, directory: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", OTHER_USER, str(directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def server(self) -> tuple[int, str]:
        pid, url = self.process.stdout.readline().split()
        return int(pid), url

    def stop(self) -> bool:
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip() == "True"

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def directory(tmp_path):
    """A folder whose server, if a test leaves one, is ended by its pid."""
    folder = tmp_path / "a läkelog's data $HOME"
    yield folder
    with contextlib.suppress(FileNotFoundError, KeyError):
        pid = json.loads((folder / "server.json").read_text())["pid"]
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(pid)
            if process.cwd() == str(folder):
                process.kill()
                process.wait()


@pytest.fixture
def other_user(directory):
    users: list[OtherUser] = []

    def start() -> OtherUser:
        users.append(OtherUser(directory))
        return users[-1]

    yield start
    for user in users:
        user.kill()
        user.process.stdin.close()
        user.process.stdout.close()


def test_data_and_url_are_kept_between_runs(directory):
    with EmbeddedRedis(directory) as server:
        url = server.url
        with redis.Redis.from_url(url) as client:
            client.set("key", "value")
    with EmbeddedRedis(directory) as server:
        assert server.url == url
        with redis.Redis.from_url(url) as client:
            assert client.get("key") == b"value"


def test_the_server_appends_to_a_file_and_evicts_nothing(directory):
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        asked = client.config_get("appendonly", "appendfsync", "maxmemory-policy", "save", "bind")
        assert asked == {
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            "save": "",
            "bind": "127.0.0.1",
        }
        assert int(client.config_get("maxmemory")["maxmemory"]) > 0


def test_the_last_user_shuts_it_down(directory):
    first = EmbeddedRedis(directory).start()
    second = EmbeddedRedis(directory).start()
    assert first.pid == second.pid
    pid = first.pid
    assert first.stop() is False
    with redis.Redis.from_url(second.url) as client:
        assert client.ping()
    assert second.stop() is True
    assert second.stop() is False
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == "zombie"


def test_who_started_it_waits_until_nothing_of_it_is_left(directory):
    """Its lock alone may be free while its files still keep their disk from being unmounted."""
    with EmbeddedRedis(directory) as server:
        pid = server.pid
    assert not psutil.pid_exists(pid)


def test_two_processes_at_once_share_one_server(directory, other_user):
    users = [other_user() for _ in range(3)]
    servers = {user.server() for user in users}
    assert len(servers) == 1
    assert [user.stop() for user in users] == [False, False, True]


def test_a_server_outlives_its_killed_starter_and_is_found_again(directory, other_user):
    starter = other_user()
    pid, url = starter.server()
    starter.kill()
    with EmbeddedRedis(directory) as server:
        assert (server.pid, server.url) == (pid, url)
    assert not EmbeddedRedis(directory)._server_lives()


def test_ctrl_c_of_the_starters_terminal_does_not_reach_it(directory):
    with EmbeddedRedis(directory) as server:
        assert os.getpgid(server.pid) != os.getpgid(0)


def test_a_killed_server_is_started_again_with_its_data(directory):
    with EmbeddedRedis(directory) as killed:
        with redis.Redis.from_url(killed.url) as client:
            client.set("key", "value")
        os.kill(killed.pid, signal.SIGKILL)
        with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
            assert server.pid != killed.pid
            assert client.get("key") == b"value"


def test_the_hooks_run_once_a_server_and_writes_are_synced_until_the_start_is_over(directory):
    said = []

    def after_start(url: str) -> None:
        with redis.Redis.from_url(url) as client:
            said.append(("start", client.config_get("appendfsync")["appendfsync"]))

    def before_stop(url: str) -> None:
        with redis.Redis.from_url(url) as client:
            said.append(("stop", client.config_get("appendfsync")["appendfsync"]))

    hooks = {"after_start": after_start, "before_stop": before_stop}
    with EmbeddedRedis(directory, **hooks), EmbeddedRedis(directory, **hooks):
        pass
    assert said == [("start", "always"), ("stop", "everysec")]


def test_a_failing_start_hook_leaves_no_server(directory):
    def refuse(url: str) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        EmbeddedRedis(directory, after_start=refuse).start()
    assert not EmbeddedRedis(directory)._server_lives()


def test_a_server_whose_starter_died_before_it_was_ready_is_made_ready_by_the_next(directory):
    # The starter dies inside its hook: the server runs, and nobody was told.
    program = """
import os, sys
from lakelog.hot.embedded.redis_server import EmbeddedRedis
EmbeddedRedis(sys.argv[1], after_start=lambda url: os._exit(3)).start()
"""
    ended = subprocess.run([sys.executable, "-c", program, str(directory)], check=False)
    assert ended.returncode == 3
    said = []
    with EmbeddedRedis(directory, after_start=said.append) as server:
        assert said == [server.url]
        with redis.Redis.from_url(server.url) as client:
            assert client.config_get("appendfsync")["appendfsync"] == "everysec"
            assert client.info("server")["process_id"] == server.pid


def test_a_forked_child_neither_stops_the_server_nor_keeps_it(directory):
    server = EmbeddedRedis(directory).start()
    pid = os.fork()
    if pid == 0:
        os._exit(int(server.stop()))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    with redis.Redis.from_url(server.url) as client:
        assert client.ping()
    child = os.fork()
    if child == 0:
        time.sleep(600)  # it does nothing until it is killed
        os._exit(0)
    try:
        assert server.stop() is True
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbeddedRedisError, match=r"cannot keep its data in .*file/data: Not a dir"):
        EmbeddedRedis(tmp_path / "file" / "data").start()


@pytest.mark.parametrize("name", ["redis.conf", "server.json.new"])
def test_a_file_that_cannot_be_replaced_is_named(directory, name):
    (directory / name).mkdir(parents=True)
    directory.chmod(0o700)
    with pytest.raises(EmbeddedRedisError, match=f"cannot be used: .*{name}"):
        EmbeddedRedis(directory).start()


def test_a_disk_without_room_is_told(directory):
    program = (
        "import resource, sys, tempfile\n"
        "from lakelog import Lakelog, LakelogError\n"
        "tempfile.gettempdir()  # it looks for one by writing there\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"
        "try:\n"
        "    Lakelog.embedded(sys.argv[1], engine='inline')\n"
        "except LakelogError as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(directory)], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("EmbeddedRedisError the embedded Redis in ")
    assert "File too large" in done.stdout


def test_a_server_that_dies_at_its_start_is_quoted(directory):
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        client.set("key", "value")
    manifest = directory / "appendonlydir" / "appendonly.aof.manifest"
    manifest.write_text("not a manifest\n")
    with pytest.raises(EmbeddedRedisError, match=r"ended with exit code 1[\s\S]*manifest"):
        EmbeddedRedis(directory).start()


def test_data_of_a_newer_server_is_refused_and_left_alone(directory):
    with EmbeddedRedis(directory):
        pass
    state = json.loads((directory / "server.json").read_text())
    (directory / "server.json").write_text(json.dumps(state | {"version": [99, 1, 0]}))
    with pytest.raises(EmbeddedRedisError, match=r"was written by \w+ 99\.1\.0, which .* cannot"):
        EmbeddedRedis(directory).start()


def test_data_stays_with_the_server_that_wrote_it(directory, monkeypatch):
    wheel = [program for program in redis_programs() if program.family == "valkey"]
    with monkeypatch.context() as only_the_wheel:
        only_the_wheel.setattr(redis_server, "redis_programs", lambda: wheel)
        with EmbeddedRedis(directory):
            pass
    # Whatever is preferred on this machine by now.
    with EmbeddedRedis(directory):
        assert json.loads((directory / "server.json").read_text())["family"] == "valkey"


def test_what_is_not_started_has_no_url(directory):
    with pytest.raises(EmbeddedRedisError, match=r"is not started; call start\(\)"):
        _ = EmbeddedRedis(directory).url


def test_what_is_written_after_a_cut_transaction_is_there_after_the_next_start(directory):
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        client.config_set("appendfsync", "always")  # everysec may hold writes back from the file
        client.set("whole", 1)
        with client.pipeline(transaction=True) as cut:
            cut.set("half", 1).set("other", "x" * 100)
            cut.execute()
        os.kill(server.pid, signal.SIGKILL)
    (log,) = (directory / "appendonlydir").glob("*.incr.aof")
    os.truncate(log, log.stat().st_size - 60)  # within the transaction's second command
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        assert client.get("half") is None
        client.set("after", 1)
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        assert sorted(client.keys()) == [b"after", b"whole"]


def test_a_cut_file_is_loaded_again_also_when_the_starter_died_before_it_could(directory):
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        client.config_set("appendfsync", "always")
        with client.pipeline(transaction=True) as cut:
            cut.set("half", 1).set("other", "x" * 100)
            cut.execute()
        os.kill(server.pid, signal.SIGKILL)
    (log,) = (directory / "appendonlydir").glob("*.incr.aof")
    os.truncate(log, log.stat().st_size - 60)
    died = EmbeddedRedis(directory)
    with died._starting():
        process, state = died._launch(died._program(died._read_state()), None)
        with redis.Redis(unix_socket_path=state["socket"]) as client:
            assert died._await_answer(client)
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        assert process.wait(timeout=30) == 0  # it was not the one to go on with
        client.set("after", 1)
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        assert client.keys() == [b"after"]


# -- other users of the machine --------------------------------------------------------------------

#: Who has no rights at all. Only root can be somebody else for a test; the modes are looked at by
#: whoever runs it.
NOBODY = 65534


def nobody_reaches(path: Path) -> bool:
    """Whether a process of another user can connect to a socket."""
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with socket.socket(socket.AF_UNIX) as there:
                there.connect(str(path))
            code = 0
        except PermissionError:
            code = 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 1)
    return code == 0


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_server_listens_where_only_its_owner_comes(directory):
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        client.set("key", "secret")
        assert psutil.Process(server.pid).net_connections("inet") == []
        assert mode_of(directory) == 0o700
        assert mode_of(directory / "redis.sock") & 0o077 == 0
        data = [path for path in directory.rglob("*") if path.is_file()]
        assert data
        assert all(mode_of(path) & 0o077 == 0 for path in data)
        if os.geteuid() == 0:
            assert not nobody_reaches(directory / "redis.sock")


def test_a_folder_that_others_could_read_is_closed_to_them(directory):
    directory.mkdir(mode=0o755)
    with EmbeddedRedis(directory):
        assert mode_of(directory) == 0o700


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_folder_that_others_may_write_to_is_refused(directory, mode):
    directory.mkdir()
    directory.chmod(mode)
    with pytest.raises(EmbeddedRedisError, match=r"others may write to it.*chmod 700"):
        EmbeddedRedis(directory).start()
    assert list(directory.iterdir()) == []


def test_a_link_is_no_folder_of_ones_own(directory, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    directory.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(EmbeddedRedisError, match="it is a link"):
        EmbeddedRedis(directory).start()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_somebody_elses_folder_is_refused(directory, monkeypatch):
    directory.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    with pytest.raises(EmbeddedRedisError, match="it belongs to the user"):
        EmbeddedRedis(directory).start()
    if os.geteuid() == 0:
        os.chown(directory, 0, 0)


@pytest.mark.parametrize("name", ["redis.conf", "redis.conf.new", "server.json", "server.json.new"])
def test_a_planted_link_overwrites_nothing(directory, tmp_path, name):
    precious = tmp_path / "precious"
    precious.write_text("{}")
    directory.mkdir(mode=0o700)
    (directory / name).symlink_to(precious)
    with contextlib.suppress(EmbeddedRedisError), EmbeddedRedis(directory):
        assert not (directory / name).is_symlink()
    assert precious.read_text() == "{}"


@pytest.mark.parametrize("name", ["redis.log", "server.lock", "users.lock", "start.lock"])
def test_a_link_in_place_of_a_log_or_lock_is_refused(directory, tmp_path, name):
    precious = tmp_path / "precious"
    precious.write_text("mine")
    directory.mkdir(mode=0o700)
    (directory / name).symlink_to(precious)
    if name == "redis.log":  # renamed away with the log of the run before
        with EmbeddedRedis(directory):
            assert not (directory / name).is_symlink()
    else:
        with pytest.raises(EmbeddedRedisError, match=f"{name} in it is a link. Remove it"):
            EmbeddedRedis(directory).start()
    assert precious.read_text() == "mine"


def test_where_the_name_is_too_long_for_a_socket_it_lies_in_a_folder_of_its_own(tmp_path):
    directory = tmp_path / ("x" * 120)
    for _ in range(2):
        with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
            client.incr("runs")
            at = Path(json.loads((directory / "server.json").read_text())["socket"])
            assert mode_of(at.parent) == 0o700
            with EmbeddedRedis(directory) as other:
                assert other.url == server.url
            runs = int(client.get("runs"))
    assert runs == 2
    assert not at.parent.exists()


@pytest.mark.parametrize(
    "text",
    [
        "[]",
        "[" * 5_000,
        '{"family": "redis"}',
        '{"family": 5, "version": "7", "socket": 5, "pid": "x"}',
        '{"family": "redis", "version": [null], "socket": "\\u0000"}',
    ],
)
def test_a_state_that_somebody_else_wrote_is_as_good_as_none(directory, text):
    with EmbeddedRedis(directory):
        pass
    (directory / "server.json").write_text(text)
    with EmbeddedRedis(directory) as server:
        assert redis.Redis.from_url(server.url).ping()


def test_a_server_that_is_killed_as_it_is_stopped_has_stopped(directory, caplog):
    def kill(_: str) -> None:
        os.kill(pid, signal.SIGKILL)
        raise HotTierUnavailableError("cannot reach Redis")

    server = EmbeddedRedis(directory, before_stop=kill)
    server.start()
    pid = server.pid
    server.stop()
    assert "was not stopped in order: cannot reach Redis" in caplog.text
    with EmbeddedRedis(directory) as again:
        assert again.pid != pid
