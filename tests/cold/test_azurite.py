"""A cold root in Azure, on Microsoft's emulator. Needs Node: ``npx`` fetches the emulator.

``pytest -m slow tests/cold/test_azurite.py``
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from contract import offsets, read, rewrite
from made_up import EPOCH_MS, MadeUpRows, archive

from lakelog.base.back_off import POLL, wait_until
from lakelog.cold.answers import Orphans
from lakelog.cold.by_path.listing import tables
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage
from lakelog.engines.engine import InlineEngine
from lakelog.errors import ColdTierError, MissingFileError
from lakelog.values.record import OffsetAndTimestamp
from lakelog.values.topic_partition import TopicPartition
from tests.support.later_clock import LaterClock
from tests.support.object_store import Fault, FaultyFront
from tests.support.servers import free_port

pytestmark = pytest.mark.slow

ACCOUNT = "devstoreaccount1"
#: The emulator's own, which everybody knows.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
START_S = 300  # npx fetches 190 MB the first time


class StartFrom(FaultyFront):
    """Teaches the emulator what Azure's listing knows and delta-rs asks for: where to start."""

    def ask(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes]:
        """See `FaultyFront.ask`."""
        status, answered, content = super().ask(method, path, headers, body)
        start = parse_qs(urlsplit(path).query).get("startFrom")
        if start:
            blobs = re.compile(rb"<Blob><Name>(.*?)</Name>.*?</Blob>", re.DOTALL)
            content = blobs.sub(
                lambda blob: blob[0] if blob[1].decode() >= start[0] else b"", content
            )
        return status, answered, content


@pytest.fixture(scope="module")
def azurite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """Its port."""
    port, folder = free_port(), tmp_path_factory.mktemp("azurite")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                *("npx", "--yes", "--package", "azurite", "azurite-blob"),
                *("--blobPort", str(port), "--location", str(folder)),
                *("--skipApiVersionCheck", "--disableTelemetry", "--silent"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        _await(port, process, folder / "log")
        yield port
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # npx, its shell and Node are one group
        process.wait()


def _await(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    def is_over() -> bool:
        with closing(HTTPConnection("127.0.0.1", port)) as connection, suppress(OSError):
            connection.request("GET", "/")
            return True
        return process.poll() is not None

    if not wait_until("azurite's answer", is_over, POLL.within(START_S)) or (
        process.poll() is not None
    ):
        raise RuntimeError(f"azurite did not start:\n{log.read_text()[-2000:]}")


@pytest.fixture
def front(azurite: int) -> Iterator[FaultyFront]:
    found = StartFrom(azurite).start()
    yield found
    found.stop()


@pytest.fixture
def storage(front: FaultyFront) -> Storage:
    found = Storage(
        f"abfss://box@{ACCOUNT}.dfs.core.windows.net/logs",
        {
            "AZURE_STORAGE_ACCOUNT_KEY": KEY,
            "AZURE_STORAGE_ENDPOINT": f"{front.url}/{ACCOUNT}",
        },
    )
    found.filesystem().create_dir("box")
    return found


def test_a_table_is_written_read_and_sought_in_azure(storage, topic, front):
    table, other = (
        PathTable(topic, storage, InlineEngine(), MadeUpRows(), store_clock=LaterClock())
        for _ in range(2)
    )
    empty = table.snapshot()
    first = table.apply(archive(topic, empty, 1500, 2000), empty).snapshot
    assert other.apply(archive(topic, empty, 1500), empty).superseded == {0}

    front.inject(Fault("PUT", r"_delta_log/\d{20}\.json", lose_reply=True))
    after = other.apply(archive(topic, first, 2500), first).snapshot
    after = table.apply(rewrite(after), after).snapshot

    tp = TopicPartition("orders", 0)
    assert read(table, after, 0, 2500) == MadeUpRows().records(tp, 0, 2500)
    assert table.offset_for_timestamp(after, 0, EPOCH_MS + 777, 0) == OffsetAndTimestamp(
        777, EPOCH_MS + 777
    )
    assert table.remove_orphans() == Orphans()
    assert offsets(other, other.snapshot()) == list(range(2500))
    assert [found.name for found in tables(storage).topics] == ["orders"]


def test_refusals_and_missing_files_are_told_apart(storage, front):
    storage.check_writable()
    with pytest.raises(MissingFileError):
        storage.size_bytes(f"{storage.root}/none")
    wrong = {**storage.store_options, "AZURE_STORAGE_ACCOUNT_KEY": KEY.replace("Eby", "Ebz")}
    with pytest.raises(ColdTierError, match=r"AuthorizationFailure.*may list, read, write") as said:
        Storage(storage.root, wrong).check_writable()
    assert wrong["AZURE_STORAGE_ACCOUNT_KEY"] not in str(said.value)
