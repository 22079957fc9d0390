"""A topic of lakelog, in a Redis and a cold folder."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from lakelog import Lakelog
from lakelog.base.clock import ManualClock
from lakelog.codec import ProducedBatch, encode
from lakelog.errors import LakelogError
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch, to_records
from lakelog.values.topic_partition import TopicPartition

from .answers import Answer, error_answer, record_answer
from .workload import Append, Compact, DeleteRecords, Move, Retain, Row, Step, Workload

NO_TIMESTAMP = -1


class LakelogLog:
    """See `answers.Log`. Its clock stands at the workload's begin."""

    def __init__(self, redis_url: str, cold: Path, workload: Workload, begin_ms: int) -> None:
        self._begin_ms = begin_ms
        self._tiered = workload.tiered
        self._open = lambda: Lakelog.connect(
            redis_url, str(cold), engine="inline", clock=ManualClock(begin_ms)
        )
        self._lake = self._open()
        self._name = f"differential-{workload.seed}-{uuid4().hex[:8]}"
        settings = {
            **workload.settings,
            "retention.ms": "-1",
            "min.cleanable.dirty.ratio": "0.0",
            **of_tiers(workload),
        }
        self._topic = self._lake.topics.create(self._name, 1, settings)
        self._tp = TopicPartition(self._name, 0)
        self._producer_ids = iter(range(1, 1 << 30))

    def take(self, step: Step) -> Answer:
        try:
            return self._take(step)
        except LakelogError as error:
            return error_answer(type(error).__name__)

    def settle(self, step: Step) -> None:
        if isinstance(step, Retain):
            self._alter({"retention.ms": "-1"})

    def ask(self, question: str) -> Answer:
        what, _, number = question.partition(" ")
        log = self._lake.log(self._name)
        if what in ("earliest", "latest"):
            return log.seek(0, what)
        if what == "max-timestamp":
            offset = log.seek(0, what)
            return None if offset is None else [offset, self._age_at(offset)]
        if what == "time":
            found = log.offset_for_timestamp(0, self._begin_ms - int(number))
            return None if found is None else [found.offset, self._age_ms(found.timestamp_ms)]
        if what == "from":
            return self._first(int(number))
        return self._records()

    def close(self) -> None:
        self._lake.topics.delete(self._name)
        self._lake.close()

    def _take(self, step: Step) -> Answer:
        if isinstance(step, Append):
            return self._append(step.rows)
        if isinstance(step, DeleteRecords):
            return self._lake.log(self._name).raise_log_start(0, step.before_offset)
        if isinstance(step, Retain):
            self._alter({"retention.ms": str(step.retention_ms)})
        if isinstance(step, Move) and step.how == "reopen":
            self._lake.close()
            self._lake = self._open()
        keep(self._lake, self._name, self._tiered, step)
        return None

    def _append(self, rows: tuple[Row, ...]) -> int:
        number = next(self._producer_ids)
        batch = produced_batch(
            [
                (
                    NO_TIMESTAMP if row.age_ms is None else self._begin_ms - row.age_ms,
                    row.key,
                    row.value,
                    row.headers,
                )
                for row in rows
            ]
        )
        # Segments roll between entries as Kafka's do between batches: one entry a batch.
        one_row = len(rows) == 1 and number % 2
        layout = EntryFormat.FIELDS if one_row else EntryFormat.ARROW
        codec = (Compression.NONE, Compression.LZ4, Compression.ZSTD)[number % 3]
        entries = tuple(encode(batch, layout, codec))
        call = ProducedBatch(entries, number, 0, 0, len(rows) - 1)
        return self._lake.hot.append(self._tp, self._topic.topic_id, call).base_offset

    def _alter(self, settings: dict[str, str]) -> None:
        self._topic = self._lake.topics.alter(self._name, settings)

    def _age_ms(self, timestamp_ms: int) -> int | None:
        return None if timestamp_ms < 0 else self._begin_ms - timestamp_ms

    def _age_at(self, offset: int) -> int | None:
        batch = self._lake.log(self._name).fetch(0, offset, max_bytes=1).records
        (record,) = list(to_records(self._tp, batch))[:1]
        return self._age_ms(record.timestamp_ms)

    def _first(self, offset: int) -> Answer:
        log = self._lake.log(self._name)
        try:
            for batch in log.read(0, offset):
                if batch.num_rows:
                    return batch.column("offset")[0].as_py()
        except LakelogError as error:
            return error_answer(type(error).__name__)
        return None

    def _records(self) -> Answer:
        return [
            record_answer(
                record.offset,
                self._age_ms(record.timestamp_ms),
                record.key,
                record.value,
                record.headers,
            )
            for batch in self._lake.log(self._name).read(0)
            for record in to_records(self._tp, batch)
        ]


def of_tiers(workload: Workload) -> dict[str, str]:
    """Settings that no broker has."""
    if not workload.tiered:
        return {"remote.storage.enable": "false"}
    # Redis keeps superseded records that are hot: compaction is seen once they are not.
    leaves_soon = "compact" in workload.kind or workload.seed % 2
    return {
        "remote.storage.enable": "true",
        **({"local.retention.ms": "0"} if leaves_soon else {}),
    }


def keep(lake: Lakelog, name: str, tiered: bool, step: Step) -> None:
    """What a broker's own threads would do at a step, or what only lakelog does."""
    match step:
        case Retain() if not tiered:
            lake.hot.retain(TopicPartition(name, 0))
        case Retain() | Compact():
            lake.archive(name)  # what only Redis has is never deleted
            lake.cleanup(name, steps=("retain" if isinstance(step, Retain) else "compact",))
        case Move("archive"):
            lake.archive(name)
        case Move("archive some"):
            offsets = lake.log(name).offsets()[0]
            lake.archive(name, (offsets.archived_end + offsets.log_end) // 2)
        case Move("optimize"):
            lake.cleanup(name, steps=("optimize",))
