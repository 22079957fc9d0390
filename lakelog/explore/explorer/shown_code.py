"""The rows shown as code in other words: Python, Spark, a command, a link."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from datetime import timezone

from ...errors import InvalidArgumentError
from ...read.where import is_all, write
from ...values.offsets import AtOffset, Earliest, Latest
from ...values.typed_time import clock_text
from ..link import RECORDS, Link
from .member_columns import PREFIX
from .view import Shown, View

#: What the rows shown can be copied as.
PYTHON, FRAME, SQL, CLI, LINK = "Python", "Spark DataFrame", "Spark SQL", "command line", "link"
CODES = (PYTHON, FRAME, SQL, CLI, LINK)

#: So much of a call is shown on a page, and kept in a notebook.
SHOWN_CHARACTERS = 4_000


def code(shown: Shown, form: str = PYTHON, members: Sequence[tuple[str, str]] = ()) -> str:
    """The call that gives the rows shown, or for `LINK` that shows them.

    Args:
        members: of the values, by name and Spark's type, that Spark gives as columns, too.

    Raises:
        InvalidArgumentError: another form.
    """
    view = shown.view
    if form == PYTHON:
        return f"lake.log({view.topic!r}).{view.expression.removeprefix('log.')}"
    if form == FRAME:
        return _frame(shown, members)
    if form == SQL:
        return _sql(shown, members)
    if form == CLI:
        return _command(view)
    if form == LINK:
        return _link(shown)
    raise InvalidArgumentError(f"{form!r} is none of {', '.join(CODES)}", value=form)


def shortened(text: str) -> str:
    """A call as it is shown: cut if it holds a very long text; it says where all of it is."""
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return f"{text[:SHOWN_CHARACTERS]} … ({len(text):,} characters; explorer.code() has them all)"


def _selected(members: Sequence[tuple[str, str]]) -> list[str]:
    """All columns, and the members of their types, but for names that a quoted path cannot have."""
    value = "try_parse_json(CAST(value AS STRING))"
    return [
        "*",
        *(
            f"try_variant_get({value}, '$[\"{name}\"]', '{kind}') AS `{PREFIX}{name}`"
            for name, kind in members
            if name.isprintable() and not re.search(r"[\"'`\\]", name + kind)
        ),
    ]


def _spark_rows(shown: Shown) -> list[str]:
    """That a row of the ranges is one of those shown, in Spark's words; nothing if all are."""
    if is_all(shown.view.match):
        return []
    offsets: dict[int, list[int]] = {}
    for partition, offset in shown.places:
        offsets.setdefault(partition, []).append(offset)
    each = (
        f"(partition = {partition} AND offset IN ({', '.join(map(str, own))}))"
        for partition, own in offsets.items()
    )
    return [f"({' OR '.join(each)})" if offsets else "false"]


def _frame(shown: Shown, members: Sequence[tuple[str, str]]) -> str:
    view = shown.view
    starts = {number: start for number, (start, _) in view.spans.items()}
    ends = {number: end for number, (_, end) in view.spans.items()}
    frame = f"lake.dataframe({view.topic!r}, {starts}, {ends})"
    frame += "".join(f".where({condition!r})" for condition in _spark_rows(shown))
    selected = _selected(members)
    return f"{frame}.selectExpr({', '.join(map(repr, selected))})" if selected[1:] else frame


def _sql(shown: Shown, members: Sequence[tuple[str, str]]) -> str:
    view = shown.view
    name = "".join(one if one.isalnum() else "_" for one in view.topic)
    spans = " OR ".join(
        f"(partition = {number} AND offset >= {start} AND offset < {end})"
        for number, (start, end) in view.spans.items()
    )
    parts = [f"({spans})" if spans else "false", *_spark_rows(shown)]
    return (
        f"SELECT {', '.join(_selected(members))} FROM {name} WHERE {' AND '.join(parts)}"
        f"  -- after lake.dataframe({view.topic!r}).createOrReplaceTempView({name!r})"
    )


def _command(view: View) -> str:
    words = ["lakelog", "consume", view.topic]
    where = "" if is_all(view.match) else write(view.match)
    if view.partition is not None:
        start, end = view.spans[view.partition]
        words += ["-p", str(view.partition), "--from", str(start), "--to", str(end)]
    else:
        words.append("--merge")
        spans = " or ".join(
            f"partition = {number} and offset >= {start} and offset < {end}"
            for number, (start, end) in view.spans.items()
        )
        where = " and ".join(f"({part})" for part in (where, spans) if part)
    if where:
        words += ["--where", where]
    return shlex.join(words)


def _link(shown: Shown) -> str:
    view = shown.view
    arguments = [repr(view.topic)]
    if view.partition is not None:
        arguments += [str(view.partition), f"at={view.start_offset}"]
    elif shown.records.num_rows:
        arguments.append(f"at={_time_text(shown.records['timestamp'][0].value // 1000)!r}")
    elif isinstance(shown.ask.where, AtOffset):
        arguments.append(f"at={shown.ask.where.offset}")
    if not is_all(view.match):
        arguments.append(f"where={write(view.match)!r}")
    return f"lake.explore({', '.join(arguments)})"


def link_of(shown: Shown, opened: tuple[int, int] | None) -> Link:
    """Where the rows shown are on a page of the explorer's own.

    Args:
        opened: partition and offset of the record that is open.
    """
    view = shown.view
    where = "" if is_all(view.match) else write(view.match)
    if opened is not None:
        return Link(RECORDS, view.topic, *opened, where=where)
    at = ""
    if isinstance(shown.ask.where, Latest):
        at = "latest"
    elif view.partition is not None:
        at = str(view.start_offset) if view.start_offset else ""
    elif shown.records.num_rows and not isinstance(shown.ask.where, Earliest):
        at = _time_text(shown.records["timestamp"][0].value // 1000)
    return Link(RECORDS, view.topic, view.partition, at=at, where=where)


def _time_text(time_ms: int) -> str:
    """A time as `read_time` reads it; what is before 1970 comes first in any case."""
    if time_ms < 0:
        return "earliest"
    return clock_text(time_ms, timezone.utc).replace(" ", "T")
