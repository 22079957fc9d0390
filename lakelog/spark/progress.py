"""How far queries over ``format("lakelog")`` are behind, in records and in time.

Spark takes no metrics from a Python source (4.2), so they are made here: a query's progress says
where it is, and the log how much comes after that.

Runs on: driver.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from pyspark.sql.streaming.listener import StreamingQueryListener

from ..base.clock import Clock
from ..base.json_text import parse_json
from ..base.text_table import counted
from ..errors import InvalidArgumentError, LakelogError, UnknownTopicOrPartitionError
from ..place import LogPlace
from ..read.seek import first_timestamp_ms
from ..read.topic_log import TopicLog
from ..values.topic_partition import TopicPartition
from .offsets_json import StreamOffset

logger = logging.getLogger(__name__)


class Logs(Protocol):
    """A `Lakelog`, or what is like one here."""

    @property
    def place(self) -> LogPlace: ...

    def log(self, topic: str) -> TopicLog: ...


class Behind(Struct, frozen=True):
    """How much of a partition a query has not read."""

    topic_partition: TopicPartition
    offset: int  # that it reads next
    log_end: int
    records: int
    milliseconds: int  # since the timestamp of the first of them; 0: there is none

    def __str__(self) -> str:
        records = counted(self.records, "record")
        return f"{self.topic_partition}: {records}, {self.milliseconds:,} ms behind"


def behind(lake: Logs, progress: Mapping[str, Any]) -> list[Behind]:
    """How far a query is behind the log now.

    Of a partition that came since its last micro-batch, and of a topic that was deleted, nothing is
    told. Costs a look at the log, and of each partition that is behind one record.

    Args:
        progress: of the query, as its `lastProgress` or an event of a listener has it.

    Returns:
        One for each partition, by topic and partition; none without such a source, or before the
        first micro-batch.

    Raises:
        HotTierUnavailableError, ColdTierError: a tier does not answer.
    """
    found = [
        one
        for position in _positions(progress)
        for name in position.topic_ids
        for one in _of_topic(lake, name, position)
    ]
    return sorted(found, key=lambda one: one.topic_partition)


class LagListener(StreamingQueryListener):  # type: ignore[misc]  # pyspark is not typed for mypy here
    """Tells after each micro-batch how far its query is behind, and when a query is idle.

    ``spark.streams.addListener(LagListener(lake))``. Not over Spark Connect, which runs listeners
    on the server: call `behind` there.

    Args:
        tell: is given the progress and what `behind` says of it, if that is not empty; default: a
            line in the log, at INFO.
    """

    def __init__(
        self,
        lake: Logs,
        tell: Callable[[Mapping[str, Any], Sequence[Behind]], object] | None = None,
    ) -> None:
        self._lake = lake
        self._tell = _log if tell is None else tell

    def onQueryProgress(self, event: Any) -> None:
        try:
            found = behind(self._lake, event.progress)
        except LakelogError as error:  # the query goes on, and so do others' listeners
            logger.warning("how far query %s is behind: %s", event.progress["id"], error)
            return
        if found:
            self._tell(event.progress, found)

    def onQueryStarted(self, event: Any) -> None: ...

    def onQueryIdle(self, event: Any) -> None: ...

    def onQueryTerminated(self, event: Any) -> None: ...


def _log(progress: Mapping[str, Any], found: Sequence[Behind]) -> None:
    name = progress["name"] or progress["id"]
    logger.info(
        "query %s after micro-batch %s: %s", name, progress["batchId"], "; ".join(map(str, found))
    )


def _positions(progress: Mapping[str, Any]) -> Iterator[StreamOffset]:
    """Where the query's sources that are lakelog's are."""
    for source in progress["sources"]:
        offset = source["endOffset"]
        try:
            members = parse_json(offset) if isinstance(offset, str) else offset
            position = StreamOffset.from_json(members) if isinstance(members, Mapping) else None
        except (ValueError, InvalidArgumentError):
            continue  # another source's
        if position is not None and position.topic_ids:
            yield position


def _of_topic(lake: Logs, name: str, position: StreamOffset) -> Iterator[Behind]:
    try:
        log = lake.log(name)
    except UnknownTopicOrPartitionError:
        return
    if log.topic.topic_id != position.topic_ids[name]:
        return  # made again: the query will fail
    mine = {tp: offset for tp, offset in position.offsets.items() if tp.topic == name}
    ends = log.offsets(tp.partition for tp in mine)
    clock = lake.place.clock()
    for tp, offset in mine.items():
        log_end = ends[tp.partition].log_end
        begin = max(offset, ends[tp.partition].log_start)
        records = log.count(tp.partition, begin, max(begin, log_end))
        waits_ms = _waits_ms(log, tp.partition, begin, clock) if records else 0
        yield Behind(tp, offset, log_end, records, waits_ms)


def _waits_ms(log: TopicLog, partition: int, offset: int, clock: Clock) -> int:
    tiers = log.tiers(stored_values=True)  # to tell a time takes no key
    time_ms = first_timestamp_ms(tiers, log.topic.partition(partition), offset)
    return 0 if time_ms is None else max(0, clock.now_ms() - time_ms)
