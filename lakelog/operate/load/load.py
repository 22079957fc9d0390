"""One file's rows into one topic, each once.

A load has an id. Its rows are appended as those of a task of Spark are (`spark.sink_append`): which
call a row is in, and with which number, depends on the file alone. So a load that was broken off,
and is begun again by its id, appends what is not there yet and nothing else, in whatever step it
was when its process, Redis or the machine ended.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow as pa

from ...codec.enforced_columns import wrong_values
from ...errors import InvalidArgumentError, RepeatDiffersError
from ...hot import Acks, HotLog
from ...ingest.rows import RowFields, records_of_rows
from ...spark.sink import append_rows
from ...spark.sink_append import BACK_OFF, TaskAppend, TaskIdentity
from ...spark.sink_rows import TaskRows
from ...values.topic import Topic
from ...values.topic_partition import TopicPartition
from .files import LINE, Reject, rows_of


class Loaded(msgspec.Struct, frozen=True):
    """What became of a file."""

    topic: str
    load_id: str
    rows: int  # that are in the topic, by this load
    rejected: int  # that could not be read


def new_load_id(now_ms: int) -> str:
    """An id that no other load has, and that tells when it was begun."""
    return f"{now_ms // 1000:x}-{secrets.token_hex(4)}"


def check_load_id(load_id: str, topic: Topic, now_ms: int) -> None:
    """Refuses the id of a load that Redis may have forgotten.

    Raises:
        InvalidArgumentError: it is none, or too old.
    """
    began, _, rest = load_id.partition("-")
    try:
        began_ms = int(began, 16) * 1000
    except ValueError:
        rest = ""
    if not rest:
        raise InvalidArgumentError(f"{load_id!r} is no id of a load, as the load said it")
    age_ms, known_ms = now_ms - began_ms, topic.config["producer.id.expiration.ms"]
    if age_ms >= known_ms:
        raise InvalidArgumentError(
            f"load {load_id} was begun {timedelta(milliseconds=age_ms)} ago, and Redis may have "
            f"forgotten after producer.id.expiration.ms={known_ms} what it appended. Look at the "
            f"end of topic {topic.name!r}, and load the rows that are not there"
        )


def load(
    hot: HotLog,
    recover: Callable[[Topic, TopicPartition, int], None],
    find_topic: Callable[[pa.ChunkedArray], Topic],
    path: Path,
    format_: str,
    fields: RowFields,
    load_id: str,
    *,
    acks: str = "memory",
    timeout_s: float = 120.0,
    rejects: Path | None = None,
    is_resumed: bool = False,
    on_begin: Callable[[str], object] = lambda load_id: None,
    on_rows: Callable[[int], object] = lambda rows: None,
) -> Loaded:
    """Appends a file's rows unless this load did so before.

    Args:
        recover: makes a partition writable whose server may have lost its tail, see
            `TopicLog.recover`; given the highest log end that was told.
        find_topic: the topic, perhaps made for values like the file's first ones, its argument.
        timeout_s: how long it goes on trying while nothing can be appended.
        rejects: takes the lines that cannot be read, and rows that the topic refuses; None: one
            ends the load. It must not be there yet, unless `is_resumed`.
        on_begin: told the load's id, before the first rows are handed over.
        on_rows: told how many rows are read and handed over.

    Raises:
        InvalidArgumentError: the file or a row cannot be read; says where. What was handed over
            before is, or may be, in the topic: the same load goes on behind it.
        RepeatDiffersError: the load appended other rows than those of the file.
        LakelogError: as of `Producer.send`.
    """
    if rejects is not None and path.exists() and rejects.exists() and rejects.samefile(path):
        raise InvalidArgumentError(f"{rejects} is the file that is loaded: name another file")
    with ExitStack() as stack:
        rejected = _Rejected(rejects, stack, is_resumed=is_resumed)
        batches = _batches(path, format_, fields, rejected if rejects else None, on_rows)
        first = list(islice(batches, 1))
        values = [batch["value"].cast(pa.binary()) for batch in first]
        topic = find_topic(pa.chunked_array(values, pa.binary()))
        append = TaskAppend(
            hot,
            TaskIdentity(f"load/{load_id}/{topic.topic_id}", 0),
            Acks.parse(acks),
            recover=recover,
            repair=hot.topics().repair,
            back_off=BACK_OFF.within(timeout_s),
        )
        if first:
            on_begin(load_id)
        try:
            rows_of_task = TaskRows(hot.topics().get, topic, 0)
            fitting = _fitting(path, chain(first, batches), topic, rejected if rejects else None)
            append_rows(append, rows_of_task, fitting)
            rows = append.finish()
        except RepeatDiffersError as error:
            raise RepeatDiffersError(
                f"load {load_id} appended other rows to {topic.name!r} before than {path.name} has "
                "now: the file, the options or the topic's partitions changed since. Nothing that "
                "differs was appended. Bring them back, or load what is not there as a new load",
                topic_partition=error.topic_partition,
                sequence=error.sequence,
            ) from error
    return Loaded(topic.name, load_id, rows, rejected.count)


def _batches(
    path: Path,
    format_: str,
    fields: RowFields,
    rejected: Reject | None,
    on_rows: Callable[[int], object],
) -> Iterator[pa.RecordBatch]:
    if format_ == "jsonl" and fields.value is None:
        fields = msgspec.structs.replace(fields, value=LINE)
    first = 0
    for rows in rows_of(path, format_, rejected):
        try:
            records = records_of_rows(rows, fields, first)
        except InvalidArgumentError as error:
            raise InvalidArgumentError(f"{path.name}: {error.message}") from error
        first += len(rows)
        yield from records.combine_chunks().to_batches()
        on_rows(len(rows))


def _fitting(
    path: Path, batches: Iterable[pa.RecordBatch], topic: Topic, rejected: Reject | None
) -> Iterator[pa.RecordBatch]:
    """The rows that the topic takes; one that enforces its columns does not take all."""
    before = 0
    for batch in batches:
        errors = []
        if topic.config.enforces_columns:
            errors = wrong_values(batch["value"].cast(pa.binary()), topic.config)
        for error in errors:
            row, value = before + error.index + 1, batch["value"][error.index].as_py()
            if rejected is None:
                raise InvalidArgumentError(f"{path.name}, row {row:,}: {error.message}")
            text = value if isinstance(value, str) else value.decode(errors="backslashreplace")
            rejected(row, text, error.message)
        before += batch.num_rows
        if errors:
            gone = {error.index for error in errors}
            batch = batch.filter(pa.array([n not in gone for n in range(batch.num_rows)]))
        yield batch


class _Rejected:
    """Keeps the lines that could not be read, each behind its number and why, as JSON."""

    def __init__(self, path: Path | None, stack: ExitStack, *, is_resumed: bool) -> None:
        if path is not None and path.exists() and not is_resumed:
            raise InvalidArgumentError(
                f"{path} is there already, and would be written over by the lines that cannot be "
                "read: name another file for them, or remove it",
                path=str(path),
            )
        self.count = 0
        self._path = path
        self._stack = stack
        self._file: IO[bytes] | None = None

    def __call__(self, line: int, text: str, why: str) -> None:
        assert self._path is not None
        if self._file is None:
            self._file = self._stack.enter_context(self._path.open("wb"))
        told: dict[str, Any] = {"line": line, "why": why, "text": text}
        self._file.write(msgspec.json.encode(told) + b"\n")
        self.count += 1
