"""Columns that lakelog writes down itself are those that Arrow makes of the same values."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.base.arrow_columns import binaries, bits, no_rows, numbers, repeated, texts

COLUMNS = (
    st.tuples(st.just(texts), st.just(pa.string()), st.lists(st.text(max_size=5)))
    | st.tuples(
        st.just(binaries),
        st.just(pa.binary()),
        st.lists(st.binary(max_size=5) | st.none()) | st.lists(st.binary(max_size=5)),
    )
    | st.tuples(st.just(bits), st.just(pa.bool_()), st.lists(st.booleans(), max_size=20))
    | st.one_of(
        st.tuples(
            st.just(lambda values, kind=kind: numbers(kind, values)),
            st.just(kind),
            st.lists(of),
        )
        for kind, of in [
            (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
            (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
            (pa.timestamp("us", tz="UTC"), st.integers(-(2**63), 2**63 - 1)),
            (pa.float64(), st.floats(allow_nan=False)),
        ]
    )
)


@given(COLUMNS)
def test_a_column_is_the_one_of_arrow(column: Any) -> None:
    make, kind, values = column
    made = make(values)
    made.validate(full=True)
    assert made.equals(pa.array(values, kind))


@given(st.lists(st.text(max_size=3), max_size=3), st.integers(0, 3))
def test_strings_come_in_turn(values: list[str], count: int) -> None:
    assert repeated(values, count).equals(pa.array(values * count, pa.string()))


@pytest.mark.parametrize(
    ("kind", "value"),
    [(pa.int32(), 2**31), (pa.int64(), 2**63), (pa.int64(), 1.0), (pa.int64(), None)],
)
def test_what_does_not_fit_is_refused(kind: pa.DataType, value: Any) -> None:
    with pytest.raises((OverflowError, TypeError)):
        numbers(kind, [value])
    for make in (texts, lambda values: repeated(values, 2)):
        with pytest.raises(ValueError, match="surrogates"):
            make(["\ud800"])
    with pytest.raises(OverflowError):
        repeated(["x" * 2**20], 2**11)


def test_a_table_without_rows_has_its_schema() -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.map_(pa.string(), pa.string()))])
    assert no_rows(schema).equals(schema.empty_table())


def test_an_index_and_metrics_are_made_without_pandas() -> None:
    made = (
        "import sys\n"
        "from lakelog.cold.added_file import AddedFile, index_of\n"
        "from lakelog.cold.segment import file_name\n"
        "from lakelog.cold import contradictions\n"
        "from lakelog.cold.registers import ArchivedEnd\n"
        "from lakelog.base.metrics.metric import Measured\n"
        "from lakelog.base.metrics.of_log import LOG_END, UP\n"
        "from lakelog.operate.metrics.table import metrics_table\n"
        "path = 'partition=0/segment=0/' + file_name('archive', 0, 2, '0' * 32)\n"
        "index = index_of([AddedFile(path, 0, 0, 1, 1, 2, 0, 1)])\n"
        "assert len(index.columns) == 1\n"
        "contradictions.check('t', index, {ArchivedEnd(0): 2})\n"
        "assert index.stand_ins(0) == [] and index.ends == {0: 2}\n"
        "found = [Measured(LOG_END, [(('t', '0'), 1)]), Measured(UP, [((), 1)])]\n"
        "assert len(metrics_table(found)) == 2\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", made], check=True)
