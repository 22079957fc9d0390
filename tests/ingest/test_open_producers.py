"""Producers that nobody closes: what they took is sent, or it is said that it was not."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.errors import DeliveryError, ProducerClosedError
from lakelog.ingest import open_producers

LINGER_MS = 60_000  # so that nothing is sent because its time has come

_BEGIN = f"""
import atexit, multiprocessing, os, signal, sys, threading
from lakelog import Lakelog

def opened():
    return Lakelog.embedded(sys.argv[1], engine="inline")

def sent(log, value):
    producer = log.producer(linger_ms={LINGER_MS})
    producer.send("t", value)
    return producer
"""

_ENDS = {
    "a function that made the log, too, returns": """
        def main():
            log = opened()
            producer = sent(log, "kept")
        main()
    """,
    "an exception comes out of it": """
        def main():
            log = opened()
            producer = sent(log, "kept")
            raise KeyError("mine")
        main()
    """,
    "it leaves by sys.exit": """
        def main():
            log = opened()
            producer = sent(log, "kept")
            sys.exit(3)
        main()
    """,
    "it is interrupted": """
        def main():
            log = opened()
            producer = sent(log, "kept")
            os.kill(os.getpid(), signal.SIGINT)
            threading.Event().wait(60)
        main()
    """,
    "another thread's function returns": """
        def run():
            log = opened()
            producer = sent(log, "kept")
        threading.Thread(target=run).start()
    """,
    "only a cycle refers to it": """
        def main():
            log = opened()
            cycle = [sent(log, "kept")]
            cycle.append(cycle)
        main()
    """,
    "a generator that is never run to its end has it": """
        def values():
            log = opened()
            producer = sent(log, "kept")
            yield 1
        next(values())
    """,
    "the next one has its name": """
        log = opened()
        producer = sent(log, "kept")
        producer = log.producer()
    """,
    "its context ended by an exception, in a function": """
        def main():
            log = opened()
            with log.producer() as producer:
                producer.send("t", "kept")
                raise KeyError("mine")
        main()
    """,
    "a child forked by multiprocessing ends": """
        def child():
            log = opened()
            global producer
            producer = sent(log, "kept")
        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        process.join()
    """,
    "its log is closed first": """
        with opened() as log:
            producer = sent(log, "kept")
    """,
}


def _run(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", _BEGIN + textwrap.dedent(script), str(directory)]
    return subprocess.run(command, timeout=120, check=False, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.parametrize("script", _ENDS.values(), ids=_ENDS)
def test_what_an_open_producer_took_is_in_the_log_when(script: str, tmp_path: Path) -> None:
    with Lakelog.embedded(tmp_path, engine="inline") as log:
        log.topics.create("t")
        done = _run(script, tmp_path)
        values = [record.value for record in log.log("t").read(0).records()]
    assert values == [b"kept"], done.stderr


def test_a_log_that_is_closed_sends_what_its_producers_took_and_they_take_no_more(
    tmp_path: Path,
) -> None:
    with Lakelog.embedded(tmp_path, engine="inline") as reader:
        reader.topics.create("t")
        log = Lakelog.embedded(tmp_path, engine="inline")
        producer = log.producer(linger_ms=LINGER_MS)
        of_another = reader.producer(linger_ms=LINGER_MS)
        pending = producer.send("t", "a")
        log.producer(linger_ms=LINGER_MS).send("t", "b")  # gone at once
        gc.collect()
        log.close()
        assert pending.result().topic == "t"
        values = [record.value for record in reader.log("t").read(0).records()]
        assert sorted(values) == [b"a", b"b"]
        with pytest.raises(ProducerClosedError, match="its log is closed"):
            producer.send("t", "c")
        assert of_another.send("t", "d").result().offset == 2


def test_a_log_that_is_closed_without_its_redis_says_what_was_not_sent(
    make_redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(open_producers, "EXIT_TIMEOUT_MS", 100)
    server = make_redis()
    log = Lakelog.connect(server.url, tmp_path, engine="inline")
    log.topics.create("t")
    producer = log.producer(linger_ms=LINGER_MS)
    producer.send("t", "a")
    server.kill()
    with pytest.raises(DeliveryError, match="left open, and its log is closed: 1 record") as lost:
        log.close()
    assert lost.value.not_written + lost.value.unknown == 1
    log.close()


def test_leaving_a_log_by_an_error_hides_it_not_and_says_what_was_not_sent(
    make_redis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(open_producers, "EXIT_TIMEOUT_MS", 100)
    server = make_redis()

    def use() -> None:
        with Lakelog.connect(server.url, tmp_path, engine="inline") as log:
            log.topics.create("t")
            producer = log.producer(linger_ms=LINGER_MS)
            producer.send("t", "a")
            server.kill()
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        use()
    assert "left open, and its log is closed: 1 record" in caplog.text


def test_a_record_refused_after_its_producer_was_forgotten_is_told(
    tier, caplog: pytest.LogCaptureFixture, make_producer
) -> None:
    tier.topics.create("t")
    result = make_producer(tier).send("t", "a", timestamp_ms=2**45)
    gc.collect()
    assert result.exception() is not None
    assert "1 record for t-0 failed" in caplog.text


def test_a_record_refused_within_a_call_that_is_written_is_told(
    tier, caplog: pytest.LogCaptureFixture, make_producer
) -> None:
    tier.topics.create("t", 1, {"max.message.bytes": 1000})
    producer = make_producer(tier, linger_ms=LINGER_MS)
    producer.send("t", b"a")
    producer.send("t", random.Random(1).randbytes(2000))
    with pytest.raises(DeliveryError):
        producer.close()
    assert tier.values("t") == [b"a"]
    assert "1 record for t-0 failed" in caplog.text


def test_a_callback_that_leaves_by_sys_exit_does_not_end_the_sending(tier, make_producer) -> None:
    tier.topics.create("t")
    producer = make_producer(tier)
    producer.send("t", b"a").add_done_callback(lambda _: sys.exit(1))
    producer.flush()
    assert producer.send("t", b"b").result().offset == 1


def test_whoever_sends_after_a_producer_was_ended_with_the_process_is_told(tmp_path: Path) -> None:
    script = """
        log = opened()
        log.topics.create("t")
        atexit.register(lambda: producer.send("t", "late"))
        producer = sent(log, "kept")
    """
    done = _run(script, tmp_path)
    assert "LogClosedError: this producer is closed: the process ends" in done.stderr
    with Lakelog.embedded(tmp_path, engine="inline") as log:
        assert [record.value for record in log.log("t").read(0).records()] == [b"kept"]
