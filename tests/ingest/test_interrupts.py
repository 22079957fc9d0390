"""Interrupts (Ctrl-C, a notebook's stop) in the middle of a loop of sends, as real signals."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Interrupts a loop of sends 600 times; each is at some point of some line of `Producer.send`.
SCRIPT = """
import random, signal, sys, threading
from lakelog import Lakelog

INTERRUPTS = 600
interruptible = False

def interrupt(*_):
    if interruptible:
        raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
with Lakelog.connect(sys.argv[1], sys.argv[2], engine="inline") as lake:
    lake.topics.create("t", 2, {"remote.storage.enable": False, "retention.ms": -1})
    producer = lake.producer(batch_size=int(sys.argv[3]))
    producer.send("t", b"first").result()
    number, answers = 0, []
    for _ in range(INTERRUPTS):
        try:
            interruptible = True
            # Again and again: one that comes inside a finalizer is lost.
            signal.setitimer(signal.ITIMER_REAL, random.uniform(0.00005, 0.001), 0.01)
            while True:
                number += 1
                answer = producer.send("t", b"%d" % number, key=b"%d" % (number % 100))
                answers.append((number, answer))
        except KeyboardInterrupt:
            interruptible = False
            signal.setitimer(signal.ITIMER_REAL, 0)
    flush = threading.Thread(target=producer.flush, daemon=True)
    flush.start()
    flush.join(60)
    assert not flush.is_alive(), "the producer hangs"
    log = lake.log("t")
    places = {
        record.value: (record.partition, record.offset)
        for partition in range(2)
        for record in log.read(partition).records()
    }
    for number, answer in answers:
        metadata = answer.result()
        assert places[b"%d" % number] == (metadata.partition, metadata.offset)
    sent = [int(value) for value in places if value != b"first"]
    assert len(sent) - len(answers) in range(INTERRUPTS + 1), "only interrupted ones may be more"
    producer.close()
    print("interrupted", INTERRUPTS)
"""


@pytest.mark.parametrize("batch_size", [245_760, 2_000], ids=["lingering", "full at once"])
def test_a_loop_of_sends_may_be_interrupted_anywhere(redis_url, tmp_path, batch_size):
    """Nothing hangs, and what `send` answered is in the log, where its answer says.

    What fills a batch is also interrupted while it encodes it.
    """
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, redis_url, str(tmp_path), str(batch_size)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout == "interrupted 600\n"
