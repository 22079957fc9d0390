"""Erasing records of a whole log: no byte of them stays in a file, a key of Redis, or its files."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from dead_letters import reject_all
from erased_traces import traces as found_traces

from lakelog import Lakelog
from lakelog.base.failpoints import armed
from lakelog.cli.main import main
from lakelog.errors import (
    EraseFailedError,
    HotTierUnavailableError,
    InvalidArgumentError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot.hot_log import HotLog
from lakelog.operate.erasure.certificate import Erased, certificate, check_certificate
from lakelog.testing.eventually import eventually
from lakelog.values.topic_partition import OffsetRange, TopicPartition
from tests.support.servers import RedisServer

KEY = b"ada-7f3a9c51e2"  # nothing else has these bytes
VALUE = b"GEHEIM-b81d04f7aa"
TP = TopicPartition("orders", 0)

#: What was archived stays in Redis too, so that both tiers hold it.
BOTH = {"retention.ms": -1, "local.retention.ms": -1}


class Crash(BaseException):
    """What a kill does to a run: nothing catches it."""


def crash() -> None:
    raise Crash


@pytest.fixture
def server(tmp_path: Path) -> Iterator[RedisServer]:
    found = RedisServer(tmp_path / "redis").start()
    yield found
    found.kill()


@pytest.fixture
def lake(server: RedisServer, tmp_path: Path) -> Iterator[Lakelog]:
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as found:
        yield found


def produce(lake: Lakelog, *keys: bytes | None, topic: str = "orders", **more: Any) -> None:
    """A record of each key, one by one: those of `KEY` have the value that must not stay."""
    with lake.producer() as producer:
        for number, key in enumerate(keys):
            value = VALUE if key == KEY else b"v%d" % number
            producer.send(topic, value, key=key, **({"partition": 0} | more))
            producer.flush()


def leave_half(lake: Lakelog, server: RedisServer, key: bytes) -> None:
    """A record of half a transaction, in the gap that the recovery after it makes."""
    end = lake.log("orders").offsets()[0].log_end
    with server.client() as client:
        half = {"__ts": "1", "__key": key, "value": VALUE}
        client.xadd("lakelog:stream:orders:0", half, id=f"{end}-1")
    server.restart(clean=False)
    lake.log("orders").recover(0, 0)


def left(lake: Lakelog, partition: int = 0, topic: str = "orders") -> list[tuple[int, Any, Any]]:
    return [(r.offset, r.key, r.value) for r in lake.log(topic).read(partition).records()]


def traces(tmp_path: Path, server: RedisServer, *secrets: bytes) -> list[str]:
    """See `erased_traces`."""
    with server.client() as client:
        return found_traces(tmp_path, client, secrets, lambda _: False)


def test_no_byte_stays_in_either_tier(lake, server, tmp_path):
    lake.topics.create("orders", 2, BOTH)
    produce(lake, KEY, b"b", KEY)
    lake.archive("orders")
    produce(lake, b"c", KEY, b"d")
    lake.archive("orders")
    produce(lake, KEY, b"e")  # hot alone
    produce(lake, b"x", b"y", partition=1)
    before = left(lake)
    assert traces(tmp_path, server, KEY, VALUE)

    erased = lake.erase("orders", KEY)

    assert left(lake) == [one for one in before if one[1] != KEY]
    assert [one[1] for one in left(lake, 1)] == [b"x", b"y"]
    assert erased.records == 4
    assert erased.partitions == [0]
    assert erased.cold.partitions[0].offsets == (
        OffsetRange(0, 1), OffsetRange(2, 3), OffsetRange(4, 5), OffsetRange(6, 7))  # fmt: skip
    assert erased.hot is not None
    assert erased.hot.matches == {0: 4}
    assert erased.hot.trimmed == {0: OffsetRange(0, 8)}
    assert [one.is_rewritten for one in erased.hot.servers] == [True]
    # Redis removes the files that it replaced in the background
    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))
    offsets = lake.log("orders").offsets()[0]
    assert (offsets.log_start, offsets.archived_end, offsets.log_end) == (0, 8, 8)
    # Gaps that erasing left are no holes, in the table's log and in a check of all files.
    assert main(_where(lake, "segments", "list", "orders", "--verify")) == 0
    # the log goes on, and keeps what was not asked for in Redis
    produce(lake, b"f", KEY)
    assert [one[0] for one in left(lake)][-2:] == [8, 9]
    assert lake.log("orders").offsets()[1].local_log_start == 0


def test_an_entry_that_was_trimmed_in_its_middle_goes_as_a_whole(lake, server, tmp_path):
    """Its first records are below the local log start, where no reader finds them."""
    lake.topics.create("orders", 1, BOTH | {"lakelog.entry.format": "arrow"})
    with lake.producer() as producer:
        for n in range(100):
            producer.send("orders", VALUE if n == 3 else b"v", key=KEY if n == 3 else b"k")
    lake.archive("orders")
    lake.hot.trim(TP, 50, topic_id=lake.topics.get("orders").topic_id)
    assert lake.log("orders").offsets()[0].local_log_start == 50

    lake.erase("orders", KEY)

    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))


def test_the_last_record_keeps_its_offset_alone(lake, server, tmp_path):
    lake.topics.create("orders", 1, BOTH)
    with lake.producer() as producer:
        producer.send("orders", VALUE, key=KEY, headers=[("h", VALUE)]).result()

    erased = lake.erase("orders", where=f'key = "{KEY.decode()}"')

    (record,) = lake.log("orders").read(0).records()
    assert (record.offset, record.key, record.value, record.headers) == (0, None, None, ())
    assert erased.cold.partitions[0].nulled_offset == 0
    assert lake.erase("orders", where='not key = "b"').records == 0  # nothing is left to erase
    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))


def test_what_is_skipped_is_told_or_given_up(lake, server, tmp_path):
    """Bytes of damaged entries lie in a file of the user's; of an older version's, in Redis."""
    lake.topics.create("orders", 1, BOTH | {"lakelog.entry.format": "fields"})
    for _ in range(2):
        produce(lake, b"a", KEY, b"b")
        lake.archive("orders")
        # a file of its own, and all of Redis's entries archived
    produce(lake, b"c", KEY, b"d", KEY, b"e")
    stream, aside = "lakelog:stream:orders:0", "{lakelog:stream:orders:0}:quarantine"
    skips = lake.skips("orders", 0)
    with server.client() as client:
        ((_, fields),) = client.xrange(stream, "7-1", "7-1")
        client.xdel(stream, "7-1", "9-1")
        client.xadd(stream, {"__key": KEY}, id="5000-2")  # somebody else's
        saved = skips.skip_entry("5000-2", save_to=tmp_path / "saved.json").saved_to
        skips.skip_entry("7-1", save_to=tmp_path / "nothing.json")
        skips.skip_entry("9-1", save_to=tmp_path / "nothing either.json")
        for n, part in enumerate([part for pair in fields.items() for part in pair], 1):
            client.hset(aside, f"7-1|{n}", part)  # as an older version left it
    file = sorted((tmp_path / "cold").rglob("archive-*.parquet"))[0]
    content = file.read_bytes()
    file.write_bytes(KEY + content[len(KEY) : -4] + b"PAR0")
    skips.skip_file(file.name, save_to=tmp_path / "file.json")
    held = tmp_path / "cold" / "orders" / file.parents[2].name / "_quarantine" / "partition=0"
    older = held / "segment=0" / file.name.replace("archive-", "archive-0")[:80]
    older = older.with_suffix(".parquet")
    older.parent.mkdir(parents=True)
    older.write_bytes(content)  # likewise
    before = left(lake)

    told = lake.erase("orders", KEY)

    beyond = " ".join(told.beyond)
    assert "damaged entries of orders-0 that an older version put in quarantine (7-1)" in beyond
    assert f"the files that bytes of skipped entries were saved to: {saved}. Delete" in beyond
    assert f"{file.name} cannot be read, and may hold a match: a commit removed it" in beyond
    assert f"{older.name} holds a match: an older version put it in quarantine" in beyond
    planned = lake.erase("orders", KEY, quarantine=True, dry_run=True)
    assert planned.cold.leftovers == 2
    assert planned.hot.given_up == {0: ("7-1",)}
    assert {"key " + aside} < set(traces(tmp_path, server, KEY, VALUE))

    with armed("erase.after_commit", crash), pytest.raises(Crash):
        lake.erase("orders", KEY, quarantine=True)
    erased = lake.erase("orders", KEY, quarantine=True)

    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))
    assert erased.hot.given_up == {}  # by the run that was cut short
    said = certificate(erased)
    assert len(said["files"]) == 2
    assert not any("quarantine" in one for one in said["not_reached"])
    # what only Redis held of the skipped file is gone with the trim
    assert left(lake) == [one for one in before if one[1] != KEY and one[0] >= 3]
    assert [(one.name, one.gap) for one in skips.list()] == [
        ("7-1", OffsetRange(7, 8)),
        ("9-1", OffsetRange(9, 10)),
        ("5000-2", OffsetRange(0, 0)),
        ("/".join(file.parts[-3:]), OffsetRange(0, 3)),
    ]
    assert main(_where(lake, "segments", "list", "orders", "--verify")) == 0


def test_dead_letters_are_told_and_go_by_the_condition_that_is_told(lake, server, tmp_path):
    lake.topics.create("orders", 1, BOTH)
    lake.topics.create("failed", 1, BOTH)
    produce(lake, b"a", KEY, b"b")
    reject_all(lake, "orders", "failed")
    lake.archive("failed")
    erased = lake.erase("orders", KEY)
    (told,) = (one for one in erased.beyond if "dead-letter" in one)
    assert "share groups shippers" in told
    where = told.partition("--where '")[2].partition("'")[0].replace("…", f'"{KEY.decode()}"')

    assert lake.erase("failed", where=where).records == 1

    assert [one[1] for one in left(lake, topic="failed")] == [b"a", b"b"]
    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))


@pytest.mark.parametrize(
    "where",
    [
        'value.user = "ada"',
        'header.user = "ada"',
        'value.user = "ada" and time < "2023-11-15"',
        "offset = 1",
    ],
)
def test_conditions_on_members_headers_and_times(lake, server, tmp_path, where):
    lake.topics.create("orders", 1, BOTH | {"lakelog.value.columns": "user string, n long"})
    with lake.producer() as producer:
        for n, user in enumerate(["bob", "ada", "eve"]):
            text = json.dumps({"user": user, "n": n, "x": VALUE.decode() if user == "ada" else ""})
            time_ms = 1_700_000_000_000 + n
            headers = [("user", user.encode())]
            producer.send("orders", text, headers=headers, timestamp_ms=time_ms).result()

    assert lake.erase("orders", where=where).records == 1

    assert [one[0] for one in left(lake)] == [0, 2]
    eventually(lambda: not traces(tmp_path, server, VALUE))


def test_a_dry_run_counts_and_changes_nothing(lake):
    lake.topics.create("orders", 1, BOTH)
    produce(lake, KEY, b"b")
    lake.archive("orders")
    produce(lake, b"c", KEY)
    before, version = left(lake), lake.log("orders").table.snapshot().version

    erased = lake.erase("orders", KEY, dry_run=True)

    assert left(lake) == before
    assert lake.log("orders").table.snapshot().version == version
    assert erased.records == 2
    assert erased.unarchived == {0: 1}
    assert erased.hot.matches == {0: 2}
    assert erased.cold.partitions[0].files == 1


STEPS = [
    "archive.after_commit",
    "erase.after_archive",
    "erase.after_trim",
    "erase.after_plan",
    "cold.after_commit",
    "erase.after_commit",
    "erase.after_checkpoint",
    "erase.after_files",
    "erase.before_persistence",
    "erase.before_last_look",
]


@pytest.mark.parametrize("step", STEPS)
def test_a_crash_at_any_step_is_finished_by_the_next_run(lake, server, tmp_path, step):
    lake.topics.create("orders", 1, BOTH | {"lakelog.value.columns": "a string"})
    with lake.producer() as producer:
        for key in (b"a", KEY, b"b"):
            producer.send("orders", b'{"a":"%s"}' % (VALUE if key == KEY else key), key=key)

    with armed(step, crash), pytest.raises(Crash):
        lake.erase("orders", KEY)
    lake.erase("orders", KEY)

    assert [one[:2] for one in left(lake)] == [(0, b"a"), (2, b"b")]
    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))


@pytest.mark.parametrize("step", ["erase.before_persistence", "erase.before_last_look"])
def test_a_redis_that_is_away_once_all_is_done_ends_with_the_report(lake, server, step):
    lake.topics.create("orders", 1, BOTH)
    produce(lake, b"a", KEY, b"b")
    with armed(step, server.kill), pytest.raises(EraseFailedError) as caught:
        lake.erase("orders", KEY)
    report = caught.value.report
    assert (report.records, report.hot.trimmed) == (1, {0: OffsetRange(0, 3)})
    assert [type(one) for one in report.failures] == [HotTierUnavailableError]
    server.start()
    lake.erase("orders", KEY)


def test_what_shares_memory_with_later_entries_is_told(lake, server, tmp_path):
    """Redis frees the bytes of entries by the node, which those appended meanwhile are in, too."""
    lake.topics.create("orders", 1, BOTH)
    produce(lake, KEY)
    with armed("erase.after_archive", lambda: produce(lake, b"later")):
        said = _of_shared_memory(lake.erase("orders", KEY))
    assert len(said) == 1
    assert traces(tmp_path, server, VALUE) != []
    # It lets go of all, so of the node too.
    assert _of_shared_memory(lake.erase("orders", b"later")) == []
    assert traces(tmp_path, server, VALUE) == []


def _of_shared_memory(erased: Erased) -> list[str]:
    """What is said of it: of a slow server, there is more to say."""
    return [
        one
        for one in erased.hot.beyond
        if "memory of Redis that entries of orders-0 share with later ones" in one
    ]


@contextmanager
def no_success_for_a_power_cut(
    server: RedisServer, size: int, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """An erasure says so where Redis comes back with so much of its file before it is new."""
    rewrite_persistence = HotLog.rewrite_persistence

    def after_a_power_cut(hot: HotLog) -> Any:
        server.cut_append_only_file(to_size=size)
        server.start()
        return rewrite_persistence(hot)

    with monkeypatch.context() as patch:
        patch.setattr(HotLog, "rewrite_persistence", after_a_power_cut)
        with pytest.raises(EraseFailedError, match="holds again what it had let go of"):
            yield


@pytest.mark.parametrize("by_an_earlier_run", [False, True])
def test_a_redis_that_comes_back_with_what_was_trimmed_is_no_success(
    lake, server, monkeypatch, by_an_earlier_run
):
    """It restarted, or failed over, without the last that it had done, before its file was new."""
    lake.topics.create("orders", 1, BOTH)
    produce(lake, b"other", KEY, b"last")
    lake.archive("orders")
    size = server.append_only_size()
    if by_an_earlier_run:
        with armed("erase.before_persistence", crash), pytest.raises(Crash):
            lake.erase("orders", KEY)
    with no_success_for_a_power_cut(server, size, monkeypatch):
        lake.erase("orders", KEY)
    assert KEY in [key for _, key, _ in left(lake)]
    lake.erase("orders", KEY)
    assert [key for _, key, _ in left(lake)] == [b"other", b"last"]
    with server.client() as client:
        ((_, fields),) = client.xrange("lakelog:stream:orders:0")
        assert list(fields) == [b"__gap"]


def _below_the_log_start(lake: Lakelog, server: RedisServer) -> int:
    lake.topics.create("orders", 1, BOTH)
    produce(lake, KEY, b"last")
    lake.archive("orders")
    size = server.append_only_size()
    lake.log("orders").raise_log_start(0, 1)
    return size


def _in_a_gap(lake: Lakelog, server: RedisServer, *later: bytes) -> int:
    lake.topics.create("orders", 1, BOTH)
    produce(lake, b"other", b"last")
    lake.archive("orders")
    leave_half(lake, server, KEY)
    produce(lake, *later)
    return server.append_only_size()


def _within_an_entry(lake: Lakelog, server: RedisServer) -> int:
    lake.topics.create("orders", 1, BOTH | {"lakelog.entry.format": "arrow"})
    with lake.producer() as producer:
        rows = {"key": [KEY, *[b"other"] * 4], "value": [VALUE, *[b"v"] * 4]}
        producer.send_batch("orders", pa.table(rows), partition=0)
    lake.log("orders").raise_log_start(0, 2)
    size = server.append_only_size()
    with armed("erase.before_persistence", crash), pytest.raises(Crash):
        lake.erase("orders", KEY)
    return size


NOT_GIVEN: dict[str, Callable[[Lakelog, RedisServer], int]] = {
    "below the log start": _below_the_log_start,
    "in a gap": _in_a_gap,
    "in a gap amid the log": lambda lake, server: _in_a_gap(lake, server, b"later"),
    "below the start, within an entry": _within_an_entry,
}


@pytest.mark.parametrize("place", NOT_GIVEN)
def test_what_comes_back_where_no_reader_is_given_it_is_no_success(
    lake, server, monkeypatch, place
):
    size = NOT_GIVEN[place](lake, server)
    with no_success_for_a_power_cut(server, size, monkeypatch):
        lake.erase("orders", KEY)
    lake.erase("orders", KEY)
    with server.client() as client:
        assert VALUE not in repr(client.xrange("lakelog:stream:orders:0")).encode()


def _where(lake: Lakelog, *command: str) -> list[str]:
    source = lake.place.source
    return [*command, "--redis", source.url, "--cold", str(lake.place.cold), "--engine", "inline"]


def test_without_a_redis_what_it_holds_is_told_and_a_run_with_one_does_the_rest(
    lake, server, tmp_path
):
    lake.topics.create("orders", 1, BOTH)
    produce(lake, KEY, b"b")
    lake.archive("orders")

    erased = lake.archived.erase("orders", KEY)

    assert erased.records == 1
    assert any("Redis, which was not asked" in one for one in erased.beyond)
    assert [one.offset for one in lake.archived.log("orders").read(0).records()] == [1]
    again = lake.erase("orders", KEY)
    assert (again.cold.records, again.hot.matches) == (0, {0: 1})
    assert [one[0] for one in left(lake)] == [1]
    eventually(lambda: not traces(tmp_path, server, KEY, VALUE))


def test_a_damaged_file_fails_the_run_which_did_the_rest(lake, tmp_path):
    lake.topics.create("orders", 1, {"retention.ms": -1, "local.retention.ms": 0})
    for _ in range(2):
        produce(lake, KEY, b"b")
        lake.archive("orders")
    file = sorted((tmp_path / "cold").rglob("archive-*.parquet"))[0]
    file.write_bytes(b"no parquet")

    with pytest.raises(EraseFailedError, match=r"archive-.*Mend that") as caught:
        lake.erase("orders", KEY)

    assert caught.value.report.records == 1
    assert certificate(caught.value.report)["failures"]


def test_a_damaged_entry_fails_the_run_which_did_the_rest(lake, server):
    lake.topics.create("orders", 2, BOTH)
    produce(lake, b"a", KEY, b"b")
    produce(lake, b"a", KEY, b"b", partition=1)
    with server.client() as client:  # an entry without what lakelog writes
        stream = "lakelog:stream:orders:1"
        client.xdel(stream, "1-1")

    with pytest.raises(EraseFailedError) as caught:
        lake.erase("orders", KEY)

    assert caught.value.report.cold.partitions.keys() == {0}
    assert [one[0] for one in left(lake)] == [0, 2]


def test_a_snapshot_that_redis_keeps_is_written_anew(tmp_path):
    server = RedisServer(tmp_path / "redis", {"save": "3600 1", "appendonly": "no"}).start()
    try:
        with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
            lake.topics.create("orders", 1, BOTH)
            produce(lake, b"a", KEY, b"b")
            with server.client() as client:
                client.save()
            assert traces(tmp_path, server, KEY)
            (one,) = lake.erase("orders", KEY).hot.servers
        assert (one.append_only_file, one.snapshot) == ("none is kept", "rewritten")
        assert not traces(tmp_path, server, KEY, VALUE)
    finally:
        server.kill()


def test_a_server_that_refuses_to_rewrite_is_told_of(tmp_path):
    server = RedisServer(tmp_path / "redis", {"rename-command": 'BGREWRITEAOF ""'}).start()
    try:
        with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
            lake.topics.create("orders", 1, BOTH)
            produce(lake, b"a", KEY, b"b")
            erased = lake.erase("orders", KEY)
        assert "BGREWRITEAOF was refused" in erased.hot.servers[0].append_only_file
        assert any("append-only file of Redis" in one for one in erased.beyond)
    finally:
        server.kill()


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "one of the two"),
        ({"keys": "a", "where": 'key = "a"'}, "one of the two"),
        ({"keys": []}, "no key was given"),
        ({"keys": [3]}, "3 is no key"),
        ({"where": "  "}, "every record would go"),
        ({"where": "key ="}, "cannot be read"),
    ],
)
def test_what_does_not_say_which_records_is_refused(lake, asked, said):
    lake.topics.create("orders", 1)
    with pytest.raises(InvalidArgumentError, match=said):
        lake.erase("orders", **asked)


def test_a_topic_that_redis_alone_holds_is_refused_with_what_to_do(lake):
    lake.topics.create("orders", 1, {"remote.storage.enable": "false"})
    with pytest.raises(InvalidArgumentError, match=r"remote\.storage\.enable=true"):
        lake.erase("orders", KEY)
    with pytest.raises(UnknownTopicOrPartitionError):
        lake.erase("nothing", KEY)


# -- the certificate -----------------------------------------------------------------------------


def test_the_certificate_shows_no_key_and_that_it_was_changed(lake):
    lake.topics.create("orders", 1, BOTH)
    produce(lake, b"a", KEY, b"b")
    lake.archive("orders")

    said = certificate(lake.erase("orders", KEY))

    text = json.dumps(said)
    assert KEY.decode() not in text
    assert VALUE.decode() not in text
    assert check_certificate(text) == said
    assert said["partitions"] == {
        "0": {"offsets": [[1, 2]], "records": 1, "nulled_offset": None, "files": 1}
    }
    (file,) = said["files"]
    assert file["path"].startswith("partition=0/segment=0/archive-")
    for changed in (
        {**said, "topic": "others"},
        {**said, "partitions": {}},
        {**said, "digest": "sha256:0"},
    ):
        with pytest.raises(InvalidArgumentError, match="was changed"):
            check_certificate(json.dumps(changed))
    for no in ("", "[]", "{}", '"x"', '{"lakelog":1,"kind":"erasure"}', "[" * 100_000):
        with pytest.raises(InvalidArgumentError, match="no certificate"):
            check_certificate(no)


def test_what_was_asked_for_can_be_checked_by_who_knows_it(lake):
    lake.topics.create("orders", 1, BOTH)
    first, again = (lake.erase("orders", KEY) for _ in range(2))
    from lakelog.operate.erasure.condition import RecordCondition

    assert first.asked != again.asked  # each has a salt of its own
    assert RecordCondition.of(KEY).digest(first.salt) == first.asked
    assert RecordCondition.of(b"other").digest(first.salt) != first.asked


# -- on the command line -------------------------------------------------------------------------


def test_the_command_erases_writes_a_certificate_and_checks_it(lake, tmp_path, capsys):
    lake.topics.create("orders", 1, BOTH)
    produce(lake, b"a", KEY, b"b")
    file = tmp_path / "ada.json"
    key = ["--key", KEY.decode()]

    assert main(_where(lake, "erase", "orders", *key, "--dry-run")) == 0
    assert "would be erased" in capsys.readouterr().out
    assert len(left(lake)) == 3
    assert main(_where(lake, "erase", "orders", *key, "--certificate", str(file))) == 0
    out = capsys.readouterr().out
    assert "1 file deleted" in out
    assert KEY.decode() not in out
    assert len(left(lake)) == 2
    assert main(["erase", "--verify", str(file)]) == 0
    assert "1 record of topic orders" in capsys.readouterr().out
    file.write_text(file.read_text().replace("orders", "ORDERS"))
    assert main(["erase", "--verify", str(file)]) == 1
    assert "was changed" in capsys.readouterr().err


def test_a_certificate_that_cannot_be_written_is_noticed_first(lake, tmp_path, capsys):
    lake.topics.create("orders", 1, BOTH)
    produce(lake, KEY, b"b")
    there = tmp_path / "there.json"
    there.write_text("{}")
    for path in (there, tmp_path / "no" / "folder.json"):
        command = _where(lake, "erase", "orders", "--key", KEY.decode(), "--certificate", str(path))
        assert main(command) == 1
    assert len(left(lake)) == 2
    assert there.read_text() == "{}"


def test_exports_that_the_log_knows_of_are_named_with_what_to_do(
    lake: Lakelog, server: RedisServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    lake.topics.create("orders", 1, BOTH)
    lake.topics.create("others", 1, BOTH)
    produce(lake, KEY, b"b", KEY, b"c")
    lake.archive()
    produce(lake, KEY, b"d")
    folder, tar = tmp_path / "export", tmp_path / "export.tar"
    lake.export(folder)
    lake.export(tar, "orders")
    lake.export(tmp_path / "gone", "orders")
    lake.export(tmp_path / "of-others", "others")
    shutil.rmtree(tmp_path / "gone")

    planned = lake.erase("orders", KEY, dry_run=True)
    told = lake.erase("orders", KEY)

    for one in (planned, told):
        assert [e.place for e in one.exports] == [str(folder), str(tar)]
    places = [f"the export at {one} on {socket.gethostname()}, of" for one in (folder, tar)]
    assert all(any(said.startswith(one) for said in told.beyond) for one in places)
    said = certificate(told)
    assert [one["place"] for one in said["exports"]] == [str(folder), str(tar)]
    assert check_certificate(json.dumps(said)) == said
    held = {Path(one).parts[0] for one in traces(tmp_path, server, KEY, VALUE)}
    assert held == {"export", "export.tar"}

    for one in told.exports:  # what each is told to do has it hold a match no more
        command = one.do.partition("`")[2].partition("`")[0].split()
        assert main(_where(lake, *command[1:])) == 0
    assert traces(tmp_path, server, KEY, VALUE) == []
    assert [record[1] for record in left(lake)] == [b"b", b"c", b"d"]

    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    told = lake.erase("orders", KEY)
    assert all("lies on that machine" in one.do for one in told.exports)
