"""An archiver or a producer as a process of its own, for tests that run several.

``archive_process.py URL ROOT TOPIC once | continuously | produce RECORDS``
"""

from __future__ import annotations

import random
import sys
from threading import Event

from lakelog.archive.archiver import Archiver
from lakelog.archive.continuous import ContinuousArchive
from lakelog.archive.copy import HotRows
from lakelog.cli.stop_signals import on_stop_signal
from lakelog.codec import ProducedBatch, encode
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.hot.hot_log import HotLog, HotSource
from lakelog.values.config import Compression, EntryFormat
from lakelog.values.record import produced_batch
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock
from tests.support.process_memory import status_bytes


def archiver(url: str, root: str, topic: Topic, hot: HotLog) -> Archiver:
    table = PathTable(
        topic, Storage(root), InlineEngine(), HotRows(HotSource(url)), store_clock=LaterClock()
    )
    return Archiver(topic, hot, table, current_topic=lambda: hot.topics().get(topic.name))


def produce(hot: HotLog, topic: Topic, records: int) -> None:
    """Append that many records, a few at a time, in turn to each partition."""
    producer_id = random.getrandbits(62)
    sequences = dict.fromkeys(range(topic.partitions), 0)
    for step in range(records // 20):
        number = step % topic.partitions
        first = sequences[number]
        values = [b"%d/%d" % (number, first + i) for i in range(20)]
        rows = produced_batch((hot.now_ms(), None, value, ()) for value in values)
        entries = encode(rows, EntryFormat.AUTO, Compression.NONE)
        batch = ProducedBatch(entries, producer_id, 0, first, first + 19)
        hot.append(topic.partition(number), topic.topic_id, batch)
        sequences[number] += 20


def main(url: str, root: str, name: str, mode: str, *arguments: str) -> None:
    hot = HotLog.connect(url)
    topic = hot.topics().get(name)
    if mode == "produce":
        produce(hot, topic, int(arguments[0]))
    elif mode == "once":
        print(archiver(url, root, topic, hot).run_once())
        print("peak_kib", status_bytes("VmHWM") // 1024)
    else:
        stop = Event()
        on_stop_signal(stop.set)
        print("ready", flush=True)
        for report in ContinuousArchive(
            hot, hot.topics().list, lambda topic: archiver(url, root, topic, hot), stop=stop
        ):
            print(report, flush=True)
        print("drained", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
