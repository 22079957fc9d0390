"""What producers had sent last, in files beside a table's log: which there are, what they say."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import MadeUpRows, archive

from lakelog.base import failpoints
from lakelog.cold.by_path import producer_snapshots
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.by_path.producer_snapshots import FOLDER
from lakelog.cold.change import Change
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.errors import ColdTierRefusedError, InvalidArgumentError
from lakelog.values.producer_calls import CUT, ProducerCall, calls_of_rows, rows_of_calls
from lakelog.values.topic import Topic
from tests.support.later_clock import LaterClock


class Died(BaseException):
    """The process ends here."""


@pytest.fixture
def topic() -> Topic:
    return Topic("orders", uuid4(), 3)


@pytest.fixture
def table(topic: Topic, tmp_path: Path) -> PathTable:
    return open_table(topic, tmp_path)


def open_table(topic: Topic, tmp_path: Path) -> PathTable:
    return PathTable(
        topic, Storage(str(tmp_path)), InlineEngine(), MadeUpRows(), store_clock=LaterClock()
    )


def call(base_offset: int, producer_id: int = 7) -> ProducerCall:
    return ProducerCall(producer_id, 2, 0, 1, base_offset, checksum="0a1b2c3d")


def apply(table: PathTable, topic: Topic, end: int, *calls: ProducerCall) -> None:
    snapshot = table.snapshot()
    table.apply(archive(topic, snapshot, end, calls=calls), snapshot)


def files(table: PathTable) -> list[str]:
    return sorted(file.name for file in Path(table.path, FOLDER).iterdir())


_calls = st.builds(
    ProducerCall,
    *[st.integers(0, 2**62)] * 5,
    st.integers(-1, 2**53),
    st.sampled_from([CUT, "00000000", "ffffffff"]),
)


@given(st.lists(_calls, max_size=5))
def test_calls_come_back_as_they_were(calls: list[ProducerCall]) -> None:
    assert list(calls_of_rows(json.loads(json.dumps(rows_of_calls(calls))))) == calls


def test_a_call_at_the_archived_end_is_refused(topic: Topic, table: PathTable) -> None:
    with pytest.raises(InvalidArgumentError, match="at or above the archived end"):
        archive(topic, table.snapshot(), 10, calls=[call(10)])
    with pytest.raises(InvalidArgumentError, match="at or above the archived end"):
        Change(calls={0: [call(0)]})  # which moves no archived end


def test_a_file_goes_once_a_later_one_is_committed(topic: Topic, table: PathTable) -> None:
    apply(table, topic, 10, call(3))
    assert files(table) == ["0-10.json"]
    apply(table, topic, 20, call(12))
    assert files(table) == ["0-20.json"]
    apply(table, topic, 30)  # Redis has forgotten the producer
    assert dict(table.last_calls([0])) == {}
    apply(table, topic, 40, call(35))
    assert files(table) == ["0-40.json"]


@pytest.mark.parametrize("failpoint", ["cold.after_files", "cold.before_commit"])
def test_a_commit_that_is_never_made_tells_nothing(
    topic: Topic, table: PathTable, tmp_path: Path, failpoint: str
) -> None:
    def die() -> None:
        raise Died

    apply(table, topic, 10, call(3))
    with failpoints.armed(failpoint, die), pytest.raises(Died):
        apply(table, topic, 20, call(12))
    assert files(table) == ["0-10.json", "0-20.json"]
    other = open_table(topic, tmp_path)
    assert list(other.last_calls([0])[0]) == [call(3)]
    apply(other, topic, 25, call(22))
    assert files(table) == ["0-25.json"]


def test_a_commit_that_nobody_lived_to_see_tells_what_it_carried(
    topic: Topic, table: PathTable, tmp_path: Path
) -> None:
    def die() -> None:
        raise Died

    apply(table, topic, 10, call(3))
    with failpoints.armed("cold.after_commit", die), pytest.raises(Died):
        apply(table, topic, 20, call(12))
    other = open_table(topic, tmp_path)
    assert list(other.last_calls([0])[0]) == [call(12)]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        '{"lakelog": 2, "calls": []}',
        '{"lakelog": 1}',
        '{"lakelog": 1, "calls": [[1]]}',
    ],
)
def test_a_file_that_is_not_what_was_written_is_named(
    topic: Topic, table: PathTable, content: str
) -> None:
    apply(table, topic, 10, call(3))
    (name,) = files(table)
    file = Path(table.path, FOLDER, name)
    file.write_text(content)
    with pytest.raises(ColdTierRefusedError, match=r"0-10\.json .* or delete it"):
        table.last_calls([0])
    assert dict(table.last_calls([1])) == {}
    file.unlink()
    assert dict(table.last_calls([0])) == {}


def test_other_files_there_are_left_alone(topic: Topic, table: PathTable) -> None:
    apply(table, topic, 10, call(3))
    strange = Path(table.path, FOLDER, "0-5.json.bak")
    strange.write_text("mine")
    apply(table, topic, 20, call(12))
    assert list(table.last_calls([0])[0]) == [call(12)]
    assert strange.exists()


def test_of_too_many_producers_the_newest_are_kept(
    topic: Topic, table: PathTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(producer_snapshots, "MOST_CALLS", 2)
    apply(table, topic, 10, *(call(offset, offset) for offset in (1, 3, 5)))
    assert list(table.last_calls([0])[0]) == [call(3, 3), call(5, 5)]
