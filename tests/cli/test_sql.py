"""``sql``: what a query gives, in each form."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog import Lakelog
from lakelog.testing.eventually import eventually

pytest.importorskip("duckdb")

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def place(redis_url: str, tmp_path: Path) -> list[str]:
    cold = str(tmp_path / "cold")
    with Lakelog.connect(redis_url, cold, engine="inline") as lake:
        lake.topics.create("web.log", 1, {"retention.ms": -1})
        with lake.producer() as producer:
            for n in range(3):
                producer.send("web.log", f'{{"n": {n}}}', key="ä\x1b[31m", timestamp_ms=1000 * n)
    return ["--redis", redis_url, "--cold", cold, "--engine", "inline"]


@pytest.fixture
def run(place: list[str], command: Run) -> Run:
    return partial(command, *place, "sql")


def test_text_has_the_names_of_the_query_and_moves_no_terminal(run: Run) -> None:
    shown, said = run("select key as the_key, value->>'$.n' n from \"web.log\" limit 1")
    assert shown.splitlines() == ["the_key    n", "─────────  ─", r"ä\x1b[31m  0"]
    assert said == ""
    assert run("select 1 where false")[0] == "no rows\n"


def test_text_ends_somewhere_and_says_so(run: Run) -> None:
    shown, said = run("from range(1001)")
    assert len(shown.splitlines()) == 1002
    assert said == "the first 1,000 rows; --max shows more, --output csv or json all\n"
    shown, said = run("from range(5)", "--max", "2")
    assert (len(shown.splitlines()), said) == (4, "")
    assert len(run("from range(1001)", "--output", "csv")[0].splitlines()) == 1002


def test_numbers_are_shown_as_they_are(run: Run) -> None:
    shown, _ = run(
        "select 2013 y, 1234.56::double x, 0.1::float f, 12345.5::decimal(9, 2) d, true b"
    )
    assert shown.splitlines()[-1].split() == ["2013", "1234.56", "0.1", "12345.50", "true"]


def test_json_csv_parquet_and_arrow(run: Run, tmp_path: Path) -> None:
    query = 'select timestamp, headers, key_bytes, 1.5::decimal(3, 1) d from "web.log" limit 1'
    expected = {"timestamp": "1970-01-01T00:00:00+00:00", "headers": [], "d": "1.5"}
    (row,) = map(json.loads, run(query, "--output", "json")[0].splitlines())
    assert row == {**expected, "key_bytes": "ä\x1b[31m"}
    (row,) = csv.DictReader(io.StringIO(run(query, "--output", "csv")[0]))
    assert row == {**expected, "headers": "[]", "key_bytes": "ä\x1b[31m"}
    file = tmp_path / "found"
    assert run(query, "--output", "parquet", "-o", str(file))[0] == f"1 row written to {file}\n"
    assert pq.read_table(file)["key_bytes"].to_pylist() == ["ä\x1b[31m".encode()]
    run(query, "--output", "arrow", "-o", str(file))
    with pa.OSFile(str(file)) as source:
        assert pa.ipc.open_stream(source).read_all()["headers"].to_pylist() == [[]]


def test_columns_of_one_name_are_told_apart(run: Run) -> None:
    assert run("select 1 a, 2 a, 3 b", "--output", "csv")[0] == "a,a_1,b\n1,2,3\n"


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("timestamptz '58878-04-11 07:40:00+00'", "58878-04-11T07:40:00+00:00"),
        ("timestamp '58878-04-11 07:40:00.5'", "58878-04-11T07:40:00.500"),
        ("date '58878-04-11'", "58878-04-11"),
        ("date '0044-03-15 (BC)'", "-0043-03-15"),
        ("timestamptz '9999-12-31 23:59:59+00'", "9999-12-31T23:59:59+00:00"),
        ("'infinity'::timestamp", "infinity"),
        ("'-infinity'::date", "-infinity"),
        ("timestamp '2013-01-01 00:00:00.123456'", "2013-01-01T00:00:00.123456"),
        ("timestamp_ns '2013-01-01 00:00:00.123456789'", "2013-01-01T00:00:00.123456789"),
        ("[timestamptz '58878-04-11 07:40:00+00', null]", ["58878-04-11T07:40:00+00:00", None]),
        ("{'at': date '58878-04-11'}", {"at": "58878-04-11"}),
    ],
)
def test_a_time_that_python_has_no_object_for_is_the_time_it_is(
    run: Run, time: str, shown: object
) -> None:
    query = f"select {time} as at union all select null"
    (row, none) = map(json.loads, run(query, "--output", "json")[0].splitlines())
    assert (row, none) == ({"at": shown}, {"at": None})
    if isinstance(shown, str):
        assert run(query, "--output", "csv")[0].splitlines() == ["at", shown, ""]
        assert run(query)[0].splitlines()[2] == shown


def test_a_record_of_the_far_future_keeps_its_year(run: Run, place: list[str]) -> None:
    with Lakelog.connect(place[1], place[3], engine="inline") as lake:
        lake.topics.create("far", 1, {"message.timestamp.after.max.ms": 2**63 - 1})
        with lake.producer() as producer:
            producer.send("far", "x", timestamp_ms=1_795_851_762_000_000)
    for zone in ("UTC", "Asia/Tokyo"):
        shown, _ = run("select timestamp from far", "--zone", zone)
        assert shown.splitlines()[2] == "58878-04-11T07:40:00+00:00"


def test_what_goes_wrong_is_said(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "there is no topic nothere; there is web.log" in run("from nothere", code=1)[1]
    assert "not a time zone" in run("select 1", "--zone", "Mars", code=1)[1]
    assert "-o FILE" in run("select 1", "--output", "parquet", code=1)[1]
    monkeypatch.setitem(sys.modules, "duckdb", None)
    assert run("select 1", code=1)[1] == (
        "lakelog: SQL needs duckdb, which is not installed: pip install 'lakelog[sql]'\n"
    )


def test_an_interrupt_ends_a_query(place: list[str], tmp_path: Path) -> None:
    began = tmp_path / "began"
    statement = f"copy (select 1) to '{began}'; select count(*) from range(1000000000000)"
    process = subprocess.Popen(
        [sys.executable, "-m", "lakelog", *place, "sql", statement],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        eventually(began.exists)
        process.send_signal(signal.SIGINT)
        shown, said = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, shown, said) == (130, "", "stopped\n")


#: Interrupts itself at some moment of many short statements, of which a long one is the last.
INTERRUPTED = """
import os, random, signal, threading
import duckdb  # its own import is no call of it
from lakelog.read.sql import query

statement = "select 1;" * 3_000 + "select count(*) from range(1000000000000)"
draws = random.Random(20)
for _ in range(12):
    try:
        timer = threading.Timer(draws.uniform(0, 0.1), os.kill, [os.getpid(), signal.SIGINT])
        timer.start()
        query(statement, {}, None)
    except KeyboardInterrupt:
        print("stopped")
"""


def test_an_interrupt_between_two_statements_ends_a_query() -> None:
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED], stdout=subprocess.PIPE)
    try:
        shown, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert shown.split() == [b"stopped"] * 12


@pytest.mark.parametrize("ending", ["csv", "json", "jsonl", "parquet", "arrow", "txt"])
def test_a_file_is_what_its_name_says(run: Run, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    shown, _ = run("select range as n from range(1500)", "-o", str(path))
    assert f"1,500 rows written to {path}" in shown
    match ending:
        case "csv":
            lines = path.read_text().splitlines()
            assert (lines[:2], len(lines)) == (["n", "0"], 1501)
        case "json" | "jsonl":
            assert json.loads(path.read_text().splitlines()[-1]) == {"n": 1499}
        case "parquet":
            assert pq.read_table(path).num_rows == 1500
        case "arrow":
            assert pa.ipc.open_stream(path.read_bytes()).read_all().num_rows == 1500
        case _:
            assert len(path.read_text().splitlines()) == 1502  # with its head
