"""What was appended as a frame is read as one, in every library."""

from __future__ import annotations

import builtins
from datetime import datetime, timezone
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import lakelog
from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError, MissingExtraError
from lakelog.operate.segments import segments

AT = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
ROWS = [{"id": n, "name": f"n{n}", "at": AT, "tags": ["a"] * n} for n in range(5)]


@pytest.fixture(params=["hot", "cold"])
def log(lake: Lakelog, request: pytest.FixtureRequest) -> Any:
    lake.append(
        "orders", ROWS, key="name", timestamp="at", create=True, config={"retention.ms": -1}
    )
    if request.param == "cold":
        lake.archive("orders")
    return lake.log("orders")


def test_members_are_columns(log: Any) -> None:
    frame = log.read(0).to_pandas()
    assert list(frame.columns) == [
        *("offset", "timestamp", "timestampType", "key"),
        *("id", "name", "at", "tags", "headers"),
    ]
    assert frame["id"].tolist() == [0, 1, 2, 3, 4]
    assert frame["key"].tolist() == frame["name"].tolist()
    assert frame["at"].tolist() == [pd.Timestamp(AT)] * 5
    assert log.read(0).to_polars()["tags"].to_list() == [["a"] * n for n in range(5)]
    relation = log.search("value.id > 2").to_duckdb()
    assert relation.project("id").fetchall() == [(3,), (4,)]
    assert log.read(0).to_table().schema.field("id").type == pa.int64()


def test_values_are_given_as_they_are_asked_for(log: Any) -> None:
    one = log.read(0, 1, 2)
    assert one.to_pandas("json")["value"].tolist()[0]["name"] == "n1"
    assert one.to_pandas("text")["value"].tolist()[0].startswith('{"id":1,')
    assert one.to_pandas("bytes")["value"].tolist()[0].startswith(b'{"id":1,')
    with pytest.raises(InvalidArgumentError, match="none of columns, json, text, bytes"):
        one.to_pandas("yaml")


def test_columns_of_a_topic_that_says_none_are_those_of_its_values(lake: Lakelog) -> None:
    lake.topics.create("orders", 1)
    rows = [{"n": n} for n in range(3_000)]
    rows[1] = {"n": "text"}  # that no sample has
    lake.append("orders", rows)
    frame = lake.log("orders").read(0).to_table()
    assert frame["n"].to_pylist()[:3] == ["0", "text", "2"]
    assert "value_error" not in frame.column_names


def test_what_the_columns_do_not_take_is_beside_them(lake: Lakelog) -> None:
    lake.topics.create("orders", 1, {"lakelog.value.columns": "n int"})
    with lake.producer() as producer:
        producer.send_batch("orders", [b'{"n":1}', b"no json", None, b"\xff"])
    table = lake.log("orders").read(0).to_table()
    assert table["n"].to_pylist() == [1, None, None, None]
    assert table["value"].to_pylist() == [None, "no json", None, "\\xff"]
    assert [one is None for one in table["value_error"].to_pylist()] == [True, False, True, False]


@pytest.mark.parametrize("values", [[], [None], [b"plain", b"\xff"]])
def test_values_that_are_no_objects_are_text(lake: Lakelog, values: list[bytes | None]) -> None:
    lake.topics.create("orders", 1)
    with lake.producer() as producer:
        producer.send_batch("orders", values)
    frame = lake.log("orders").read(0).to_pandas()
    texts = [None if one is None else one.decode(errors="backslashreplace") for one in values]
    assert [None if pd.isna(one) else one for one in frame["value"]] == texts


def test_a_library_that_is_not_there_is_named(log: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *given: Any, **named: Any) -> Any:
        if name == "polars":
            raise ImportError(name)
        return real(name, *given, **named)

    monkeypatch.setattr("importlib.import_module", lambda name: without(name))
    with pytest.raises(MissingExtraError, match="pip install polars"):
        log.read(0).to_polars()


def test_a_notebook_shows_the_first_rows(log: Any, lake: Lakelog) -> None:
    html = log.read(0)._repr_html_()
    assert html.count("<tr") == 6
    assert "<td>n4</td>" in html
    lake.append("orders", [{"name": "<b>"}] * 100)
    html = log.read(0)._repr_html_()
    assert html.count("<tr") == 21
    assert "the first 20 of more" in html
    assert "&lt;b&gt;" in html
    assert "no records" in log.read(0, 0, 0)._repr_html_()
    assert "<td>n3</td>" in log.search("n3")._repr_html_()


def test_what_calls_answer_with_are_frames_too(lake: Lakelog) -> None:
    lake.append("orders", ROWS, key="name", create=True, partitions=2)
    lake.archive("orders")
    offsets = lakelog.frame(lake.log("orders").offsets()).to_pandas()
    assert offsets["partition"].tolist() == [0, 1]
    assert offsets["log_end"].sum() == len(ROWS)
    status = lakelog.frame(lake.status()).to_pandas()
    assert status[["topic", "partition", "state"]].to_numpy().tolist() == [
        ["orders", 0, "ok"],
        ["orders", 1, "ok"],
    ]
    assert (status["log_end"] == offsets["log_end"]).all()
    there = lakelog.frame(segments(lake.log("orders"))).to_polars()
    assert set(there["tier"]) == {"hot", "cold"}
    assert there.filter(pl.col("tier") == "cold")["records"].sum() == len(ROWS)
    assert lakelog.frame(lake.topics.list()).to_pandas()["name"].tolist() == ["orders"]


def test_what_a_consumer_polled_is_a_frame(lake: Lakelog) -> None:
    lake.append("orders", ROWS, key="name", create=True, partitions=2)
    settings = {"group_id": "readers", "auto_offset_reset": "earliest"}
    with lake.consumer("orders", **settings) as consumer:
        polled = [consumer.poll_arrow(timeout_ms=60_000, max_records=2) for _ in range(1)]
        seen = lakelog.frame(polled[0]).to_pandas()
        rest = consumer.poll(timeout_ms=60_000)
        more = lakelog.frame(rest).to_pandas()
        described = lakelog.frame(lake.groups.describe("readers")).to_pandas()
    assert [*seen.columns][:3] == ["topic", "partition", "offset"]
    names = [ROWS[n]["name"] for n in [*seen["id"], *more["id"]]]
    assert [*seen["key"], *more["key"]] == names
    assert len(names) == len({*names})
    assert described["state"].tolist() == ["Stable"]
    assert len(described["members"][0]) == 1
    assert lakelog.frame(lake.groups.list()).to_pandas()["group_id"].tolist() == ["readers"]


@pytest.mark.parametrize("answer", ["text", 5, None])
def test_what_has_no_rows_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="has no rows"):
        lakelog.frame(answer)


def test_no_rows_are_a_frame_without_any() -> None:
    assert len(lakelog.frame([]).to_pandas()) == 0


def test_whole_numbers_and_booleans_stay_so_where_some_are_null(lake: Lakelog) -> None:
    lake.append("orders", [{"n": 2**53 + 1, "b": True}, {"n": None, "b": None}], create=True)
    frame = lake.log("orders").read(0).to_pandas()
    assert frame["n"][0] == 2**53 + 1
    assert (frame["n"].isna().tolist(), frame["b"].isna().tolist()) == ([False, True],) * 2
    assert (str(frame["n"].dtype), str(frame["b"].dtype)) == ("Int64", "boolean")
    assert "9007199254740993" in str(lake.log("orders").read(0)._repr_html_())
