"""Text tables: what people read, and scripts from a pipe."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.cells import cell_len

from lakelog.base.text_table import printable, shown, text_table

#: One cell wide each, so that columns can be told by position.
plain = st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), max_size=12)
values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()


def test_a_table_is_headings_a_rule_and_rows() -> None:
    rows = [
        {"topic": "orders", "log_end": 1200, "ratio": 0.5, "tiered": True},
        {"topic": "[bold]clicks[/]", "log_end": None, "ratio": 12345.6, "tiered": False},
    ]
    assert text_table(rows).split("\n") == [
        "topic            log end   ratio  tiered",
        "───────────────  ───────  ──────  ──────",
        "orders             1,200    0.50     yes",
        "[bold]clicks[/]        –  12,346      no",
    ]


def test_data_of_others_is_shown_as_it_is() -> None:
    row = {"dep_time": 2013, "price": 1234.56, "share": 0.1234567, "large": 1e22, "late": True}
    assert text_table([row, {"dep_time": None}], is_ours=False).split("\n") == [
        "dep_time    price      share  large  late",
        "────────  ───────  ─────────  ─────  ────",
        "    2013  1234.56  0.1234567  1e+22  true",
        "       –        –          –      –     –",
    ]


def test_columns_are_chosen_and_numbers_that_are_text_end_at_one_line() -> None:
    rows = [{"size": "9 B", "other": 1, "key": "a"}, {"size": "1.0 KiB"}]
    assert text_table(rows, ("key", "size"), right={"size"}).split("\n") == [
        "key     size",
        "───  ───────",
        "a        9 B",
        "–    1.0 KiB",
    ]


def test_no_rows_are_headings() -> None:
    assert text_table([], ["topic"]) == "topic\n─────"
    assert text_table([]) == ""


@example([("", "")], 1)
@example([("", "x"), ("", ""), ("", "")], 300)
@given(st.lists(st.tuples(plain, plain), min_size=1, max_size=5), st.integers(1, 200))
def test_each_row_is_a_line_with_every_cell_whole_at_its_place(pairs, times) -> None:
    rows = [{"one": one, "other": other} for one, other in pairs] * times
    heading, rule, *lines = text_table(rows).split("\n")
    assert len(lines) == len(rows)
    second = len(rule.split("  ")[0]) + 2
    assert heading.index("other") == second
    for line, row in zip(lines, rows, strict=True):
        assert (line[:second].rstrip(), line[second:]) == (row["one"], row["other"])


@given(st.lists(st.lists(values, min_size=3, max_size=3), min_size=1, max_size=5))
def test_whatever_the_values_columns_stand_below_each_other(rows: list[list[Any]]) -> None:
    table = text_table([dict(zip("abc", row, strict=True)) | {"end": "|"} for row in rows])
    heading, *lines = table.split("\n")
    assert len(lines) == len(rows) + 1
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202e]", table)
    wide = cell_len(heading.removesuffix("end"))
    assert all(cell_len(line.removesuffix("|")) == wide for line in lines[1:])


#: Letters of every width that a terminal knows: none, one and two cells, joined, coloured, turned.
letters = [
    *"aé日本ｱ☎ \u00a0\u3000\t\n\x1b[]─–\u202e",
    "e\u0301",
    "❤\ufe0f",
    "👍🏽",
    "👩\u200d👧",
    "🇩🇪",
]
scripts = st.lists(st.sampled_from(letters), max_size=8).map("".join)
#: Without those that would join what stands beside them in another column.
single = st.text(st.characters(exclude_categories=["Cf", "Cs"]), max_size=8)
cells = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | scripts | single


@pytest.mark.parametrize("variable", ["FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"])
def test_no_setting_of_a_terminal_colours_or_folds_it(variable: str) -> None:
    program = (
        "from lakelog.base.text_table import text_table; print(text_table([{'a b': 'x' * 300}]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, variable: "1", "COLUMNS": "20", "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert done.stdout.split("\n") == ["a b", "─" * 300, "x" * 300, ""]


@given(st.text())
def test_nothing_shown_is_obeyed_by_a_terminal(text: str) -> None:
    assert not re.search("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]", shown(text))
    assert printable(printable(text)) == printable(text)


def test_columns_that_do_not_fit_a_terminal_follow_below_whole():
    row = {"topic": "orders", "partition": 0, "state": "ok", "log_end": 12_345_678, "lag_ms": None}
    whole = text_table([row])
    assert text_table([row], cells_wide=len(whole.splitlines()[0])) == whole
    narrow = text_table([row], cells_wide=32)
    assert narrow.split("\n\n") == [
        text_table([row], ["topic", "partition", "state"]),
        text_table([row], ["topic", "partition", "log_end"]),
        text_table([row], ["topic", "partition", "lag_ms"]),
    ]
    assert max(map(len, narrow.splitlines())) <= 32
    assert text_table([{"n": 1}], cells_wide=1) == text_table([{"n": 1}])
