"""SQL over a topic: the same rows as from a table of all its records, and only what is needed."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

duckdb = pytest.importorskip("duckdb")

from lakelog import Lakelog  # noqa: E402
from lakelog.codec.infer import infer  # noqa: E402
from lakelog.cold.by_path.path_table import PathTable  # noqa: E402
from lakelog.cold.segment import UNKNOWN_TIMESTAMP_MS  # noqa: E402
from lakelog.errors import ColdTierError, InvalidArgumentError  # noqa: E402
from lakelog.read import sql  # noqa: E402
from lakelog.read.sql import TABLE, _Part, may_match  # noqa: E402
from lakelog.read.stretches import Piece  # noqa: E402

START = datetime(2013, 12, 31, 23, 59, tzinfo=timezone.utc)


@pytest.fixture
def lake(redis_url: str, tmp_path: Path) -> Any:
    """Three partitions of ten records, by turns one a second; the first 20 are archived."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("t", 3, {"local.retention.ms": 0})
        for numbers in (range(20), range(20, 30)):
            with lake.producer() as producer:
                for n in numbers:
                    producer.send(
                        "t",
                        key=f"k{n % 4}" if n % 4 else None,
                        value=b"\xff\x00" if n == 7 else json.dumps({"n": n}),
                        partition=n % 3,
                        timestamp_ms=int((START + timedelta(seconds=n)).timestamp() * 1000),
                        headers=[("n", str(n))],
                    )
            if not numbers.start:
                lake.archive("t")
        yield lake


def rows(lake: Lakelog, statement: str) -> list[tuple[Any, ...]]:
    found = lake.sql(statement).read_all()
    return [tuple(row.values()) for row in found.to_pylist()]


def test_both_tiers_are_one_table(lake: Lakelog) -> None:
    assert lake.log("t").offsets()[0].local_log_start > 0  # so some are in cold alone
    assert rows(lake, "select count(*), count(key) from t") == [(30, 22)]
    (row,) = lake.sql('select * from t where partition = 1 and "offset" = 2').read_all().to_pylist()
    assert row == {
        "partition": 1, "offset": 2, "timestamp": START + timedelta(seconds=7), "key": "k3",
        "value": "0xff00", "headers": [{"key": "n", "value": b"7"}], "key_bytes": b"k3",
        "value_bytes": b"\xff\x00",
    }  # fmt: skip
    assert rows(lake, "select sum((value->>'$.n')::int) from t where value[1] = '{'") == [(428,)]
    assert rows(lake, "select count(*) from t a join t b using (value) where b.key is null") == [
        (8,)
    ]


def test_zone_is_that_of_times_without_one(lake: Lakelog) -> None:
    at = "select count(*) from t where timestamp >= '2014-01-01 00:59:20'"
    assert lake.sql(at, zone="Europe/Berlin").read_all().to_pylist() == [{"count_star()": 10}]


def test_the_same_statement_names_other_topics_too(lake: Lakelog) -> None:
    lake.topics.create("other.topic")
    with lake.producer() as producer:
        producer.send("other.topic", b"x")
    assert rows(lake, 'select (select count(*) from t) + count(*) n from "other.topic"') == [(31,)]


COLUMNS = (
    "product string, qty int, id decimal(20,0), at timestamp, day date, ratio double, "
    "tags array<string>, who struct<name string>, `user.name` string, key_bytes string"
)


@pytest.fixture
def typed(lake: Lakelog) -> Lakelog:
    """A topic `typed.orders` that got its columns after a part of it was archived."""
    lake.topics.create("typed.orders", 2, {"local.retention.ms": 0})
    with lake.producer() as producer:
        for n in range(4):
            value: dict[str, Any] = {
                "product": f"p{n}",
                "qty": n,
                "id": 2**64 - 1 - n,
                "at": f"2024-01-0{n + 1}T00:00:00.123456Z",
                "day": f"2024-01-0{n + 1}",
                "ratio": n / 4,
                "tags": ["a", f"t{n}"],
                "who": {"name": f"w{n}"},
                "user.name": f"u{n}",
                "key_bytes": "not the key's",
            }
            producer.send("typed.orders", json.dumps(value), key=f"k{n}", partition=n % 2).result()
            if n == 1:
                lake.archive("typed.orders")
                lake.topics.alter("typed.orders", {"lakelog.value.columns": COLUMNS})
        producer.send("typed.orders", json.dumps({"qty": "many"}), key="k9", partition=0)
        producer.send("typed.orders", None, key="k9", partition=0)
    return lake


@pytest.mark.parametrize(
    "where",
    [
        "product = 'p2'",
        "qty between 2 and 2",
        "id = 18446744073709551613",
        "\"at\" = '2024-01-03 00:00:00.123456+00'",
        "day = '2024-01-03'",
        "ratio = 0.5",
        "list_contains(tags, 't2')",
        "tags = ['a', 't2']",
        "who.name = 'w2'",
        "who = {'name': 'w2'}",
        "\"user.name\" = 'u2'",
        "product in ('p2', 'p9') and timestamp > '2020-01-01'",
        "product is not null and qty > 1 and key = 'k2'",
    ],
)
def test_typed_columns_are_asked_for_by_name_in_both_tiers(typed: Lakelog, where: str) -> None:
    assert rows(typed, f'select key from "typed.orders" where {where}') == [("k2",)]


def test_typed_columns_are_there_of_what_is_older_than_they_are(typed: Lakelog) -> None:
    found = rows(typed, 'select product, qty, id from "typed.orders" where qty < 3 order by qty')
    assert found == [(f"p{n}", n, 2**64 - 1 - n) for n in range(3)]
    assert rows(typed, 'select count(*), count(value_error) from "typed.orders"') == [(6, 1)]
    assert rows(typed, 'select value_error from "typed.orders" where value_error is not null') == [
        ("qty: not an int",)
    ]
    assert rows(typed, "select key_bytes from \"typed.orders\" where key = 'k2'") == [(b"k2",)]
    joined = 'select product from t join "typed.orders" o on t."offset" = o.qty and t.partition = 0'
    assert sorted(rows(typed, joined)) == [("p0",), ("p1",), ("p2",), ("p3",)]


ALL_KINDS = (
    "zn bigint NOT NULL, zd decimal(9,2), zx double, zf float, zt tinyint, "
    "zs string DEFAULT 'none', zday date, zat timestamp, zok boolean, tags array<string>, "
    "deep struct<a int>"
)


@pytest.mark.parametrize(
    "statement",
    [
        "select zn, zd, zx, zf, zt, zs, zday, zat, zok from o order by zn",
        "select count(*), sum(zn), max(zat) from o where zok",
        "select zn, tags, deep.a from o where zn > 2 order by zn",
        "select value_error, count(*) from o group by all order by 1",
        "select key, zn from o where zs = 'none' order by zn",
        "select \"offset\", timestamp, zs from o where zday > date '2020-01-02' order by 1",
        "select count(*) from o",
        "select count(value), count(key_bytes), any_value(headers) from o",
    ],
)
def test_columns_of_archived_values_are_read_as_they_lie(
    lake: Lakelog, monkeypatch: pytest.MonkeyPatch, statement: str
) -> None:
    settings = {"local.retention.ms": 0, "retention.ms": -1, "lakelog.value.columns": ALL_KINDS}
    lake.topics.create("o", 1, settings)
    for start in (0, 20):  # the last are in Redis alone
        with lake.producer() as producer:
            for n in range(start, start + 20):
                value = {"zn": n, "zd": n / 4, "zx": n / 3, "zf": n / 2, "zt": n, "zok": n > 9}
                value |= {"zday": f"2020-01-0{1 + n % 9}", "zat": f"2020-01-01T00:00:{n:02}Z"}
                value |= {"zs": f"text {n}"} if n % 3 else {}
                value |= {"tags": [f"{n}", None], "deep": {"a": n}}
                producer.send("o", "none" if n % 7 == 6 else json.dumps(value), key=f"k{n}")
        if not start:
            lake.archive("o")
    parsed: list[int] = []
    parse = sql.columns_of_decoded

    def columns_of_decoded(found: Any, schema: pa.Schema) -> pa.RecordBatch:
        parsed.append(len(found.values))
        return parse(found, schema)

    monkeypatch.setattr(sql, "columns_of_decoded", columns_of_decoded)
    found = rows(lake, statement)
    asks_for_none = statement.startswith(("select count(*) from", "select count(value)"))
    assert sum(parsed) == (0 if asks_for_none else 40 if "tags" in statement else 20)
    monkeypatch.setattr(PathTable, "value_columns", lambda *_: None)
    assert rows(lake, statement) == found


def test_the_columns_that_infer_proposes_can_be_selected_at_once(lake: Lakelog) -> None:
    lake.topics.create("inferred")
    with lake.producer() as producer:
        producer.send("inferred", '{"product": "nut", "id": 18446744073709551615}').result()
    found = infer(lake.log("inferred").sample(10).column("value"))
    lake.topics.alter("inferred", {"lakelog.value.columns": found.ddl})
    assert rows(lake, "select product, id from inferred") == [("nut", 2**64 - 1)]


@pytest.mark.parametrize(
    "statement",
    [
        "show tables",
        "SHOW\tTABLES;",
        "select name from (show all tables)",
        "select table_name from information_schema.tables",
        "select distinct table_name from information_schema.columns",
        "select view_name from duckdb_views() where not internal",
        "select tablename from pg_catalog.pg_tables union select viewname from pg_catalog.pg_views "
        "where viewname in ('t', 'typed.orders')",
    ],
)
def test_what_tables_there_are_is_told_though_no_topic_is_named(
    typed: Lakelog, statement: str
) -> None:
    typed.topics.create("x")
    typed.topics.create("X")  # one name in SQL, so there is no such table
    found = typed.sql(statement).read_all()
    assert sorted(found[0].to_pylist()) == ["t", "typed.orders"]


def test_describe_has_the_typed_columns(typed: Lakelog) -> None:
    found = typed.sql('describe "typed.orders"').read_all().to_pylist()
    types = {row["column_name"]: row["column_type"] for row in found}
    assert [*types][8:] == [
        "product", "qty", "id", "at", "day", "ratio", "tags", "who", "user.name", "value_error",
    ]  # fmt: skip
    assert (types["id"], types["key_bytes"]) == ("DECIMAL(20,0)", "BLOB")


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("statement", "found"),
    [
        ("select count(*) from t", [(30,)]),
        ("create table copy as select key from t; select count(*) from copy", [(30,)]),
        ("create table n as select 1 n; insert into n values (2)", [(1,)]),
        ("pivot (select 'a' as name, 2 as n) on name using sum(n)", [(2,)]),
    ],
)
def test_no_statement_warns(lake: Lakelog, statement: str, found: list[tuple[Any, ...]]) -> None:
    assert rows(lake, statement) == found


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("select * from nothere", "there is no topic nothere; there is t"),
        ("select * from tt", "there is no topic tt; did you mean t"),
        ("select n from t", r"member of a JSON value is value->>'\$\.n'.*topics infer t` proposes"),
        ("select x.n from t x", r"value->>'\$\.n'"),
        ("select value.n from t", r"value->>'\$\.n'"),
        ("select n from t x, typed", "topics infer t` proposes"),
        ('select "a b" from t', r"""value->>'\$\."a b"'"""),
        ("selec", "syntax error"),
        (
            "select when from t",
            'when is a word of SQL: for a column of that name write "when" in quotes, or t.when',
        ),
        (
            "select to, key from t",
            'to is a word of SQL: for a column of that name write "to" in quotes',
        ),
        ("select key from t where group = 1", 'write "group" in quotes'),
        (" ;", "there is no statement"),
        ("select offset from t", 'write "offset" in quotes'),
        ("select value::int from t", "Could not convert"),
    ],
)
def test_what_cannot_be_run_is_said(lake: Lakelog, statement: str, says: str) -> None:
    if "typed" in statement:
        lake.topics.create("typed", 1, {"lakelog.value.columns": "m int"})
    with pytest.raises(InvalidArgumentError, match=f"(?s){says}"):
        lake.sql(statement).read_all()


@pytest.mark.parametrize(
    "statement", ["select count(* from t", "select n from typed", "select b from (select 1 a)"]
)
def test_no_advice_is_given_where_it_does_not_fit(lake: Lakelog, statement: str) -> None:
    lake.topics.create("typed", 1, {"lakelog.value.columns": "m int"})
    with pytest.raises(InvalidArgumentError) as caught:
        lake.sql(statement).read_all()
    assert "word of SQL" not in str(caught.value)
    assert "JSON" not in str(caught.value)


def test_topics_that_are_one_name_in_sql_are_refused(lake: Lakelog) -> None:
    lake.topics.create("T")
    with pytest.raises(InvalidArgumentError, match="T and t are one name"):
        lake.sql("select * from t")


def test_an_error_of_a_tier_comes_out_as_it_was(lake: Lakelog, tmp_path: Path) -> None:
    for file in (tmp_path / "cold").rglob("*.parquet"):
        file.unlink()
    with pytest.raises(ColdTierError, match="is missing"):
        lake.sql("select sum(length(value)) from t").read_all()


def test_files_that_cannot_hold_a_match_are_not_read(lake: Lakelog, tmp_path: Path) -> None:
    for file in (tmp_path / "cold").rglob("*.parquet"):
        file.unlink()
    late = "select value from t where timestamp >= '2013-12-31 23:59:20'"
    assert len(rows(lake, late)) == 10
    assert len(rows(lake, 'select value from t where "offset" > 6')) == 9


# -- what is left out ----------------------------------------------------------------------------

TIMES = [None, *(START + timedelta(seconds=n) for n in range(6))]
CONDITIONS = st.sampled_from(
    [
        "partition = 1", "partition in (0, 2)", '"offset" < 3', '"offset" between 2 and 5',
        f"timestamp >= '{TIMES[3]}'", f"timestamp < '{TIMES[2]}'", f"timestamp = '{TIMES[4]}'",
        "timestamp is null", "timestamp is not null", "key = 'a'", "true",
    ]
)  # fmt: skip


def _condition() -> st.SearchStrategy[str]:
    return st.recursive(
        CONDITIONS,
        lambda inner: st.one_of(
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} or {})".format, inner, inner),
            st.builds("not {}".format, inner),
        ),
        max_leaves=4,
    )


class _Pruned(pa.dataset.Dataset):  # type: ignore[misc, name-defined]
    """A table of which only those parts are given that `may_match` keeps."""

    schema = TABLE

    def __init__(self, table: pa.Table, parts: list[_Part]) -> None:
        self._table, self._parts = table, parts

    def scanner(self, columns: Any = None, filter: Any = None, **_: Any) -> Any:
        kept = may_match(self._parts, filter)
        tables = [self._of(part) for part in kept]
        table = pa.concat_tables([TABLE.empty_table(), *tables])
        return pa.dataset.Scanner.from_batches(
            table.to_batches(), schema=TABLE, columns=columns, filter=filter
        )

    def _of(self, part: _Part) -> pa.Table:
        at = pa.compute.field("partition") == part.partition
        offset = pa.compute.field("offset")
        within = (offset >= part.piece.start) & (offset < part.piece.end)
        return self._table.filter(at & within)


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 2), st.sampled_from(TIMES)), max_size=24),
    st.lists(st.booleans(), min_size=24, max_size=24),
    _condition(),
)
def test_nothing_that_matches_is_left_out(
    records: list[tuple[int, datetime | None]], knows: list[bool], condition: str
) -> None:
    ends = dict.fromkeys(range(3), 0)
    made = []
    for partition, time in records:
        made.append({"partition": partition, "offset": ends[partition], "timestamp": time,
                     "key": "ab"[ends[partition] % 2], "headers": []})  # fmt: skip
        ends[partition] += 1
    table = pa.Table.from_pylist(made, schema=TABLE)
    parts = []
    for partition, end in ends.items():
        for start in range(0, end, 2):
            times = [
                row["timestamp"]
                for row in made
                if row["partition"] == partition and start <= row["offset"] < start + 2
            ]
            in_ms = [-1 if t is None else int(t.timestamp() * 1000) for t in times]
            is_known = knows[len(parts)]
            most = max(in_ms) if is_known else UNKNOWN_TIMESTAMP_MS
            least = min(in_ms) if is_known else -1
            parts.append(
                _Part(partition, Piece(start, min(start + 2, end), len(times), least, most))
            )
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("whole", table)
        connection.register("pruned", _Pruned(table, parts))
        query = f'select partition, "offset" from {{}} where {condition} order by all'
        whole, pruned = (
            connection.execute(query.format(name)).fetchall() for name in ("whole", "pruned")
        )
    assert pruned == whole
