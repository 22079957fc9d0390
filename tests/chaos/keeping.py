"""Those who keep a log: continuous archivers, and a janitor who cleans up and makes topics anew.

The janitor's lines: ``dropping`` and ``created``, each with the topic's name and id; ``erasing``
with its id and a key, and ``erased`` with where each partition ended, if the certificate has
Redis's files among what was reached.
"""

from __future__ import annotations

import queue

from lakelog.errors import LakelogError, TopicExistsError
from lakelog.lakelog import Lakelog
from lakelog.place import PathRoot

from .history import Kind
from .producing import KEYS
from .scenario import ERASED_TOPIC, TOPICS
from .worker import Process, hurt_at_failpoints

#: Between two cleanups, at most.
CLEANUP_PAUSE_S = 3.0

#: How likely a cleanup is preceded by records that are deleted by offset.
DELETES_RECORDS = 0.4


#: How likely a key is erased before a cleanup.
ERASES_KEY = 0.8

#: By name, the archiver that has a Spark of its own.
OWN_SPARK = "archiver1"


def archive(process: Process) -> None:
    if process.place.spark_conf is not None and process.name == OWN_SPARK:
        process.place.start_own_spark()
    log = process.connect()
    process.journal.write("begins")
    with hurt_at_failpoints(process):
        try:
            for report in log.archive_continuously(stop=process.stop):
                records = sum(done.records for done in report.partitions)
                process.journal.write("archived", report.topic, records)
        except LakelogError as error:
            if not process.stop.is_set():
                raise
            process.journal.write("unfinished", str(error)[:500])  # told to end amid an outage
    log.close()


def keep(process: Process) -> None:
    log = process.connect()
    orders: queue.SimpleQueue[str] = queue.SimpleQueue()
    process.on_order = orders.put
    process.journal.write("begins")
    with hurt_at_failpoints(process):
        while not process.stop.is_set():
            try:
                _keep_once(process, log, orders)
            except LakelogError as error:
                process.journal.write("error", f"{type(error).__name__}: {error}"[:500])
            process.stop.wait(process.draws.uniform(0, CLEANUP_PAUSE_S))
    log.close()


def _keep_once(process: Process, log: Lakelog, orders: queue.SimpleQueue[str]) -> None:
    while not orders.empty():
        recreate(process, log, orders.get())
    if isinstance(log.place.cold, PathRoot) and process.draws.random() < ERASES_KEY:
        _erase(process, log, f"k{process.draws.randrange(KEYS)}")
    if process.draws.random() < DELETES_RECORDS:
        name = process.draws.choice(
            [name for name, spec in TOPICS.items() if spec.kind is Kind.RETAINED]
        )
        unified = log.log(name)
        offsets = unified.offsets([0])[0]
        # Not into a gap's billions: most of what lies before the end is one.
        step = process.draws.randrange(200)
        process.journal.write("deletes", name, offsets.log_start + step)
        unified.raise_log_start(0, min(offsets.log_start + step, offsets.log_end))
    log.cleanup()
    process.journal.write("cleaned")


def _erase(process: Process, log: Lakelog, key: str) -> None:
    topic = log.topics.get(ERASED_TOPIC)
    process.journal.write("erasing", str(topic.topic_id), key)
    hot = log.erase(topic, key).hot
    assert hot is not None
    # A replica that was behind may take over with what its master had trimmed, and a file of a
    # server's that was not written anew may be read again.
    if all(one.is_rewritten and not one.replicas for one in hot.servers):
        process.journal.write("erased", dict(hot.ends))


def recreate(process: Process, log: Lakelog, name: str) -> None:
    """Drops a topic and makes it anew; a killed one leaves it dropped, or half made."""
    known = {topic.name: topic for topic in log.topics.list()}
    if name in known:
        process.journal.write("dropping", name, str(known[name].topic_id))
        log.topics.delete(name)
    create(process, log, name)


def create(process: Process, log: Lakelog, name: str, *, anew: bool = False) -> None:
    spec = TOPICS[name]
    config = dict(spec.config)
    if name in process.place.kafka_topics:
        config["lakelog.entry.format"] = "kafka"
    try:
        topic = log.topics.create(name, spec.partitions, config, anew=anew)
    except TopicExistsError:
        topic = log.topics.get(name)  # half made by one who was killed: getting it mends it
    process.journal.write("created", name, str(topic.topic_id))
