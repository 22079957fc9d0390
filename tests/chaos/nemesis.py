"""What an act of the schedule does."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from .catalogs import Catalog
from .losing import Losing
from .places import ObjectStore, ReplicatedCluster, SingleServer
from .processes import Processes
from .scenario import TOPICS
from .schedule import Act
from .worker import ShiftedClock

#: Where a jumping clock may stand, apart from the machine's: half an hour back or ahead.
CLOCK_JUMP_MS = 1_800_000


@dataclass(slots=True)
class Nemesis:
    """Does the acts of a round to whom they concern."""

    processes: Processes
    server: SingleServer | ReplicatedCluster
    store: ObjectStore | None
    clock: ShiftedClock | None
    losing: Losing | None
    catalog: Catalog | None
    say: Callable[[str], None]

    def run(self, acts: list[Act], longest_s: float) -> Counter[str]:
        """Does them all, each when it is due, or those that are due in time; how often each.

        Acts of one lane follow one another, so a lane's thread does them in order.
        """
        counts: Counter[str] = Counter()
        ending = threading.Event()
        began_s = time.monotonic()
        failures: list[BaseException] = []

        def lane(own: list[Act]) -> None:
            for act in own:
                if ending.wait(max(0.0, began_s + act.at_s - time.monotonic())):
                    return
                try:
                    done = self.do(act, ending)
                except BaseException as error:
                    failures.append(error)
                    ending.set()
                    return
                counts[act.nemesis] += 1
                self.say(f"{time.monotonic() - began_s:6.1f} s  {act.nemesis}: {done}")

        by_lane: dict[str, list[Act]] = {}
        for act in acts:
            by_lane.setdefault(_lane_of(act.nemesis), []).append(act)
        threads = [threading.Thread(target=lane, args=(own,)) for own in by_lane.values()]
        timer = threading.Timer(longest_s, ending.set)
        for thread in (timer, *threads):
            thread.start()
        try:
            for thread in threads:
                thread.join()
        finally:  # when interrupted too: an act under way may be about to start a server
            ending.set()
            timer.cancel()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]
        return counts

    def do(self, act: Act, ending: threading.Event) -> str:
        """Does one act, to its end; says to whom."""
        draws = random.Random(act.draw)
        what, _, whom = act.nemesis.partition("-")
        match what, whom, self.server:
            case "kill" | "stop", _, _ if self.processes.names(whom):
                name = draws.choice(self.processes.names(whom))
                if what == "kill":
                    self.processes.kill(name)
                    return name
                self.processes.stop_for(name, act.seconds)
                return f"{name} for {act.seconds:.1f} s"
            case "recreate", "topic", _:
                name = draws.choice([name for name, spec in TOPICS.items() if spec.is_recreated])
                self.processes.order(draws.choice(self.processes.names("janitor")), name)
                return name
            case "kill", "redis", SingleServer() as server:
                return self._hurt(lambda: server.kill(act.seconds))
            case "cut", "redis", SingleServer() as server:
                return self._hurt(lambda: server.cut(draws, act.seconds))
            case "lose" | "empty", "redis", _ if self.losing is not None:
                return self.losing.lose(act.seconds, with_its_disk=what == "lose")
            case "stop", "redis", SingleServer() as server:
                server.pause()
                ending.wait(act.seconds)
                server.go_on()
            case "full", "redis", SingleServer() as server:
                server.fill()
                ending.wait(act.seconds)
                server.make_room()
            case "kill" | "stop", "master", ReplicatedCluster() as cluster:
                return cluster.fail_over(draws, act.seconds, kill=what == "kill")
            case "depose", "master", ReplicatedCluster() as cluster:
                return cluster.depose(draws)
            case "store", how, _ if self.store is not None:
                said = self.store.fail(how, draws)
                ending.wait(act.seconds)
                self.store.heal()
                return f"{said}, for {act.seconds:.1f} s"
            case "catalog", how, _ if self.catalog is not None:
                said = self.catalog.fail(how, draws)
                ending.wait(act.seconds)
                self.catalog.heal()
                return f"{said}, for {act.seconds:.1f} s"
            case "clock", "jumps", _ if self.clock is not None:
                shift_ms = draws.randint(-CLOCK_JUMP_MS, CLOCK_JUMP_MS)
                self.clock.shift(shift_ms)
                return f"to {shift_ms:+,} ms"
            case _:
                raise ValueError(f"no nemesis {act.nemesis!r} where {self.server} is")
        return f"for {act.seconds:.1f} s"

    def _hurt(self, act: Callable[[], str]) -> str:
        return act() if self.losing is None else self.losing.hurt(act)


def _lane_of(nemesis: str) -> str:
    what, _, whom = nemesis.partition("-")
    if whom in ("redis", "master"):
        return "server"
    return what if what in ("store", "clock", "catalog") else "processes"
