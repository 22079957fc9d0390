"""Files of rows are loaded once, whatever happens on the way, and what cannot be read is said."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import re
import subprocess
import sys
import tempfile
import time
from datetime import datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakelog import Lakelog
from lakelog.codec.json_rows import json_objects
from lakelog.errors import (
    InvalidArgumentError,
    RepeatDiffersError,
    UnknownTopicOrPartitionError,
)
from lakelog.operate.load import files
from lakelog.operate.load.files import FileForm
from lakelog.operate.load.load import new_load_id
from lakelog.testing.eventually import eventually
from lakelog.values.config import HOUR_MS
from lakelog.values.reservation import FEW_OFFSETS

ROWS = [{"id": n, "name": f"n {n}", "part": n % 2} for n in range(50)]
TABLE = pa.Table.from_pylist(ROWS)
CSV = "id,name,part\n" + "".join("{id},{name},{part}\n".format(**row) for row in ROWS)
JSON = "".join(json.dumps(row) + "\n" for row in ROWS)


def stored(lake: Lakelog) -> list[dict[str, Any]]:
    return [json.loads(one) for one in lake.log("orders").search().to_arrow()["value"].to_pylist()]


def written(path: Path, format_: str) -> Path:
    match format_:
        case "csv":
            path.write_text(CSV)
        case "tsv":
            path.write_text(CSV.replace(",", "\t"))
        case "csv.gz":
            path.write_bytes(gzip.compress(CSV.encode()))
        case "csv.zst":
            path.write_bytes(pa.compress(CSV.encode(), "zstd", asbytes=True))
        case "csv.bz2":
            path.write_bytes(bz2.compress(CSV.encode()))
        case "jsonl":
            path.write_text(JSON.replace("\n", "\r\n\n"))
        case "json.gz":
            path.write_bytes(gzip.compress(JSON.encode()))
        case "ndjson.zst":
            path.write_bytes(pa.compress(JSON.encode(), "zstd", asbytes=True))
        case "parquet":
            pq.write_table(TABLE, path, row_group_size=7)
        case "feather":
            feather.write_feather(TABLE, str(path))
        case "arrow":
            with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, TABLE.schema) as out:
                out.write_table(TABLE)
    return path


@pytest.mark.parametrize(
    "ending",
    [
        *("csv", "tsv", "csv.gz", "csv.zst", "csv.bz2"),
        *("jsonl", "json.gz", "ndjson.zst", "parquet", "feather", "arrow"),
    ],
)
def test_files_of_all_formats(lake: Lakelog, tmp_path: Path, ending: str) -> None:
    path = written(tmp_path / f"rows.{ending}", ending)
    seen: list[int] = []
    loaded = lake.load(
        "orders", path, key="id", partition="part", create=True, partitions=2, on_rows=seen.append
    )
    assert (loaded.rows, loaded.rejected, sum(seen)) == (50, 0, 50)
    assert sorted(stored(lake), key=lambda row: row["id"]) == ROWS
    assert lake.topics.get("orders").config.value_columns == "id bigint, name string, part bigint"
    ids = [int(key) for key in lake.log("orders").read(1).to_arrow()["key"].to_pylist()]
    assert ids == list(range(1, 50, 2))


def test_lines_of_json_are_values_byte_for_byte(lake: Lakelog, tmp_path: Path) -> None:
    line = b'{"a": 1.10,  "big": 123456789012345678901234567890}'
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b" " + line + b" \n")
    lake.load("orders", path, create=True)
    assert lake.log("orders").read(0).to_arrow()["value"].to_pylist() == [line]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be-bom"])
@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_marks_of_byte_order(lake: Lakelog, tmp_path: Path, encoding: str, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    text = {"csv": 'name,n\n"ü,""x""",1\n', "jsonl": '{"name":"ü,\\"x\\"","n":1}\n'}[ending]
    is_big = encoding == "utf-16-be-bom"
    data = b"\xfe\xff" + text.encode("utf-16-be") if is_big else text.encode(encoding)
    path.write_bytes(data)
    lake.load("orders", path, create=True, key="name")
    assert stored(lake) == [{"name": 'ü,"x"', "n": 1}]


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.csv", b"a,b\n1,2\n3\n", r"a\.csv, line 3: it has 1 field, and the header 2"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", r"a\.csv, line 3: it has 3 fields, and the header 2"),
        ("a.csv", b"a,b\n" + b"x" * 2_000, r"a\.csv, line 2: .* longer than 1000 bytes"),
        ("a.csv", b"a,b,a\n1,2,3\n", r"a\.csv, line 1: column 'a' is there 2 times"),
        ("a.csv", b'a,b\n1,"2\n', r"a\.csv, line 2: unexpected end of data"),
        ("a.csv.gz", gzip.compress(CSV.encode() * 99)[:-40], r"a\.csv\.gz, line [\d,]+: .*end"),
        ("a.jsonl", b'{"a":1}\n{"a":\n', r"a\.jsonl, line 2: no JSON"),
        ("a.jsonl", b"[1]\n", r"a\.jsonl, line 1: '\[1\].* is no JSON object"),
        ("a.jsonl", b'{"a":"\xff"}\n', r"a\.jsonl, line 1: no JSON"),
        ("a.jsonl", b'{"a":"' + b"x" * 2_000 + b'"}\n', r"line 1: it is longer than 1000 bytes"),
        (
            "a.jsonl.gz",
            gzip.compress(JSON.encode() * 99)[:-40],
            r"a\.jsonl\.gz, line [\d,]+: .*end",
        ),
        ("a.parquet", b"PAR1nothing", r"a\.parquet: "),
        ("a.arrow", b"nothing", r"a\.arrow: "),
        ("a.txt", b"x", "a.txt does not tell what it is: names end in .csv"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_line(
    lake: Lakelog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, data: bytes, why: str
) -> None:
    monkeypatch.setattr(files, "MAX_LINE_BYTES", 1_000)
    lake.topics.create("orders", 1)
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InvalidArgumentError, match=why):
        lake.load("orders", path)
    assert stored(lake) == []


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_lines_that_cannot_be_read_are_put_aside(
    lake: Lakelog, tmp_path: Path, ending: str
) -> None:
    path, aside = tmp_path / f"rows.{ending}", tmp_path / "aside.jsonl"
    good = written(path, ending).read_text().splitlines()
    path.write_text("\n".join([*good[:5], "br,ok,en,!", *good[5:], '{"odd"']) + "\n")
    loaded = lake.load("orders", path, create=True, rejects=aside)
    assert (loaded.rows, loaded.rejected) == (50, 2)
    told = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [one["text"] for one in told] == ["br,ok,en,!", '{"odd"']
    assert all(path.read_text().splitlines()[one["line"] - 1] == one["text"] for one in told)
    assert stored(lake) == ROWS


_FIELD = st.sampled_from([b"1", b"x", b"", b'"q"', b'"a,b"', b'"two\nlines"', b'"\r\n\r\n"'])
_LINES = st.one_of(
    st.tuples(st.just(True), st.lists(_FIELD, min_size=2, max_size=2)),
    st.tuples(
        st.just(False), st.lists(_FIELD, min_size=2, max_size=3).map(lambda some: [*some, b"x"])
    ),
    st.tuples(st.just(False), st.just([b"k\xe4se", b"1"])),
    st.tuples(st.just(False), st.just([b"alone"])),
)


@given(lines=st.lists(_LINES, max_size=30), line_end=st.sampled_from([b"\n", b"\r\n"]))
def test_lines_of_csv_that_are_put_aside_are_told_byte_for_byte(
    lines: list[tuple[bool, list[bytes]]], line_end: bytes
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, told = Path(folder, "rows.csv"), []
        wanted, number, good = [], 2, 0
        text = b"a,b" + line_end
        for is_row, fields in lines:
            line = b",".join(fields)
            if not is_row:
                wanted.append(("line", number, line))
            good += is_row
            number += (line + line_end).count(b"\n")
            text += line + line_end
        path.write_bytes(text)
        rows = list(files.rows_of(path, FileForm("csv"), lambda *one: told.append(one[:3])))
    assert told == wanted
    assert sum(len(one.rows) for one in rows) == good


_TEXTS = st.one_of(
    st.integers().map(str),
    st.floats().map(repr),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.datetimes().map(str),
    st.datetimes(timezones=st.just(timezone.utc)).map(str),
    st.dates().map(str),
    st.sampled_from(
        "01067|+49|1e400|true|FALSE|yes|t|NA|1,5|1_000|.5|5.|-0|2013-02-30|01/02/2013|10:00|0x10|-|.|"
        "e5|-.|Infinity|2013-01-01T10:00:00.123456789| 1|1 |2013-01-01 24:00|NULL|NaN|null|"
        f"{'1' * 38}|{'1' * 39}".split("|")
    ),
)


@given(st.one_of(st.lists(_TEXTS, min_size=1, max_size=5), _TEXTS.map(lambda one: [one, one])))
@example(["1", "12345678901234567", "x"])
@example(["0.1", "1234567890123456"])
@example(["2013-01-01 24:00"])
@example(["2013-01-01 12:00:00 +01"])
@example(["2013-01-01 12:00:00+99:99"])
@example(["9999-12-31 23:59:00-10"])
@example(["0001-01-01 00:00:00+10"])
def test_a_value_of_csv_is_what_is_written_or_its_text(texts: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "rows.csv")
        lines = [json.dumps(one) for one in texts]  # none of them has a quote
        path.write_text("\n".join(["A", *lines]) + "\n")
        for few in (1, 10_000):  # rows of a step
            with pytest.MonkeyPatch.context() as patched:
                patched.setattr(files, "_STEP_ROWS", few)
                steps = list(files.rows_of(path, FileForm("csv"), None))
            assert [line for step in steps for line in step.numbers] == [*range(2, len(texts) + 2)]
            table = pa.concat_tables(step.rows for step in steps)
            found = json_objects(table, timezone.utc).to_pylist()
            for text, one in zip(texts, found, strict=True):
                value = json.loads(one, parse_float=str, parse_int=str)["A"]
                raw = one.removeprefix('{"A":').removesuffix("}")
                assert _means(text, value, is_text=raw.startswith('"')), (text, one)


def _means(text: str, value: object, *, is_text: bool) -> bool:
    if value is None:
        return text in ("nan", "NaN", "NULL")
    if isinstance(value, bool):
        return str(value).lower() == text.lower()
    if value == text:
        return True
    if is_text:  # of a time: the same moment
        assert isinstance(value, str)
        at, same = (datetime.fromisoformat(one.replace("Z", "+00:00")) for one in (text, value))
        return at.replace(tzinfo=at.tzinfo or timezone.utc) == same.replace(
            tzinfo=same.tzinfo or timezone.utc
        )
    assert isinstance(value, str)
    return Decimal(value) == Decimal(text) or float(value) == float(text)


@pytest.mark.parametrize("ending", ["csv.gz", "csv.bz2", "csv.zst", "json.gz", "ndjson.zst"])
def test_what_a_file_has_that_ends_early_is_loaded_where_lines_are_put_aside(
    lake: Lakelog, tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = "".join(f'{{"id":{n},"pad":"{random.Random(n).random()}"}}\n' for n in range(60_000))
    if ending.startswith("csv"):
        whole = "id,pad\n" + "".join(f"{n},{random.Random(n).random()}\n" for n in range(60_000))
    monkeypatch.setitem(globals(), "CSV", whole)
    monkeypatch.setitem(globals(), "JSON", whole)
    path, aside = written(tmp_path / f"rows.{ending}", ending), tmp_path / "aside.jsonl"
    path.write_bytes(path.read_bytes()[:-20_000])
    with pytest.raises(InvalidArgumentError, match="cannot be read further"):
        lake.load("orders", path, create=True)
    loaded = lake.load("early", path, create=True, rejects=aside)
    (told,) = map(json.loads, aside.read_text().splitlines())
    assert loaded.rejected == 1
    assert 1_000 < loaded.rows < 60_000
    assert told["line"] == loaded.rows + (2 if ending.startswith("csv") else 1)
    assert "cannot be read further" in told["why"]
    assert whole.splitlines()[told["line"] - 1].startswith(told["text"])


def test_names_of_columns_are_kept_and_texts_stand_for_no_value(
    lake: Lakelog, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text('a,A,,"two\nlines",b\n1,2,3,4,NA\n5,6,7,8,9\n')
    lake.load("orders", path, create=True, null="NA")
    first = {"a": 1, "A": 2, "column2": 3, "two\nlines": 4, "b": None}
    assert stored(lake)[0] == first
    assert stored(lake)[1]["b"] == 9


@pytest.mark.parametrize("ending", ["csv", "jsonl", "csv.gz"])
def test_text_of_another_encoding(lake: Lakelog, tmp_path: Path, ending: str) -> None:
    text = "name,n\nKäse …\u2028,1\n" if "csv" in ending else '{"name":"Käse …","n":1}\n'
    text = text.replace("\u2028", "")
    path = tmp_path / f"rows.{ending}"
    data = text.encode("cp1252")
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    with pytest.raises(InvalidArgumentError, match=r"UTF-8|utf-8|codec|unicode"):
        lake.load("orders", path, create=True)
    with pytest.raises(InvalidArgumentError, match="'klingon' is no encoding"):
        lake.load("orders", path, create=True, encoding="klingon")
    lake.load("orders", path, create=True, encoding="cp1252")
    assert stored(lake) == [{"name": "Käse …", "n": 1}]


def test_an_array_of_json_is_its_elements(
    lake: Lakelog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "rows.json"
    path.write_text('\n[\n {"a" : 1},\n{"a": [2]} ]\n'.lstrip())
    lake.load("orders", path, create=True)
    assert lake.log("orders").read(0).to_arrow()["value"].to_pylist() == [
        b'{"a" : 1}',
        b'{"a": [2]}',
    ]
    path.write_text('[{"a": 1}, 2]')
    with pytest.raises(InvalidArgumentError, match=r"rows\.json, row 2: '2' is no JSON object"):
        lake.load("orders", path)
    path.write_text('[{"a": 1},\n{"a": 2}\n')
    with pytest.raises(InvalidArgumentError, match=r"rows\.json, line 1: no JSON"):
        lake.load("orders", path)
    monkeypatch.setattr(files, "MAX_ARRAY_BYTES", 10)
    with pytest.raises(InvalidArgumentError, match=r"one array of JSON.*jq -c '\.\[\]' rows\.json"):
        lake.load("orders", path)


_AT = "2013-12-31T23:59:00Z"
#: A row that no topic takes among others, and why.
_ODD_ROWS = [
    ({"at": "31.12.2013"}, "'31.12.2013' is no time as ISO writes it.*--time-format"),
    ({"at": "2013-03-31T02:30:00"}, "2013-03-31 02:30:00 is no time of Europe/Berlin"),
    ({"at": "9999-01-01T00:00:00Z"}, r"9999-01-01 .* message\.timestamp\.after\.max\.ms=3600000"),
    ({"at": "2000-01-01T00:00:00Z"}, r"2000-01-01 .* message\.timestamp\.before\.max\.ms"),
    ({"part": 7}, "partition 7 is none of the topic's: 0 to 1"),
    ({"part": -1}, "partition -1 is none"),
    ({"part": 0.5}, "partition takes whole numbers"),
    ({"part": "x"}, "partition takes whole numbers"),
    ({"key": None}, "no key, which a compacted topic needs"),
]


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
@pytest.mark.parametrize(("odd", "why"), _ODD_ROWS)
def test_a_row_that_the_topic_does_not_take_is_told_or_put_aside(
    lake: Lakelog, tmp_path: Path, ending: str, odd: dict[str, Any], why: str
) -> None:
    path, aside = tmp_path / f"rows.{ending}", tmp_path / "aside.jsonl"
    rows = [{"key": f"k{n}", "at": _AT, "part": n % 2} for n in range(9)]
    rows[5] |= odd
    table = pa.Table.from_pylist(
        [{k: None if v is None else str(v) for k, v in row.items()} for row in rows]
    )
    if ending == "csv":
        lines = [",".join(one or "" for one in row.values()) for row in table.to_pylist()]
        path.write_text("key,at,part\n" + "\n".join(lines) + "\n")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    early_ms = 20 * 366 * 86_400_000
    config = {"cleanup.policy": "compact", "message.timestamp.before.max.ms": early_ms}
    lake.topics.create("orders", 2, config)
    names = {"key": "key", "timestamp": "at", "partition": "part", "zone": "Europe/Berlin"}
    line = {"csv": 7, "jsonl": 6}[ending]
    with pytest.raises(InvalidArgumentError, match=rf"rows\.{ending}, line {line}: .*{why}"):
        lake.load("orders", path, **names)
    begun: list[str] = []
    loaded = lake.load("orders", path, rejects=aside, on_begin=begun.append, **names)
    assert (loaded.rows, loaded.rejected) == (8, 1)
    (told,) = map(json.loads, aside.read_text().splitlines())
    assert told["line"] == line
    assert re.search(why, told["why"])
    again = lake.load("orders", path, rejects=aside, resume=begun[0], **names)
    assert (again.rows, again.rejected) == (8, 1)


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_epoch_seconds_are_no_milliseconds(lake: Lakelog, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"rows.{ending}"
    path.write_text({"csv": "at\n1704067200\n", "jsonl": '{"at": 1704067200}\n'}[ending])
    with pytest.raises(
        InvalidArgumentError, match=r"1704067200 as epoch milliseconds is of 1970.*'s'"
    ):
        lake.load("orders", path, create=True, timestamp="at")
    for form, at in (("s", "2024-01-01"), ("ms", "1970-01-20")):
        lake.load(form, path, create=True, timestamp="at", time_format=form)
        (time,) = lake.log(form).read(0).to_arrow()["timestamp"].to_pylist()
        assert str(time.date()) == at
    path.write_text('{"at": 1704067200.25}\n{"at": "x"}\n')
    path = path.rename(tmp_path / "fine.jsonl")
    with pytest.raises(InvalidArgumentError, match="line 2: field 'at'"):
        lake.load("s", path, timestamp="at", time_format="s")


def test_a_quote_that_is_not_closed_ends_the_load_or_all_its_lines_are_put_aside(
    lake: Lakelog, tmp_path: Path
) -> None:
    path, aside = tmp_path / "rows.csv", tmp_path / "aside.jsonl"
    lines = [f"{n},c{n},{'x' * 20}" for n in range(5_000)]
    lines[100] = '100,"c100,x'
    path.write_text("\n".join(["id,name,pad", *lines]) + "\n")
    for rejects in (None, aside):  # nobody can tell where it should have ended
        with pytest.raises(InvalidArgumentError, match=r"rows\.csv, line 102: .*quote.*not closed"):
            lake.load("orders", path, create=True, rejects=rejects)
    assert not aside.exists()
    lines[3_000] = '3000,"quoted",x'
    path.write_text("\n".join(["id,name,pad", *lines]) + "\n")
    with pytest.raises(InvalidArgumentError, match=r"line 102: .* in the 2,901 lines from there"):
        lake.load("orders", path, create=True)
    loaded = lake.load("orders", path, create=True, rejects=aside)
    (told,) = map(json.loads, aside.read_text().splitlines())
    assert told["text"].split("\n") == lines[100:3_001]
    assert [row["id"] for row in stored(lake)] == [*range(100), *range(3_001, 5_000)]
    assert loaded.rows == 100 + 1_999


def test_texts_of_many_lines_are_one_field_wherever_they_lie(
    lake: Lakelog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_STEP_BYTES", 100_000)
    path = tmp_path / "rows.csv"
    texts = ["\n".join(f"{n},{line},x" for line in range(n % 97)) for n in range(3_000)]
    path.write_text("id,text,n\n" + "".join(f'{n},"{one}",1\n' for n, one in enumerate(texts)))
    assert path.stat().st_size > 1_000_000
    assert lake.load("orders", path, create=True).rows == 3_000
    assert [row["text"] or "" for row in stored(lake)] == texts


def test_columns_of_text_stay_so_in_the_next_file_and_what_fits_no_column_is_said(
    lake: Lakelog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("zip,delay\n01067,5\n")
    lake.load("orders", path, create=True)
    assert lake.topics.get("orders").config.value_columns == "zip string, delay bigint"
    path.write_text("zip,delay\n99999,7\n")
    lake.load("orders", path)
    assert stored(lake)[-1] == {"zip": "99999", "delay": 7}
    assert "are not what the columns" not in caplog.text
    path.write_text("zip,delay\n99999,NA\n1,3\n")
    lake.load("orders", path)
    assert "2 of the first 2 rows of rows.csv are not what the columns" in caplog.text
    assert "delay" in caplog.text
    lake.load("orders", path, null=["NA"])
    assert stored(lake)[-1] == {"zip": "1", "delay": 3}


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("a.csv", b"PK\x03\x04rest", r"a\.csv is no text but a ZIP archive, as an Excel workbook"),
        ("a.csv", b"PAR1rest", "is no text but Parquet: say --format parquet"),
        ("a.csv", b"\n1,2\n", "line 1: it is empty, and the columns' names belong there"),
    ],
)
def test_what_is_no_csv_is_told_by_what_it_is(
    lake: Lakelog, tmp_path: Path, name: str, data: bytes, why: str
) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InvalidArgumentError, match=why):
        lake.load("orders", path, create=True)
    with pytest.raises(InvalidArgumentError, match="is a folder: load its files one by one"):
        lake.load("orders", tmp_path, create=True, format="csv")


def test_compression_is_told_by_the_content(lake: Lakelog, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"  # whatever its name says
    path.write_bytes(gzip.compress(CSV.encode()))
    assert lake.load("orders", path, create=True).rows == 50
    plain = tmp_path / "rows.csv.gz"
    plain.write_text(CSV)
    assert lake.load("orders", plain).rows == 50


def test_times_of_a_form_that_is_said(lake: Lakelog, tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("at,n\n31.12.2013 23:59,1\n01.02.2014 10:00,2\n")
    form = "%d.%m.%Y %H:%M"
    lake.load("orders", path, create=True, timestamp="at", zone="Europe/Berlin", time_format=form)
    times = lake.log("orders").read(0).to_arrow()["timestamp"].to_pylist()
    assert [str(one) for one in times] == [
        "2013-12-31 22:59:00+00:00",
        "2014-02-01 09:00:00+00:00",
    ]
    path.write_text("at,n\n2013-02-01,1\n")  # ISO by its look
    lake.load("days", path, create=True, timestamp="at", zone="UTC", time_format="%Y-%d-%m")
    assert str(lake.log("days").read(0).to_arrow()["timestamp"][0]).startswith("2013-01-02")
    with pytest.raises(InvalidArgumentError, match=r"rows\.csv, line 2: .*does not match format"):
        lake.load("days", path, timestamp="at", zone="UTC", time_format="%d.%m.%Y")


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_rows_that_the_columns_refuse_are_put_aside_or_end_the_load(
    lake: Lakelog, tmp_path: Path, ending: str
) -> None:
    path, aside = tmp_path / f"rows.{ending}", tmp_path / "aside.jsonl"
    rows = [{"id": n, "name": f"n {n}"} for n in range(5)]
    wrong = [{"id": None, "name": "nobody"}, {"id": 7, "name": None}]
    if ending == "csv":
        text = "".join("{},{}\n".format(*row.values()) for row in [*rows, *wrong])
        path.write_text("id,name\n" + text.replace("None", ""))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, *wrong]))
    columns = {"lakelog.value.columns": "id bigint NOT NULL, name string NOT NULL"}
    lake.topics.create("orders", 1, {**columns, "lakelog.value.columns.enforce": "true"})
    line = {"csv": 7, "jsonl": 6}[ending]
    with pytest.raises(
        InvalidArgumentError, match=rf"rows\.{ending}, line {line}: .*id: missing or null"
    ):
        lake.load("orders", path)
    assert stored(lake) == []
    loaded = lake.load("orders", path, rejects=aside)
    assert (loaded.rows, loaded.rejected) == (5, 2)
    assert stored(lake) == rows
    told = [json.loads(line) for line in aside.read_text().splitlines()]
    assert [json.loads(one["text"])["name"] for one in told] == ["nobody", None]
    assert all("NOT NULL" in one["why"] for one in told)


def test_nothing_is_written_over_by_what_is_put_aside(lake: Lakelog, tmp_path: Path) -> None:
    path, note = tmp_path / "rows.csv", tmp_path / "note.txt"
    path.write_text(CSV + "br,ok,en,!\n")
    note.write_text("dear diary")
    lake.topics.create("orders", 1)
    with pytest.raises(InvalidArgumentError, match="is the file that is loaded"):
        lake.load("orders", path, rejects=path)
    with pytest.raises(InvalidArgumentError, match=r"note\.txt is there already"):
        lake.load("orders", path, rejects=note)
    assert path.read_text().startswith(CSV)
    assert note.read_text() == "dear diary"
    assert stored(lake) == []
    begun: list[str] = []
    aside = tmp_path / "aside.jsonl"
    lake.load("orders", path, rejects=aside, on_begin=begun.append)
    lake.load("orders", path, rejects=aside, resume=begun[0])  # its own file is another matter
    assert len(aside.read_text().splitlines()) == 1


def test_a_load_that_is_begun_again_appends_what_is_not_there(
    lake: Lakelog, tmp_path: Path
) -> None:
    path = tmp_path / "rows.jsonl.gz"
    lines = [json.dumps({"id": n, "pad": "x" * 3_000}) + "\n" for n in range(20_000)]
    whole = gzip.compress("".join(lines).encode(), 1)
    path.write_bytes(whole[: len(whole) * 3 // 4])
    lake.topics.create("orders", 4)
    begun: list[str] = []
    with pytest.raises(InvalidArgumentError, match=r"cannot be read further.*--rejects"):
        lake.load("orders", path, key="id", on_begin=begun.append)
    some = len(stored(lake))
    assert 0 < some < 20_000
    path.write_bytes(whole)
    for _ in range(2):  # and once more, when all is there
        loaded = lake.load("orders", path, key="id", resume=begun[0])
        assert (loaded.rows, loaded.load_id) == (20_000, begun[0])
    assert sorted(row["id"] for row in stored(lake)) == list(range(20_000))
    path.write_bytes(gzip.compress(b'{"id": 0, "other": 1}\n'))
    with pytest.raises(RepeatDiffersError, match=r"other rows .* Nothing that differs"):
        lake.load("orders", path, key="id", resume=begun[0])
    lake.load("orders", path, key="id")  # without an id it is another load
    assert len(stored(lake)) == 20_001


def test_a_process_that_is_killed_loads_each_row_once(
    lake: Lakelog, redis_url: str, tmp_path: Path
) -> None:
    path = tmp_path / "rows.csv"
    rows = 60_000
    path.write_text("id,pad\n" + "".join(f"{n},{'x' * 600}\n" for n in range(rows)))
    lake.topics.create("orders", 3)
    log = lake.log("orders")
    command = [
        *(sys.executable, "-m", "lakelog", "--redis", redis_url, "--cold", str(tmp_path / "cold")),
        *("produce", "orders", str(path), "--key-field", "id", "--output", "json"),
    ]
    load_id = ""
    for kills in range(4):
        again = ["--resume", load_id] if load_id else []
        process = subprocess.Popen([*command, *again], stderr=subprocess.PIPE, text=True)
        if not load_id:
            assert process.stderr is not None
            told = next(line for line in process.stderr if line.startswith("load "))
            load_id = told.split()[1].rstrip(":")
        if kills < 3:
            least = sum(one.log_end for one in log.offsets().values())
            eventually(
                lambda least=least, process=process: (
                    process.poll() is not None
                    or sum(one.log_end for one in log.offsets().values()) > least
                )
            )
            time.sleep(0.02 * kills)
            process.kill()
            process.wait()
        else:
            assert process.wait(120) == 0
        assert process.stderr is not None
        process.stderr.close()
    assert sorted(row["id"] for row in stored(lake)) == list(range(rows))


def test_an_id_is_one_of_a_load_that_redis_still_knows(lake: Lakelog, tmp_path: Path) -> None:
    path = written(tmp_path / "rows.csv", "csv")
    lake.topics.create("orders", 1, {"producer.id.expiration.ms": 60_000})
    now_ms = time.time_ns() // 1_000_000
    for load_id, why in (
        ("nonsense", "no id of a load"),
        ("5f-", "no id of a load"),
        (new_load_id("others", now_ms), "no id of a load into topic 'orders'"),
        (new_load_id("orders", now_ms)[:-1], "no id of a load into topic 'orders'"),
        (new_load_id("orders", now_ms) + "0", "no id of a load into topic 'orders'"),
        (new_load_id("orders", now_ms - HOUR_MS), "was begun 1:00:0.* ago, and Redis may have"),
    ):
        with pytest.raises(InvalidArgumentError, match=why):
            lake.load("orders", path, resume=load_id)
    assert stored(lake) == []
    with pytest.raises(UnknownTopicOrPartitionError):
        lake.load("none", path)


def test_a_load_that_needs_more_offsets_than_are_reserved_alarms_nobody(
    lake: Lakelog, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id\n" + "".join(f"{n}\n" for n in range(5_000)))
    lake.topics.first_offsets = FEW_OFFSETS
    lake.topics.create("orders", 1)
    assert lake.load("orders", path).rows == 5_000
    assert [one.message for one in caplog.records if one.levelname == "WARNING"] == []
