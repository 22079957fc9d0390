"""Found records as lines or columns, to standard output or a file: options, and what they do."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from .output import FILE_FORMS, Lines, Message

if TYPE_CHECKING:
    import pyarrow as pa

    from ..values.record_lines import Lines as LinesOf


def add_output_options(added: argparse.ArgumentParser) -> None:
    added.add_argument(
        "-f",
        "--format",
        metavar="FORMAT",
        help="kcat's: %%t %%p %%o %%T %%k %%s %%h (JSON: --output)",
    )
    added.add_argument(
        "--property",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="kafka-console-consumer's: print.key, key.separator, null.literal, …; repeatable",
    )
    added.add_argument(
        "--raw", action="store_true", help="texts as they are, also what a terminal obeys"
    )
    added.add_argument("-o", "--output-file", metavar="FILE", help="default: standard output")


def check_output(arguments: argparse.Namespace) -> None:
    """Raises:
    InvalidArgumentError: options that do not go together.
    """
    from ..errors import InvalidArgumentError

    form = (arguments.format or "").lower()
    if form in ("text", "json", *FILE_FORMS):
        raise InvalidArgumentError(
            f"-f {arguments.format} would print that word for each record: for the form give "
            f"--output {form}; -f takes a format such as '%k=%s\\n'"
        )
    if arguments.format is not None and arguments.output != "text":
        raise InvalidArgumentError("-f is a form of text; leave out --output")
    if arguments.property and (arguments.format is not None or arguments.output != "text"):
        raise InvalidArgumentError("--property is of text without -f")
    if arguments.format is None and not arguments.property:
        form_by_name(arguments)
    check_columns_output(arguments)


def form_by_name(arguments: argparse.Namespace) -> None:
    """A file's name says its form, where no option does."""
    if arguments.output == "text" and arguments.output_file is not None:
        ending = Path(arguments.output_file).suffix.lower().removeprefix(".")
        form = {"jsonl": "json", "ndjson": "json"}.get(ending, ending)
        if form in ("json", *FILE_FORMS):
            arguments.output = form


def check_columns_output(arguments: argparse.Namespace) -> None:
    """Raises:
    InvalidArgumentError: the form wants a file.
    """
    from ..errors import InvalidArgumentError

    if arguments.output_file is not None:
        return
    if arguments.output == "parquet":
        raise InvalidArgumentError("Parquet goes into a file: give -o FILE")
    if arguments.output == "arrow" and sys.stdout.isatty():
        raise InvalidArgumentError("Arrow's bytes are not for a terminal: give -o FILE, or a pipe")


def written(
    found: Iterable[tuple[str, pa.Table]], arguments: argparse.Namespace
) -> Iterator[Lines | Message]:
    """Found records in the form that was asked for; of a file, what is in it.

    Args:
        found: topics, and `FOUND` tables of them.
    """
    if arguments.output in ("parquet", "arrow"):
        from ..read.found import FOUND

        yield from columns_written((table for _, table in found), FOUND, arguments)
    else:
        yield from lines_written(_lines(found, arguments), arguments)


def lines_written(
    lines: Iterable[tuple[str, int]], arguments: argparse.Namespace, of: str = "record"
) -> Iterator[Lines | Message]:
    """Texts, each of so many records, to where they are to go.

    A file and a program get UTF-8, and bytes that are none as they were sent. People get the
    encoding of their terminal.
    """
    if arguments.output_file is None:
        for_people = _is_for_people(arguments)
        for text, _ in lines:
            yield Lines(text if for_people else _as_sent(text))
        return
    records = 0
    with Path(arguments.output_file).open("wb") as file:
        for text, rows in lines:
            file.write(_as_sent(text))
            records += rows
    yield _said(records, arguments, of)


def _is_for_people(arguments: argparse.Namespace) -> bool:
    if getattr(arguments, "raw", False):
        return False
    is_own_form = getattr(arguments, "format", None) is not None or arguments.output != "text"
    return not is_own_form or sys.stdout.isatty()


def _as_sent(text: str) -> bytes:
    """See `record_lines`: bytes that are not UTF-8 are half surrogate pairs in a text."""
    return text.encode(errors="surrogateescape")


def columns_written(
    tables: Iterable[pa.Table | pa.RecordBatch],
    schema: pa.Schema,
    arguments: argparse.Namespace,
    of: str = "record",
) -> Iterator[Message]:
    """Tables as a Parquet file, or as Arrow's stream."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = arguments.output_file or sys.stdout.buffer
    records = 0
    if arguments.output == "parquet":
        writer: Any = pq.ParquetWriter(sink, schema, compression="zstd")
    else:
        writer = pa.ipc.new_stream(sink, schema)
    with writer:
        for table in tables:
            writer.write(table)
            records += table.num_rows
    if arguments.output_file is not None:
        yield _said(records, arguments, of)


def _lines(
    found: Iterable[tuple[str, pa.Table]], arguments: argparse.Namespace
) -> Iterator[tuple[str, int]]:
    from ..values import record_lines

    lines_of: LinesOf
    if arguments.format is not None:
        lines_of = record_lines.format_lines(arguments.format, raw=arguments.raw)
    elif arguments.output == "json":
        lines_of = record_lines.json_lines
    elif arguments.output == "csv":
        # A terminal obeys what CSV passes on; a file or another program gets the bytes.
        is_shown = arguments.output_file is None and sys.stdout.isatty() and not arguments.raw
        lines_of = record_lines.printable_csv_lines if is_shown else record_lines.csv_lines
        yield record_lines.CSV_HEADING, 0
    else:
        properties = record_lines.read_properties(arguments.property)
        lines_of = record_lines.text_lines(properties, raw=arguments.raw)
    for topic, table in found:
        yield lines_of(topic, table), table.num_rows


def _said(records: int, arguments: argparse.Namespace, of: str) -> Message:
    return Message(
        f"{counted(records, of)} written to {arguments.output_file}",
        {f"{of}s": records, "file": arguments.output_file},
    )
