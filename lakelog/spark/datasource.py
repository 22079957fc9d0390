"""``format("lakelog")``: topics as a Python data source of Spark, in batches and as a stream.

What Spark calls where: `LakelogDataSource` and the planning of a batch in short-lived Python
processes beside the driver; `LakelogStreamReader` in one that lives as long as the stream, but for
`read`; `read` on executors, from a copy of the reader that knows nothing of the driver's. All that
a task needs is therefore in its `InputTask`, credentials that the planner was given too: Spark
pickles it each time that it plans, and shows nothing of it.

Filters are never pushed down (``pushFilters``). Spark 4.1 and 4.2 keep the plan of a read with the
relation, not with the scan: after ``frame.where(…)`` the whole frame has the filtered rows, and of
a union of two filters both sides have the last one's. And where filters are not handed over, which
is the default, they refuse a reader that would take them.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar
from uuid import UUID

import pyarrow as pa
from msgspec.structs import replace
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from ..base.back_off import ASK_AGAIN, patiently
from ..base.clock import Clock, SystemClock
from ..codec.encryption.of_topic import check_tasks_have_key
from ..codec.value_columns import value_schema
from ..engines.shared_tasks import SHARED_RANGES
from ..engines.spark import spare_imports
from ..errors import (
    InvalidArgumentError,
    OffsetOutOfRangeError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from ..read.lag import count_records
from ..read.stretches import Stretch
from ..read.tiers import Look, Tiers, out_of_range
from ..values.offsets import AtOffset, AtTimestamp, Latest, LogOffsets, Position
from ..values.topic import Topic
from ..values.topic_partition import OffsetRange, TopicPartition
from .group_progress import GroupProgress
from .kafka_columns import source_schema
from .offsets_json import ASSUMED_BYTES, Offsets, StreamOffset
from .options import OF_TRIGGERS, ReadOptions, check, parse, parse_write
from .range_rows import Looked, looked_at, not_covered, range_rows, spark_rows, together
from .ranges import (
    SHARED_RANGES_OF_STREAM,
    SizedRange,
    advance,
    resolve,
    share,
    shared,
    size_of,
    sized_range,
    split,
)
from .sink import LakelogStreamWriter, LakelogWriter
from .trigger_limits import Delay

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxRows,
        ReadMinRows,
        SupportsTriggerAvailableNow,
    )

    HAS_READ_LIMITS = True
except ImportError:  # Spark 4.0 and 4.1: each micro-batch takes all there is
    ReadAllAvailable = ReadMaxBytes = ReadMaxRows = ReadMinRows = None
    SupportsTriggerAvailableNow = object
    HAS_READ_LIMITS = False

logger = logging.getLogger(__name__)

T = TypeVar("T")

NAME = "lakelog"

_LOOKING = "looking where the log ends"


class LakelogDataSource(DataSource):  # type: ignore[misc]  # pyspark is not typed for mypy here
    """The data source; see `options` for what it takes."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """The columns, with headers if ``includeHeaders``, then those of ``valueColumns``.

        Whether a batch or a stream is read is not known here, so what is wrong with one of them is
        refused by its reader.
        """
        check(self.options)
        headers = self.options.get("includeHeaders", "false").strip().lower() == "true"
        columns = value_schema(self.options.get("valueColumns", ""))
        return from_arrow_schema(source_schema(columns, headers=headers))

    def reader(self, schema: StructType) -> LakelogReader:
        return LakelogReader(self._read_options(schema, streaming=False))

    def streamReader(self, schema: StructType) -> LakelogStreamReader:
        return LakelogStreamReader(self._read_options(schema, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> LakelogWriter:
        return LakelogWriter(parse_write(self.options), schema, overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> LakelogStreamWriter:
        return LakelogStreamWriter(parse_write(self.options), schema)

    def _read_options(self, schema: StructType, *, streaming: bool) -> ReadOptions:
        options = parse(self.options, streaming=streaming)
        if options.limits and not HAS_READ_LIMITS:
            names = [name for name in OF_TRIGGERS if name in self.options]
            raise InvalidArgumentError(
                f"{' and '.join(names)} needs Spark 4.2: the Python data sources of older ones "
                "take all there is in each micro-batch. Leave it out, or update Spark"
            )
        own = self.schema()
        if [(f.name, f.dataType) for f in schema] != [(f.name, f.dataType) for f in own]:
            raise InvalidArgumentError(
                f"lakelog's columns are fixed: {own.simpleString()}; leave schema(…) out and "
                "select from them"
            )
        return options


class InputRange(NamedTuple):
    """Offsets [start, end) of one partition of one creation of a topic."""

    topic: Topic
    partition: int
    start_offset: int
    end_offset: int


@dataclass(frozen=True)
class InputTask(InputPartition):  # type: ignore[misc]
    """What one task reads."""

    ranges: tuple[InputRange, ...]
    #: What opens the cold tier where nobody is logged in. Says nothing of what is read.
    credentials: Any = field(default=None, repr=False, compare=False)


class _RangeReader:
    """What both readers do on an executor."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of an `InputTask`, one range after the other.

        Runs on: executor.
        """
        if not isinstance(partition, InputTask):
            return  # Spark makes one of its own when there are none
        spare_imports()
        options = self._options
        options.place.take(partition.credentials)
        yield from together(self._rows(partition.ranges))

    def _rows(self, ranges: Sequence[InputRange]) -> Iterator[pa.RecordBatch]:
        options = self._options
        looked: dict[UUID, Looked] = {}
        if options.as_of_version is None:
            looked = looked_at(
                options.place,
                ranges,
                stored_values=options.stored_values,
                back_off=options.back_off,
            )
        for one in ranges:
            topic_partition = TopicPartition(one.topic.name, one.partition)
            columns = value_schema(options.value_columns, one.topic.config.value_format)
            for records in range_rows(
                options.place,
                *one,
                fail_on_data_loss=options.fail_on_data_loss,
                as_of_version=options.as_of_version,
                stored_values=options.stored_values,
                looked=looked.get(one.topic.topic_id),
                back_off=options.back_off,
            ):
                yield spark_rows(
                    records, topic_partition, headers=options.include_headers, columns=columns
                )


class LakelogReader(_RangeReader, DataSourceReader):  # type: ignore[misc]
    """Reads a range of each partition, fixed when Spark plans the query.

    Runs on: driver, but for `read`.
    """

    def partitions(self) -> list[InputTask]:
        """The ranges, cut and put together so that no task has much more than the others."""
        return patiently("planning a read", self._partitions)

    def _partitions(self) -> list[InputTask]:
        options = self._options
        topics = _topics(options)
        wanted = [tp for topic in topics.values() for tp in _partitions_of(options, topic)]
        starts, ends = options.starting.of(wanted), options.ending.of(wanted)
        _check_ids({**options.starting.topic_ids, **options.ending.topic_ids}, topics)
        sized: list[SizedRange] = []
        for topic in topics.values():
            numbers = [tp.partition for tp in wanted if tp.topic == topic.name]
            tiers = options.place.task_tiers(topic)
            look, ranges = _resolve(options, tiers, starts, ends, numbers)
            sized += [sized_range(look, topic, number, *one) for number, one in ranges.items()]
        return _tasks(options, sized, SHARED_RANGES)


class LakelogStreamReader(_RangeReader, DataSourceStreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    """Says how far a stream can go and what each micro-batch reads.

    A stream's position is where it will read next in each partition. Partitions that come later are
    read from their first record on, and so are topics that match a pattern later. It needs nothing
    but the position: `commit` never comes for the last micro-batch, so nothing depends on it. A
    group hears of the position by `latestOffset` too: where Spark begins, all before it is done.

    Runs on: driver, but for `read`.
    """

    def __init__(self, options: ReadOptions, clock: Clock | None = None) -> None:
        super().__init__(options)
        clock = clock or SystemClock()
        self._delay = Delay(options.limits, clock)
        group_id = options.group_id
        self._group = None if group_id is None else GroupProgress(options.place, group_id, clock)
        self._target: Offsets | None = None  # of AvailableNow
        self._reported: StreamOffset | None = None  # where the log ended when last looked at
        self._looks: dict[UUID, Look] = {}  # the last, for sizes
        self._initial: StreamOffset | None = None  # Spark 4.0, 4.1: where the stream would begin
        self._begun = False  # it has read something before
        self._last: StreamOffset | None = None  # what latestOffset said last

    def initialOffset(self) -> dict[str, Any]:
        """Where a stream without a checkpoint begins."""
        self._initial = patiently("beginning a stream", self._begin)
        return self._initial.to_json()

    def getDefaultReadLimit(self) -> Any:
        """Everything, or something else: Spark has no limit that says all that the options may say.

        So `latestOffset` goes by the options, unless Spark asks for everything. Spark 4.2 and
        later.
        """
        limits = self._options.limits
        if limits.max_offsets is not None:
            return ReadMaxRows(limits.max_offsets)
        if limits.max_bytes is not None:
            return ReadMaxBytes(limits.max_bytes)
        if limits.min_offsets is not None:
            return ReadMinRows(limits.min_offsets)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """From here on, the stream ends where the log ends now."""
        self._target = patiently(_LOOKING, self._look).offsets

    def latestOffset(
        self, start: Mapping[str, Any] | None = None, limit: Any = None
    ) -> Mapping[str, Any]:
        """How far the next micro-batch goes: the log's end, or as far as the limits allow.

        Args:
            start: where it begins. None on Spark 4.0 and 4.1, which do not say.
            limit: `ReadAllAvailable` or None for all there is, whatever the options say.
        """
        if start is None:
            return self._latest_without_start().to_json()
        begin = StreamOffset.from_json(start)
        self._reached(begin)
        ends = self._patiently(_LOOKING, lambda: self._look(begin))
        is_limited = HAS_READ_LIMITS and not (limit is None or isinstance(limit, ReadAllAvailable))
        offsets = self._limited(begin.offsets, ends, is_limited=is_limited)
        if offsets == begin.offsets:
            self._reported = replace(begin, offsets=ends.offsets)
            return start
        since = begin.offsets if begin.initial else None
        # Of a deleted topic too, so that its next creation is told from it.
        topic_ids = {**begin.topic_ids, **ends.topic_ids}
        gaps = self._gaps_between(begin.offsets, offsets, ends.topic_ids)
        sizes = self._record_bytes(begin.offsets, offsets, ends.topic_ids)
        end = StreamOffset(offsets, topic_ids, since=since, gaps=gaps, record_bytes=sizes)
        self._reported = replace(end, offsets=ends.offsets)
        return end.to_json()

    def reportLatestOffset(self) -> dict[str, Any] | None:
        """Where the log ended when last looked at, for the query's progress.

        With the members that the micro-batch's end has: who compares the two finds each in both.
        """
        return None if self._reported is None else self._reported.to_json()

    def partitions(self, start: Mapping[str, Any], end: Mapping[str, Any]) -> list[InputTask]:
        """What a micro-batch reads, cut by what its ends say alone: each time in the same way."""
        begin, until = StreamOffset.from_json(start), StreamOffset.from_json(end)
        self._begun = self._begun or not begin.initial
        first = until.since if begin.initial and until.since is not None else begin.offsets
        _check_same(begin.topic_ids, until.topic_ids)
        ranges: dict[str, dict[int, OffsetRange]] = {}
        for tp, end_offset in until.offsets.items():
            if first.get(tp, 0) < end_offset:
                of_topic = ranges.setdefault(tp.topic, {})
                of_topic[tp.partition] = OffsetRange(first.get(tp, 0), end_offset)
        return self._patiently(
            "planning a micro-batch",
            lambda: self._input_ranges(ranges, until),
        )

    def commit(self, end: Mapping[str, Any]) -> None:
        """Tells the group, if there is one: see the class."""
        self._reached(StreamOffset.from_json(end))

    # -- how -----------------------------------------------------------------------------------

    def _patiently(self, what: str, function: Callable[[], T]) -> T:
        """Whoever begins a stream is told soon that a tier is away; one that runs outlives it."""
        begins = self._reported is self._last is None  # nothing was looked at by it yet
        return patiently(what, function, ASK_AGAIN if begins else self._options.back_off)

    def _reached(self, position: StreamOffset) -> None:
        if self._group is not None:
            self._group.reached(position)

    def _begin(self) -> StreamOffset:
        options = self._options
        topics = _topics(options)
        wanted = [tp for topic in topics.values() for tp in _partitions_of(options, topic)]
        starts = options.starting.of(wanted)
        _check_ids(options.starting.topic_ids, topics)
        offsets: dict[TopicPartition, int] = {}
        ends: dict[TopicPartition, Position] = dict.fromkeys(wanted, Latest())
        for topic in topics.values():
            numbers = [tp.partition for tp in wanted if tp.topic == topic.name]
            _, ranges = _resolve(options, options.place.task_tiers(topic), starts, ends, numbers)
            for number, found in ranges.items():
                offsets[TopicPartition(topic.name, number)] = found.start
        return StreamOffset(offsets, _ids(topics), initial=True)

    def _look(self, begin: StreamOffset | None = None) -> StreamOffset:
        """Where the log ends in each partition, now."""
        options = self._options
        topics = _topics(options, required=begin is None)
        if begin is not None:
            _check_there(options, begin.topic_ids, topics)
        offsets: dict[TopicPartition, int] = {}
        for topic in topics.values():
            known = {} if begin is None else begin.offsets
            look = self._look_at(topic, _partitions_of(options, topic), known)
            self._looks[topic.topic_id] = look
            for number in look.offsets:
                tp = topic.partition(number)
                offsets[tp] = look.offsets[tp.partition].log_end
                at = known.get(tp, 0)
                if at > offsets[tp]:
                    offsets[tp] = _hold(tp, at, look.offsets[tp.partition])
        return StreamOffset(offsets, _ids(topics))

    def _look_at(self, topic: Topic, wanted: list[TopicPartition], known: Offsets) -> Look:
        """A look at those partitions that there are: a topic is defined before they are made.

        Raises:
            UnknownTopicIdError: the topic, or a partition that the stream knows, is gone.
        """
        tiers = self._options.place.task_tiers(topic)
        try:
            return tiers.look(tp.partition for tp in wanted)
        except UnknownTopicIdError:
            topics = _topics(self._options, required=False)
            _check_there(self._options, {topic.name: topic.topic_id}, topics)
            made = []
            for tp in wanted:
                try:
                    tiers.look([tp.partition])
                except UnknownTopicIdError:
                    if tp in known:
                        raise
                else:
                    made.append(tp.partition)
            logger.info("%s: only partitions %s are made yet", topic.name, made)
            return tiers.look(made)

    def _limited(
        self, begin: Offsets, ends: StreamOffset, *, is_limited: bool
    ) -> dict[TopicPartition, int]:
        """The ends, but not beyond the target or the limits; never before the beginning."""
        reachable = dict(ends.offsets)
        if self._target is not None:
            reachable = {
                tp: min(end, self._target[tp])
                for tp, end in reachable.items()
                if tp in self._target
            }
        if is_limited and self._options.limits:
            reachable = self._by_limits(begin, reachable, ends.topic_ids)
        offsets = dict(begin)
        for tp, end in reachable.items():
            offsets[tp] = max(end, begin.get(tp, 0))
        return offsets

    def _by_limits(
        self, begin: Offsets, ends: Offsets, topic_ids: Mapping[str, UUID]
    ) -> dict[TopicPartition, int]:
        looks = {tp: self._looks[topic_ids[tp.topic]] for tp in ends}
        spans = {tp: (looks[tp], tp.partition, begin.get(tp, 0), end) for tp, end in ends.items()}
        available = {tp: count_records(*span).records for tp, span in spans.items()}
        records = sum(available.values())
        # AvailableNow ends when a micro-batch is put off, and would leave records that were there.
        if self._target is None and self._delay.puts_off(records):
            return {}
        limits = self._options.limits
        most = limits.most_records(
            records, lambda: sum(size_of(*spans[tp]) for tp in spans if available[tp])
        )
        shares = share(available, most)
        return {
            tp: min(end, advance(looks[tp], tp.partition, begin.get(tp, 0), shares[tp]))
            for tp, end in ends.items()
        }

    def _gaps_between(
        self, begin: Offsets, end: Offsets, topic_ids: Mapping[str, UUID]
    ) -> dict[TopicPartition, tuple[OffsetRange, ...]]:
        found = {}
        for tp, until in end.items():
            if tp.topic in topic_ids:
                log = self._looks[topic_ids[tp.topic]].offsets.get(tp.partition)
                if log is not None and (gaps := log.gaps_between(begin.get(tp, 0), until)):
                    found[tp] = gaps
        return found

    def _record_bytes(
        self, begin: Offsets, end: Offsets, topic_ids: Mapping[str, UUID]
    ) -> dict[str, int]:
        """What a record takes of those topics whose records are larger than is assumed.

        A power of two, so that it seldom changes from one micro-batch to the next.
        """
        records: dict[str, int] = {}
        sizes: dict[str, float] = {}
        for tp, until in end.items():
            start, topic_id = begin.get(tp, 0), topic_ids.get(tp.topic)
            if start < until and topic_id is not None and tp.partition in self._looks[topic_id].hot:
                span = self._looks[topic_id], tp.partition, start, until
                records[tp.topic] = records.get(tp.topic, 0) + count_records(*span).records
                sizes[tp.topic] = sizes.get(tp.topic, 0.0) + size_of(*span)
        found = {name: sizes[name] / count for name, count in records.items() if count}
        return {
            name: 1 << math.ceil(math.log2(each))
            for name, each in found.items()
            if each > ASSUMED_BYTES
        }

    def _latest_without_start(self) -> StreamOffset:
        """For Spark 4.0 and 4.1, which asks for the end before the beginning of the first batch."""
        if self._initial is None and not self._begun:
            try:
                self._initial = patiently("beginning a stream", self._begin)
            except (
                OffsetOutOfRangeError
            ):  # not asked for if there is a checkpoint; else raised then
                self._begun = True
        known = self._last or self._initial or StreamOffset({})
        ends = self._patiently(_LOOKING, lambda: self._look(StreamOffset({}, known.topic_ids)))
        since = None if self._begun or self._initial is None else self._initial.offsets
        offsets = self._limited(known.offsets, ends, is_limited=False)
        if self._last is None or self._last.offsets != offsets:
            topic_ids = {**known.topic_ids, **ends.topic_ids}
            gaps = self._gaps_between(known.offsets, offsets, ends.topic_ids)
            sizes = self._record_bytes(known.offsets, offsets, ends.topic_ids)
            self._last = StreamOffset(
                offsets, topic_ids, since=since, gaps=gaps, record_bytes=sizes
            )
        return self._last

    def _input_ranges(
        self,
        ranges: Mapping[str, Mapping[int, OffsetRange]],
        until: StreamOffset,
    ) -> list[InputTask]:
        options, topic_ids = self._options, until.topic_ids
        registry = options.place.open_hot().topics()
        sized: list[SizedRange] = []
        for name, of_topic in ranges.items():
            try:
                topic = registry.get(name)
            except UnknownTopicOrPartitionError:
                _deleted(options, name, topic_ids.get(name))
                continue
            _check_ids(topic_ids, {name: topic})
            look = self._looks.get(topic.topic_id)
            if look is None or not of_topic.keys() <= look.offsets.keys():
                look = options.place.task_tiers(topic).look(of_topic)
            if options.fail_on_data_loss:
                # Here if possible: what a task says, a sink's writer may hide from the query.
                for number, (start, end) in of_topic.items():
                    seen = look.offsets[number]
                    if start < seen.log_start:
                        tp = topic.partition(number)
                        raise not_covered(tp, start, end, seen.log_start, seen.log_end)
            sized += [_assumed(topic, number, one, until) for number, one in of_topic.items()]
        return _tasks(options, sized, SHARED_RANGES_OF_STREAM)


def _topics(options: ReadOptions, *, required: bool = True) -> dict[str, Topic]:
    topics = options.subscription.topics(options.place.open_hot().topics())
    if required:
        for name in options.subscription.required():
            if name not in topics:
                options.place.open_hot().topics().get(name)  # says so
    return topics


def _partitions_of(options: ReadOptions, topic: Topic) -> list[TopicPartition]:
    return [TopicPartition(topic.name, n) for n in options.subscription.partitions(topic)]


def _ids(topics: Mapping[str, Topic]) -> dict[str, UUID]:
    return {topic.name: topic.topic_id for topic in topics.values()}


def _tasks(options: ReadOptions, sized: Sequence[SizedRange], max_ranges: int) -> list[InputTask]:
    """The ranges, dealt out to Spark's tasks, with what they open the cold tier by.

    Args:
        max_ranges: see `shared`.

    Raises:
        InvalidArgumentError: values are encrypted, and tasks could not read the key.
    """
    if not options.stored_values:
        for topic in {part.topic.topic_id: part.topic for part in sized}.values():
            check_tasks_have_key(topic)
    tiered = {part.topic.topic_id: part.topic for part in sized if part.topic.config.tiered}
    credentials = options.place.to_hand_on(tiered.values()) if tiered else None
    return [
        InputTask(
            tuple(
                InputRange(part.topic, part.partition, part.start_offset, part.end_offset)
                for part in together
            ),
            credentials,
        )
        for together in shared(
            split(sized, options.min_partitions), options.min_partitions, max_ranges
        )
    ]


def _assumed(topic: Topic, partition: int, offsets: OffsetRange, until: StreamOffset) -> SizedRange:
    """A micro-batch's range, as its end says: a record at each offset that was not skipped."""
    start, end = offsets
    gaps = until.gaps.get(topic.partition(partition), ())
    stretches, at = [], start
    for gap in [*sorted(gaps), OffsetRange(end, end)]:
        stop = min(gap.start, end)
        if at < stop:
            stretches.append(Stretch(partition, at, stop, stop - at))
        at = max(at, gap.end)
    records = sum(stretch.records for stretch in stretches)
    size_bytes = float(records) * until.record_bytes.get(topic.name, ASSUMED_BYTES)
    return SizedRange(topic, partition, start, end, tuple(stretches), size_bytes)


def _resolve(
    options: ReadOptions,
    tiers: Tiers,
    starts: Mapping[TopicPartition, Position],
    ends: Mapping[TopicPartition, Position],
    numbers: Sequence[int],
) -> tuple[Look, dict[int, OffsetRange]]:
    """See `ranges.resolve`; a time that no record answers to follows the strategy option."""
    name = tiers.topic.name
    begin = {number: starts[TopicPartition(name, number)] for number in numbers}
    until = {number: ends[TopicPartition(name, number)] for number in numbers}
    if options.as_of_version is not None:
        # A frame's, checked when it was made. Whether they can still be read is for the tasks to
        # find out, who have more than the log's newest state to read from.
        return tiers.look(numbers), {n: _offsets(begin[n], until[n]) for n in numbers}
    look, ranges = resolve(
        tiers,
        begin,
        until,
        options.place.clock(),
        clip=not options.fail_on_data_loss,
        cut_with="failOnDataLoss=false",
    )
    if not options.latest_if_too_young:
        for number, where in begin.items():
            offsets = look.offsets[number]
            if isinstance(where, AtTimestamp) and ranges[number].start == offsets.log_end:
                raise InvalidArgumentError(
                    f"{tiers.topic.partition(number)} has no record at or after "
                    f"{where.timestamp_ms} ({options.starting.option}). Choose an earlier time, or "
                    "set startingOffsetsByTimestampStrategy=latest to begin at the log end"
                )
    return look, ranges


def _offsets(start: Position, end: Position) -> OffsetRange:
    if not isinstance(start, AtOffset) or not isinstance(end, AtOffset):
        raise InvalidArgumentError(
            "readAsOfVersion needs startingOffsets and endingOffsets as offsets"
        )
    return OffsetRange(start.offset, end.offset)


def _hold(topic_partition: TopicPartition, at: int, offsets: LogOffsets) -> int:
    """Where a stream waits that is further than the log of a server that may have lost its tail.

    Raises:
        OffsetOutOfRangeError: it did not lose its tail, so somebody put back an old copy.
    """
    if offsets.recovered:
        do = "Somebody put back an older copy of Redis: begin a new query, with a new checkpoint"
        out_of_range(topic_partition, at, offsets, do)
    return at


def _check_there(
    options: ReadOptions, known: Mapping[str, UUID], topics: Mapping[str, Topic]
) -> None:
    """What a stream has read of must still be there."""
    _check_ids(known, topics)
    for name in [*known, *options.subscription.required()]:
        if name not in topics:
            _deleted(options, name, known.get(name))


def _deleted(options: ReadOptions, name: str, topic_id: UUID | None) -> None:
    what = f"topic {name!r} (id {topic_id}) was deleted under the stream"
    if not options.subscription.includes(name):
        what = (
            f"the stream has read topic {name!r} (id {topic_id}) before, and its subscription "
            "leaves it out now"
        )
    if options.fail_on_data_loss:
        raise UnknownTopicIdError(
            f"{what}. Begin a new query, with a new checkpoint, or set failOnDataLoss=false to go "
            "on with the other topics",
            topic=name,
            topic_id=topic_id,
        )
    logger.warning("%s; going on without it", what)


def _check_ids(known: Mapping[str, UUID], topics: Mapping[str, Topic]) -> None:
    _check_same(known, _ids(topics))


def _check_same(known: Mapping[str, UUID], now: Mapping[str, UUID]) -> None:
    """Offsets of one creation of a topic say nothing of another.

    Raises:
        UnknownTopicIdError: a topic was deleted and created again.
    """
    for name, topic_id in known.items():
        if name in now and now[name] != topic_id:
            raise UnknownTopicIdError(
                f"topic {name!r} was deleted and created again: the offsets are of its creation "
                f"{topic_id}, and it is {now[name]} now. Begin a new query, with a new checkpoint",
                topic=name,
                topic_id=topic_id,
            )
