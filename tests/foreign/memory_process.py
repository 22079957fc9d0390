"""One reader of a partition in a process of its own: ``memory_process.py URL COLD TOPIC ROLE``.

Prints by how many bytes its memory grew at most, and how many records it saw.
"""

from __future__ import annotations

import gc
import sys
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa

from lakelog import Lakelog
from lakelog.cold.store.storage import Storage
from lakelog.explore.explorer.answer import answer
from lakelog.explore.explorer.view import Ask, OpenedTopic
from lakelog.hot import HotSource
from lakelog.place import LogPlace, PathRoot
from lakelog.read.where import parse
from lakelog.spark.range_rows import range_rows
from lakelog.values.offsets import Earliest, Latest
from lakelog.values.topic_partition import TopicPartition
from tests.support.process_memory import status_bytes

NOTHING = parse("no record has this")


def consume(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    consumer = lake.consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    seen = 0
    while polled := consumer.poll(max_records=500):
        seen += sum(map(len, polled.values()))
        if seen >= end(lake, topic):
            break
    return seen


def consume_arrow(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    consumer = lake.consumer(auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, 0)])
    seen = 0
    while seen < end(lake, topic):
        seen += rows(consumer.poll_arrow(max_records=1_000_000).values())
    return seen


def read(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    return rows(lake.log(topic).read(0))


def task(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    place = LogPlace(HotSource(url), PathRoot(Storage(cold)))
    found = lake.topics.get(topic)
    return rows(range_rows(place, found, 0, 0, end(lake, topic), fail_on_data_loss=True))


def archive(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    return sum(report.records for report in lake.archive(topic))


def archive_all(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    return sum(report.records for report in lake.archive())


def explore(lake: Lakelog, topic: str, cold: str, url: str) -> int:
    log, last = lake.log(topic), end(lake, topic)
    opened = OpenedTopic(log)
    for where in (Latest(), Earliest()):
        answer(opened, Ask(topic, 0, where, page_records=100))
    search = log.search_ranges({0: (0, last)}, NOTHING)
    search.page(100, backward=True)
    return search.page(100).progress.read


def end(lake: Lakelog, topic: str) -> int:
    return lake.log(topic).offsets()[0].log_end


def rows(batches: Iterable[pa.RecordBatch]) -> int:
    return sum(batch.num_rows for batch in batches)


ROLES: dict[str, Callable[[Lakelog, str, str, str], int]] = {
    one.__name__: one for one in (consume, consume_arrow, read, task, explore, archive)
}


#: Those that are not about one topic.
MORE_ROLES = {"archive_all": archive_all}


def load(lake: Lakelog, role: str) -> None:
    """Have the process load what it archives and reads with: that grows with no record."""
    name = f"small-{role}-{uuid.uuid4().hex}"
    lake.topics.create(name, 1, {"retention.ms": -1, "local.retention.ms": 0})
    with lake.producer() as producer:
        producer.send(name, b"a value")
    lake.archive(name)
    consume(lake, name, "", "")
    lake.topics.delete(name)


def main(url: str, cold: str, topic: str, role: str) -> None:
    with Lakelog.connect(url, cold, engine="inline") as lake:
        load(lake, role)
        end(lake, topic)
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew here
        before = status_bytes("VmRSS")
        seen = (ROLES | MORE_ROLES)[role](lake, topic, cold, url)
        print(status_bytes("VmHWM") - before, seen)


if __name__ == "__main__":
    main(*sys.argv[1:])
