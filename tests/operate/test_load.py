"""Files of rows are loaded once, whatever happens on the way, and what cannot be read is said."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from lakelog import Lakelog
from lakelog.errors import (
    InvalidArgumentError,
    RepeatDiffersError,
    UnknownTopicOrPartitionError,
)
from lakelog.operate.load import files
from lakelog.testing.eventually import eventually
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
        ("a.csv", b"a,b\n1,2\n3\n", r"a\.csv, line 3: Expected Number of Columns: 2 Found: 1"),
        ("a.csv", b"a,b\n1,2\n3,4,5\n", r"a\.csv, line 3: Expected Number of Columns: 2 Found: 3"),
        ("a.csv", b"a,b,a\n1,2,3\n", r"a\.csv, line 1: column 'a' is there 2 times"),
        ("a.csv", b'a,b\n1,"2\n', r"a\.csv: .*is a quote not closed"),
        ("a.csv.gz", gzip.compress(CSV.encode() * 99)[:-40], r"a\.csv\.gz: .*end"),
        ("a.jsonl", b'{"a":1}\n{"a":\n', r"a\.jsonl, line 2: no JSON"),
        ("a.jsonl", b"[1]\n", r"a\.jsonl, line 1: '\[1\].* is no JSON object"),
        ("a.jsonl", b'{"a":"\xff"}\n', r"a\.jsonl, line 1: no JSON"),
        ("a.jsonl", b'{"a":"' + b"x" * 2_000 + b'"}\n', r"line 1: it is longer than 1000 bytes"),
        ("a.jsonl.gz", gzip.compress(JSON.encode() * 99)[:-40], r"behind line [\d,]+: .*end"),
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
    with pytest.raises(
        InvalidArgumentError, match=rf"rows\.{ending}, row 6: .*id: missing or null"
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
    with pytest.raises(InvalidArgumentError, match="the rows before it can be loaded"):
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
    for load_id, why in (
        ("nonsense", "no id of a load"),
        ("5f-", "no id of a load"),
        (f"{int(time.time()) - 3_600:x}-0011aabb", "was begun 1:00:0.* ago, and Redis may have"),
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
