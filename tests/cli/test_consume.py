"""``consume``: which records, in which order, and as what."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog import Lakelog
from lakelog.cli import main as cli

START_MS = 1_388_534_340_000  # 2013-12-31T23:59:00Z
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def where(redis_url: str, tmp_path: Path) -> list[str]:
    """Two partitions of ten records each, one a second by turns; a part of each is archived."""
    cold = str(tmp_path / "cold")
    with Lakelog.connect(redis_url, cold, engine="inline") as lake:
        lake.topics.create("t", 2)
        for first in (0, 14):
            with lake.producer() as producer:
                for n in range(first, min(first + 14, 20)):
                    producer.send(
                        "t",
                        key=f"k{n % 3}",
                        value=json.dumps({"n": n}),
                        partition=n % 2,
                        timestamp_ms=START_MS + 1000 * n,
                        headers=[("odd", b"yes")] if n % 2 else [],
                    )
            if not first:
                lake.archive()
    return ["--redis", redis_url, "--cold", cold, "--engine", "inline"]


@pytest.fixture
def run(where: list[str], command: Run) -> Run:
    return partial(command, *where, "consume")


def numbers(run: Run, *arguments: str) -> list[int]:
    shown, _ = run("t", "--output", "json", *arguments)
    return [json.loads(json.loads(line)["value"])["n"] for line in shown.splitlines()]


EVEN, ODD = list(range(0, 20, 2)), list(range(1, 20, 2))


def test_partition_by_partition_or_merged_by_time(run: Run) -> None:
    assert numbers(run) == EVEN + ODD
    assert numbers(run, "--merge") == list(range(20))
    assert numbers(run, "--merge", "--max", "3") == [0, 1, 2]
    assert numbers(run, "-p", "1", "--merge") == ODD


def test_the_last_records_of_each_partition(run: Run) -> None:
    assert numbers(run, "--from", "-2") == [16, 18, 17, 19]
    assert numbers(run, "--from", "-2", "--merge") == [16, 17, 18, 19]
    assert numbers(run, "--from", "-99") == EVEN + ODD
    assert numbers(run, "-p", "0", "--from", "-3", "--to", "-1") == [14, 16]
    assert numbers(run, "--from", "-10m") == []


def test_an_offset_that_a_partition_does_not_have_is_said_and_taken_as_its_end(
    run: Run, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*where, "delete-records", "t", "-p", "0", "--before", "4"]) == 0
    capsys.readouterr()
    shown, said = run("t", "--output", "json", "--from", "2", "--to", "6")
    offsets = [(json.loads(x)["partition"], json.loads(x)["offset"]) for x in shown.splitlines()]
    assert offsets == [(0, 4), (0, 5), *((1, offset) for offset in range(2, 6))]
    assert said == "t-0 holds [4, 10): 2 was taken as 4\n"
    _, said = run("t", "-p", "0", "--from", "2", code=1)
    assert "out of range" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--where", 'key = "k1" and value.n > 9'], [10, 16, 13, 19]),
        (["--where", "header.odd = 'yes' and not value.n < 16"], [17, 19]),
        (["--where", '"n": 1'], [10, 12, 14, 16, 18, 1, 11, 13, 15, 17, 19]),
        (["--key", "k2", "--merge"], [2, 5, 8, 11, 14, 17]),
        (["--key", "k2", "--where", "partition = 1"], [5, 11, 17]),
        (["--where", 'time >= "2013-12-31 23:59:17"'], [18, 17, 19]),
        (["--where", 'time >= "2014-01-01 00:59:17"', "--zone", "Europe/Berlin"], [18, 17, 19]),
        (["--from", "2014-01-01 00:59:17", "--zone", "Europe/Berlin"], [18, 17, 19]),
        (["--where", 'timestamp >= "2013-12-31 23:59:17"'], [18, 17, 19]),
        (["--where", "key like '%1' and value.n between 10 and 13"], [10, 13]),
        (["--where", "value.n is not null and header.odd is null", "--from", "-1"], [18]),
        (["--where", '"n > 7"'], []),
        (["--where", "nothing like it"], []),
    ],
)
def test_only_what_matches(run: Run, arguments: list[str], expected: list[int]) -> None:
    assert numbers(run, *arguments) == expected


def test_how_a_time_was_taken_is_said(run: Run) -> None:
    _, said = run("t", "-p", "0", "--from", "@1388534358")
    assert said == "@1388534358 was taken as epoch seconds: 2013-12-31 23:59:18Z\n"


def test_an_expression_that_cannot_be_read_is_pointed_at(run: Run) -> None:
    _, said = run("t", "--where", "key = k1", code=1)
    assert said == (
        "lakelog: the expression cannot be read:\n  key = k1\n        ^ expected false, bytes "
        '(0x00ff), null, a number, a text in quotes, true; texts stand in quotes: "k1"\n'
    )


def test_an_expression_without_a_field_is_no_text_that_nothing_matches(run: Run) -> None:
    shown, said = run("t", "--where", "n > 7", code=1)
    assert (shown, said) == (
        "",
        "lakelog: the expression cannot be read:\n  n > 7\n  ^ no field n; did you mean value.n? "
        "Fields are key, value, header, time, offset, partition, size. "
        "To look for the text itself, quote it: 'n > 7'\n",
    )


def test_a_text_of_a_megabyte_is_looked_for_and_a_longer_one_is_refused(run: Run) -> None:
    assert numbers(run, "--where", "x" * 1_000_000) == []
    shown, said = run("t", "--where", "x" * 1_100_000, code=1)
    assert shown == ""
    assert said == (
        "lakelog: an expression of 1,100,000 characters is too long: at most 1,048,576 are read. "
        "Search for a part of the text, or for fewer values at a time\n"
    )


# -- as what -------------------------------------------------------------------------------------


def test_a_format_as_kcats(run: Run) -> None:
    shown, _ = run(
        "t", "-p", "1", "--max", "2", "-f", r"%t/%p@%o %T %k(%K)=%s(%S) [%h] 100%%\x21\n"
    )
    assert shown == (
        f't/1@0 {START_MS + 1000} k1(2)={{"n": 1}}(8) [odd=yes] 100%!\n'
        f't/1@1 {START_MS + 3000} k0(2)={{"n": 3}}(8) [odd=yes] 100%!\n'
    )
    _, said = run("t", "-f", "%y", code=1)
    assert "'%y' in the format is none of %t, %p" in said


def test_properties_as_kafka_console_consumers(run: Run) -> None:
    off = [f"--property=print.{name}=false" for name in ("topic", "partition", "offset", "headers")]
    shown, _ = run("t", "-p", "1", "--max", "1", *off, "--property", r"key.separator=|\t")
    assert shown == '2013-12-31T23:59:01+00:00|\tk1|\t{"n": 1}\n'
    _, said = run("t", "--property", "print.colour=true", code=1)
    assert "none of print.topic" in said
    _, said = run("t", "--property", "print.key=maybe", code=1)
    assert "true or false" in said


def test_text_tells_null_from_a_text_and_bytes_from_both(
    run: Run, where: list[str], redis_url: str, tmp_path: Path
) -> None:
    odd = [None, b"null", b"", b"0xff", b"\xff", b'"a"', b"a\nb\x1b[31m", "ü".encode()]
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("odd")
        with lake.producer() as producer:
            for value in odd:
                producer.send("odd", value=value)
    only = [f"--property=print.{n}=false" for n in ("topic", "partition", "offset", "timestamp")]
    shown, _ = run("odd", *only, "--property", "print.key=false")
    assert shown.splitlines() == [
        "null", '"null"', '""', '"0xff"', "0xff", r'"\"a\""', r'"a\nb\u001b[31m"', "ü",
    ]  # fmt: skip
    raw = ["odd", *only, "--property", "print.key=false", "--raw", "--property", "null.literal=∅"]
    file = tmp_path / "raw"
    run(*raw, "-o", str(file))
    assert file.read_bytes() == b"\n".join(["∅".encode(), *odd[1:], b""])


PAYLOAD = b"\x08\x96\x01\xff\xfe \xc3\xa4"  # a protobuf, say, and an a umlaut
KEY, HEADER = b"k\xff", b"\xfe\xc3\xa4"


@pytest.fixture
def binary(redis_url: str, tmp_path: Path, where: list[str]) -> list[str]:
    """A topic of one record whose key, value and header are not UTF-8."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("binary")
        with lake.producer() as producer:
            producer.send("binary", PAYLOAD, key=KEY, headers=[("h", HEADER)], timestamp_ms=0)
    return [*where, "consume", "binary"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "latin-1:strict"},
    ],
)
def test_a_pipe_and_a_file_get_the_same_bytes_in_every_locale(
    binary: list[str], tmp_path: Path, locale: dict[str, str]
) -> None:
    base64_of = {name: base64.b64encode(data).decode() for name, data in
                 {"key": KEY, "value": PAYLOAD, "header": HEADER}.items()}  # fmt: skip
    as_json = (
        '{"topic": "binary", "partition": 0, "offset": 0, "timestamp_ms": 0, '
        f'"key_base64": "{base64_of["key"]}", "value_base64": "{base64_of["value"]}", '
        f'"headers": [["h", {{"base64": "{base64_of["header"]}"}}]]}}\n'
    )
    forms = {
        ("--raw", "-f", "%s"): PAYLOAD,
        ("--raw", "-f", r"%k\xfe\xc3\xa4%h"): KEY + b"\xfe\xc3\xa4h=" + HEADER,
        ("-f", r"%s\xffä"): rb"\x08\x96\x01\xff\xfe " + "ä".encode() + b"\xff" + "ä".encode(),
        ("--raw", "--property", r"headers.separator=\xff"): b"\t".join(
            [b"binary-0@0\t1970-01-01T00:00:00+00:00", KEY, PAYLOAD, b"h=" + HEADER]
        ) + b"\n",
        ("--output", "json"): as_json.encode(),
        ("--output", "csv"): b"topic,partition,offset,timestamp,key,value,headers\n"
        b"binary,0,0,1970-01-01T00:00:00+00:00," + f"0x{KEY.hex()},0x{PAYLOAD.hex()},".encode()
        + f'"[[""h"", {{""base64"": ""{base64_of["header"]}""}}]]"\n'.encode(),
    }  # fmt: skip
    for form, expected in forms.items():
        command = [sys.executable, "-m", "lakelog", *binary, *form]
        piped = subprocess.run(
            command, capture_output=True, timeout=300, env={**os.environ, **locale}
        )
        assert (piped.returncode, piped.stdout, piped.stderr) == (0, expected, b"")
        file = tmp_path / "out"
        said = subprocess.run(
            [*command, "-o", str(file)],
            capture_output=True,
            timeout=300,
            env={**os.environ, **locale},
        )
        assert (said.returncode, file.read_bytes()) == (0, expected)


def test_csv_for_programs_is_utf_8_in_every_locale(
    where: list[str], redis_url: str, tmp_path: Path
) -> None:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("texts")
        with lake.producer() as producer:
            producer.send("texts", "Jämtland, 😀")
    for asked in (
        ["consume", "texts", "--output", "csv"],
        ["grep", "Jämtland", "texts", "--output", "csv"],
        ["sql", "select value from texts", "--output", "csv"],
    ):
        command = [sys.executable, "-m", "lakelog", *where, *asked]
        environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
        done = subprocess.run(command, capture_output=True, timeout=300, env=environment)
        assert "Jämtland, 😀".encode() in done.stdout, done


def test_csv_can_be_read_again(run: Run, tmp_path: Path) -> None:
    shown, _ = run("t", "--output", "csv", "--merge", "--max", "2")
    rows = list(csv.DictReader(io.StringIO(shown)))
    assert [json.loads(row["value"])["n"] for row in rows] == [0, 1]
    assert rows[1] == {
        "topic": "t", "partition": "1", "offset": "0", "timestamp": "2013-12-31T23:59:01+00:00",
        "key": "k1", "value": '{"n": 1}', "headers": '[["odd", "yes"]]',
    }  # fmt: skip
    file = tmp_path / "t.csv"
    shown, _ = run("t", "--output", "csv", "-o", str(file))
    assert shown == f"20 records written to {file}\n"
    assert len(file.read_text().splitlines()) == 21


def test_parquet_and_arrow_hold_the_records(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.parquet"
    run("t", "--output", "parquet", "-o", str(file), "--where", "value.n >= 16")
    table = pq.read_table(file)
    assert table.column_names[:3] == ["partition", "offset", "timestamp"]
    assert table["value"].to_pylist() == [b'{"n": 16}', b'{"n": 18}', b'{"n": 17}', b'{"n": 19}']
    stream = tmp_path / "t.arrows"
    run("t", "--output", "arrow", "-o", str(stream), "--where", "value.n >= 16")
    with pa.OSFile(str(stream)) as source:
        assert pa.ipc.open_stream(source).read_all().equals(table)


def test_what_does_not_go_together_is_refused(
    run: Run, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*arguments: str) -> str:
        return run("t", *arguments, code=1)[1]

    assert "-o FILE" in refused("--output", "parquet")
    assert "-f is a form of text" in refused("--output", "json", "-f", "%s")
    assert "for the form give --output json" in refused("--format", "json")
    assert "for the form give --output csv" in refused("-f", "CSV")
    assert "has an end" in refused("--output", "parquet", "--follow", "-o", "x")
    assert "not a time zone" in refused("--zone", "Mars")
    with pytest.raises(SystemExit):
        cli.main([*where, "--output", "csv", "topics", "list"])
    assert "topics has no --output csv" in capsys.readouterr().err


def test_following_takes_the_same_conditions(run: Run) -> None:
    assert numbers(run, "--follow", "--from", "-2", "--where", "value.n > 16", "--max", "2") in (
        [18, 17],
        [17, 18],
        [18, 19],
        [17, 19],
    )


def test_json_says_what_the_record_is(run: Run) -> None:
    shown, _ = run("t", "-p", "1", "--max", "1", "--output", "json")
    record: dict[str, Any] = json.loads(shown)
    assert record == {
        "topic": "t", "partition": 1, "offset": 0, "timestamp_ms": START_MS + 1000,
        "key": "k1", "value": '{"n": 1}', "headers": [["odd", "yes"]],
    }  # fmt: skip


def test_members_are_columns_in_every_form(run: Run, tmp_path: Path) -> None:
    given = ("t", "--columns", "--merge")
    shown = list(csv.DictReader(io.StringIO(run(*given, "--output", "csv")[0])))
    assert [row["n"] for row in shown] == [str(n) for n in range(20)]
    assert {row["value_error"] for row in shown} == {""}
    lines = run(*given, "--output", "json", "--where", "value.n > 16")[0].splitlines()
    assert [json.loads(line)["n"] for line in lines] == [17, 18, 19]
    run(*given, "--output", "parquet", "-o", str(tmp_path / "t.parquet"))
    assert pq.read_table(tmp_path / "t.parquet")["n"].to_pylist() == list(range(20))
    assert "n" in run(*given, "--max", "2")[0].splitlines()[0].split()


def test_what_is_no_object_is_told_beside_its_text(run: Run, where: list[str]) -> None:
    with Lakelog.connect(where[1], where[3], engine="inline") as lake, lake.producer() as producer:
        producer.send("t", b"plain")
        producer.send("t", None, key="k")
    lines = run("t", "--columns", "--output", "json")[0].splitlines()
    told = [(row["n"], row["value"], row["value_error"]) for row in map(json.loads, lines)]
    assert (None, "plain", "not a JSON object") in told
    assert (None, None, None) in told
    assert len(told) == 22


@pytest.mark.parametrize(
    "given",
    [["-f", "%k"], ["--property", "print.key=true"], ["--follow"]],
)
def test_columns_are_not_of_every_form(where: list[str], given: list[str], capsys: Any) -> None:
    assert cli.main([*where, "consume", "t", "--columns", *given]) == 1
    assert "--columns" in capsys.readouterr().err
