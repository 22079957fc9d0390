"""One server a directory, whoever comes, goes, or is killed."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
import redis

from lakelog.embedded import redis_server
from lakelog.embedded.redis_program import redis_programs
from lakelog.embedded.redis_server import EmbeddedRedis
from lakelog.errors import EmbeddedRedisError

# A user in another process: says where the server is, then stops when told to.
OTHER_USER = """
import sys
from lakelog.embedded.redis_server import EmbeddedRedis
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


def test_data_and_port_are_kept_between_runs(directory):
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
from lakelog.embedded.redis_server import EmbeddedRedis
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
        time.sleep(600)
        os._exit(0)
    try:
        assert server.stop() is True
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_taken_port_is_left_to_its_owner(directory):
    with EmbeddedRedis(directory) as server:
        port = int(server.url.rpartition(":")[2])
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
            assert int(server.url.rpartition(":")[2]) != port
            assert client.ping()


def test_a_port_taken_between_choice_and_start_is_replaced(directory, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ports = iter([taken.getsockname()[1]])
        choose = redis_server._free_port
        monkeypatch.setattr(redis_server, "_free_port", lambda wish: next(ports, choose(None)))
        with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
            assert client.ping()


def test_a_directory_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(EmbeddedRedisError, match=r"cannot keep its data in .*file/data: Not a dir"):
        EmbeddedRedis(tmp_path / "file" / "data").start()


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
        with redis.Redis(port=state["port"]) as client:
            assert died._await_answer(client)
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        assert process.wait(timeout=30) == 0  # it was not the one to go on with
        client.set("after", 1)
    with EmbeddedRedis(directory) as server, redis.Redis.from_url(server.url) as client:
        assert client.keys() == [b"after"]
