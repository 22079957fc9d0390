"""Writing frames and streams to topics: the columns and the rules of Spark's Kafka sink.

| column    | type                                     | if it is missing or null                  |
|-----------|------------------------------------------|-------------------------------------------|
| value     | string or binary                         | must be there; null: a tombstone          |
| key       | string or binary                         | no key                                    |
| headers   | array<struct<key:string,value:binary>>   | none                                      |
| topic     | string                                   | the option ``topic``, which comes first   |
| partition | int                                      | by the key as Kafka does, else by turns   |
| timestamp | timestamp (Kafka's sink has none)        | the executor's time                       |

Other columns are left alone, so a frame that was read from a topic can be written as it is.

**Once.** Task retries, speculative copies of a task, repeated stages and restarts of a query from
its checkpoint append a row once: `sink_append` has how. It holds for rows that come again in the
same order and in the same Spark partitions. If their order changes, the repeat fails rather than
lose or double rows in silence. It also holds no longer than ``producer.id.expiration.ms`` after a
micro-batch was left half written. A batch write that failed and is called again is a new one, and
its rows are appended again, unless ``txnAppId`` and ``txnVersion`` say which it is.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timezone
from functools import partial
from itertools import islice
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from ..base.back_off import BackOff, patiently
from ..codec.encryption.of_topic import check_tasks_have_key
from ..engines.spark import spare_imports
from ..errors import InvalidArgumentError, LakelogError, RecoveryNeededError
from ..read.topic_log import TopicLog
from ..values.topic import Topic
from ..values.topic_partition import TopicPartition
from .kafka_columns import source_schema
from .options import WriteOptions
from .sink_append import BACK_OFF, TaskAppend, TaskIdentity
from .sink_rows import TaskRows

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter

    StreamWriter: type = DataSourceStreamArrowWriter
except ImportError:  # Spark 4.0 hands a stream's rows over one by one
    StreamWriter = DataSourceStreamWriter

logger = logging.getLogger(__name__)

QUERY_ID = "sql.streaming.queryId"
BATCH_ID = "streaming.sql.batchId"

_READ = source_schema(pa.schema([]), headers=True)

#: What is written, and the types it may have: those that are read, and text for bytes.
COLUMNS = {
    name: ("string", "binary")
    if _READ.field(name).type == pa.binary()
    else (from_arrow_type(_READ.field(name).type).simpleString(),)
    for name in ("value", "key", "headers", "topic", "partition", "timestamp")
}

_ARROW = {from_arrow_type(kind).simpleString(): kind for kind in (pa.string(), *_READ.types)}
_ROWS_AT_ONCE = 10_000  # spark.sql.execution.arrow.maxRecordsPerBatch


@dataclass(frozen=True)
class Appended(WriterCommitMessage):  # type: ignore[misc]  # pyspark is not typed for mypy here
    """What a task reports: how many rows of it are in the log."""

    rows: int


class _Writer:
    """What both writers do on an executor.

    Runs on: driver, but for `write`.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        check_columns(schema, options.topic)
        self._options = options
        # Looked up where the write is planned, so that a missing topic fails there, and so that all
        # tasks mean the same creation of it.
        self._topic = None if options.topic is None else self._find_topic(options.topic)
        if self._topic is not None and self._topic.config.encrypts:
            check_tasks_have_key(self._topic)
        # A task that recovers a partition looks at the cold tier, perhaps where nobody is logged
        # in. A stream's writer is made once, so what it was given may have expired by then.
        self._credentials = options.place.to_hand_on(self._topics())

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Appended:
        """Appends the rows of one task.

        Runs on: executor.
        """
        spare_imports()
        context = TaskContext.get()
        assert context is not None
        identity = self._identity(context)
        first_partition = identity.spark_partition + identity.epoch
        if not self._options.idempotent:
            identity = TaskIdentity(f"{identity.work}/{uuid.uuid4()}", identity.spark_partition)
        find_topic = partial(self._find_topic, back_off=BACK_OFF)
        rows = TaskRows(find_topic, self._topic, first_partition)
        append = TaskAppend(
            self._options.place.open_hot(),
            identity,
            self._options.acks,
            recover=self._recover,
            repair=self._repair,
        )
        batches = self._batches(iterator)
        if not self._options.include_headers:
            batches = map(_without_headers, batches)
        append_rows(append, rows, batches)
        return Appended(append.finish())

    def _identity(self, context: TaskContext) -> TaskIdentity:
        raise NotImplementedError

    def _batches(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        return iterator

    def _topics(self) -> Iterator[Topic]:
        """Those that rows may be of, if their cold tier can be recovered from in a task."""
        cold = self._options.place.cold
        if self._topic is not None:
            yield self._topic
        elif cold is not None and cold.opens_in_tasks:
            yield from self._options.place.open_hot().topics().list()

    def _find_topic(self, name: str, back_off: BackOff | None = None) -> Topic:
        topics = self._options.place.open_hot().topics
        return patiently(f"looking up topic {name!r}", lambda: topics().get(name), back_off)

    def _recover(self, topic: Topic, topic_partition: TopicPartition, at_least: int) -> None:
        place = self._options.place
        topic = place.open_hot().topics().renewed(topic)  # it may have got a cold tier since
        if not place.opens_in_tasks(topic):
            raise RecoveryNeededError(
                f"the server of {topic_partition} may have lost its tail, and only a look at the "
                "cold tier says where it can go on. Run `lakelog archive`, or set the option "
                "'cold' to the topic's cold root if that is a path",
                topic_partition=topic_partition,
            )
        place.take(self._credentials)
        log = TopicLog(topic, place.open_hot(), place.task_table(topic))
        log.recover(topic_partition.partition, at_least, waits=False)  # the task comes back

    def _repair(self, topic: Topic) -> None:
        self._options.place.open_hot().topics().repair(topic)


class LakelogWriter(_Writer, DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a frame."""

    def __init__(self, options: WriteOptions, schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise InvalidArgumentError(
                "save mode overwrite is not allowed: a topic is appended to. Use mode('append'); "
                "`lakelog delete-records` removes what came before"
            )
        super().__init__(options, schema)
        self._run = uuid.uuid4()

    def _identity(self, context: TaskContext) -> TaskIdentity:
        app_id, version = self._options.txn_app_id, self._options.txn_version
        if app_id is None or version is None:
            return TaskIdentity(f"write {self._run}", context.partitionId())
        return TaskIdentity(f"txn {app_id}", context.partitionId(), version)

    def commit(self, messages: Sequence[Appended | None]) -> None:
        """Says how much was written; the rows are in the log already."""
        rows = sum(message.rows for message in messages if message is not None)
        logger.info("write %s: %d rows", self._run, rows)

    def abort(self, messages: Sequence[Appended | None]) -> None:
        """Says that some of the rows may stay: a log takes nothing back."""
        rows = sum(message.rows for message in messages if message is not None)
        logger.warning("write %s failed; %d rows of finished tasks are in the log", self._run, rows)


class LakelogStreamWriter(_Writer, StreamWriter):  # type: ignore[misc]
    """Writes a stream's micro-batches.

    In complete mode each micro-batch appends the whole result, as with Kafka's sink. Spark refuses
    the update mode for sources in Python; `foreachBatch` has it.
    """

    def __init__(self, options: WriteOptions, schema: StructType) -> None:
        if options.txn_app_id is not None:
            raise InvalidArgumentError(
                "txnAppId and txnVersion are of a batch, such as one in foreachBatch; a stream's "
                "micro-batches are told apart by their query and number"
            )
        super().__init__(options, schema)
        self._schema = schema

    def _identity(self, context: TaskContext) -> TaskIdentity:
        query, batch = context.getLocalProperty(QUERY_ID), context.getLocalProperty(BATCH_ID)
        if query is None or batch is None:
            raise LakelogError(
                f"Spark does not tell this task its query ({QUERY_ID}={query}) and micro-batch "
                f"({BATCH_ID}={batch}), so a repeat of it could not be told; write with "
                "idempotent=false, or report this with the version of Spark"
            )
        return TaskIdentity(query, context.partitionId(), int(batch))

    def _batches(self, iterator: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        if StreamWriter is DataSourceStreamWriter:
            return rows_as_batches(iterator, self._schema)
        return iterator

    def commit(self, messages: Sequence[Appended | None], batchId: int) -> None:
        """Says how much was written; the rows are in the log already."""
        rows = sum(message.rows for message in messages if message is not None)
        logger.info("micro-batch %d: %d rows", batchId, rows)

    def abort(self, messages: Sequence[Appended | None], batchId: int) -> None:
        """Says that some of the rows may stay; the micro-batch's next run appends the others."""
        logger.warning("micro-batch %d failed; some of its rows may be in the log", batchId)


def check_columns(schema: StructType, topic: str | None) -> None:
    """Refuse what Kafka's sink refuses.

    Raises:
        InvalidArgumentError: a column is missing, there twice, or of a type that it cannot have.
    """
    twice = [name for name in COLUMNS if schema.names.count(name) > 1]
    if twice:
        raise InvalidArgumentError(
            f"the frame has {schema.names.count(twice[0])} columns {twice[0]!r}: select one of them"
        )
    kinds = {field.name: field.dataType.simpleString() for field in schema}
    if "value" not in kinds:
        raise InvalidArgumentError(
            f"Required attribute 'value' not found: the frame has {', '.join(kinds) or 'nothing'}"
        )
    if topic is None and "topic" not in kinds:
        raise InvalidArgumentError(
            "topic option required when no 'topic' attribute is present. Use the topic option for "
            "setting a topic"
        )
    for name, legal in COLUMNS.items():
        kind = kinds.get(name, legal[0])
        if kind.partition(" collate ")[0] not in legal:
            raise InvalidArgumentError(
                f"{name} attribute unsupported type {kind}: it must be a(n) {' or '.join(legal)}; "
                "cast it"
            )


def append_rows(append: TaskAppend, rows: TaskRows, batches: Iterable[pa.RecordBatch]) -> None:
    """Appends a task's rows, encoding the next ones while those before are being sent."""
    with ThreadPoolExecutor(1, thread_name_prefix="lakelog-sink") as sender:
        under_way: Future[None] | None = None
        for piece in rows.calls(batches):
            calls = append.number(piece)
            if under_way is not None:
                under_way.result()
            under_way = sender.submit(append.send, calls)
        if under_way is not None:
            under_way.result()


def rows_as_batches(rows: Iterator[Any], schema: StructType) -> Iterator[pa.RecordBatch]:
    """Spark's rows as Arrow batches."""
    wanted = [number for number, name in enumerate(schema.names) if name in COLUMNS]
    arrow = pa.schema(
        (schema.names[number], _ARROW[schema[number].dataType.simpleString().split()[0]])
        for number in wanted
    )
    while some := list(islice(rows, _ROWS_AT_ONCE)):
        columns = [
            pa.array([_plain(row[number]) for row in some], field.type)
            for number, field in zip(wanted, arrow, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=arrow)


def _plain(value: Any) -> Any:
    """A value of Spark's as Arrow takes it: times with their zone, headers as mappings."""
    if hasattr(value, "astimezone"):
        return value.astimezone(timezone.utc)
    if isinstance(value, list):
        return [None if item is None else item.asDict() for item in value]
    return value


def _without_headers(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.select([name for name in batch.schema.names if name != "headers"])
