"""SIGTERM and SIGINT, heard wherever the main thread is when they arrive."""

from __future__ import annotations

import signal
import socket
import threading
from collections.abc import Callable

_NUMBERS = (signal.SIGTERM, signal.SIGINT)


def on_stop_signal(told: Callable[[], None]) -> None:
    """Calls ``told`` once, in a thread of its own, when this process is told to stop.

    A signal handler would run in the middle of whatever the main thread does. It would wait for
    ever for a lock that this thread holds, even that of an event that it sets; and it would not run
    at all while the main thread is in a library call. So the interpreter writes down the signal's
    number, and a thread reads it. Call this in the main thread.
    """
    heard, written = socket.socketpair()
    written.setblocking(False)

    def listen() -> None:
        with written:  # open as long as this thread listens
            while not any(number in _NUMBERS for number in heard.recv(1)):
                pass
            told()
            while True:
                heard.recv(4096)  # told again

    threading.Thread(target=listen, name="lakelog-signals", daemon=True).start()
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    for number in _NUMBERS:
        signal.signal(number, lambda *_: None)
