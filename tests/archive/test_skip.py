"""One bad entry or file skipped: the partition goes on, and what is left of it is saved."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from lakelog.base import failpoints
from lakelog.cleanup.optimize import plan_optimize
from lakelog.cold.by_path.skip import ColdSkips
from lakelog.errors import (
    ConcurrentChangeError,
    ContradictionError,
    CorruptRecordError,
    InvalidArgumentError,
    MissingFileError,
    PolicyViolationError,
)
from lakelog.hot.keys import Keys
from lakelog.operate.check.verification import verify
from lakelog.operate.skip import Skips
from lakelog.read.topic_log import TopicLog
from lakelog.values.topic_partition import OffsetRange


class Killed(BaseException):
    """As if the process ended there."""


def kill():
    raise Killed


@pytest.fixture
def tiers(make_tiers, tmp_path, monkeypatch):
    """Three segments; offsets 0..119 in entries of twenty records."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    made = make_tiers(local_retention_ms=-1, internal_segment_bytes=2_600)
    made.append(120, entry_records=20)
    assert len(made.seen().segments) == 3
    return made


def keys(tiers):
    return Keys(tiers.hot.keyspace).partition(tiers.topic.partition(0))


def skips(tiers):
    table = tiers.table()
    return Skips(tiers.topic, 0, tiers.hot, table, ColdSkips(tiers.topic, table, 0), tiers.clock)


def log(tiers):
    return TopicLog(tiers.topic, tiers.hot, tiers.table())


def offsets(tiers, start=0):
    steps = log(tiers).fetches(0, start)
    return [offset for step in steps for offset in step.records.column("offset").to_pylist()]


def without(gap, end=120):
    return [offset for offset in range(end) if not gap.start <= offset < gap.end]


def findings(tiers):
    return [str(found) for one in verify(log(tiers)) for found in one.findings]


def damage(tiers, client, last):
    """One byte of an entry differs; Redis cannot change an entry, so all are written anew."""
    stream = keys(tiers).stream
    entries = client.xrange(stream)
    wanted = next(fields for entry_id, fields in entries if entry_id == b"%d-20" % last)
    client.delete(stream)
    for entry_id, fields in entries:
        if fields is wanted:
            message = bytearray(fields[b"a"])
            message[-1] ^= 1
            fields = {**fields, b"a": bytes(message)}
        client.xadd(stream, fields, id=entry_id)


def saved(skip):
    """The names and values that were saved of an entry."""
    said = json.loads(Path(skip.saved_to).read_text())
    parts = [base64.b64decode(one) for one in said["fields"]]
    return dict(zip(parts[::2], parts[1::2], strict=True))


# -- entries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [19, 39, 59, 79, 99, 119])
@pytest.mark.parametrize("kind", ["damaged", "deleted"])
def test_a_skipped_entry_blocks_nobody_and_its_bytes_are_saved(tiers, redis_client, kind, last):
    stream, gap = keys(tiers).stream, OffsetRange(last - 19, last + 1)
    if kind == "damaged":
        damage(tiers, redis_client, last)
    else:
        redis_client.xdel(stream, f"{last}-20")
    bad = dict(redis_client.xrange(stream)).get(b"%d-20" % last, {})
    with pytest.raises((CorruptRecordError, ContradictionError)) as refused:
        offsets(tiers)
    if isinstance(refused.value, CorruptRecordError):
        assert f"lakelog skip add orders -p 0 --entry {last}-20" in str(refused.value)
    with pytest.raises((CorruptRecordError, ContradictionError)):
        tiers.archiver().run_once()

    would = skips(tiers).skip_entry(f"{last}-20", dry_run=True)
    assert would.gap == gap
    assert not Path(would.saved_to).exists()
    assert skips(tiers).list() == []
    done = skips(tiers).skip_entry(f"{last}-20", "a bit flipped")
    assert done == replace(would, reason="a bit flipped")
    assert skips(tiers).list() == [done]
    assert saved(done) == bad
    assert redis_client.xrange(stream, f"{last}-20", f"{last}-20") == []
    assert findings(tiers) == []
    for start in range(31):
        assert offsets(tiers, start) == [o for o in without(gap) if o >= start]
    assert gap in log(tiers).offsets()[0].gaps

    tiers.append(20, entry_records=20)
    assert offsets(tiers) == without(gap, 140)


@pytest.mark.parametrize("last", [19, 39, 79, 119])
def test_the_archive_goes_on_past_a_skipped_entry(tiers, redis_client, last):
    gap = OffsetRange(last - 19, last + 1)
    damage(tiers, redis_client, last)
    skips(tiers).skip_entry(f"{last}-20")
    tiers.archiver().run_once()
    tiers.append(20, entry_records=20)
    tiers.archiver().run_once()
    rows = [row for row in tiers.expected() if not gap.start <= row[0] < gap.end]
    assert tiers.archived() == rows
    assert findings(tiers) == []
    tiers.hot.trim(tiers.topic.partition(0), 140)
    assert offsets(tiers) == without(gap, 140)
    assert gap in log(tiers).offsets()[0].gaps


@pytest.mark.parametrize("entry_id", ["1700000000000-0", "140-3", "107-1"], ids=lambda text: text)
def test_what_somebody_else_added_is_skipped_and_nothing_else(tiers, redis_client, entry_id):
    stream = keys(tiers).stream
    try:
        redis_client.xadd(stream, {"hello": "world"}, id=entry_id)
    except Exception:  # below the last id: only a stream made anew can hold it
        entries = sorted(
            [*redis_client.xrange(stream), (entry_id.encode(), {b"hello": b"world"})],
            key=lambda entry: tuple(map(int, entry[0].split(b"-"))),
        )
        redis_client.delete(stream)
        for one, fields in entries:
            redis_client.xadd(stream, fields, id=one)
    before = [e for e in redis_client.xrange(stream) if e[0].decode() != entry_id]

    done = skips(tiers).skip_entry(entry_id)

    assert saved(done) == {b"hello": b"world"}
    assert done.gap.start == done.gap.end
    assert redis_client.xrange(stream) == before
    assert offsets(tiers) == list(range(120))
    assert findings(tiers) == []
    tiers.append(20, entry_records=20)
    assert offsets(tiers) == list(range(140))
    tiers.archiver().run_once()
    assert tiers.archived() == tiers.expected()


def test_sound_entries_and_what_is_none_stay(tiers, redis_client):
    before = redis_client.dump(keys(tiers).stream)
    with pytest.raises(PolicyViolationError, match="sound and in its place"):
        skips(tiers).skip_entry("39-20")
    for entry_id in ("27-1", "5000-10", "38-20"):
        with pytest.raises(InvalidArgumentError, match="has no entry"):
            skips(tiers).skip_entry(entry_id)
    with pytest.raises(InvalidArgumentError, match="no entry's id"):
        skips(tiers).skip_entry("nine")
    assert redis_client.dump(keys(tiers).stream) == before
    assert list(Path().iterdir()) == []


def test_bytes_are_saved_to_a_new_file_or_the_entry_stays(tiers, redis_client, tmp_path):
    damage(tiers, redis_client, 39)
    there = tmp_path / "notes.txt"
    there.write_text("mine")
    with pytest.raises(InvalidArgumentError, match="is there already"):
        skips(tiers).skip_entry("39-20", save_to=there)
    with pytest.raises(InvalidArgumentError, match="cannot be written"):
        skips(tiers).skip_entry("39-20", save_to=tmp_path / "no folder" / "entry.json")
    assert there.read_text() == "mine"
    assert skips(tiers).list() == []
    assert len(redis_client.xrange(keys(tiers).stream)) == 6
    done = skips(tiers).skip_entry("39-20", save_to=tmp_path / "entry.json")
    assert done.saved_to == str(tmp_path / "entry.json")
    assert b"a" in saved(done)


def test_an_entry_that_somebody_puts_back_meanwhile_stays(tiers, redis_client):
    stream = keys(tiers).stream
    whole = redis_client.dump(stream)
    redis_client.xdel(stream, "39-20")

    def somebody():
        redis_client.restore(stream, 0, whole, replace=True)

    with (
        failpoints.armed("skip.after_save", somebody),
        pytest.raises(ConcurrentChangeError, match="nothing was skipped"),
    ):
        skips(tiers).skip_entry("39-20")
    assert list(Path().iterdir()) == []
    assert skips(tiers).list() == []
    assert offsets(tiers) == list(range(120))


@pytest.mark.parametrize("step", ["after_save", "after_roll", "before_skip", "after_skip"])
def test_killed_anywhere_the_next_run_skips_the_entry(tiers, redis_client, tmp_path, step):
    damage(tiers, redis_client, 119)  # in the open segment
    with failpoints.armed(f"skip.{step}", kill), pytest.raises(Killed):
        skips(tiers).skip_entry("119-20")
    if step == "after_skip":
        assert [one.name for one in skips(tiers).list()] == ["119-20"]
    else:
        with pytest.raises(InvalidArgumentError, match="a run that was cut short"):
            skips(tiers).skip_entry("119-20")
        skips(tiers).skip_entry("119-20", save_to=tmp_path / "again.json")
    assert offsets(tiers) == list(range(100))
    assert findings(tiers) == []
    tiers.append(20, entry_records=20)
    assert offsets(tiers) == [*range(100), *range(120, 140)]


def long_stream(make_tiers, redis_client):
    """1,700 entries, and one of somebody else's above them, that blocks all appends."""
    tiers = make_tiers(local_retention_ms=-1)
    tiers.append(1700, entry_records=1)
    redis_client.xadd(keys(tiers).stream, {"a": b"x"}, id="5000-10")
    return tiers


def test_a_long_stream_is_written_anew_by_parts_that_nobody_sees(
    make_tiers, redis_client, tmp_path
):
    tiers = long_stream(make_tiers, redis_client)
    stream, copy = keys(tiers).stream, keys(tiers).rebuilt
    before, parts = redis_client.xrange(stream), []

    def part():
        assert redis_client.xrange(stream) == before
        parts.append(redis_client.xlen(copy))

    with failpoints.armed("skip.after_part", kill), pytest.raises(Killed):
        skips(tiers).skip_entry("5000-10", save_to=tmp_path / "one")
    assert 0 < redis_client.xlen(copy) < 1000
    with failpoints.armed("skip.after_part", part):
        skips(tiers).skip_entry("5000-10", save_to=tmp_path / "two")
    assert len(parts) >= 2  # it went on, without what the first one did
    assert parts == sorted(parts)
    assert redis_client.xrange(stream) == before[:-1]
    assert not redis_client.exists(copy)
    assert findings(tiers) == []
    tiers.append(20, entry_records=20)
    assert offsets(tiers) == list(range(1720))


def test_what_an_older_version_kept_in_redis_is_a_gap_and_listed(tiers, redis_client):
    """It moved the bytes of an entry into a hash, with a note of its own."""
    redis_client.xdel(keys(tiers).stream, "39-20")
    skips(tiers).skip_entry("39-20")
    note = {"reason": "old", "who": "me", "moved_at_ms": 5, "gap": [20, 40], "fields": 2}
    held = {"39-20": json.dumps(note), "39-20|1": b"a", "39-20|2": b"bytes"}
    redis_client.hset(keys(tiers).quarantine, mapping=held)
    (one,) = skips(tiers).list()
    assert (one.name, one.gap, one.reason, one.saved_to) == ("39-20", (20, 40), "old", "")
    assert offsets(tiers) == without(OffsetRange(20, 40))
    assert findings(tiers) == []
    tiers.archiver().run_once()
    assert offsets(tiers) == without(OffsetRange(20, 40))
    older = tiers.hot.skips(tiers.topic.partition(0), tiers.topic.topic_id)
    assert older.kept_by_older() == ["39-20"]
    older.drop_kept_by_older()
    assert redis_client.hkeys(keys(tiers).quarantine) == [b"39-20"]


# -- files -------------------------------------------------------------------------------------


@pytest.fixture
def archived(tiers):
    tiers.archiver().run_once()
    tiers.hot.trim(tiers.topic.partition(0), 120)
    return tiers


def hurt(path, kind):
    if kind == "missing":
        path.unlink()
    else:
        path.write_bytes(b"PAR1" + b"\0" * 200)


def files(tiers):
    return tiers.table().snapshot().files.of_partition(0)


@pytest.mark.parametrize("at", [0, 1, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("kind", ["missing", "damaged"])
def test_a_skipped_file_blocks_nobody_and_its_name_is_saved(archived, kind, at):
    assert len(files(archived)) >= 3
    file = files(archived)[at]
    gap = OffsetRange(file.start_offset, file.end_offset)
    path = Path(archived.table().path) / file.path
    hurt(path, kind)
    with pytest.raises((MissingFileError, CorruptRecordError)) as refused:
        offsets(archived)
    assert f"lakelog skip add orders -p 0 --file {file.path}" in str(refused.value)

    would = skips(archived).skip_file(path.name, dry_run=True)
    assert would.gap == gap
    assert skips(archived).list() == []
    done = skips(archived).skip_file(path.name)
    assert done == would
    assert skips(archived).list() == [done]
    said = json.loads(Path(done.saved_to).read_text())
    assert (said["name"], said["table"]) == (file.path, archived.table().path)
    assert offsets(archived) == without(gap)
    assert log(archived).offsets()[0].gaps == (gap,)
    assert findings(archived) == []

    archived.append(20, entry_records=20)
    archived.archiver().run_once()
    archived.hot.trim(archived.topic.partition(0), 140)
    assert offsets(archived) == without(gap, 140)
    assert not any(
        one.path in {f.path for f in rewrite.files}
        for rewrite in plan_optimize(archived.topic, archived.table().snapshot())
        for one in files(archived)
        if "quarantine-" in one.path
    )
    archived.table().remove_orphans()
    archived.table().vacuum()
    assert offsets(archived) == without(gap, 140)
    assert findings(archived) == []


def test_hot_copies_are_read_while_the_file_is_skipped(tiers):
    tiers.archiver().run_once()
    path = Path(tiers.table().path) / files(tiers)[1].path
    path.unlink()
    skips(tiers).skip_file(path.name)
    assert offsets(tiers) == list(range(120))
    assert log(tiers).offsets()[0].gaps == ()


def test_a_file_that_can_be_read_stays(archived):
    name = Path(files(archived)[0].path).name
    with pytest.raises(PolicyViolationError, match="can be read"):
        skips(archived).skip_file(name)
    with pytest.raises(InvalidArgumentError, match="names no files"):
        skips(archived).skip_file("other.parquet")


@pytest.mark.parametrize("step", ["skip.after_save", "cold.after_files", "cold.before_commit"])
def test_killed_anywhere_the_next_run_skips_the_file(archived, tmp_path, step):
    file = files(archived)[1]
    path = Path(archived.table().path) / file.path
    path.write_bytes(b"no Parquet")
    with failpoints.armed(step, kill), pytest.raises(Killed):
        skips(archived).skip_file(path.name)
    skips(archived).skip_file(path.name, save_to=tmp_path / "again.json")
    assert [one.name for one in skips(archived).list()] == [file.path]
    assert offsets(archived) == without(OffsetRange(file.start_offset, file.end_offset))
    assert findings(archived) == []


def test_a_skipped_file_of_which_nobody_has_a_note_is_a_gap_and_listed(archived, redis_client):
    """As after a kill, with another Redis, and of what an older version moved aside."""
    file = files(archived)[1]
    gap = OffsetRange(file.start_offset, file.end_offset)
    (Path(archived.table().path) / file.path).unlink()
    with failpoints.armed("skip.after_file", kill), pytest.raises(Killed):
        skips(archived).skip_file(file.path)
    (one,) = skips(archived).list()
    assert (one.name, one.gap, one.reason) == ("", gap, "Redis has no note of it")
    assert offsets(archived) == without(gap)
    assert findings(archived) == []
