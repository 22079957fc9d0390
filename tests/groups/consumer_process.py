"""A consumer in a group, in a process of its own.

``consumer_process.py URL COLD NAME SESSION_MS INSTANCE_ID`` does what its stdin says:

| line | |
|---|---|
| ``poll N`` | until it was handed records, at most N; answers their offsets by partition |
| ``commit`` | its positions; answers them by partition |
| ``read FILE N`` | polls, at most N records each time, and commits, until the next line |

Each answer is a line of JSON; an error is its class. Between two lines only heartbeats go on. What
it reads goes to FILE, a line each time before the commit, and one after it.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path
from typing import Any

from lakelog import Consumer, Lakelog
from lakelog.errors import LakelogError
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.settings import GroupSettings
from lakelog.read.consumer_config import ConsumerConfig
from lakelog.read.subscription import SeenTopics

GROUP, TOPIC = "readers", "orders"
POLL_MS = 100


class ConsumerProcess:
    def __init__(self, url: str, cold: str, name: str, session_ms: str, instance_id: str) -> None:
        lake = Lakelog.connect(url, cold, engine="inline")
        settings = GroupSettings(min_session_timeout_ms=1, initial_rebalance_delay_ms=0)
        self.name = name
        self.consumer = Consumer(
            lake.log,
            ConsumerConfig(
                group_id=GROUP,
                group_instance_id=instance_id or None,
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                session_timeout_ms=int(session_ms),
                heartbeat_interval_ms=100,
            ),
            SeenTopics(lake.topics.list, lake.topics.version),
            GroupCoordinator(lake.hot.connections, settings=settings),
        )
        self.consumer.subscribe([TOPIC])

    def poll(self, most: int) -> Any:
        while not (polled := self.consumer.poll(POLL_MS, most)):
            pass
        return {tp.partition: [one.offset for one in found] for tp, found in polled.items()}

    def commit(self) -> Any:
        self.consumer.commit()
        return {tp.partition: self.consumer.committed(tp) for tp in self.consumer.assignment()}

    def read(self, file: Path, most: int, stop: threading.Event) -> None:
        """What is handled by a member says the generation in which it was handed out."""
        with file.open("a", buffering=1) as journal:

            def note(**what: Any) -> None:
                journal.write(json.dumps({"member": self.name, **what}) + "\n")

            while not stop.is_set():
                try:
                    for tp, records in self.consumer.poll(POLL_MS, most).items():
                        generation_id = self.consumer.group_metadata().generation_id
                        handled = {"generation": generation_id, "partition": tp.partition}
                        note(**handled, handled=[one.offset for one in records])
                    positions = {
                        tp.partition: self.consumer.position(tp)
                        for tp in self.consumer.assignment()
                    }
                    self.consumer.commit()
                    note(committed=positions)
                except LakelogError as error:
                    note(error=type(error).__name__, said=str(error))

    def obey(self) -> None:
        stop: threading.Event | None = None
        reading: threading.Thread | None = None
        for line in sys.stdin:
            word, *rest = line.split()
            if stop is not None and reading is not None:
                stop.set()
                reading.join()
                stop = reading = None
            try:
                if word == "poll":
                    answer: Any = self.poll(int(rest[0]))
                elif word == "commit":
                    answer = self.commit()
                elif word == "read":
                    stop = threading.Event()
                    given = (Path(rest[0]), int(rest[1]), stop)
                    reading = threading.Thread(target=self.read, args=given, daemon=True)
                    reading.start()
                    answer = "reads"
                else:
                    self.consumer.close()
                    answer = "closed"
            except LakelogError as error:
                answer = {"error": type(error).__name__}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    ConsumerProcess(*sys.argv[1:]).obey()
