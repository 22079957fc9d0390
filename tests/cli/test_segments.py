"""`lakelog segments`: what people see, what scripts get, and the exit code."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from lakelog import Lakelog

Run = Callable[..., str]
EPOCH_MS = 1_700_000_000_000


@pytest.fixture
def run(where: list[str], command: Callable[..., tuple[str, str]]) -> Run:
    """Runs a command on a log of two tiers; partition 0 holds 300 cold and 40 hot records."""
    with Lakelog.connect(where[1], where[3], engine="inline") as log:
        # The records are from 2023: what is archived leaves the hot tier at once.
        config = {"retention.ms": -1, "local.retention.ms": 3_600_000}
        log.topics.create("orders", 2, {**config, "internal.segment.bytes": 6_000})
        with log.producer(compression_type="zstd") as producer:
            for start in range(0, 300, 20):
                rows = [
                    {"value": f"order {at}", "key": f"k{at}", "timestamp_ms": EPOCH_MS + at}
                    for at in range(start, start + 20)
                ]
                send(producer, rows)
            log.archive()
            rows = [
                {"value": f"größer {at} " * 20, "key": None, "timestamp_ms": EPOCH_MS + at}
                for at in range(300, 340)
            ]
            send(producer, rows)

    def run(*arguments: str, code: int = 0) -> str:
        out, err = command(*where, *arguments, code=code)
        return out or err * bool(code)

    return run


def send(producer: Any, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        producer.send(
            "orders",
            row["value"].encode(),
            key=row["key"] and row["key"].encode(),
            timestamp_ms=row["timestamp_ms"],
            partition=0,
        )
    producer.flush()


def as_json(run: Run, *arguments: str, **more: Any) -> Any:
    return json.loads(run(*arguments, "--output", "json", **more))


def lines(run: Run, *arguments: str, **more: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(*arguments, "--output", "json", **more).splitlines()]


def a_file(tmp_path: Path) -> Path:
    return sorted((tmp_path / "cold").rglob("archive-*.parquet"))[0]


# -- list --------------------------------------------------------------------------------------


def test_list_has_a_row_a_segment_and_tier(run):
    rows = as_json(run, "segments", "list", "orders")
    cold = [row for row in rows if row["tier"] == "cold"]
    hot = [row for row in rows if row["tier"] == "hot" and row["partition"] == 0]
    assert sum(row["records"] for row in cold) == 300
    assert sum(row["records"] for row in hot) == 40
    assert [row["end_offset"] for row in cold[:-1]] == [row["base_offset"] for row in cold[1:]]
    assert {row["state"] for row in cold[:-1]} == {"closed"}
    assert cold[-1]["state"] == "open"
    assert cold[0]["first_timestamp_ms"] == EPOCH_MS
    assert all(row["files"] >= 1 for row in cold)


def test_list_of_one_tier_and_partition(run):
    rows = as_json(run, "segments", "list", "orders", "-p", "1", "--tier", "hot")
    assert [(row["partition"], row["tier"], row["state"]) for row in rows] == [(1, "hot", "open")]
    shown = run("segments", "list", "orders", "--tier", "cold")
    assert "2023-11-14T22:13:20.000Z" in shown
    assert "hot" not in shown


def test_list_of_a_compacted_topic_says_what_is_dirty(run, redis_url, tmp_path):
    run("topics", "alter", "orders", "--config", "cleanup.policy=compact")
    rows = as_json(run, "segments", "list", "orders", "-p", "0", "--tier", "cold")
    assert {row["state"] for row in rows[:-1]} == {"dirty"}


def test_list_says_what_lies_below_the_log_start(run, redis_url, tmp_path):
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as log:
        log.log("orders").raise_log_start(0, 300)
    rows = as_json(run, "segments", "list", "orders", "-p", "0", "--tier", "cold")
    assert {row["state"] for row in rows} == {"below log start"}


def test_verify_of_a_healthy_log(run):
    assert "verified: everything holds what it says" in run(
        "segments", "list", "orders", "--verify"
    )
    page = as_json(run, "segments", "list", "orders", "--verify")
    assert page["findings"] == []
    assert sum(row["entries"] or 0 for row in page["segments"]) >= 1


def test_verify_names_what_is_wrong_and_exits_with_1(run, tmp_path, redis_url):
    path = a_file(tmp_path)
    path.write_bytes(path.read_bytes()[:-9])
    with redis.Redis.from_url(redis_url) as client:
        client.hset("{lakelog:stream:orders:0}:state", "closed_bytes", 1)
    page = as_json(run, "segments", "list", "orders", "--verify", code=1)
    cold, hot = page["findings"]
    assert cold["where"].endswith(path.name)
    assert (cold["topic"], cold["partition"], cold["tier"]) == ("orders", 0, "cold")
    assert hot["what"].startswith("says closed_bytes 1, but the closed segments have")
    shown = run("segments", "list", "orders", "--verify", code=1)
    assert "2 findings" in shown
    assert path.name in shown
    assert as_json(run, "segments", "list", "orders", "--verify", "-p", "1")["findings"] == []


def test_verify_of_a_log_whose_table_cannot_be_opened(run, tmp_path):
    for path in (tmp_path / "cold").rglob("_delta_log/*.json"):
        path.write_text("{}")
    assert "_delta_log" in run("segments", "list", "orders", code=1)
    page = as_json(run, "segments", "list", "orders", "--verify", code=1)
    assert {row["tier"] for row in page["segments"]} == {"hot"}
    assert {finding["where"] for finding in page["findings"]} == {"the table"}
    dumped = lines(run, "segments", "dump", "orders", "-p", "0", "--verify", code=1)
    assert {line["kind"] for line in dumped} == {"entry", "finding"}


# -- dump --------------------------------------------------------------------------------------


def test_dump_shows_entries_with_their_producer(run):
    entries = lines(run, "segments", "dump", "orders", "-p", "0", "--tier", "hot")
    assert {entry["kind"] for entry in entries} == {"entry"}
    assert entries[-1]["last_offset"] == 339
    last = entries[-1]
    assert last["crc_holds"] is True
    assert last["format"] == "arrow"
    assert last["compression"] == "zstd"
    assert last["producer_id"] is not None
    assert last["epoch"] == 0
    assert last["base_sequence"] == last["base_offset"]  # one producer, one partition
    assert last["min_timestamp_ms"] == EPOCH_MS + last["base_offset"]


def test_dump_shows_files_and_row_groups(run):
    rows = lines(run, "segments", "dump", "orders", "-p", "0", "--tier", "cold")
    files = [row for row in rows if row["kind"] == "file"]
    groups = [row for row in rows if row["kind"] == "row group"]
    assert sum(file["records"] for file in files) == sum(group["rows"] for group in groups) == 300
    assert all(file["sorted"] and file["tombstones_without_horizon"] == 0 for file in files)
    assert {group["compression"] for group in groups} == {"zstd"}
    shown = run("segments", "dump", "orders", "-p", "0", "--tier", "cold")
    assert files[0]["path"] in shown
    assert "sorted" in shown


def test_dump_of_one_segment(run):
    rows = as_json(run, "segments", "list", "orders", "-p", "0", "--tier", "cold")
    base, end = rows[1]["base_offset"], rows[1]["end_offset"]
    dumped = lines(run, "segments", "dump", "orders", "-p", "0", "--segment", str(base))
    assert {
        (row["start_offset"], row["end_offset"]) for row in dumped if row["kind"] == "file"
    } == {(base, end)}
    said = run("segments", "dump", "orders", "-p", "0", "--segment", "7", code=1)
    assert "no segment of orders-0 begins at 7" in said


def test_dump_with_records(run):
    dumped = lines(
        run, "segments", "dump", "orders", "-p", "0", "--from", "298", "--records", "--limit", "2"
    )
    records = [row for row in dumped if row["kind"] == "record"]
    assert [(row["tier"], row["offset"]) for row in records] == [
        ("cold", 298),
        ("cold", 299),
        ("hot", 300),
        ("hot", 301),
    ]
    assert records[0]["value"] == "order 298"
    shown = run("segments", "dump", "orders", "-p", "0", "--from", "300", "--records")
    assert max(map(len, shown.splitlines())) < 180  # a long value is cut
    assert "größer 339 größer 339 größer 339 größer…" in shown


def test_dump_says_that_there_is_nothing(run):
    shown = run("segments", "dump", "orders", "-p", "0", "--from", "100000")
    assert shown == "orders-0 has no entries and no files there\n"


@pytest.mark.parametrize("limit", ["0", "1"])
def test_dump_is_bounded(run, limit):
    dumped = lines(run, "segments", "dump", "orders", "-p", "0", "--limit", limit, "--tier", "hot")
    assert len(dumped) == int(limit)


def test_dump_verifies_what_it_names(run, tmp_path):
    path = a_file(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-8] + struct.pack("<i", 5) + content[-4:])
    dumped = lines(run, "segments", "dump", "orders", "-p", "0", "--verify", code=1)
    assert [line["kind"] for line in dumped if line.get("flaw") or line["kind"] == "finding"] == [
        "file",
        "finding",
    ]
    shown = run("segments", "dump", "orders", "-p", "0", "--verify", code=1)
    assert "UNREADABLE" in shown
    assert "1 finding" in shown
    whole = run("segments", "dump", "orders", "-p", "0", "--from", "299", "--verify")
    assert "verified: everything holds what it says" in whole


def test_a_damaged_entry_is_shown_as_such(run, redis_url):
    with redis.Redis.from_url(redis_url) as client:
        stream = "lakelog:stream:orders:0"
        ((entry_id, fields), *rest) = client.xrange(stream)[-1:]
        client.xtrim(stream, maxlen=client.xlen(stream) - 1)
        client.delete(stream)
        client.xadd(stream, {**fields, b"c": b"00000000"}, id=entry_id)
        assert not rest
    dumped = lines(run, "segments", "dump", "orders", "-p", "0", "--tier", "hot")
    assert dumped[0]["crc_holds"] is False
    assert "CRC-32C" in dumped[0]["flaw"]
    assert "00000000 BAD" in run("segments", "dump", "orders", "-p", "0", "--tier", "hot")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "nothing"], "nothing"),
        (["list", "orders", "-p", "9"], "partition"),
        (["dump", "orders", "-p", "9"], "partition"),
        (["dump", "orders", "-p", "0", "--from=-1"], "offset"),
        (["dump", "orders", "-p", "0", "--limit", "-1"], "--limit -1 is negative"),
    ],
)
def test_wrong_arguments_get_a_sentence(run, arguments, says):
    assert says in run("segments", *arguments, code=1)
