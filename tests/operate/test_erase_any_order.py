"""Whatever was done to a log before, an erased record is in no tier, and all others stay."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lakelog import Lakelog
from lakelog.testing.servers import RedisServer

KEYS = [b"ada-7f3a9c51e2", b"bob-09b1d7c4aa", b"eve-c2d45e90b8"]

#: Small segments, so that either tier has several; Redis keeps what is archived.
CONFIG = {"retention.ms": -1, "local.retention.ms": -1, "internal.segment.bytes": 300}

#: Of topics: none has a name that another had.
NUMBERS = count()

Step = tuple[str, Any]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(st.sampled_from(KEYS), min_size=1, max_size=6)),
        st.tuples(st.just("archive up to"), st.integers(1, 12)),
        st.tuples(st.just("restart and recover"), st.booleans()),
        st.tuples(st.just("leave half a transaction"), st.sampled_from(KEYS)),
        st.tuples(st.just("trim"), st.none()),
        st.tuples(st.just("delete records below"), st.integers(0, 4)),
        st.tuples(st.just("erase"), st.sampled_from(KEYS)),
    ),
    min_size=2,
    max_size=10,
)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path_factory.mktemp("redis")).start()
    yield found
    found.kill()


@pytest.fixture(scope="module")
def lake(server: RedisServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lakelog]:
    root = tmp_path_factory.mktemp("cold")
    with Lakelog.connect(server.url, root, engine="inline") as found:
        yield found


@pytest.mark.parametrize("examples", [15, pytest.param(500, marks=pytest.mark.slow)])
def test_what_is_erased_is_gone_and_all_else_is_there(
    lake: Lakelog, server: RedisServer, examples: int
) -> None:
    @settings(max_examples=examples, deadline=None)
    @given(STEPS)
    @example([("append", KEYS[:2]), ("restart and recover", True), ("erase", KEYS[0])])
    @example([("append", KEYS[:2]), ("restart and recover", False), ("erase", KEYS[0])])
    @example([("append", KEYS[:2]), ("leave half a transaction", KEYS[2]), ("append", KEYS[:1])])
    def check(steps: list[Step]) -> None:
        topic = _Topic(lake, server, f"topic-{next(NUMBERS)}")
        for step in steps:
            topic.do(step)
        for key in KEYS:
            topic.erase(key)
        lake.topics.delete(topic.name)

    check()


class _Topic:
    """A topic of one partition, and what it must hold."""

    def __init__(self, lake: Lakelog, server: RedisServer, name: str) -> None:
        self.lake, self.server, self.name = lake, server, name
        lake.topics.create(name, 1, CONFIG)
        self.keys: dict[int, bytes] = {}  # by offset
        self.erased: set[int] = set()

    def do(self, step: Step) -> None:
        what, how = step
        if what == "append":
            with self.lake.producer(linger_ms=0) as producer:
                for key in how:
                    sent = producer.send(self.name, b"value", key=key, partition=0).result()
                    self.keys[sent.offset] = key
        elif what == "archive up to":
            self.lake.archive(self.name, until=self._offset(how))
        elif what == "restart and recover":
            self.server.restart(clean=False)
            if how:
                self.lake.log(self.name).recover(0, 0)
        elif what == "leave half a transaction":
            end = self.lake.log(self.name).offsets([0])[0].log_end
            with self.server.client() as client:
                half = {"__ts": "1", "__key": how, "value": "of no record"}
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
        else:
            self.erase(how)
        self.holds_what_it_must()

    def _offset(self, records: int) -> int:
        """Where so many of the records end that it holds, or all."""
        below = sorted(self.keys)[:records]
        return below[-1] + 1 if below else 0

    def erase(self, key: bytes) -> None:
        self.lake.erase(self.name, key)
        self.erased |= {at for at, one in self.keys.items() if one == key}
        self.keys = {at: one for at, one in self.keys.items() if one != key}
        self.holds_what_it_must()
        with self.server.client() as client:
            entries = client.xrange(f"lakelog:stream:{self.name}:0")
        assert key not in repr(entries).encode()
        for file in Path(str(self.lake.place.cold)).glob(f"{self.name}/**/*.parquet"):
            assert key not in pq.read_table(file, partitioning=None)["key"].to_pylist()

    def holds_what_it_must(self) -> None:
        found = {one.offset: one.key for one in self.lake.log(self.name).read(0).records()}
        emptied = {at for at, key in found.items() if key is None}  # the last of cold stays so
        assert emptied <= self.erased
        assert {at: key for at, key in found.items() if at not in emptied} == self.keys
