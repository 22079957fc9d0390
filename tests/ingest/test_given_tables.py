"""Tables of other libraries are records as Arrow's own are, or are refused as a whole."""

import sys
from datetime import datetime, timezone
from types import ModuleType

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lakelog.errors import InvalidArgumentError
from lakelog.ingest.given_records import as_columns, as_table

NOW_MS = 1_700_000_000_000
NAN = float("nan")
TABLE = pa.table({"key": ["k", None, "k"], "value": [b"a", b"", None]})


class Interchange:
    """What an older library's frame is: nothing but the interchange protocol."""

    def __init__(self, frame):
        self._frame = frame

    def __dataframe__(self, *args, **kwargs):
        return self._frame.__dataframe__(*args, **kwargs)


def keys_and_values(records):
    table, _ = as_columns(records, NOW_MS)
    return list(zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True))


def relation(table):
    return duckdb.connect().from_arrow(table)


@pytest.mark.parametrize(
    "made_of",
    [
        lambda table: table,
        lambda table: table.to_batches()[0],
        lambda table: table.to_reader(),
        lambda table: table.to_struct_array(),
        lambda table: table.to_struct_array().combine_chunks(),
        pl.from_arrow,
        relation,
        lambda table: table.to_pandas(),
        lambda table: table.to_pandas(types_mapper=pd.ArrowDtype),
        lambda table: table.to_pandas().set_index("key"),
        lambda table: table.to_pandas().set_index(pd.Index([5, 6, 7])),
        lambda table: Interchange(table.set_column(1, "value", pa.array(["a", "", None]))),
    ],
    ids=lambda made_of: getattr(made_of, "__name__", None),
)
def test_a_table_of_any_library_is_its_rows(made_of):
    assert keys_and_values(made_of(TABLE)) == [(b"k", b"a"), (None, b""), (b"k", None)]


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["a", None]),
        pa.chunked_array([["a"], [None]]),
        pl.Series(["a", None]),
        pd.Series(["a", NAN]),
        pd.Series(["a", NAN], dtype=object),
        pd.Series([b"a", None]),
        pd.Series(["a", None], dtype="string"),
        pd.Series(["a", None], dtype="category"),
        pl.Series(["a", None], dtype=pl.Categorical),
        pl.Series(["a", None], dtype=pl.Enum(["b", "a"])),
        pa.chunked_array(
            [
                pa.DictionaryArray.from_arrays(pa.array([1]), pa.array(["b", "a"])),
                pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([None, "a"])),
            ]
        ),
    ],
)
def test_a_column_without_a_name_is_one_of_values(values):
    assert keys_and_values(values) == [(None, b"a"), (None, None)]


def test_headers_of_polars_are_taken():
    rows = [{"value": "a", "headers": [{"key": "h" * 20, "value": b"x" * 20}]}, {"value": "b"}]
    frame = pl.DataFrame(
        rows,
        {"value": pl.String, "headers": pl.List(pl.Struct({"key": pl.String, "value": pl.Binary}))},
    )
    table, _ = as_columns(frame, NOW_MS)
    assert table["headers"].to_pylist() == [[{"key": "h" * 20, "value": b"x" * 20}], []]


@pytest.mark.parametrize("missing", [None, NAN, pd.NA])
def test_what_pandas_calls_missing_is_null(missing):
    frame = pd.DataFrame(
        {
            "value": pd.Series(["a", missing], dtype=object),
            "key": ["k", missing],
            "timestamp": [pd.Timestamp(5, unit="ms", tz="UTC"), pd.NaT],
            "partition": [2, None],  # to pandas, doubles
            "headers": pd.Series([[("h", "1")], missing], dtype=object),
        }
    )
    table, partitions = as_columns(frame, NOW_MS)
    assert table.to_pylist() == [
        {
            "timestamp_ms": 5,
            "key": b"k",
            "value": b"a",
            "headers": [{"key": "h", "value": b"1"}],
        },
        {"timestamp_ms": NOW_MS, "key": None, "value": None, "headers": []},
    ]
    assert partitions.to_pylist() == [2, None]


def test_headers_that_pandas_read_from_a_table_keep_their_names():
    headers = [[{"key": "h", "value": b"1"}, {"key": "g", "value": None}], []]
    table = pa.table({"value": ["a", "b"], "headers": headers})
    found, _ = as_columns(table.to_pandas(), NOW_MS)
    assert found["headers"].to_pylist() == headers


def test_rows_that_were_read_as_python_keep_the_names_of_headers():
    headers = [{"key": "h", "value": b"1"}, {"key": "g", "value": None}]
    found, _ = as_columns([{"value": b"a", "headers": headers}], NOW_MS)
    assert found["headers"].to_pylist() == [headers]


@pytest.mark.parametrize(
    ("frame", "sentence"),
    [
        (pd.DataFrame({"a": [1], "b": [2]}), "has the column value"),
        (pd.DataFrame({"value": [1.5, NAN]}), "column value is of type double"),
        (pd.DataFrame({"value": pd.Series(["a", 1.5], dtype=object)}), "cannot read the records"),
        (pd.DataFrame({"value": pd.Series(["\ud800"], dtype=object)}), "cannot read the records"),
        (pd.DataFrame([["a", "b"]], columns=["value", "value"]), "[Dd]uplicate"),
        (pd.DataFrame({"value": ["a"], "partition": [0.5]}), "column partition takes whole"),
        (pd.DataFrame({"value": ["a"], "timestamp": [datetime(2020, 1, 1)]}), "with a zone"),  # noqa: DTZ001
        (pd.DataFrame({"value": ["a"]}, index=pd.Index(["x"], name="id")), "not value, id"),
        (pd.DataFrame({"value": ["a"], "headers": [5]}), "column headers takes lists"),
        (pd.Series([1, 2]), "column value is of type int64"),
        (pl.DataFrame({"vlaue": ["a"]}), "has the column value"),
        (pl.Series([1.5]), "column value is of type double"),
        (pa.array([{"value": "a"}, None]), "null as a whole"),
        (pa.table([["a"], ["b"]], names=["value", "value"]), "each once, not value, value"),
        (pa.table([["a"], ["b"], ["c"]], names=["value", "key", "key"]), "each once"),
    ],
)
def test_what_is_no_table_of_records_is_refused(frame, sentence):
    with pytest.raises(InvalidArgumentError, match=sentence):
        as_columns(frame, NOW_MS)


def test_arrays_of_numpy_are_sequences_of_values():
    assert keys_and_values(np.array([b"a", b"b"])) == [(None, b"a"), (None, b"b")]


def test_a_time_with_a_zone_is_taken_from_every_library():
    moment = datetime(2020, 1, 1, tzinfo=timezone.utc)
    for frame in (
        pd.DataFrame({"value": ["a"], "timestamp": [moment]}),
        pl.DataFrame({"value": ["a"], "timestamp": [moment]}),
    ):
        table, _ = as_columns(frame, NOW_MS)
        assert table["timestamp_ms"].to_pylist() == [int(moment.timestamp() * 1000)]


def test_a_repeated_hour_is_two_hours_in_every_library():
    moments = [datetime(2024, 10, 27, hour, 30, tzinfo=timezone.utc) for hour in (0, 1)]
    times = pd.Series(moments).dt.tz_convert("Europe/Berlin")
    in_polars = pl.Series(moments).dt.convert_time_zone("Europe/Berlin")
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'Europe/Berlin'")
        in_duckdb = connection.sql(
            "select 'a' as value, to_timestamp(epoch) as timestamp from unnest("
            f"[{', '.join(str(int(moment.timestamp())) for moment in moments)}]) as _(epoch)"
        )
        for frame in (
            pd.DataFrame({"value": ["a", "a"], "timestamp": times}),
            pd.DataFrame({"value": ["a", "a"], "timestamp": times.dt.as_unit("ns")}),
            pd.DataFrame({"value": ["a", "a"], "timestamp": times.astype(object)}),
            pd.DataFrame({"value": ["a", "a"], "timestamp": times.astype("category")}),
            pl.DataFrame({"value": ["a", "a"], "timestamp": in_polars}),
            pl.DataFrame({"value": ["a", "a"], "timestamp": in_polars.dt.cast_time_unit("ns")}),
            in_duckdb,
        ):
            table, _ = as_columns(frame, NOW_MS)
            assert table["timestamp_ms"].to_pylist() == [
                int(moment.timestamp() * 1000) for moment in moments
            ]


def test_a_list_is_taken_while_another_thread_imports_pandas(monkeypatch):
    """pyarrow does by itself; for a moment the module is there, and its classes are not."""
    monkeypatch.setitem(sys.modules, "pandas", ModuleType("pandas"))
    assert as_table([{"value": b"x"}]) is None
