"""What driver and executors reach, and what `lakelog doctor --spark` says of it."""

from __future__ import annotations

import json
import pickle
import socket
import subprocess
import sys

import pytest
from pyspark import cloudpickle

from lakelog import __version__
from lakelog.cli import main as cli
from lakelog.hot import HotSource
from lakelog.operate.diagnosis import BROKEN, OK, Finding, places_found
from lakelog.spark import reach
from lakelog.spark.reachability import (
    DRIVER,
    EXECUTOR,
    TASKS_A_CORE,
    Check,
    Place,
    Way,
    _probe,
)
from tests.support.servers import free_port

SECRET = "s3cr3t"
HOST = socket.gethostname()


def test_a_sound_log_is_reached_from_everywhere(redis_cluster, spark, tmp_path) -> None:
    cold = tmp_path / "cold"
    here, there = reach(spark, redis_cluster.url, str(cold))

    nodes = {f"127.0.0.1:{node.port}" for node in redis_cluster.nodes}
    for place, role, processes in ((here, DRIVER, 1), (there, EXECUTOR, 2 * TASKS_A_CORE)):
        assert (place.role, place.host, place.processes) == (role, HOST, processes)
        assert (place.lakelog, place.lacks) == (__version__, None)
        assert {way.target: way.passed for way in place.ways} == {
            **dict.fromkeys(nodes, ("PING",)),
            str(cold): ("write", "read"),
        }
    assert list(cold.iterdir()) == []


def test_a_password_that_only_the_driver_has(make_redis, spark, monkeypatch) -> None:
    """The workers have the environment that the session was started in."""
    server = make_redis(requirepass=SECRET)
    monkeypatch.setenv("LAKE_PASSWORD", SECRET)
    url = f"redis://127.0.0.1:{server.port}"
    here, there = reach(spark, url, password_ref="env:LAKE_PASSWORD")
    assert here.ways[0].passed == ("PING",)
    (way,) = there.ways
    assert "LAKE_PASSWORD={{secrets/SCOPE/KEY}}" in str(way.flaw)
    assert SECRET not in repr((here, there))


def test_a_folder_that_is_another_one_on_each_machine(tmp_path) -> None:
    """As an executor elsewhere finds it: the path is there, what the driver wrote is not."""
    from lakelog.cold.store.storage import Storage

    storage = Storage(str(tmp_path / "cold"))
    (way,) = Check(None, storage, marker=f"{storage.root}/.written-by-the-driver")()
    assert way.passed == ("write",)
    assert "another folder on each machine" in str(way.flaw)


def test_a_cold_root_that_cannot_be_written(spark, tmp_path) -> None:
    (tmp_path / "file").write_text("in the way")
    here, there = reach(spark, None, str(tmp_path / "file" / "cold"))
    assert all(way.flaw and not way.passed for place in (here, there) for way in place.ways)


def test_a_schema_is_listed_by_the_driver_alone(spark) -> None:
    here, there = reach(spark, None, "spark_catalog.default")
    assert here.ways == (Way("spark_catalog.default", ("list",)),)
    assert there.ways == ()
    here, _ = reach(spark, None, "spark_catalog.not_there")
    assert "not_there" in str(here.ways[0].flaw)


def test_executors_without_lakelog_say_so(tmp_path) -> None:
    """What a task runs travels as code; the process that runs it cannot import lakelog."""
    probe = tmp_path / "probe"
    probe.write_bytes(
        cloudpickle.dumps(_probe(pickle.dumps(Check(HotSource("redis://h:1"), None))))
    )
    program = (
        "import sys, pickle; sys.modules['lakelog'] = None;"
        f"probe = pickle.load(open({str(probe)!r}, 'rb'));"
        "(batch,) = probe([None]); answer = batch.to_pylist()[0]['answer'];"
        "print(pickle.loads(answer)[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "(None, 'import of lakelog halted" in done.stdout


def test_what_is_found_says_where_and_what_to_do() -> None:
    passes = Way("redis:6379", ("PING",))
    fails = Way("redis:6379", (), "timed out")
    places = [
        Place(DRIVER, "a", 1, "3.12.1", "0.2", None, (passes,)),
        Place(EXECUTOR, "b", 3, "3.12.1", "0.2", None, (fails,)),
        Place(EXECUTOR, "c", 4, "3.12.1", "0.1", None, (passes,)),
        Place(EXECUTOR, "d", 4, "3.12.1", None, "No module named 'lakelog'", ()),
    ]
    mend = "install lakelog 0.2 on the cluster: as one of its libraries or in its image"
    assert list(places_found(places)) == [
        Finding(OK, "driver a", "lakelog 0.2, Python 3.12.1"),
        Finding(OK, "driver a → redis:6379", "PING"),
        Finding(OK, "executor b", "lakelog 0.2, Python 3.12.1"),
        Finding(BROKEN, "executor b → redis:6379", "timed out", "see the message"),
        Finding(BROKEN, "executor c", "lakelog 0.1, Python 3.12.1", mend),
        Finding(OK, "executor c → redis:6379", "PING"),
        Finding(
            BROKEN,
            "executor d",
            "no lakelog (No module named 'lakelog'), Python 3.12.1",
            mend,
        ),
    ]


@pytest.fixture
def doctor(spark, capsys):
    """`lakelog doctor --spark` in this process, whose session it finds."""

    def run(*arguments: str, code: int) -> str:
        assert cli.main(["doctor", "--spark", *arguments]) == code
        return capsys.readouterr().out

    return run


def test_the_command_tells_what_driver_and_executors_reach(doctor, tmp_path) -> None:
    port = free_port()
    cold = str(tmp_path / "cold")
    where = ["--redis", f"redis://127.0.0.1:{port}", "--cold", cold]

    rows = json.loads(doctor(*where, "--output", "json", code=1))

    found = {row["what"]: row for row in rows}
    for role in (DRIVER, EXECUTOR):
        row = found[f"{role} {HOST} → redis://127.0.0.1:{port}"]
        assert row["state"] == BROKEN
        assert "refused" in row["found"]
        assert found[f"{role} {HOST} → {cold}"]["state"] == OK
    assert f"executor {HOST} → redis://127.0.0.1:{port}" in doctor(*where, code=1)
