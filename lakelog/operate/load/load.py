"""One file's rows into one topic, each once.

A load has an id. Its rows are appended as those of a task of Spark are (`spark.sink_append`): which
call a row is in, and with which number, depends on the file alone. So a load that was broken off,
and is begun again by its id, appends what is not there yet and nothing else, in whatever step it
was when its process, Redis or the machine ended.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta, timezone
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa

from ...base import compute as pc
from ...codec.enforced_columns import wrong_values
from ...codec.json_rows import json_objects
from ...errors import InvalidArgumentError, RepeatDiffersError
from ...hot import Acks, HotLog
from ...ingest.given_records import as_columns
from ...ingest.rows import RowFields, records_of_rows
from ...spark.sink import append_rows
from ...spark.sink_append import BACK_OFF, TaskAppend, TaskIdentity
from ...spark.sink_rows import TaskRows
from ...values.config import INT64_MAX
from ...values.record import NO_TIMESTAMP_MS, TimestampType
from ...values.topic import Topic
from ...values.topic_partition import TopicPartition
from ...values.typed_time import clock_text
from .files import LINE, FileForm, Reject, Rows, rows_of

logger = logging.getLogger(__name__)


class Loaded(msgspec.Struct, frozen=True):
    """What became of a file."""

    topic: str
    load_id: str
    rows: int  # that are in the topic, by this load
    rejected: int  # that could not be read


def new_load_id(topic: str, now_ms: int) -> str:
    """An id that no other load has, and that tells when it was begun and into which topic."""
    begun = f"{now_ms // 1000:x}-{secrets.token_hex(4)}"
    return begun + _check_digits(begun, topic)


def _check_digits(begun: str, topic: str) -> str:
    return f"{crc32(f'{begun}/{topic}'.encode()) & 0xFFFF:04x}"


def _began_ms(load_id: str) -> int:
    return int(load_id.partition("-")[0], 16) * 1000


def check_load_id(load_id: str, topic: Topic, now_ms: int) -> None:
    """Refuses the id of a load that Redis may have forgotten.

    Raises:
        InvalidArgumentError: it is none of this topic's, or too old.
    """
    begun, check = load_id[:-4], load_id[-4:]
    if "-" not in begun or _check_digits(begun, topic.name) != check:
        raise InvalidArgumentError(
            f"{load_id!r} is no id of a load into topic {topic.name!r}, as the load said it. "
            "Without an id, all rows of the file are appended once more"
        )
    age_ms, known_ms = now_ms - _began_ms(load_id), topic.config["producer.id.expiration.ms"]
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
    form: FileForm,
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
        rejects: takes the lines that cannot be read, and rows that cannot be appended; None: one
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
        reject = rejected if rejects else None
        pieces = _pieces(path, form, fields, reject, on_rows)
        first = list(islice(pieces, 1))
        values = [piece.records["value"] for piece in first]
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
            _warn_of_unfitting(path, first[0].records["value"], topic)
        try:
            rows_of_task = TaskRows(hot.topics().get, topic, 0)
            began_ms = _began_ms(load_id)
            fitting = _fitting(path, chain(first, pieces), topic, began_ms, reject)
            append_rows(append, rows_of_task, fitting)
            rows = append.finish()
        except RepeatDiffersError as error:
            raise RepeatDiffersError(
                f"load {load_id} appended other rows to {topic.name!r} before than {path.name} has "
                "now: the file, the options, or the topic's partitions or settings changed since. "
                "Nothing that differs was appended. Bring them back, or load what is not there as "
                "a new load",
                topic_partition=error.topic_partition,
                sequence=error.sequence,
            ) from error
    return Loaded(topic.name, load_id, rows, rejected.count)


class _Piece(NamedTuple):
    """Some records, and how the row of each is named."""

    records: pa.RecordBatch
    unit: str
    numbers: Sequence[int]

    def without(self, gone: Collection[int]) -> _Piece:
        """But for the records of these indices."""
        kept = [n for n in range(self.records.num_rows) if n not in gone]
        records = self.records.take(pa.array(kept, pa.int64()))
        return _Piece(records, self.unit, [self.numbers[n] for n in kept])


def _pieces(
    path: Path,
    form: FileForm,
    fields: RowFields,
    reject: Reject | None,
    on_rows: Callable[[int], object],
) -> Iterator[_Piece]:
    if form.format == "jsonl" and fields.value is None:
        fields = msgspec.structs.replace(fields, value=LINE)
    if fields.time_format is not None and fields.timestamp is not None:
        form = msgspec.structs.replace(form, texts=form.texts | {fields.timestamp})
    for rows in rows_of(path, form, reject):
        if isinstance(rows.rows, pa.Table):
            with _named(path.name):  # what is wrong with all rows
                records_of_rows(rows.rows.slice(0, 0), fields)
        yield from _records(path, rows, fields, reject)
        on_rows(len(rows.rows))


def _records(path: Path, rows: Rows, fields: RowFields, reject: Reject | None) -> Iterator[_Piece]:
    """The records of rows; looks for those that are none by halves, since there are few."""
    try:
        table = records_of_rows(rows.rows, fields)
        records, partitions = as_columns(table, NO_TIMESTAMP_MS)
        if fields.timestamp is not None and fields.time_format is None:
            _check_unit(records["timestamp_ms"], fields.timestamp)
    except InvalidArgumentError as error:
        count = len(rows.rows)
        if count == 1:
            why = error.message.removeprefix("row 0: ")
            if reject is None:
                where = f"{path.name}, {rows.unit} {rows.numbers[0]:,}"
                raise InvalidArgumentError(f"{where}: {why}", name=error.name) from error
            reject(rows.unit, rows.numbers[0], _as_json(rows.rows), why)
            return
        for half in (slice(0, count // 2), slice(count // 2, count)):
            yield from _records(
                path, Rows(rows.rows[half], rows.unit, rows.numbers[half]), fields, reject
            )
        return
    records = records.rename_columns(["timestamp", *records.column_names[1:]])
    if partitions is not None:
        records = records.append_column("partition", partitions)
    for batch in records.combine_chunks().to_batches():
        yield _Piece(batch, rows.unit, rows.numbers)


def _check_unit(times_ms: pa.ChunkedArray, name: str) -> None:
    """Refuses what looks like seconds: as milliseconds it is of early 1970."""
    ten_digits = pc.and_(pc.greater_equal(times_ms, 10**9), pc.less(times_ms, 10**10))
    found = times_ms.filter(ten_digits)
    if len(found):
        raise InvalidArgumentError(
            f"field {name!r}: {found[0]} as epoch milliseconds is of 1970; say which it is by "
            "time_format (--time-format), 's' for seconds or 'ms'"
        )


def _as_json(row: pa.Table | list[Any]) -> bytes:
    made: bytes = row[0][LINE] if isinstance(row, list) else json_objects(row)[0].as_py().encode()
    return made


def _warn_of_unfitting(path: Path, values: pa.Array, topic: Topic) -> None:
    """Of values that the topic takes, and has none of its columns of."""
    config = topic.config
    if not config.value_columns or config.enforces_columns:
        return
    wrong = wrong_values(values, config)
    if wrong:
        logger.warning(
            "%d of the first %d rows of %s are not what the columns of topic %r say, so these are "
            "null for them: %s. See value_error; for CSV, --null names what stands for no value",
            len(wrong),
            len(values),
            path.name,
            topic.name,
            wrong[0].message.partition(" say: ")[2],
        )


@contextmanager
def _named(name: str) -> Iterator[None]:
    try:
        yield
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{name}: {error.message}", name=error.name) from error


def _fitting(
    path: Path, pieces: Iterable[_Piece], topic: Topic, now_ms: int, reject: Reject | None
) -> Iterator[pa.RecordBatch]:
    """The rows that the topic takes."""
    for piece in pieces:
        wrong = _wrong(piece.records, topic, now_ms)
        for index, why in sorted(wrong.items()):
            number, value = piece.numbers[index], piece.records["value"][index].as_py()
            if reject is None:
                raise InvalidArgumentError(f"{path.name}, {piece.unit} {number:,}: {why}")
            reject(piece.unit, number, value or b"", why)
        yield (piece.without(wrong) if wrong else piece).records


def _wrong(records: pa.RecordBatch, topic: Topic, now_ms: int) -> dict[int, str]:
    """Why the topic does not take some of the records, by index.

    Args:
        now_ms: when the load began, so that one that is resumed sees the same. What Redis' clock
            finds too late or too early then all the same ends the load.
    """
    config, names = topic.config, records.schema.names
    wrong: dict[int, str] = {}

    def note(found: pa.Array, why: Callable[[int], str]) -> None:
        for index in pc.indices_nonzero(found).to_pylist():
            wrong.setdefault(index, why(index))

    if "partition" in names:
        partitions, last = records["partition"], topic.partitions - 1
        beyond = pc.or_(pc.less(partitions, 0), pc.greater(partitions, last))
        note(beyond, lambda n: f"partition {partitions[n]} is none of the topic's: 0 to {last}")
    if config.compacted:
        note(records["key"].is_null(), lambda n: "it has no key, which a compacted topic needs")
    if config["message.timestamp.type"] is TimestampType.CREATE_TIME:
        times_ms = records["timestamp"]
        given = pc.not_equal(times_ms, NO_TIMESTAMP_MS)
        for word, earlier, later in (("before", times_ms, now_ms), ("after", now_ms, times_ms)):
            setting = f"message.timestamp.{word}.max.ms"
            limit_ms = config[setting]
            if limit_ms < INT64_MAX:
                is_far = pc.greater(pc.subtract(later, earlier), limit_ms)
                why = (
                    f"its time is further {word} that of the load than {setting}={limit_ms} allows"
                )
                note(pc.and_(given, is_far), partial(_too_far, times_ms, why))
    if config.enforces_columns:
        for error in wrong_values(records["value"], config):
            wrong.setdefault(error.index, error.message)
    return wrong


def _too_far(times_ms: pa.Array, why: str, index: int) -> str:
    return f"{clock_text(times_ms[index].as_py(), timezone.utc)}: {why}"


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

    def __call__(self, unit: str, number: int, data: bytes, why: str) -> None:
        assert self._path is not None
        if self._file is None:
            self._file = self._stack.enter_context(self._path.open("wb"))
        text = data.decode(errors="replace")
        told: dict[str, Any] = {unit: number, "why": why, "text": text}
        if text.encode() != data:
            told["text_base64"] = data  # which the encoder writes so
        self._file.write(msgspec.json.encode(told) + b"\n")
        self.count += 1
