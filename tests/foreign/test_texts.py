"""Whatever text stands where lakelog keeps its own, it is read or refused, and refused by name."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakelog.base.secret_reference import resolve_secret
from lakelog.cli.erase import _of_file
from lakelog.cli.produce import json_record
from lakelog.codec import decode
from lakelog.codec.entry import EntryId
from lakelog.cold.by_name.notes import Note, parse_copy
from lakelog.cold.by_path.log_file import Commit
from lakelog.errors import LakelogError
from lakelog.groups.recorded_offset import GroupType, RecordedOffset
from lakelog.groups.reset_csv import read_csv
from lakelog.hot.declared_topics import load_declared
from lakelog.hot.topic_definition import defaults_from_json, from_json
from lakelog.jobs.parameters import _converted, step_names, topic_names
from lakelog.operate.erasure.certificate import check_certificate
from lakelog.operate.transfer.manifest import (
    DataFile,
    ExportedFile,
    ExportedPartition,
    ExportedTopic,
    Manifest,
)
from lakelog.read.where import parse as parse_where
from lakelog.spark.offsets_json import parse_offsets
from lakelog.spark.options import _assigned, _storage_options
from lakelog.values.config import TopicConfig
from lakelog.values.keyspace_defaults import KeyspaceDefaults
from lakelog.values.offsets import position
from lakelog.values.producer_calls import ProducerCall
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition

TOPIC_ID = UUID(int=7)
DEEP = "[" * 5_000
DEEP_OBJECT = '{"a":' * 5_000

SHA256 = "ab" * 32
EXPORT = Manifest(
    UUID(int=8),
    5,
    "1",
    (
        ExportedTopic(
            Topic("orders", TOPIC_ID, 1),
            (ExportedPartition(0, 5, 0, 0, 7),),
            (DataFile("partition=0/segment=0/a.parquet", 9, SHA256, 5, "{}"),),
            (ExportedFile("_delta_log/00000000000000000000.json", 9, SHA256),),
            {0: (ProducerCall(1, 0, 0, 4, 0, -1, "cafe"),)},
            (
                RecordedOffset(
                    "nightly",
                    GroupType.CLASSIC,
                    "consumer",
                    TopicPartition("orders", 0),
                    TOPIC_ID,
                    OffsetAndMetadata(3),
                    5,
                ),
            ),
        ),
    ),
)

NOTE = {
    "lakelog": 1,
    "topic": str(TOPIC_ID),
    "commit": "c",
    "kind": "archive",
    "epoch": 3,
    "on": 2,
    "registers": {"archived_end": {"0": 5}},
    "added": [[0, 0, "archive", 0, 5, "ab" * 8, 1, 2, 5, 0, 4, 1, 2, 100]],
    "known": [],
    "gone": ["0/x"],
    "base": {"epochs": {"archive": 3}, "registers": {"log_start": {"0": 0}}, "slices": []},
}
DEFINITION = {
    "name": "orders",
    "topic_id": str(TOPIC_ID),
    "partitions": 2,
    "config": {"retention.ms": "5"},
    "config_version": 1,
    "created_us": 5,
    "fresh": {"first": 0, "runs": ["a"]},
}
COMMIT = {
    "txn": {"appId": "lakelog/x/0/archived_end", "version": 5},
    "remove": {"path": "a%20b"},
    "add": {
        "path": "a",
        "partitionValues": {"partition": "0", "segment": "0"},
        "size": 5,
        "modificationTime": 5,
        "stats": "{}",
    },
    "metaData": {
        "id": "x",
        "schemaString": "{}",
        "partitionColumns": ["partition", "segment"],
        "configuration": {"a": "b"},
    },
    "protocol": {"minReaderVersion": 1, "readerFeatures": ["x"]},
    "commitInfo": {"lakelog.commit": "x"},
}

SOUND: dict[str, Any] = {
    "note": NOTE,
    "copy of registers": {"version": 5, "registers": {"log_start": {"0": 7}}},
    "definition of a topic": DEFINITION,
    "defaults of a keyspace": {"settings": {"log.retention.ms": "5"}, "version": 1},
    "config": {"overrides": {"retention.ms": "5"}, "defaults": {}},
    "offsets": {
        "orders": {"0": 5, "1": -2},
        "@id orders": {"0": 0, "1": 1, "2": 2, "3": 3},
        "@since orders": {"0": 3},
        "@gaps orders 0": {"3": 4},
    },
    "offsets of older versions": {
        "orders": {"0": 5, "1": -2},
        "@topic_ids": {"orders": str(TOPIC_ID)},
        "@since": {"orders": {"0": 3}},
        "@gaps": {"orders": {"0": [[3, 4]]}},
    },
    "assign": {"orders": [0, 1]},
    "storage options": {"AWS_REGION": "x"},
    "commit": COMMIT,
    "manifest": json.loads(EXPORT.to_json())["export"],
    "certificate": {"lakelog": 1, "kind": "erasure", "topic": "orders", "files": [{"rows": 3}]},
    "deletions": {"partitions": [{"topic": "t", "partition": 0, "offset": 1}], "version": 1},
    "record": {
        "key": "k",
        "value": {"a": 1},
        "headers": [["a", "b"], ["c", {"base64": "AA=="}]],
        "timestamp": "2024-01-01T00:00:00Z",
    },
}


def read_commit(text: str) -> None:
    with contextlib.suppress(ValueError):  # the one error that it promises
        for part in text.split("\n"):
            Commit.of(1, part.encode("utf-8", "replace"))


def sealed(text: str) -> dict[str, Any]:
    """An object with the digest that whoever forges it can make as well."""
    value = json.loads(text)
    compact = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return {"sha256": hashlib.sha256(compact.encode()).hexdigest(), "export": value}


def read_manifest(text: str) -> None:
    with contextlib.suppress(ValueError, RecursionError):  # what Python cannot write, either
        Manifest.parse(json.dumps(sealed(text)).encode(), "here")
    Manifest.parse(text.encode("utf-8", "surrogatepass"), "here")


def read_certificate(text: str) -> None:
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
        if isinstance(value, dict):
            said = {"digest": f"sha256:{sealed(text)['sha256']}", **value}
            check_certificate(json.dumps(said))
    check_certificate(text)


def read_deletions(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "deletions.json"
        path.write_text(text, "utf-8", errors="surrogatepass")
        _of_file(path)


READERS: dict[str, Callable[[str], Any]] = {
    "note": lambda text: Note.parse(text, TOPIC_ID),
    "copy of registers": parse_copy,
    "definition of a topic": lambda text: from_json(text.encode(), KeyspaceDefaults()),
    "defaults of a keyspace": lambda text: defaults_from_json(text.encode()),
    "config": TopicConfig.from_json,
    "offsets": lambda text: parse_offsets(text, "startingOffsets"),
    "offsets of older versions": lambda text: parse_offsets(text, "startingOffsets"),
    "assign": _assigned,
    "storage options": _storage_options,
    "commit": read_commit,
    "manifest": read_manifest,
    "certificate": read_certificate,
    "deletions": read_deletions,
    "record": lambda text: json_record(text.encode("utf-8", "surrogatepass")),
}

odd_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**63, -(2**63) - 1, 10**30, 1e400, -0.5]),
    st.floats(),
    st.text(max_size=5),
    st.just("9" * 5_000),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)


def places(value: Any) -> list[tuple[Any, ...]]:
    """Where something stands in it, as paths."""
    found: list[tuple[Any, ...]] = [()]
    items = value.items() if isinstance(value, dict) else ()
    items = enumerate(value) if isinstance(value, list) else items
    for key, inner in items:
        found += [(key, *rest) for rest in places(inner)]
    return found


@st.composite
def changed(draw: Any, name: str) -> str:
    """The sound one with a member changed or left out, as text."""
    value = json.loads(json.dumps(SOUND[name]))
    path = draw(st.sampled_from(places(value)))
    if not path:
        return json.dumps(draw(odd_values))
    holder = value
    for key in path[:-1]:
        holder = holder[key]
    if draw(st.booleans()):
        del holder[path[-1]]
    else:
        holder[path[-1]] = draw(odd_values)
    return json.dumps(value)


#: Read with a digest beside them alone; the next test has them sealed.
SEALED = {"manifest", "certificate"}


@pytest.mark.parametrize("name", sorted(SOUND.keys() - SEALED))
def test_what_is_sound_is_read(name):
    READERS[name](json.dumps(SOUND[name]))


def test_a_sound_manifest_is_read():
    assert Manifest.parse(EXPORT.to_json(), "here") == EXPORT
    with pytest.raises(LakelogError):
        read_certificate(json.dumps(SOUND["certificate"]) + "!")


@pytest.mark.parametrize("name", sorted(SOUND))
@given(data=st.data())
def test_json_that_is_not_as_it_should_be_is_refused_by_name(name, data):
    with contextlib.suppress(LakelogError):
        READERS[name](data.draw(changed(name)))


@pytest.mark.parametrize("name", sorted(SOUND))
@pytest.mark.parametrize(
    "text", [DEEP, DEEP_OBJECT, "9" * 5_000, "", "null", '"\\ud800"', '{"lakelog":' + DEEP]
)
def test_what_is_no_json_to_us_is_refused_by_name(name, text):
    with contextlib.suppress(LakelogError):
        READERS[name](text)


# -- texts of people -----------------------------------------------------------------------------

yaml_texts = st.one_of(
    st.text(max_size=60),
    st.text(alphabet="[]{}:,-&*!|>'\"# \n\tname partitions 0123456789", max_size=120),
    st.sampled_from(
        [
            DEEP,
            "{" * 5_000,
            "- " * 5_000,
            "name: orders\nconfig: {retention.ms: 2024-13-45}",
            "name: 2024-99-99",
            "name: orders\npartitions: 2024-02-30 99:99:99",
            "name: orders\npartitions: " + "9" * 5_000,
            "? [a]\n: b",
            "{[1]: 2}",
            "name: orders\nconfig: {? {a: b} : c}",
            "name: !!python/object/apply:os.system ['true']",
            "name: !!timestamp nonsense",
            "name: !!int nonsense",
            "name: !!float nonsense",
            "name: !!binary '*'",
            "name: [orders]",
            "name: orders\nconfig: [1]",
            "&a [*a]",
            "name: orders\nconfig: &a {retention.ms: *a}",
            "name: .inf\n",
            "name: 1:60:60",
        ]
    ),
)


@given(text=yaml_texts)
@example(text=DEEP)
def test_a_file_of_declared_topics_is_read_or_refused(tmp_path: Path, text: str):
    file = tmp_path / "topics.yml"
    file.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(LakelogError):
        load_declared([file])


@pytest.mark.parametrize(
    ("first", "each", "last"),
    [
        ("[x, x]", "[{}]", "*a29"),
        ("[x, x]", "[{}]", "{{name: orders, config: *a29}}"),
        ("{{retention.ms: 5}}", "{{<<: [{}]}}", "*a29"),
    ],
)
def test_a_file_whose_aliases_multiply_is_refused_before_it_fills_the_memory(
    tmp_path, first, each, last
):
    """A thousand bytes that say 2^30 values."""
    links = [f"a{n}: &a{n} " + each.format(f"*a{n - 1}, *a{n - 1}") for n in range(1, 30)]
    file = tmp_path / "topics.yml"
    file.write_text("\n".join([f"a0: &a0 {first.format()}", *links, f"z: {last.format()}"]))
    with pytest.raises(LakelogError, match="aliases"):
        load_declared([file])


@given(data=st.binary(max_size=60))
def test_a_file_of_any_bytes_is_read_or_refused(tmp_path: Path, data: bytes):
    file = tmp_path / "topics.yml"
    file.write_bytes(data)
    with contextlib.suppress(LakelogError):
        load_declared([file])


SPOKEN: dict[str, Callable[[str], Any]] = {
    "stream id": EntryId.parse,
    "offsets of groups": read_csv,
    "duration": lambda text: TopicConfig.of({"retention.ms": text}),
    "position": position,
    "expression": parse_where,
    "reference": lambda text: resolve_secret(text, "password_ref"),
    "number of a job": lambda text: _converted("seconds", text, 1.5, "job"),
    "whole number of a job": lambda text: _converted("partitions", text, 1, "job"),
    "flag of a job": lambda text: _converted("dry_run", text, True, "job"),
    "steps of a job": step_names,
    "topics of a job": topic_names,
    "value columns": lambda text: TopicConfig.of({"lakelog.value.columns": text}),
}


@pytest.mark.parametrize("name", sorted(SPOKEN))
@given(
    text=st.one_of(
        st.text(max_size=40),
        st.text(alphabet="$.[]'\"\\=<> 0123456789abc:-+TZP/{}(),int", max_size=60),
        st.sampled_from(
            [
                "9" * 5_000,
                "-" + "9" * 5_000 + "d",
                f"$[{'9' * 5_000}]",
                '$["\\x"]',
                "$.a == " + DEEP,
                "a " + "array<" * 5_000,
                "a " + "struct<a:" * 5_000,
                "a decimal(" + "9" * 5_000 + ")",
                "2024-13-45",
                "2024-02-30T99:99:99Z",
                "env:A=B",
                "env:\0",
                "file:\0",
                "secret:a/b",
                "PT" + "9" * 400 + "S",
                f"{'9' * 20}-{'9' * 20}",
            ]
        ),
    )
)
def test_what_a_person_writes_is_understood_or_refused(name, text):
    with contextlib.suppress(LakelogError):
        SPOKEN[name](text)


# -- entries ---------------------------------------------------------------------------------------


@given(
    fields=st.lists(
        st.one_of(
            st.binary(max_size=40),
            st.sampled_from(
                [b"a", b"c", b"t", b"v", b"__ts", b"__key", b"value", b"__gap", b"__crc"]
            ),
        ),
        max_size=12,
    ),
    last=st.integers(0, 2**64 - 1),
    count=st.integers(0, 2**64 - 1),
)
def test_any_fields_of_an_entry_are_records_or_damage(fields, last, count):
    with contextlib.suppress(LakelogError):
        decode([(EntryId(last, count), fields)])


# -- for long ------------------------------------------------------------------------------------

MEMORY_BYTES, CPU_S = 3 << 30, 500


@pytest.mark.slow
@pytest.mark.parametrize(
    "file", ["foreign/test_texts.py", "codec/test_damage.py", "groups/test_protocol.py"]
)
def test_for_long_within_bounds_of_memory_and_time(file, tmp_path):
    """2,000 examples of each; an input that takes more than its share ends the process."""

    def bounded() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_BYTES, MEMORY_BYTES))
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))

    done = subprocess.run(
        [
            *(
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n0",
                "-m",
                "not slow",
                "-p",
                "no:cacheprovider",
            ),
            *("--basetemp", tmp_path / "inner", Path(__file__).parents[1] / file),
        ],
        env={**os.environ, "HYPOTHESIS_PROFILE": "nightly"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=bounded,
    )
    assert done.returncode == 0, done.stdout[-4_000:]
