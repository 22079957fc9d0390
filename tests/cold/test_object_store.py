"""A cold root in S3: what the store does wrong costs time or an error, never a record."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from contract import offsets, read, rewrite
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import MadeUpRows, archive, batch_of

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.cold.by_path.listing import tables
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.change import HotRange
from lakelog.cold.store import object_store
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.errors import ColdTierError, CorruptRecordError, LakelogError, MissingFileError
from lakelog.values.config import MIB
from lakelog.values.record import Record
from lakelog.values.topic import Topic
from lakelog.values.topic_partition import TopicPartition
from tests.support.later_clock import LaterClock
from tests.support.object_store import Fault, FaultyFront, s3_options

PROGRAM = Path(__file__).with_name("applier_process.py")
ORDERS_0 = TopicPartition("orders", 0)
DATA, COMMIT, LIST = r"/(archive|clean)-", r"_delta_log/\d{20}\.json", "list-type=2"
FOREVER = 10_000


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: Any) -> None:
    """As the real ones, but they give up within a second or two."""
    quick = {"max_retries": "3", "backoff_config.init_backoff": "10ms"}
    monkeypatch.setattr(object_store, "DELTA_RETRIES", {**object_store.DELTA_RETRIES, **quick})
    monkeypatch.setattr(object_store, "S3_ATTEMPTS", 3)


@pytest.fixture
def storage(s3_front: FaultyFront, s3_storage: Storage) -> Storage:
    """The test's root, seen through the front."""
    return Storage(s3_storage.root, s3_options(s3_front.url))


@pytest.fixture
def open_table(topic: Topic) -> Callable[..., PathTable]:
    """Opens the table at a storage as another process would."""

    def open_at(storage: Storage, rows_of: Any = MadeUpRows()) -> PathTable:  # noqa: B008 - frozen
        return PathTable(topic, storage, InlineEngine(), rows_of, store_clock=LaterClock())

    return open_at


@pytest.fixture
def table(open_table: Any, storage: Storage) -> PathTable:
    return open_table(storage)


@pytest.fixture
def archived(table: PathTable, topic: Topic) -> Any:
    """A snapshot with two files of 500 records."""
    empty = table.snapshot()
    return table.apply(archive(topic, empty, 500, 1000), empty).snapshot


# -- faults ------------------------------------------------------------------------------------

_HOW: dict[str, Any] = {
    "500": {"status": 500},
    "503": {"status": 503},
    "429": {"status": 429},
    "slow": {"delay_s": 0.3},
    "cut": {"cut_body": True},
    "lost": {"lose_reply": True},
}

#: Each kind of request, with the ways it goes wrong: those of each run, and those of the slow ones.
_CASES = (
    ("PUT", DATA, "503 lost", "500 429 slow"),
    ("HEAD", DATA, "", "503 lost"),
    ("GET", DATA, "500 cut", "503 lost"),
    ("PUT", COMMIT, "500 503 lost slow", "429"),
    ("GET", COMMIT, "lost", "503 cut"),
    ("GET", LIST, "503 cut", "500 lost slow"),
)
OFTEN, SELDOM = (
    {
        f"{method} {target.strip('/')[:10]} {how}": Fault(method, target, **_HOW[how])
        for method, target, *ways in _CASES
        for how in ways[column].split()
    }
    for column in (0, 1)
)


#: Arrow sends a larger file in parts.
LARGE_BYTES = 12 * MIB


@pytest.mark.parametrize(
    "fault",
    [
        Fault("POST", r"large\?uploads", **_HOW["lost"]),
        Fault("POST", "uploadId", **_HOW["500"]),
        Fault("PUT", "partNumber", **_HOW["503"]),
        Fault("PUT", "partNumber", **_HOW["lost"]),
    ],
    ids=["begun", "ended", "part refused", "part lost"],
)
def test_a_large_file_is_whole_whatever_goes_wrong_with_its_parts(storage, s3_front, fault):
    content = bytes(range(256)) * (LARGE_BYTES // 256)
    s3_front.inject(fault)
    storage.write_bytes(f"{storage.root}/large", content)
    assert fault.happened == 1
    assert storage.read_bytes(f"{storage.root}/large") == content


def test_a_small_file_of_a_table_is_one_request(table, topic, s3_front):
    empty = table.snapshot()
    snapshot = table.apply(archive(topic, empty, 100), empty).snapshot
    s3_front.requests.clear()
    table.apply(archive(topic, snapshot, 200), snapshot)
    about = [method for method, path, _ in s3_front.requests if re.search(DATA, path)]
    assert about == ["PUT", "HEAD"]  # the commit looks whether it is there


@dataclass(frozen=True)
class Roots:
    """One root in two lights."""

    calm: Storage
    front: FaultyFront

    @property
    def faulty(self) -> Storage:
        return Storage(self.calm.root, s3_options(self.front.url))


@pytest.fixture
def roots(s3_storage: Storage, s3_front: FaultyFront) -> Roots:
    return Roots(s3_storage, s3_front)


def check_each_record_is_there_once(
    open_table: Any, topic: Topic, roots: Roots, faults: Sequence[Fault]
) -> int:
    """Archives, rewrites and reads while those happen, again and again until it succeeds.

    How often they happened.
    """
    calm = open_table(roots.calm)
    happened = 0

    def until(done: Callable[[], bool], step: Callable[[PathTable], object]) -> None:
        nonlocal happened
        now = [replace(fault) for fault in faults]
        roots.front.inject(*now)
        while not done():
            with suppress(ColdTierError):  # its work is undone or settled by the next
                step(open_table(roots.faulty))
        roots.front.inject()
        happened += sum(fault.happened for fault in now)

    def archive_to(end: int) -> Callable[[PathTable], object]:
        def step(table: PathTable) -> object:
            snapshot = table.snapshot()
            return table.apply(archive(topic, snapshot, end), snapshot)

        return step

    for end in (300, 650):
        until(lambda end=end: calm.snapshot().archived_end(0) >= end, archive_to(end))
    until(
        lambda: len(calm.snapshot().files) == 1,
        lambda table: table.apply(rewrite(table.snapshot()), table.snapshot()),
    )
    seen: list[Record] = []
    until(lambda: bool(seen), lambda table: seen.extend(read(table, table.snapshot(), 0, 650)))

    assert seen == MadeUpRows().records(ORDERS_0, 0, 650)
    snapshot = calm.snapshot()
    assert sum(file.records for file in snapshot.files) == 650
    calm.remove_orphans()
    assert offsets(open_table(roots.calm), snapshot) == list(range(650))
    return happened


@pytest.mark.parametrize("fault", OFTEN.values(), ids=OFTEN)
def test_each_record_is_there_once_whatever_goes_wrong(open_table, topic, roots, fault):
    assert check_each_record_is_there_once(open_table, topic, roots, [fault]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("fault", SELDOM.values(), ids=SELDOM)
def test_each_record_is_there_once_whatever_else_goes_wrong(open_table, topic, roots, fault):
    assert check_each_record_is_there_once(open_table, topic, roots, [fault]) > 0


@pytest.mark.slow
@settings(max_examples=30)
@given(
    faults=st.lists(
        st.builds(
            replace,
            st.sampled_from([*OFTEN.values(), *SELDOM.values()]),
            times=st.integers(1, 9),
            skip=st.integers(0, 3),
        ),
        max_size=4,
    )
)
def test_each_record_is_there_once_whatever_goes_wrong_at_once(open_table, topic, roots, faults):
    fresh = Roots(
        Storage(f"{roots.calm.root}/{uuid4().hex}", roots.calm.store_options), roots.front
    )
    check_each_record_is_there_once(open_table, topic, fresh, faults)


@pytest.mark.parametrize(
    ("method", "target", "status", "said"),
    [
        ("PUT", COMMIT, 503, "SlowDown"),
        pytest.param("PUT", DATA, 500, "INTERNAL_FAILURE", marks=pytest.mark.slow),
    ],
)
def test_a_store_that_stays_away_is_told_in_its_own_words(
    table, topic, s3_front, open_table, s3_storage, method, target, status, said
):
    s3_front.inject(Fault(method, target, status=status, times=FOREVER))
    with pytest.raises(ColdTierError, match=said):
        table.apply(archive(topic, table.snapshot(), 100), table.snapshot())
    assert len(s3_front.requests) > 3  # it was tried again
    s3_front.inject()
    assert open_table(s3_storage).snapshot().archived_end(0) == 0
    snapshot = table.apply(archive(topic, table.snapshot(), 100), table.snapshot()).snapshot
    assert offsets(table, snapshot) == list(range(100))


@pytest.mark.parametrize("target", [LIST, COMMIT, DATA])
def test_refused_access_is_no_missing_file(archived, s3_front, open_table, storage, target):
    s3_front.inject(
        *(Fault(method, target, status=403, times=FOREVER) for method in ("GET", "HEAD"))
    )
    table = open_table(storage)
    with pytest.raises(ColdTierError, match=r"may list, read, write|may be read") as refused:
        read(table, table.snapshot(), 0, 1000)
    assert not isinstance(refused.value, MissingFileError | CorruptRecordError)


def test_a_bucket_that_is_not_there_is_said(open_table, topic, s3_front):
    storage = Storage("s3://elsewhere/logs", s3_options(s3_front.url))
    table = open_table(storage)
    for attempt in (storage.check_writable, table.snapshot):
        with pytest.raises(ColdTierError, match="bucket") as said:
            attempt()
        assert not isinstance(said.value, MissingFileError)


def test_files_that_somebody_deleted_or_broke_are_told_apart(archived, table, storage):
    first, second = archived.files.of_partition(0)
    storage.delete_file(f"{table.path}/{first.path}")
    path = storage.arrow_path(f"{table.path}/{second.path}")
    with storage.filesystem().open_output_stream(path) as out:
        out.write(b"PAR1 no more PAR1")
    with pytest.raises(MissingFileError, match=first.path):
        read(table, archived, 0, 500)
    with pytest.raises(CorruptRecordError, match=second.path):
        read(table, archived, 500, 1000)


def test_a_damaged_page_is_no_failing_store(archived, table, storage):
    file = archived.files.of_partition(0)[0]
    path = storage.arrow_path(f"{table.path}/{file.path}")
    content = bytearray(storage.read_bytes(f"{table.path}/{file.path}") or b"")
    middle = len(content) // 3
    content[middle : middle + 40] = bytes(40)
    with storage.filesystem().open_output_stream(path) as out:
        out.write(bytes(content))
    with pytest.raises(CorruptRecordError, match=file.path):
        read(table, archived, 0, 500)


# -- commits -----------------------------------------------------------------------------------


def test_a_commit_is_a_conditional_put_whatever_the_environment_says(
    table, topic, s3_front, monkeypatch
):
    monkeypatch.setenv("AWS_CONDITIONAL_PUT", "disabled")
    monkeypatch.setenv("AWS_S3_ALLOW_UNSAFE_RENAME", "true")
    for end in (10, 20):
        table.apply(archive(topic, table.snapshot(), end), table.snapshot())
    commits = [
        {name.lower(): value for name, value in headers.items()}
        for method, path, headers in s3_front.requests
        if method == "PUT" and "_delta_log" in path
    ]
    assert len(commits) == 3  # the table, and two archives
    assert [headers.get("if-none-match") for headers in commits] == ["*"] * 3


def test_an_archive_asks_for_the_log_as_seldom_as_it_can(table, topic, archived, s3_front):
    s3_front.requests.clear()
    table.apply(archive(topic, archived, 1500), archived)
    before_commit = next(
        number
        for number, (method, path, _) in enumerate(s3_front.requests)
        if method == "PUT" and re.search(COMMIT, path)
    )
    asked = [path for _, path, _ in s3_front.requests[:before_commit] if re.search(COMMIT, path)]
    # Who plans has looked; the commit is refused if that is not the newest version any more.
    assert {path[-10:] for path in asked} == {"00001.json"}


def test_files_that_were_deleted_as_superseded_are_no_error(
    table, topic, archived, open_table, storage
):
    other = open_table(storage)

    class Overtaken(InlineEngine):
        """Others commit the same records meanwhile, and remove what can never be committed."""

        def map(self, function, tasks):
            written = list(super().map(function, tasks))
            for found in written:
                other.apply(archive(topic, archived, 1500), archived)
                storage.delete_file(f"{table.path}/{found.file.path}")
            yield from written

    mine = PathTable(topic, storage, Overtaken(), MadeUpRows(), store_clock=LaterClock())
    planned_on = mine.snapshot()
    lost = mine.apply(archive(topic, planned_on, 1500), planned_on)
    assert lost.superseded == {0}
    assert offsets(table, table.snapshot()) == list(range(1500))


def test_nothing_is_committed_to_a_log_that_is_gone(table, topic, archived, storage):
    class Purged(InlineEngine):
        """Others remove the table meanwhile, before the files are written."""

        def map(self, function, tasks):
            storage.delete_files(f"{table.path}/{one}" for one in storage.files_below(table.path))
            yield from super().map(function, tasks)

    mine = PathTable(topic, storage, Purged(), MadeUpRows(), store_clock=LaterClock())
    planned_on = mine.snapshot()
    with pytest.raises(LakelogError) as refused:
        mine.apply(archive(topic, planned_on, 1500), planned_on)
    assert not isinstance(refused.value, MissingFileError)
    assert storage.file_names(f"{table.path}/_delta_log") == []


def test_archivers_at_the_same_table_archive_each_record_once(
    open_table, topic, roots, monkeypatch
):
    """Processes that take their credentials from the environment, and a store that hiccups."""
    roots.front.inject(
        Fault("PUT", COMMIT, status=503, times=3, skip=1),
        Fault("PUT", COMMIT, lose_reply=True, times=4, skip=4),
        Fault("PUT", DATA, lose_reply=True, times=3, skip=2),
        Fault("GET", LIST, status=500, times=5, skip=10),
    )
    processes = [
        subprocess.Popen(
            [sys.executable, PROGRAM, roots.calm.root, str(topic.topic_id), partition, "600", step],
            env={**os.environ, **s3_options(roots.front.url)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for partition, step in (("0", "50"), ("0", "70"), ("1", "100"))
    ]
    said = [process.communicate(timeout=240)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said

    table = open_table(roots.calm)
    snapshot = table.snapshot()
    for partition in (0, 1):
        assert offsets(table, snapshot, partition) == list(range(600))
    assert sum(file.records for file in snapshot.files) == 1200


# -- large files -------------------------------------------------------------------------------

LARGE_RECORDS = 26_000


def large_rows(hot_range: HotRange) -> Iterator[Any]:
    """26 MB that do not compress."""
    source = random.Random(5)
    for start in range(hot_range.start_offset, hot_range.end_offset, 2000):
        yield batch_of(
            [
                Record("orders", 0, at, at, value=source.randbytes(1000))
                for at in range(start, min(start + 2000, hot_range.end_offset))
            ]
        )


def test_a_large_file_goes_up_in_parts_and_one_that_fails_is_never_seen(
    open_table, topic, storage, s3_front, s3_server
):
    table = open_table(storage, large_rows)
    empty = table.snapshot()
    change = archive(topic, empty, LARGE_RECORDS)
    s3_front.inject(Fault("PUT", "partNumber=2", status=403))
    with pytest.raises(ColdTierError, match="ACCESS_DENIED"):
        table.apply(change, empty)
    assert [
        key for key in s3_server.keys("lakelog") if ".parquet" in key and table.path[13:] in key
    ] == []

    s3_front.inject(
        Fault("PUT", "partNumber=2", status=503), Fault("PUT", "partNumber=3", lose_reply=True)
    )
    s3_front.requests.clear()
    applied = table.apply(change, table.snapshot())

    parts = {path.partition("partNumber=")[2][:1] for method, path, _ in s3_front.requests}
    assert {"1", "2", "3"} <= parts
    (file,) = applied.files
    assert file.size_bytes > 25_000_000
    values = [
        value
        for batch in table.read([file], 0, LARGE_RECORDS, ["value"])
        for value in batch.column("value").to_pylist()
    ]
    source = random.Random(5)
    assert values == [source.randbytes(1000) for _ in range(LARGE_RECORDS)]


# -- a log -------------------------------------------------------------------------------------


def test_a_log_from_end_to_end(redis_url, s3_server, s3_storage, monkeypatch):
    """Append, archive, read, seek, clean up, with and without Redis; all by the environment."""
    for name, value in s3_options(s3_server.url).items():
        monkeypatch.setenv(name, value)
    root = s3_storage.root
    with Lakelog.connect(redis_url, root, engine="inline") as log:
        config = {"segment.ms": 60_000, "retention.ms": -1, "local.retention.ms": 0}
        log.topics.create("orders", 2, config)
        with log.producer() as producer:
            for n in range(400):
                time_ms = 1_700_000_000_000 + 1000 * n
                producer.send("orders", b"%d" % n, partition=n % 2, timestamp_ms=time_ms)
                if n % 50 == 0:
                    producer.flush()
        log.archive("orders")
        orders = log.log("orders")
        assert orders.offsets()[1].local_log_start == 200
        assert [record.value for record in orders.read(1).records()] == [
            b"%d" % n for n in range(1, 400, 2)
        ]
        assert orders.seek(0, "2023-11-14T22:15:00.500Z") == 51
        (described,) = tables(Storage(root)).topics
        assert described.name == "orders"

        log.topics.alter("orders", {"retention.ms": 1000})
        alone = Lakelog.connect(None, root, engine="inline", storage_options=None)
        (planned,) = alone.cleanup_plan()
        assert "orders-0: retain" in str(planned)
        log.cleanup("orders")
        assert [one.log_start for one in orders.offsets().values()] == [200, 200]
    (report,) = alone.cleanup()
    assert not report


def test_the_command_line_opens_a_store(
    open_table, topic, s3_storage, s3_server, capsys, monkeypatch
):
    table = open_table(s3_storage)
    table.apply(archive(topic, table.snapshot(), 10), table.snapshot())
    monkeypatch.setenv("WORD", "a secret word")
    options = {**s3_options(s3_server.url), "AWS_SECRET_ACCESS_KEY": "env:WORD"}
    given = [f"--storage-option={name}={value}" for name, value in options.items()]
    place = ["--cold", s3_storage.root, "--engine", "inline", "--output", "json"]
    assert cli.main([*place, *given, "cleanup", "plan"]) == 0
    assert cli.main([*place, "--storage-option=AWS_SESSION_TOKEN=a word", "cleanup", "plan"]) == 1
    assert "a word" not in capsys.readouterr().err


def test_checking_a_root_leaves_no_file(s3_storage):
    s3_storage.check_writable()
    assert s3_storage.list_files(s3_storage.root, recursive=True) == []
