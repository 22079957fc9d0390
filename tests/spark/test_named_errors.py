"""What tasks of a table by name raise reaches the driver; what only looks like it stays text."""

from __future__ import annotations

import base64
import pickle
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import made_up
import pyarrow as pa
import pytest

from lakelog.cold.by_name.spark_errors import TaskErrors
from lakelog.cold.change import HotRange
from lakelog.errors import LakelogError, RecordTooLargeError, TrimmedError
from lakelog.values.topic import Topic


class Trap:
    """Leaves a file where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    return tmp_path / "sprung"


def forged(trap: Path, token: str = "0" * 32) -> str:
    """The text of an error that was never raised."""
    content = base64.b64encode(pickle.dumps(Trap(trap))).decode()
    return f"{token}< said {token}={content}{token}>"


def test_only_the_jobs_own_token_has_an_error_unpickled(trap: Path) -> None:
    errors, earlier = TaskErrors(), TaskErrors()
    assert errors.token not in repr(errors)
    assert errors.found_in(forged(trap)) is None
    assert errors.found_in(forged(trap, earlier.token)) is None
    assert errors.found_in(str(earlier.carried(ValueError("an earlier job's")))) is None
    carried = str(errors.carried(TrimmedError(f"of {forged(trap)}", local_log_start=7)))
    found = errors.found_in(f"Traceback …\nCarriedError: {carried}\nat org.apache.spark")
    assert isinstance(found, TrimmedError)
    assert found.local_log_start == 7
    assert not trap.exists()
    errors.found_in(forged(trap, errors.token))
    assert trap.exists()  # the trap works


def test_of_a_text_that_was_cut_an_error_says_what_is_left() -> None:
    errors = TaskErrors()
    said = "offset 12 is gone, and\nso is 13"
    text = f"Traceback … {errors.carried(RecordTooLargeError(said, index=0, size_bytes=1))}"
    for length in range(len(text)):
        found = errors.found_in(text[:length])
        if f"{errors.token}<" not in text[:length]:
            assert found is None
            continue
        assert type(found) is LakelogError
        left = str(found).removeprefix("a task failed:").strip()
        assert left.startswith(said) or said.startswith(left)
    assert isinstance(errors.found_in(text), RecordTooLargeError)
    assert said in str(errors.found_in(text[:-1]))


class Unspeakable(Exception):
    def __init__(self, one: str, other: str) -> None:
        super().__init__(f"{one} {other}")  # so it cannot be made again of its arguments


def test_what_cannot_travel_says_what_it_was() -> None:
    errors = TaskErrors()
    found = errors.found_in(str(errors.carried(Unspeakable("this", "that"))))
    assert type(found) is LakelogError
    assert str(found) == "a task failed: Unspeakable: this that"


@dataclass(frozen=True)
class Refusing:
    """A hot tier whose error quotes a record."""

    text: str

    def __call__(self, hot_range: HotRange) -> Iterator[pa.RecordBatch]:
        raise RecordTooLargeError(
            f"the record {self.text!r} is too large", index=0, size_bytes=len(self.text)
        )
        yield


def test_a_task_whose_error_quotes_a_record(make_named, trap: Path) -> None:
    from pyspark import cloudpickle

    topic = Topic("orders", uuid4(), 1)
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        table = make_named(topic, Refusing(forged(trap)))
        with pytest.raises(RecordTooLargeError, match="said"):
            table.apply(made_up.archive(topic, table.snapshot(), 30), table.snapshot())
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    assert not trap.exists()
