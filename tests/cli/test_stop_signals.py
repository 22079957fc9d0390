"""How a process of the command line hears that it is to stop."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

CHILD = """
import os, signal, threading, time
from lakelog.cli.stop_signals import on_stop_signal

lock, told = threading.Lock(), []

def stop():
    with lock:
        told.append(threading.current_thread().name)

def again():
    told.append("again")

on_stop_signal(stop, again)
with lock:  # where a handler would wait for ever
    os.kill(os.getpid(), {number})
    time.sleep(0.1)  # a handler in this thread would hang here, which nothing else shows
while not told:
    time.sleep(0.01)
os.kill(os.getpid(), {number})
while len(told) < 2:
    time.sleep(0.01)
os.kill(os.getpid(), {number})
time.sleep(0.1)  # a third call, which is not to come, would come now
print(told)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_is_told_twice_wherever_its_main_thread_is(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHILD.format(number=int(number))],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "['lakelog-signals', 'again']\n", "")
