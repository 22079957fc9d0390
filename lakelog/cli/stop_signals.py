"""SIGTERM and SIGINT, heard wherever the main thread is when they arrive, or where it waits."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

_NUMBERS = (signal.SIGTERM, signal.SIGINT)

#: After a signal. A run itself ends within 2.5 s, see `archive.continuous`.
STOP_WITHIN_S = 2.9


def on_stop_signal(told: Callable[[], None], again: Callable[[], None] = lambda: None) -> None:
    """Calls ``told`` when this process is told to stop, and ``again`` when it is told once more.

    Each is called once, in threads of their own.

    A signal handler would run in the middle of whatever the main thread does. It would wait for
    ever for a lock that this thread holds, even that of an event that it sets; and it would not run
    at all while the main thread is in a library call. So the interpreter writes down the signal's
    number, and a thread reads it. Call this in the main thread.
    """
    heard, written = socket.socketpair()
    written.setblocking(False)

    def listen() -> None:
        with written:  # open as long as this thread listens
            for call in (told, again):
                while heard.recv(1)[0] not in _NUMBERS:
                    pass
                threading.Thread(target=call, name="lakelog-signals", daemon=True).start()
            while True:
                heard.recv(4096)  # told more often

    threading.Thread(target=listen, name="lakelog-signals-heard", daemon=True).start()
    signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
    for number in _NUMBERS:
        signal.signal(number, lambda *_: None)


@contextmanager
def told_to_stop(who: str, left: str) -> Iterator[threading.Event]:
    """Is set when this process is told to stop; the block has to end then, or the process does.

    Nothing may be lost by that: such as one whose output nobody reads.

    Args:
        who: runs here, for the message: "the archiver".
        left: what becomes of what is not done, as the end of a sentence.
    """
    stop, over = threading.Event(), threading.Event()

    def stopped() -> None:
        stop.set()
        _say("finishing; again to stop now")
        if not over.wait(STOP_WITHIN_S):
            _say(f"lakelog: {who} was told to stop and did not in time, so it was ended; {left}")
            os._exit(1)

    def stopped_again() -> None:
        _say(f"stopped; {left}")
        os._exit(130)

    try:
        on_stop_signal(stopped, stopped_again)
        yield stop
    finally:
        over.set()


def _say(text: str) -> None:
    """On standard error, whoever holds the lock of its stream; if it takes it without a wait."""
    with suppress(OSError):  # it is closed
        if select.select([], [2], [], 0)[1]:
            os.write(2, f"{text}\n".encode())


class HeldInterrupt:
    """A Ctrl-C that comes up as KeyboardInterrupt only where the program waits.

    Between two waits, what is done and what is noted of it stay in step. A second one comes up
    wherever it is.
    """

    def __init__(self) -> None:
        self._is_waiting = False
        self._is_held = False

    @contextmanager
    def holding(self) -> Iterator[HeldInterrupt]:
        """Within the block. In another thread than the main one, none arrives."""
        try:
            before = signal.signal(signal.SIGINT, self._arrived)
        except ValueError:
            yield self
            return
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, before)

    def wait(self) -> None:
        """From here on it comes up; also one that is held.

        Raises:
            KeyboardInterrupt: it arrived.
        """
        self._is_waiting = True
        if self._is_held:
            self._come_up()

    def go_on(self) -> None:
        """From here on it is held."""
        self._is_waiting = False

    def _arrived(self, number: int, frame: FrameType | None) -> None:
        if self._is_waiting or self._is_held:
            self._come_up()
        self._is_held = True

    def _come_up(self) -> None:
        self._is_waiting = self._is_held = False
        raise KeyboardInterrupt
