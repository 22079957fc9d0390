"""Whatever was done to a log before or beside it, an erased record's bytes are nowhere, unless the
certificate says where and until when; and all other records stay.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from beside import Beside, work_on
from erased_traces import traces
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog import Lakelog
from lakelog.base.failpoints import armed
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisServer

KEYS = [b"ada-7f3a9c51e2", b"bob-09b1d7c4aa", b"eve-c2d45e90b8"]

#: Of a record that nothing is asked of.
OTHER = b"zoe-55d1f03b9c"

HOUR_S = 3600

#: Of topics: none has a name that another had.
NUMBERS = count()

Step = tuple[str, Any]

#: Where a run is killed or held up.
COLD = [
    "cold.before_file",
    "cold.amid_file",
    "cold.after_files",
    "cold.before_commit",
    "cold.after_check",
    "cold.after_commit",
    "cold.after_list",
    "cold.before_delete",
]
ARCHIVE = ["archive.after_plan", "archive.after_copy", "archive.after_commit"]
ARCHIVE += ["archive.before_trim", "archive.after_trim"]
ERASE = [
    "erase.after_archive",
    "erase.after_trim",
    "erase.after_plan",
    "erase.after_commit",
    "erase.after_checkpoint",
    "erase.after_files",
    "erase.before_persistence",
    "erase.before_last_look",
]
CLEANUP = ["cleanup.after_find", "cleanup.after_plan", "cleanup.before_vacuum"]

keys = st.sampled_from(KEYS)
cleanups = st.sampled_from(["optimize", "compact", "vacuum"])
passes = st.integers(1, 3)

#: What, of which key, where it is stopped, and on which of its passes there.
runs = st.one_of(
    st.tuples(st.just("erase"), keys, st.sampled_from(ERASE + COLD + ARCHIVE), passes),
    st.tuples(st.just("archive"), st.just(b""), st.sampled_from(ARCHIVE + COLD), passes),
    st.tuples(cleanups, st.just(b""), st.sampled_from(CLEANUP + COLD), passes),
)

#: Each with whether Redis alone holds some records.
stops = st.one_of(
    st.tuples(st.just("kill"), st.tuples(st.booleans(), runs)),
    st.tuples(
        st.just("erase beside"),  # and where the other one goes on meanwhile
        st.tuples(st.booleans(), runs, keys, st.sampled_from(ERASE + COLD), passes),
    ),
)

WORLDS = st.fixed_dictionaries(
    {
        # Small segments, so that either tier has several; or large ones, which are merged.
        "internal.segment.bytes": st.sampled_from([1000, 100_000]),
        "lakelog.entry.format": st.sampled_from(["fields", "arrow", "kafka"]),
        "cleanup.policy": st.sampled_from(["delete", "compact,delete"]),
        "lakelog.value.columns": st.sampled_from(["", "a string"]),
        # Redis keeps what is archived, or the newest of it.
        "local.retention.bytes": st.sampled_from([-1, 1]),
    }
)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(keys, min_size=1, max_size=6)),
        st.tuples(st.just("archive up to"), st.integers(1, 12)),
        st.tuples(st.just("restart and recover"), st.booleans()),
        st.tuples(st.just("leave half a transaction"), keys),
        st.tuples(st.just("trim"), st.none()),
        st.tuples(st.just("delete records below"), st.integers(0, 4)),
        st.tuples(st.just("clean"), cleanups),
        st.tuples(st.just("erase"), keys),
        *[stops] * 4,
    ),
    min_size=2,
    max_size=10,
)

PLAIN = {"internal.segment.bytes": 300}
LARGE = {"internal.segment.bytes": 100_000}
LATE = "erase.after_files"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    conf = {"rdbcompression": "no", "save": "3600 1"}  # bytes are found as they are
    found = RedisServer(tmp_path_factory.mktemp("log") / "redis", conf).start()
    yield found
    found.kill()


@pytest.fixture(scope="module")
def lake(server: RedisServer) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, server.directory.parent / "cold", engine="inline") as found:
        yield found


@pytest.mark.parametrize("examples", [5, pytest.param(500, marks=pytest.mark.slow)])
def test_what_is_erased_is_nowhere_and_all_else_is_there(
    lake: Lakelog, server: RedisServer, examples: int
) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(WORLDS, STEPS)
    @example(PLAIN, [("append", KEYS[:2]), ("restart and recover", True), ("erase", KEYS[0])])
    @example(PLAIN, [("append", KEYS[:2]), ("restart and recover", False), ("erase", KEYS[0])])
    @example(  # the log ends above all that was archived, though nothing waits to be
        PLAIN, [("append", KEYS), ("archive up to", 3), ("restart and recover", True)]
    )
    @example(  # half a transaction lies in a gap, amid the log or at its end
        PLAIN,
        [("append", KEYS[:2]), ("leave half a transaction", KEYS[2]), ("append", KEYS[:1])],
    )
    @example(PLAIN, [("append", KEYS[:2]), ("leave half a transaction", KEYS[2])])
    @example(
        PLAIN,
        [("append", KEYS[:2]), ("trim", None), ("leave half a transaction", KEYS[2])],
    )
    @example(  # who is overtaken reads files before they are deleted, and writes its own after
        LARGE,
        [("erase beside", (False, ("optimize", b"", "cleanup.after_plan", 1), KEYS[0], LATE, 1))],
    )
    @example(  # who is overtaken writes the other's bytes after all files were looked through
        LARGE,
        [("erase beside", (False, ("erase", KEYS[1], "cold.before_file", 1), KEYS[0], LATE, 1))],
    )
    @example(  # half a file is deleted under who writes it
        LARGE,
        [("erase beside", (False, ("optimize", b"", "cold.amid_file", 1), KEYS[0], LATE, 1))],
    )
    def check(world: dict[str, Any], steps: list[Step]) -> None:
        with TemporaryDirectory() as folder:
            topic = _Topic(lake, server, f"topic-{next(NUMBERS)}", world, Path(folder))
            for step in steps:
                topic.do(step)
            topic.end()

    check()


class _Topic:
    """A topic of one partition, and what it must hold.

    Attributes:
        keys: of the records that it must hold, by offset.
        beyond: of each key that was erased, what its newest certificate says was not reached.
        tokens: of each key, bytes that its values and headers have and nothing else has.
        gone: those that must be nowhere.
    """

    def __init__(
        self, lake: Lakelog, server: RedisServer, name: str, world: dict[str, Any], folder: Path
    ) -> None:
        self.lake, self.server, self.name, self.folder = lake, server, name, folder
        self.root = Path(str(lake.place.cold))
        always = {
            "retention.ms": -1,
            "local.retention.ms": -1,
            "min.cleanable.dirty.ratio": 0,
            "min.compaction.lag.ms": 0,
            "file.delete.delay.ms": 0,
        }
        lake.topics.create(name, 1, {**always, **{k: v for k, v in world.items() if v != ""}})
        self.compacts = "compact" in world.get("cleanup.policy", "")
        self.numbers = count()
        self.keys: dict[int, bytes] = {}
        self.ever: dict[int, bytes] = {}
        self.may_be_erased: set[int] = set()
        self.beyond: dict[bytes, list[str]] = {}
        self.tokens: dict[bytes, list[bytes]] = {key: [] for key in (*KEYS, OTHER)}
        self.gone: dict[bytes, list[bytes]] = {}

    def do(self, step: Step) -> None:
        what, how = step
        if what in ("kill", "erase beside"):  # there is something to do
            for _ in range(2):
                self.do(("append", [*KEYS, KEYS[0]]))
                self.lake.archive(self.name)
            if how[0]:
                self.do(("append", KEYS))
        if what == "append":
            with self.lake.producer(linger_ms=0) as producer:
                for key in how:
                    value, header = (self._token(key) for _ in range(2))
                    sent = producer.send(
                        self.name,
                        b'{"a":"%s"}' % value,
                        key=key,
                        headers=[("h", header)],
                        partition=0,
                    ).result()
                    self.keys[sent.offset] = self.ever[sent.offset] = key
        elif what == "archive up to":
            self.lake.archive(self.name, until=self._offset(how))
        elif what == "restart and recover":
            self.server.restart(clean=False)
            if how:
                self.lake.log(self.name).recover(0, 0)
        elif what == "leave half a transaction":
            end = self.lake.log(self.name).offsets([0])[0].log_end
            with self.server.client() as client:
                half = {"__ts": "1", "__key": how, "value": self._token(how)}
                client.xadd(f"lakelog:stream:{self.name}:0", half, id=f"{end}-1")
            self.do(("restart and recover", True))
        elif what == "trim":
            self.lake.topics.alter(self.name, {"local.retention.ms": 0})
            self.lake.archive(self.name, until=0)
            self.lake.topics.alter(self.name, {"local.retention.ms": -1})
        elif what == "delete records below":
            start = self._offset(how)
            if start > self.lake.log(self.name).offsets([0])[0].log_start:
                self.lake.log(self.name).raise_log_start(0, start)
            self.keys = {at: key for at, key in self.keys.items() if at >= start}
        elif what == "clean":
            self.lake.cleanup(self.name, steps=[how])
        elif what == "kill":
            _, run = how
            self._begin_to_erase(run[1])
            self._beside(run, dies=True).end()
        elif what == "erase beside":
            _, run, key, at, times = how
            self._begin_to_erase(key)
            self._begin_to_erase(run[1])
            beside = self._beside(run, dies=False)
            said: list[list[str]] = []
            by = count(1)

            def pass_by() -> None:
                if next(by) == times:
                    said.append(beside.end())

            with armed(at, pass_by):
                beyond = work_on(self.lake, self.name, "erase", key)
            if not said:
                said.append(beside.end())
            self._erased({key: beyond, **({run[1]: said[0]} if run[0] == "erase" else {})})
        else:
            self._begin_to_erase(how)
            self._erased({how: work_on(self.lake, self.name, "erase", how)})
        self.holds_what_it_must()
        self.certificates_hold()

    def end(self) -> None:
        """Erases all, and lets the time pass that certificates speak of."""
        self.do(("append", [OTHER]))  # what stands for a gap at the end of the log stays there
        for key in KEYS:
            self.do(("erase", key))
        for file in (self.root / self.name).rglob("*"):
            os.utime(file, (file.stat().st_mtime - HOUR_S,) * 2)
        self.lake.cleanup(self.name, steps=["vacuum"])
        self.lake.erase(self.name, OTHER)
        self.beyond = {key: [] for key in KEYS}
        self.certificates_hold(KEYS)
        self.lake.topics.delete(self.name)

    def holds_what_it_must(self) -> None:
        found = {one.offset: one.key for one in self.lake.log(self.name).read(0).records()}
        emptied = {at for at, key in found.items() if key is None}  # the last of cold stays so
        assert emptied <= self.may_be_erased
        kept = {at: key for at, key in found.items() if at not in emptied}
        assert kept.items() <= self.keys.items()
        for at in self.keys.keys() - kept.keys() - self.may_be_erased:
            assert self.compacts
            assert any(later > at and key == self.keys[at] for later, key in self.ever.items())
        self.keys = kept

    def certificates_hold(self, keys: list[bytes] | None = None) -> None:
        """What was erased is nowhere but where its certificate says."""
        # Redis removes the files that it replaced in the background
        eventually(lambda: not self._untold(keys or []), said=lambda: self._untold(keys or []))

    # -- helpers ---------------------------------------------------------------------------------

    def _token(self, key: bytes) -> bytes:
        token = b"GEHEIM-%s-%d-" % (self.name.encode(), next(self.numbers))
        self.tokens[key].append(token)
        return token

    def _offset(self, records: int) -> int:
        """Where so many of the records end that it holds, or all."""
        below = sorted(self.keys)[:records]
        return below[-1] + 1 if below else 0

    def _beside(self, run: tuple[str, bytes, str, int], *, dies: bool) -> Beside:
        what, key, *step = run
        folder = self.folder / str(next(self.numbers))
        folder.mkdir()
        place = self.server.url, str(self.root)
        return Beside(place, folder, self.name, (what, key), (step[0], step[1]), dies=dies)

    def _begin_to_erase(self, key: bytes) -> None:
        self.may_be_erased |= {at for at, one in self.ever.items() if one == key}

    def _erased(self, beyond: dict[bytes, list[str]]) -> None:
        """Of keys that were erased, each with what its certificate says was not reached."""
        self.beyond |= beyond
        for key in beyond:
            self.gone[key] = list(self.tokens[key])
        self.keys = {at: key for at, key in self.keys.items() if key not in beyond}
        self.holds_what_it_must()
        eventually(lambda: not self._untold(list(beyond)), said=lambda: self._untold(list(beyond)))

    def _untold(self, keys: list[bytes]) -> list[str]:
        """Where erased bytes stand, though no certificate says so.

        Args:
            keys: that nothing has had since.
        """
        found = []
        with self.server.client() as client:
            for key, tokens in self.gone.items():
                secrets = [*tokens, key] if key in keys else tokens
                told = " ".join(self.beyond[key])
                for place in traces(self.root.parent, client, secrets, self._is_of_another):
                    memory = place.startswith(("key lakelog:stream:", "redis/"))
                    name = "memory of Redis that entries of" if memory else Path(place).name
                    if name not in told:
                        found.append(f"{place}: {key!r}, told {told!r}")
        return found

    def _is_of_another(self, file: Path) -> bool:
        top = file.relative_to(self.root.parent).parts[:2]
        return top[0] == "cold" and top[1].startswith("topic-") and top[1] != self.name
