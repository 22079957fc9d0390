"""The one place that prints results: text for people, JSON for scripts.

A command returns values of the API. Here is told, once, how a value becomes a row of a table and an
object of JSON (`row`), which columns are times, and what is printed of each kind of result.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from ..base.json_text import readable_json
from ..base.text_table import printable, text_table


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings. As JSON: a list of objects with all values as they are."""

    rows: Iterable[Mapping[str, Any]]
    columns: Sequence[str] | None = None  # what text shows, in order; default: the first row's keys
    empty: str = "nothing"  # printed when there are no rows
    title: str | None = None  # printed above rows
    is_ours: bool = True  # columns and values are lakelog's; else somebody's data, shown as it is


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence, or what else text shows; as JSON, its values."""

    text: str | Table
    values: Any = None  # an object, or rows; None: the text
    is_aside: bool = False  # text goes to standard error


@dataclass(frozen=True, slots=True)
class Lines:
    """Lines with their ends, printed as they are: in the form that was asked for already.

    Text is for people, in the encoding of their terminal; bytes are for programs, whatever it is.
    """

    text: str | bytes


#: Forms besides text and JSON, of commands that say so.
FILE_FORMS = ("csv", "parquet", "arrow")


@dataclass(frozen=True, slots=True)
class Page:
    """Several parts one after the other. As JSON: one object with a member for each part.

    A part that has nothing to say as text, such as ``Table([], empty="")``, is of JSON alone.
    """

    parts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Markdown:
    """Markdown text: laid out on a terminal, as it is written elsewhere and as JSON."""

    source: str
    for_terminal: str  # the same, without what a terminal cannot follow


Result = Table | Message | Page | Markdown | Iterator[Any] | None


class Failed(Exception):
    """The command did its work, or some of it, and the answer is no: printed like any result.

    Args:
        result: what is known all the same.
        reason: for stderr, if the result's lines have no place for it.
        code: what the process exits with; 130: it was interrupted.
    """

    def __init__(self, result: Result, reason: str | None = None, code: int = 1) -> None:
        super().__init__(reason or "failed")
        self.result = result
        self.reason = reason
        self.code = code


# -- values ----------------------------------------------------------------------------------------


def row(value: Any, fields: str = "", /, **more: Any) -> dict[str, Any]:
    """The fields of a value, as columns of a table and as members of JSON.

    Args:
        value: a `msgspec.Struct` or what else has attributes.
        fields: those that are shown, with blanks between them; ``end=offsets.log_end`` is a field
            of a field under a name of its own, None where there is none. Default: all fields.
        more: members besides, or instead.
    """
    found: dict[str, Any] = {}
    for field in fields.split() or value.__struct_fields__:
        name, _, path = field.partition("=")
        member = value
        for step in (path or name).split("."):
            member = None if member is None else getattr(member, step)
        if name == "topic_partition":
            found |= {"topic": member.topic, "partition": member.partition}
        else:
            found[name] = member.value if isinstance(member, Enum) else member
    return found | more


#: Columns that are times; others that end so are durations, such as ``lag_ms``.
_TIME = re.compile(r"((?:.*_)?(?:timestamp|created|deleted|until|at))_ms")


def _as_text(table: Table, rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(table.columns or rows[0])
    if table.is_ours:
        times = {name: match[1] for name in columns if (match := _TIME.fullmatch(name))}
        if times:
            rows = [
                {**one, **{shown: _time_text(one, name) for name, shown in times.items()}}
                for one in rows
            ]
            columns = [times.get(name, name) for name in columns]
    wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return text_table(rows, columns, is_ours=table.is_ours, cells_wide=wide)


def _time_text(one: Mapping[str, Any], name: str) -> str | None:
    """Times of records to the millisecond, as they are looked for."""
    return utc_text(one[name], "milliseconds" if name.endswith("timestamp_ms") else "seconds")


def utc_text(time_ms: int | None, timespec: str = "seconds") -> str | None:
    """A time as ISO text in UTC; None for none, and as ``@`` and its milliseconds after 9999.

    Args:
        time_ms: milliseconds since the epoch; None and negative ones are no time.
    """
    from datetime import timezone

    from ..values.typed_time import clock_text

    if time_ms is None or time_ms < 0:
        return None
    return clock_text(time_ms, timezone.utc, timespec).replace(" ", "T")


def describe(error: BaseException) -> str:
    """An error in a line or two; an unexpected one says how to see more."""
    from ..errors import LakelogError

    if isinstance(error, LakelogError):
        return _lines(error.message)
    if isinstance(error, OSError):
        return _lines(str(error))
    return (
        f"{type(error).__name__}: {_lines(str(error))} (this is unexpected; --verbose shows where)"
    )


def said_of_each(errors: Mapping[str, BaseException]) -> str:
    """What went wrong with each, a line for one."""
    return "\n".join(f"{name}: {describe(error)}" for name, error in errors.items())


def _lines(text: str) -> str:
    """Text of lakelog's own, with its lines and tabs."""
    parts = re.split("([\n\t])", text)
    return "".join(part if part in ("\n", "\t") else printable(part) for part in parts)


# -- printing --------------------------------------------------------------------------------------


def show(result: Result, form: str) -> None:
    """Prints a result to stdout; an iterator item by item, as JSON one value or row a line."""
    if result is None:
        return
    if isinstance(result, Iterator):
        for part in result:
            if isinstance(part, Lines):
                _write(part.text)
            elif form != "json":
                _show_text(part)
            else:
                plain = _plain(part)
                for one in plain if isinstance(plain, Iterator | list) else [plain]:
                    print(json_text(one), flush=True)
    elif form == "json":
        print(json_text(_plain(result), indent=2))
    else:
        _show_text(result)


def json_text(value: Any, indent: int | None = None) -> str:
    r"""JSON as people read it, ``ж``; as ``\u0436`` where stdout could not take that."""
    text = readable_json(value, indent)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, default=str)
    return text


def _write(text: str | bytes) -> None:
    sys.stdout.flush()
    if isinstance(text, str):
        sys.stdout.write(text)
    elif (stream := getattr(sys.stdout, "buffer", None)) is not None:
        stream.write(text)
    else:  # a notebook's output has no bytes
        sys.stdout.write(text.decode(errors="backslashreplace"))
    sys.stdout.flush()


def _plain(result: Any) -> Any:
    if isinstance(result, Table):
        return list(result.rows)
    if isinstance(result, Message):
        return {"message": result.text} if result.values is None else result.values
    if isinstance(result, Markdown):
        return {"markdown": result.source}
    if isinstance(result, Page):
        return {name: _plain(part) for name, part in result.parts.items()}
    return result


def _show_text(result: Any) -> None:
    if isinstance(result, Page):
        is_first = True
        for part in result.parts.values():
            if isinstance(part, Message) and part.is_aside:
                _show_text(part)
            elif text := _text(part):
                print(text if is_first else f"\n{text}", flush=True)
                is_first = False
    elif isinstance(result, Markdown) and sys.stdout.isatty():
        _lay_out(result.for_terminal)
    elif not isinstance(result, Message) or not result.is_aside:
        print(_text(result), flush=True)
    elif text := _text(result):
        print(text, file=sys.stderr, flush=True)


def _text(result: Any) -> str:
    if result is None:
        return ""
    if isinstance(result, Message) and isinstance(result.text, str):
        return _lines(result.text)
    if isinstance(result, Message):
        return _text(result.text)
    if isinstance(result, Markdown):
        return result.source
    if not isinstance(result, Table):
        return _lines(str(result))
    rows = list(result.rows)
    if not rows:
        return result.empty
    title = f"{printable(result.title)}\n" if result.title else ""
    return title + _as_text(result, rows)


def _lay_out(markdown: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown as Layout
    from rich.theme import Theme

    # No background of its own: rich's is black, even on a light terminal.
    theme = Theme({"markdown.code": "bold cyan"})
    layout = Layout(markdown, code_theme="ansi_dark", hyperlinks=False)
    Console(highlight=False, theme=theme).print(layout)
