"""The processes of a round: started, stopped, killed, and started again when they ended."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lakelog.base.back_off import BackOff, wait_until
from lakelog.hot.lock import LOCK_MS

_LOOK_S = 0.05
LOOKS = BackOff(_LOOK_S, _LOOK_S)

#: How long a process that stopped itself stands still.
STANDS_STILL_S = (0.3, 6.0)

#: Until a process that ended is started again.
RESTART_S = (0.1, 1.5)

#: How long an end in order may take: a process may first have to wait for the lock of one that was
#: killed. A Spark stream first has to start, to come to the log end.
END_S = LOCK_MS / 1000 + 15.0
STREAM_END_S = 240.0


@dataclass(slots=True)
class _Slot:
    role: str
    name: str
    process: subprocess.Popen[bytes] | None = None
    continue_at_s: float | None = None  # when one that stands still goes on
    start_at_s: float = 0.0


class Processes:
    """Supervises the processes of a round, by their ids alone.

    Args:
        folder: of the round; logs of the processes go there.
        roles: role → how many.
        seed: how long each stands still, and is down.
        end_s: how long an end in order may take.
    """

    def __init__(
        self, folder: Path, roles: dict[str, int], seed: int, end_s: float = END_S
    ) -> None:
        self._folder = folder
        self._end_s = end_s
        self._slots = [
            _Slot(role, f"{role}{number}")
            for role, count in roles.items()
            for number in range(count)
        ]
        self._draws = random.Random(seed)
        self._lock = threading.RLock()
        self._ending = False
        self._thread = threading.Thread(target=self._supervise, name="chaos-processes", daemon=True)
        self.counts: Counter[str] = Counter()  # kills, stops, and ends by themselves by role
        self.endings: list[tuple[str, int]] = []  # who ended by himself, and with what exit code
        (folder / "logs").mkdir()

    def start(self) -> None:
        with self._lock:
            for slot in self._slots:
                self._start(slot)
        self._thread.start()

    def names(self, role: str) -> list[str]:
        return [slot.name for slot in self._slots if slot.role == role]

    def kill(self, name: str) -> None:
        with self._lock:
            slot = self._slot(name)
            if slot.process is not None:
                self.counts["kills"] += 1
                self._kill(slot)

    def stop_for(self, name: str, seconds: float) -> None:
        """It stands still for so long, wherever it is."""
        with self._lock:
            slot = self._slot(name)
            if slot.process is not None and slot.process.poll() is None:
                self.counts["stops"] += 1
                slot.continue_at_s = time.monotonic() + seconds
                slot.process.send_signal(signal.SIGSTOP)

    def order(self, name: str, line: str) -> None:
        """Tell a process what to do, by a line on its standard input."""
        with self._lock, contextlib.suppress(OSError):
            process = self._slot(name).process
            if process is not None and process.stdin is not None:
                process.stdin.write(f"{line}\n".encode())
                process.stdin.flush()

    def hold(self) -> None:
        """Nobody is started again or stands still from here on."""
        with self._lock:
            self._ending = True
            for slot in self._slots:
                self._go_on(slot)

    def revive(self, role: str) -> None:
        """Who of a role is not there is started, for the last time."""
        with self._lock:
            for slot in self._slots:
                if slot.role == role and (slot.process is None or slot.process.poll() is not None):
                    self._start(slot)

    def end(self, *roles: str) -> list[str]:
        """Have all of some roles end in order; who did not in time, or failed."""
        slots = [slot for slot in self._slots if slot.role in roles]
        for slot in slots:
            # One that was started a moment ago would die of it, and never come to the log end.
            self._wait(slot, self._end_s, until=lambda process: _listens(process.pid))
            if slot.process is not None and slot.process.poll() is None:
                slot.process.terminate()
        end_s = STREAM_END_S if "stream" in roles else self._end_s
        deadline_s = time.monotonic() + end_s
        late = []
        for slot in slots:
            if not self._wait(slot, max(0.0, deadline_s - time.monotonic())):
                late.append(f"{slot.name} did not end within {end_s:.0f} s")
            else:
                code = slot.process.returncode if slot.process is not None else 0
                if code not in (
                    0,
                    -signal.SIGKILL,
                    -signal.SIGTERM,
                ):  # or before it knew what to do
                    late.append(f"{slot.name} ended with exit code {code}")
            self._kill(slot)
        return late

    def _wait(
        self,
        slot: _Slot,
        within_s: float,
        until: Callable[[subprocess.Popen[bytes]], bool] = lambda _: False,
    ) -> bool:
        """For the end of a process, or something before; False if it takes longer."""

        def is_over() -> bool:
            if slot.process is None or slot.process.poll() is not None:
                return True
            self._go_on(slot)  # it may have stopped itself meanwhile
            return until(slot.process)

        return wait_until(slot.name, is_over, LOOKS.within(within_s))

    def close(self) -> None:
        """Nobody is left."""
        with self._lock:
            self._ending = True
            for slot in self._slots:
                self._kill(slot)
        if self._thread.is_alive():
            self._thread.join()

    def _supervise(self) -> None:
        while not self._ending:
            time.sleep(_LOOK_S)
            with self._lock:
                if self._ending:
                    return
                for slot in self._slots:
                    self._look_after(slot)

    def _look_after(self, slot: _Slot) -> None:
        now_s = time.monotonic()
        if slot.process is None:
            if now_s >= slot.start_at_s:
                self._start(slot)
        elif slot.process.poll() is not None:
            code = slot.process.returncode
            if code == -signal.SIGKILL:
                self.counts["kills"] += 1  # by its own hand, at a failpoint
            else:
                self.counts[f"{slot.role} ended"] += 1
                self.endings.append((slot.name, code))
            self._kill(slot)
        elif slot.continue_at_s is not None:
            if now_s >= slot.continue_at_s:
                self._go_on(slot)
        elif _stands_still(slot.process.pid):
            self.counts["stops"] += 1
            slot.continue_at_s = now_s + self._draws.uniform(*STANDS_STILL_S)

    def _go_on(self, slot: _Slot) -> None:
        slot.continue_at_s = None
        if slot.process is not None and slot.process.poll() is None:
            slot.process.send_signal(signal.SIGCONT)

    def _start(self, slot: _Slot) -> None:
        slot.continue_at_s = None
        with (self._folder / "logs" / f"{slot.name}.log").open("ab") as log:
            slot.process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.worker", slot.role, slot.name, self._folder],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,  # Ctrl-C is for the harness, which ends them in order
            )

    def _kill(self, slot: _Slot) -> None:
        if slot.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(slot.process.pid, signal.SIGKILL)  # Spark's Java and workers too
            slot.process.wait()
            if slot.process.stdin is not None:
                with contextlib.suppress(OSError):
                    slot.process.stdin.close()
        slot.process = None
        slot.start_at_s = time.monotonic() + self._draws.uniform(*RESTART_S)

    def _slot(self, name: str) -> _Slot:
        return next(slot for slot in self._slots if slot.name == name)


def _stands_still(pid: int) -> bool:
    try:
        with Path(f"/proc/{pid}/stat").open() as stat:
            return stat.read().rpartition(")")[2].split()[0] == "T"
    except OSError:
        return False


def _listens(pid: int) -> bool:
    """Whether a process catches SIGTERM by now (Linux tells in /proc)."""
    with contextlib.suppress(OSError, IndexError):
        caught = Path(f"/proc/{pid}/status").read_text().split("SigCgt:")[1].split()[0]
        return bool(int(caught, 16) & (1 << (signal.SIGTERM - 1)))
    return False
