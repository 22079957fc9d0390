"""The rows shown as code, which gives the same rows, and as files."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
import shlex

import pyarrow.parquet as pq
import pytest
from hands import Hands

from lakelog.cli.main import main
from lakelog.errors import InvalidArgumentError
from lakelog.explore.explorer import shown_files


@pytest.fixture
def sales(shop):
    """Two partitions, of which [0, 20) are cold and [20, 30) hot."""
    shop.topic("sales", partitions=2)
    for n in range(60):
        if n == 40:
            shop.lakelog.archive("sales")
        shop.send((f"k{n % 7}", json.dumps({"n": n})), topic="sales", partition=n % 2)
    return shop


@pytest.fixture(
    params=[("", None), ("value.n > 12", None), ('key = "k3"', None), ("k1", 0), ("", 1)]
)
def shown(request, sales):
    """An explorer in the middle of a walk."""
    where, partition = request.param
    explorer = sales.explore("sales", partition=partition, where=where, page_records=20)
    if explorer.data().num_rows == 20:
        explorer.forward()
    return explorer


def places(explorer):
    return explorer._screen.shown.places


def test_python_gives_the_rows(shown, sales):
    lake = sales.lakelog
    assert eval(shown.code(), {"lake": lake}).to_arrow().equals(shown.data())


def test_a_command_gives_the_rows(shown, sales, redis_url, tmp_path, capsys):
    words = shlex.split(shown.code("command line"))
    assert words.pop(0) == "lakelog"
    given = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--output", "json"]
    assert main([*given, *words]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["partition"], row["offset"]) for row in rows] == places(shown)


def test_a_link_shows_the_page_again(shown, sales):
    again = eval(shown.code("link"), {"lake": sales.lakelog})
    again.wait()
    assert places(again)[: len(places(shown))] == places(shown)
    again.close()


@pytest.mark.parametrize("time_ms", [253_402_300_800_000, 1_700_000_000_123, -1])
def test_a_link_begins_at_any_time_that_a_record_may_have(shop, time_ms):
    shop.topic("far", partitions=2, **{"message.timestamp.after.max.ms": 2**62})
    with shop.lakelog.producer() as producer:
        for _ in range(2):
            producer.send("far", b"x", partition=0, timestamp_ms=time_ms)
    shown = shop.explore("far")
    assert len(places(shown)) == 2
    again = eval(shown.code("link"), {"lake": shop.lakelog})
    again.wait()
    assert places(again) == places(shown)
    again.close()


def test_a_form_is_one_of_those(shown):
    with pytest.raises(InvalidArgumentError, match="Spark SQL"):
        shown.code("perl")


def test_spark_gets_the_rows_by_their_places(sales):
    explorer = sales.explore("sales", where="value.n[*] > 12 or value.n = 21", partition=1)
    for form in ("Spark DataFrame", "Spark SQL"):
        assert "(partition = 1 AND offset IN (10))" in explorer.code(form)


def test_files_hold_the_rows(shown, tmp_path):
    wanted = places(shown)
    paths = {kind: tmp_path / f"rows.{kind}" for kind in ("csv", "jsonl", "parquet")}
    for path in paths.values():
        assert shown.export(path) == len(wanted)
    with paths["csv"].open(newline="") as file:
        found = [(int(row["partition"]), int(row["offset"])) for row in csv.DictReader(file)]
    assert found == wanted
    lines = [json.loads(line) for line in paths["jsonl"].read_text().splitlines()]
    assert [(one["partition"], one["offset"]) for one in lines] == wanted
    table = pq.read_table(paths["parquet"])
    rows = table.select(["partition", "offset"]).to_pylist()
    assert [(row["partition"], row["offset"]) for row in rows] == wanted
    assert table["value"].to_pylist() == shown.data()["value"].to_pylist()


def test_a_file_holds_all_that_is_found(sales, tmp_path):
    explorer = sales.explore("sales", where="value.n > 12", page_records=20)
    assert explorer.export(tmp_path / "all.parquet", everything=True) == 47
    with pytest.raises(InvalidArgumentError, match=r"ends in \.csv, \.jsonl, \.parquet"):
        explorer.export(tmp_path / "all.xlsx")


def test_hands_copy_and_take_a_file(sales, monkeypatch):
    hands = Hands(sales.explore("sales"))
    hands.type("code", "link")
    assert "lake.explore(&#x27;sales&#x27;" in hands.html("expression")
    hands.type("export", "csv")
    (data,) = re.findall(r'download="sales.csv" href="data:[^,]*,([^"]+)"', hands.html("download"))
    rows = [*csv.DictReader(io.StringIO(base64.b64decode(data).decode()))]
    assert [row["value"] for row in rows] == [json.dumps({"n": n}) for n in range(50)]
    assert hands.find("export").value == "–"
    hands.click("forward")
    assert hands.html("download") == ""
    monkeypatch.setattr(shown_files, "LINKED_BYTES", 10)
    hands.type("export", "parquet")
    assert "sales.parquet" in hands.html("error")
