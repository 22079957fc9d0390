"""What real refusals of real stores mean: ask again, no room, or no."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.fs as pafs
import pytest
from deltalake import DeltaTable, write_deltalake

from lakelog import Lakelog
from lakelog.base import back_off
from lakelog.cold.as_archived import AsArchived
from lakelog.cold.store import object_store
from lakelog.cold.store.storage import Storage
from lakelog.cold.store_errors import error_class, one_line
from lakelog.errors import (
    ColdTierAccessError,
    ColdTierFullError,
    ColdTierRefusedError,
    ColdTierUnavailableError,
    OffsetOutOfRangeError,
)
from tests.support.object_store import Fault, FaultyFront, s3_options
from tests.support.servers import free_port

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE")
BUSY = [429, 500, 503]
DENIED = [401, 403]


@pytest.fixture(autouse=True)
def _libraries_ask_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their own patience takes a minute."""
    monkeypatch.setattr(object_store, "S3_ATTEMPTS", 1)
    monkeypatch.setitem(object_store.DELTA_RETRIES, "max_retries", "1")


@pytest.fixture
def storage(s3_front: FaultyFront) -> Storage:
    """A root with a file and a table."""
    made = Storage(f"s3://lakelog/{uuid4().hex}", s3_options(s3_front.url))
    write(made, f"{made.root}/file", b"content")
    write_deltalake(
        f"{made.root}/table", pa.table({"n": [1]}), storage_options=made.delta_options()
    )
    return made


def write(storage: Storage, path: str, content: bytes) -> None:
    with (
        storage.naming(path),
        storage.filesystem().open_output_stream(storage.arrow_path(path)) as out,
    ):
        out.write(content)


def append(storage: Storage) -> None:
    write_deltalake(
        f"{storage.root}/table",
        pa.table({"n": [1]}),
        mode="append",
        storage_options=storage.delta_options(),
    )


def open_table(storage: Storage) -> None:
    DeltaTable(f"{storage.root}/table", storage_options=storage.delta_options())


#: What is asked of a store, each as lakelog asks it.
CALLS: dict[str, Callable[[Storage], Any]] = {
    "list": lambda storage: [one.path for one in storage.list_files(storage.root, recursive=True)],
    "read": lambda storage: storage.read_bytes(f"{storage.root}/file"),
    "look": lambda storage: storage.is_file(f"{storage.root}/file"),
    "size": lambda storage: storage.size_bytes(f"{storage.root}/file"),
    "missing": lambda storage: storage.missing([f"{storage.root}/file"]),
    "delete": lambda storage: storage.delete_file(f"{storage.root}/file"),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", BUSY)
def test_one_refusal_of_a_busy_store_is_asked_again(storage, s3_front, call, status):
    expected = CALLS[call](storage) if call != "delete" else None
    fault = [Fault(method, ".", status=status, times=1) for method in METHODS]
    s3_front.inject(*fault)
    assert CALLS[call](storage) == expected
    assert sum(one.happened for one in fault) >= 1


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", BUSY)
def test_a_store_that_stays_busy_is_told_as_such(storage, s3_front, monkeypatch, call, status):
    monkeypatch.setattr(back_off, "ASK_AGAIN", back_off.ASK_AGAIN.within(0.2))
    s3_front.inject(*(Fault(method, ".", status=status, times=None) for method in METHODS))
    with pytest.raises(ColdTierUnavailableError) as caught:
        CALLS[call](storage)
    assert caught.value.retriable


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("status", DENIED)
def test_a_denial_is_told_at_once(storage, s3_front, call, status):
    faults = [Fault(method, ".", status=status, times=None) for method in METHODS]
    s3_front.inject(*faults)
    with pytest.raises(ColdTierAccessError) as caught:
        CALLS[call](storage)
    assert not caught.value.retriable
    assert sum(fault.happened for fault in faults) <= 2


@pytest.mark.parametrize("status", [*BUSY, *DENIED])
@pytest.mark.parametrize("call", [open_table, append])
def test_delta_rs_says_it_in_words_of_its_own(storage, s3_front, status, call):
    methods = METHODS if call is open_table else ("PUT", "POST")
    s3_front.inject(*(Fault(method, ".", status=status, times=None) for method in methods))
    with pytest.raises(Exception) as caught:
        call(storage)
    expected = ColdTierUnavailableError if status in BUSY else ColdTierAccessError
    assert error_class(one_line(caught.value)) is expected, str(caught.value)


def test_a_store_that_nobody_listens_for_is_away():
    nobody = Storage(f"s3://lakelog/{uuid4().hex}", s3_options(f"http://127.0.0.1:{free_port()}"))
    with pytest.raises(ColdTierUnavailableError):
        write(nobody, f"{nobody.root}/other", b"x")
    with pytest.raises(Exception) as caught:
        open_table(nobody)
    assert error_class(one_line(caught.value)) is ColdTierUnavailableError


def full_for_python() -> None:
    with Path("/dev/full").open("wb", buffering=0) as out:
        out.write(b"x")


def full_for_arrow() -> None:
    with pafs.LocalFileSystem().open_output_stream("/dev/full") as stream:
        stream.write(b"x" * 100_000)


@pytest.mark.parametrize("call", [full_for_python, full_for_arrow])
def test_a_full_disk_is_no_damage(tmp_path, call):
    """/dev/full has no room, ever."""
    storage = Storage(str(tmp_path))
    with pytest.raises(ColdTierFullError) as caught, storage.naming("/dev/full"):
        call()
    assert caught.value.retriable
    assert "has room" in caught.value.message


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (errno.ENOSPC, ColdTierFullError),
        (errno.EDQUOT, ColdTierFullError),
        (errno.EFBIG, ColdTierFullError),
        (errno.EIO, ColdTierUnavailableError),
        (errno.ESTALE, ColdTierUnavailableError),
        (errno.EMFILE, ColdTierUnavailableError),
        (errno.EACCES, ColdTierAccessError),
        (errno.EROFS, ColdTierAccessError),
        (errno.ENAMETOOLONG, ColdTierRefusedError),
    ],
)
def test_numbers_of_the_operating_system_and_how_rust_writes_them(number, expected):
    error = OSError(number, "said")
    assert error_class(error) is expected
    assert error_class(f"Generic LocalFileSystem error: no (os error {number})") is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "Unable to open. Azure Error: [ServerBusy] 503 The server is busy",
            ColdTierUnavailableError,
        ),
        (
            "Azure Error: [AuthenticationFailed] 403 Server failed to authenticate",
            ColdTierAccessError,
        ),
        (
            "google::cloud::Status(UNAVAILABLE: Retry policy exhausted)",
            ColdTierUnavailableError,
        ),
        ("google::cloud::Status(PERMISSION_DENIED: no)", ColdTierAccessError),
        (
            "getFileStatus: SlowDown (Service: S3, Status Code: 503, Request ID: 1)",
            ColdTierUnavailableError,
        ),
        (
            "AccessDeniedException: open s3a://b/k: (Service: S3, Status Code: 403)",
            ColdTierAccessError,
        ),
        (
            "[FAILED_READ_FILE.NO_HINT] reading /mnt/a.parquet. java.io.IOException: Input/output "
            "error",
            ColdTierUnavailableError,
        ),
        (
            "[FAILED_READ_FILE.NO_HINT] reading s3a://b/k. ConnectionClosedException: Premature "
            "end of Content-Length delimited message body (expected: 9; received: 4)",
            ColdTierUnavailableError,
        ),
        ("/data/503/status 429.parquet is odd", ColdTierRefusedError),
        ("a name of 503 and 403 letters", ColdTierRefusedError),
    ],
)
def test_words_of_other_libraries(said, expected):
    assert error_class(said) is expected


@pytest.mark.parametrize(
    ("status", "expected"),
    [(503, ColdTierUnavailableError), (403, ColdTierAccessError), (404, OffsetOutOfRangeError)],
)
def test_an_old_version_is_gone_only_if_the_store_says_so(redis_url, s3_front, status, expected):
    root, options = f"s3://lakelog/{uuid4().hex}", s3_options(s3_front.url)
    with Lakelog.connect(redis_url, root, engine="inline", storage_options=options) as lake:
        topic = lake.topics.create("orders", 1, {"segment.ms": 1})
        for time_ms in (1_700_000_000_000, 1_700_000_001_000):
            with lake.producer() as producer:
                producer.send("orders", b"v", timestamp_ms=time_ms)
            lake.archive("orders")
        log = lake.log("orders")
        since = log.table.snapshot().version - 1
        log.raise_log_start(0, 1)
        archived = AsArchived(log.table, topic.partition(0), since=since, start=0, end=2)
        s3_front.inject(Fault("GET", "_delta_log/.*json", status=status, times=None))
        with pytest.raises(expected):
            archived.snapshot()
