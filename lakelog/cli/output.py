"""The one place that prints: text for people, JSON for scripts, progress and errors on stderr."""

from __future__ import annotations

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from ..base.json_text import readable_json
from ..base.text_table import printable, text_table


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under headings. As JSON: a list of objects with all values as they are."""

    rows: Sequence[Mapping[str, Any]]
    columns: Sequence[str] | None = None  # what text shows, in order; default: the first row's keys
    empty: str = "nothing"  # printed when there are no rows
    title: str | None = None
    spaced: bool = True  # headings with spaces for underscores


@dataclass(frozen=True, slots=True)
class Message:
    """A sentence; as JSON, its values."""

    text: str
    values: Mapping[str, Any] = field(default_factory=dict)


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
    """Several parts one after the other. As JSON: one object with a member for each part."""

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


def show(result: Result, form: str) -> None:
    """Prints a result to stdout; an iterator item by item, as JSON one value a line."""
    if result is None:
        return
    if isinstance(result, Iterator):
        for part in result:
            if isinstance(part, Lines):
                _write(part.text)
            elif form == "json":
                print(json_text(_plain(part)), flush=True)
            else:
                _show_text(part)
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


def _lines(text: str) -> str:
    """Text of lakelog's own, with its lines and tabs."""
    parts = re.split("([\n\t])", text)
    return "".join(part if part in ("\n", "\t") else printable(part) for part in parts)


def _plain(result: Any) -> Any:
    if isinstance(result, Table):
        return list(result.rows)
    if isinstance(result, Message):
        return dict(result.values) or {"message": result.text}
    if isinstance(result, Markdown):
        return {"markdown": result.source}
    if isinstance(result, Page):
        return {name: _plain(part) for name, part in result.parts.items()}
    return result


def _show_text(result: Any) -> None:
    if isinstance(result, Page):
        for index, part in enumerate(result.parts.values()):
            if index:
                print()
            _show_text(part)
    elif isinstance(result, Message):
        print(_lines(result.text), flush=True)
    elif isinstance(result, Markdown):
        if sys.stdout.isatty():
            _lay_out(result.for_terminal)
        else:
            print(result.source, flush=True)
    elif isinstance(result, Table):
        if result.title:
            print(printable(result.title))
        if not result.rows:
            print(result.empty)
            return
        wide = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        text = text_table(result.rows, result.columns, spaced=result.spaced, cells_wide=wide)
        print(text, flush=True)
    else:
        print(_lines(str(result)), flush=True)


def _lay_out(markdown: str) -> None:
    from rich.console import Console
    from rich.markdown import Markdown as Layout
    from rich.theme import Theme

    # No background of its own: rich's is black, even on a light terminal.
    theme = Theme({"markdown.code": "bold cyan"})
    layout = Layout(markdown, code_theme="ansi_dark", hyperlinks=False)
    Console(highlight=False, theme=theme).print(layout)


# -- progress ------------------------------------------------------------------------------------


class ConsoleProgress:
    """Progress on stderr: bars on a terminal, otherwise a line when a step is done."""

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[_Step]:
        started_s = time.monotonic()
        if not sys.stderr.isatty():
            step = _Step()
            yield step
            print(_done(name, total, time.monotonic() - started_s), file=sys.stderr, flush=True)
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        columns = [
            TextColumn("{task.description:<22}"),
            BarColumn(),
            TextColumn("{task.fields[count]:>18}"),
            TimeElapsedColumn(),
        ]
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            task = progress.add_task(name, total=total or None, count="")

            def advance(done: int) -> None:
                progress.update(
                    task, completed=done, count=f"{done:,}" + (f" / {total:,}" if total else "")
                )

            yield _Step(advance)
        print(_done(name, total, time.monotonic() - started_s), file=sys.stderr, flush=True)


class BytesProgress:
    """How many bytes are done of how many: a bar on a terminal, otherwise nothing."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> BytesProgress:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

            columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("", total=None)
            self._bar.start()
        return self

    def __exit__(self, *about: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def show(self, done_bytes: int, total_bytes: int) -> None:
        """So many are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=done_bytes, total=total_bytes)


class _Step:
    def __init__(self, show_done: Any = None) -> None:
        self._done = 0
        self._show = show_done

    def advance(self, count: int) -> None:
        self._done += count
        if self._show is not None:
            self._show(self._done)


def _done(name: str, total: int | None, seconds: float) -> str:
    rate = f"{total:>10,} records {total / max(seconds, 1e-9):>12,.0f}/s" if total else ""
    return f"  ✓ {name:<22}{seconds:>8.1f} s  {rate}".rstrip()


def utc_text(time_ms: int | None, timespec: str = "seconds") -> str | None:
    """A time as ISO text in UTC; None for none, and as ``@`` and its milliseconds after 9999.

    Args:
        time_ms: milliseconds since the epoch; None and negative ones are no time.
    """
    from datetime import datetime, timedelta, timezone

    if time_ms is None or time_ms < 0:
        return None
    try:
        time = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"@{time_ms}"
    return time.isoformat(timespec=timespec).replace("+00:00", "Z")
