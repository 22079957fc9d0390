"""Errors carry what they declare, and nothing else; what they tell is in the README."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import lakelog
from lakelog import LakelogError, errors
from lakelog.errors import (
    ColdTierAccessError,
    ColdTierError,
    ColdTierFullError,
    ColdTierRefusedError,
    ColdTierUnavailableError,
    DeliveryError,
    DeliveryPendingError,
    HotTierUnavailableError,
    MissingFileError,
    OffsetOutOfRangeError,
    UnknownTopicOrPartitionError,
)
from lakelog.ingest.delivery import BatchOutcome
from lakelog.values.topic_partition import TopicPartition

ROOT = Path(lakelog.__file__).parent
CLASSES = [
    error
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, LakelogError) and name == error.__name__
]

#: Exceptions that end where they are raised for: no caller of lakelog sees one.
INTERNAL = {
    "AllowanceUsedUpError": "an append asks for more of the quotas and is sent again",
    "Unfit": "a JSON value that is no column's, told in value_error",
    "Undecodable": "a value is not what its format says, told in value_error",
    "RegistryError": "a schema cannot be had, told in value_error",
    "NotDirectError": "Spark reads the table instead",
    "VersionGoneError": "tasks tell a MissingFileError instead",
    "MalformedRequestError": "the gateway closes the connection on which such bytes came",
    "SaslError": "the gateway tells the client why it does not get in",
    "ScramError": "as that",
    "ThriftError": "a damaged footer, told as CorruptRecordError",
    "TooLargeError": "a Kafka batch too large once decompressed, told as RecordTooLargeError",
    "RecordFlawError": "a Kafka batch that holds no records, told by what takes it",
    "LookAgain": "a verification begins anew",
    "_NotLegalError": "an option of the data source is told with what it takes",
    "_FullError": "a compaction's map is full; it goes on with what fits",
    "Failed": "a command of the CLI says no, by its exit code",
    "_Refused": "what a check of a store's abilities found, told as a finding",
    "CarriedError": "carries an error of a task to the driver, which raises that",
    "TaskTraceback": "the cause of a task's error, never caught by class",
}


def made(error: type[LakelogError]) -> LakelogError:
    """One with a value in each field that has to be given."""
    required = {
        name: f"the {name}"
        for name in error.field_names
        if name != "message" and not hasattr(error, name)
    }
    return error("a sentence", **required)


@pytest.mark.parametrize("error", CLASSES)
def test_an_error_is_its_sentence_and_its_fields_and_travels(error: type[LakelogError]) -> None:
    one = made(error)
    assert (str(one), one.message, one.args) == ("a sentence", "a sentence", ("a sentence",))
    assert repr(one) == f"{error.__name__}('a sentence')"
    for name in error.field_names:
        assert hasattr(one, name)
    there = pickle.loads(pickle.dumps(one))
    assert type(there) is error
    assert (there.message, there.fields) == (one.message, one.fields)
    with pytest.raises(TypeError, match="log_strat"):
        error("a sentence", **{**one.fields, "log_strat": 1})
    required = [name for name in one.fields if not hasattr(error, name)]
    for name in required:
        with pytest.raises(TypeError, match=name):
            error("a sentence", **{other: "…" for other in required if other != name})
    with pytest.raises(AttributeError, match="log_strat"):
        one.log_strat  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize("error", CLASSES)
def test_an_error_says_when_it_comes(error: type[LakelogError]) -> None:
    assert "__doc__" in vars(error)
    assert not inspect.getdoc(error).startswith(f"{error.__name__}(")  # type: ignore[union-attr]


def test_fields_are_what_was_given() -> None:
    tp = TopicPartition("orders", 0)
    error = OffsetOutOfRangeError("no", topic_partition=tp, offset=7, log_end=5)
    assert error.fields == {"topic_partition": tp, "offset": 7, "log_end": 5}
    assert (error.log_start, error.batch) == (None, None)
    batch = BatchOutcome(1, pa.array([2, 3]), pa.array([], pa.int64()))
    error = error.changed(batch=batch)
    assert pickle.loads(pickle.dumps(error)).batch == batch
    assert (batch.not_written, batch.unknown) == (2, 0)


def test_a_cause_in_a_field_travels_too() -> None:
    cause = HotTierUnavailableError("away", sent=True, run_id="run")
    there = pickle.loads(pickle.dumps(DeliveryError("late", unknown=1, last_error=cause)))
    assert (there.last_error.sent, there.last_error.run_id) == (True, "run")


@pytest.mark.slow
def test_a_type_checker_refuses_what_is_no_field(tmp_path: Path) -> None:
    """Of all errors, and of those that lakelog raises itself: its own code is checked so too."""
    program = tmp_path / "program.py"
    program.write_text(
        "from lakelog.errors import *\n"
        "from lakelog.values.topic_partition import TopicPartition\n"
        "def read(error: OffsetOutOfRangeError) -> int | None:\n"
        "    return error.log_start\n"
        "def typo(error: OffsetOutOfRangeError) -> int | None:\n"
        "    return error.log_strat\n"
        "def base(error: LakelogError) -> object:\n"
        "    return error.offset\n"
        "def wrong(error: OffsetOutOfRangeError) -> str:\n"
        "    return error.offset\n"
        'TrimmedError("gone", local_log_strat=7)\n'
        'TrimmedError("gone", local_log_start="7")\n'
        'TrimmedError("gone")\n'
    )
    config = ["--config-file", str(ROOT.parent / "pyproject.toml")]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *config, str(program)],
        capture_output=True,
        text=True,
        cwd=ROOT.parent,
    )
    lines = {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error: " in line}
    assert lines == {6, 8, 10, 11, 12, 13}, done.stdout + done.stderr


def constructed(tree: ast.AST) -> list[ast.Call]:
    """Where the source makes an error of ours."""
    names = {error.__name__ for error in CLASSES}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


@pytest.mark.parametrize("file", sorted(ROOT.rglob("*.py")), ids=str)
def test_no_source_hides_its_fields_from_the_type_checker(file: Path) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    for call in constructed(tree):
        assert all(keyword.arg for keyword in call.keywords), f"line {call.lineno} has **"
        assert call.func.id != "ColdTierError", f"line {call.lineno}: away, or refused?"  # type: ignore[attr-defined]
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name = getattr(node.exc.func, "id", "")
            assert name not in {"TimeoutError", "ConnectionError", "OSError"}, node.lineno


def test_every_exception_class_is_in_errors_or_known_to_stay_inside() -> None:
    found = set()
    for file in ROOT.rglob("*.py"):
        if file == ROOT / "errors.py" or "testing" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            bases = [ast.unparse(base) for base in getattr(node, "bases", ())]
            if any(base.endswith(("Error", "Exception")) for base in bases):
                found.add(node.name)  # type: ignore[attr-defined]
    assert found == set(INTERNAL)


def test_an_error_that_is_a_builtin_too_is_caught_as_both() -> None:
    assert issubclass(DeliveryPendingError, TimeoutError)
    assert issubclass(HotTierUnavailableError, ConnectionError)
    assert issubclass(ColdTierAccessError, PermissionError)
    assert issubclass(MissingFileError, FileNotFoundError)
    assert str(UnknownTopicOrPartitionError("no topic 'a'")) == "no topic 'a'"  # KeyError quotes


def test_the_cold_tier_is_away_and_may_be_asked_again_or_refuses() -> None:
    away = {ColdTierUnavailableError, ColdTierFullError}
    assert {error.retriable for error in away} == {True}
    assert {error.retriable for error in (ColdTierRefusedError, ColdTierAccessError)} == {False}
    for error in (*away, ColdTierRefusedError, ColdTierAccessError):
        assert issubclass(error, ColdTierError)
    assert not any(issubclass(error, ColdTierRefusedError) for error in away)
