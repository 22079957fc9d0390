"""One bad entry or file moved aside: the partition goes on, and nothing of it is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from lakelog.archive.archiver import Archiver
from lakelog.base import failpoints
from lakelog.cleanup.optimize import plan_optimize
from lakelog.cold.store.storage import Storage
from lakelog.errors import (
    ContradictionError,
    CorruptRecordError,
    ForeignEntryError,
    InvalidArgumentError,
    MissingFileError,
    PolicyViolationError,
)
from lakelog.hot.keys import Keys
from lakelog.operate.quarantine import Quarantine
from lakelog.operate.verification import verify
from lakelog.place import PathRoot
from lakelog.read.unified_log import UnifiedLog
from lakelog.values.topic_partition import OffsetRange

RELEASING = ("before_release", "before_fence", "before_forget", "after_release")


class Killed(BaseException):
    """As if the process ended there."""


def kill():
    raise Killed


@pytest.fixture
def tiers(make_tiers):
    """Three segments; offsets 0..119 in entries of twenty records."""
    made = make_tiers(local_retention_ms=-1, internal_segment_bytes=2_600)
    made.append(120, entry_records=20)
    assert len(made.seen().segments) == 3
    return made


def keys(tiers):
    return Keys(tiers.hot.keyspace).partition(tiers.topic.partition(0))


def quarantine(tiers):
    table = tiers.table()
    files = PathRoot(Storage(str(tiers.root))).quarantine(tiers.topic, table, 0)
    return Quarantine(tiers.topic, 0, tiers.hot, table, files, tiers.clock)


def log(tiers):
    return UnifiedLog(tiers.topic, tiers.hot, tiers.table())


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
    raw = client.dump(stream)
    wanted = next(fields for entry_id, fields in entries if entry_id == b"%d-20" % last)
    client.delete(stream)
    for entry_id, fields in entries:
        if fields is wanted:
            message = bytearray(fields[b"a"])
            message[-1] ^= 1
            fields = {**fields, b"a": bytes(message)}
        client.xadd(stream, fields, id=entry_id)
    return raw


# -- entries -----------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [19, 39, 59, 79, 99, 119])
@pytest.mark.parametrize("kind", ["damaged", "deleted"])
def test_an_entry_moved_aside_blocks_nobody_and_goes_back_byte_for_byte(
    tiers, redis_client, kind, last
):
    stream, gap = keys(tiers).stream, OffsetRange(last - 19, last + 1)
    before = redis_client.xrange(stream)
    if kind == "damaged":
        damage(tiers, redis_client, last)
    else:
        redis_client.xdel(stream, f"{last}-20")
    bad = dict(redis_client.xrange(stream)).get(b"%d-20" % last, {})
    with pytest.raises((CorruptRecordError, ContradictionError)) as refused:
        offsets(tiers)
    if isinstance(refused.value, CorruptRecordError):
        assert f"lakelog quarantine add orders -p 0 --entry {last}-20" in str(refused.value)
    with pytest.raises((CorruptRecordError, ContradictionError)):
        tiers.archiver().run_once()

    held = quarantine(tiers)
    would = held.add_entry(f"{last}-20", dry_run=True)
    assert would.gap == gap
    assert held.held() == []
    moved = held.add_entry(f"{last}-20", "a bit flipped")
    assert moved == replace(would, reason="a bit flipped")
    assert held.held() == [moved]
    assert dict(zip(moved.fields[::2], moved.fields[1::2], strict=True)) == bad
    assert redis_client.xrange(stream, f"{last}-20", f"{last}-20") == []
    assert findings(tiers) == []
    for start in range(31):
        assert offsets(tiers, start) == [o for o in without(gap) if o >= start]
    assert gap in log(tiers).offsets()[0].gaps

    if kind == "damaged":
        with pytest.raises(CorruptRecordError):  # still
            held.release_entry(f"{last}-20")
    else:
        with pytest.raises((ForeignEntryError, CorruptRecordError)):
            held.release_entry(f"{last}-20")
    sound = dict(before)[b"%d-20" % last]
    parts = [part for pair in sound.items() for part in pair]
    note = json.loads(redis_client.hget(keys(tiers).quarantine, f"{last}-20"))
    redis_client.hset(
        keys(tiers).quarantine,
        mapping={
            f"{last}-20": json.dumps({**note, "fields": len(parts)}),
            **{f"{last}-20|{n}": part for n, part in enumerate(parts, 1)},
        },
    )
    held.release_entry(f"{last}-20")
    assert redis_client.xrange(stream) == before
    assert held.held() == []
    assert not redis_client.exists(keys(tiers).quarantine)
    assert offsets(tiers) == list(range(120))
    assert [one for one in findings(tiers) if "timestamp" not in one] == []
    tiers.append(20, entry_records=20)
    tiers.archiver().run_once()
    assert tiers.archived() == tiers.expected()


@pytest.mark.parametrize("last", [19, 39, 79, 119])
def test_the_archive_goes_on_past_an_entry_in_quarantine(tiers, redis_client, last):
    gap = OffsetRange(last - 19, last + 1)
    damage(tiers, redis_client, last)
    quarantine(tiers).add_entry(f"{last}-20")
    tiers.archiver().run_once()
    tiers.append(20, entry_records=20)
    tiers.archiver().run_once()
    rows = [row for row in tiers.expected() if not gap.start <= row[0] < gap.end]
    assert tiers.archived() == rows
    assert findings(tiers) == []
    tiers.hot.trim(tiers.topic.partition(0), 140)
    assert offsets(tiers) == without(gap, 140)
    assert gap in log(tiers).offsets()[0].gaps
    with pytest.raises(PolicyViolationError, match="archive has gone past it"):
        quarantine(tiers).release_entry(f"{last}-20")


@pytest.mark.parametrize("entry_id", ["1700000000000-0", "140-3", "107-1"], ids=lambda text: text)
def test_what_somebody_else_added_is_moved_aside_and_nothing_else(tiers, redis_client, entry_id):
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

    moved = quarantine(tiers).add_entry(entry_id)

    assert moved.fields == (b"hello", b"world")
    assert moved.gap.start == moved.gap.end
    assert redis_client.xrange(stream) == before
    assert offsets(tiers) == list(range(120))
    assert findings(tiers) == []
    tiers.append(20, entry_records=20)
    assert offsets(tiers) == list(range(140))
    tiers.archiver().run_once()
    assert tiers.archived() == tiers.expected()
    with pytest.raises((PolicyViolationError, ForeignEntryError)):
        quarantine(tiers).release_entry(entry_id)


def test_sound_entries_and_what_is_none_stay(tiers, redis_client):
    before = redis_client.dump(keys(tiers).stream)
    with pytest.raises(PolicyViolationError, match="sound and in its place"):
        quarantine(tiers).add_entry("39-20")
    for entry_id in ("27-1", "5000-10", "38-20"):
        with pytest.raises(InvalidArgumentError, match="has no entry"):
            quarantine(tiers).add_entry(entry_id)
    with pytest.raises(InvalidArgumentError, match="no entry's id"):
        quarantine(tiers).add_entry("nine")
    assert redis_client.dump(keys(tiers).stream) == before


@pytest.mark.parametrize("step", ["after_roll", "before_move", "after_move"])
def test_killed_anywhere_the_next_run_moves_the_entry(tiers, redis_client, step):
    damage(tiers, redis_client, 119)  # in the open segment
    with failpoints.armed(f"quarantine.{step}", kill), pytest.raises(Killed):
        quarantine(tiers).add_entry("119-20")
    if step == "after_move":
        assert [one.entry_id for one in quarantine(tiers).held()] == ["119-20"]
    else:
        quarantine(tiers).add_entry("119-20")
    assert offsets(tiers) == list(range(100))
    assert findings(tiers) == []
    tiers.append(20, entry_records=20)
    assert offsets(tiers) == [*range(100), *range(120, 140)]


@pytest.mark.parametrize("last", [39, 119])
@pytest.mark.parametrize("step", RELEASING)
def test_killed_while_it_goes_back_an_entry_is_there_once(tiers, redis_client, step, last):
    stream = keys(tiers).stream
    before = redis_client.xrange(stream)
    entry_id = f"{last}-20"
    tiers.hot.quarantine(tiers.topic.partition(0), tiers.topic.topic_id).add(
        entry_id, "", "me", 5, whatever=True
    )
    with failpoints.armed(f"quarantine.{step}", kill), pytest.raises(Killed):
        quarantine(tiers).release_entry(entry_id)
    held = quarantine(tiers).held()
    assert [one.entry_id for one in held] == ([entry_id] if "before" in step else [])
    if step == "before_release":
        assert offsets(tiers) == without(OffsetRange(last - 19, last + 1))
    if held:
        quarantine(tiers).release_entry(entry_id)
    assert redis_client.xrange(stream) == before
    assert not redis_client.exists(keys(tiers).quarantine)
    tiers.append(20, entry_records=20)
    tiers.archiver().run_once()
    assert tiers.archived() == tiers.expected()


@pytest.mark.parametrize("goes_back", [True, False], ids=["an entry goes back", "one blocks all"])
def test_a_long_stream_is_written_anew_by_parts_that_nobody_sees(
    make_tiers, redis_client, goes_back
):
    tiers = make_tiers(local_retention_ms=-1)
    tiers.append(1700, entry_records=1)
    stream, copy = keys(tiers).stream, keys(tiers).rebuilt
    expected = redis_client.xrange(stream)
    if goes_back:
        aside(tiers, "850-1")
    else:
        redis_client.xadd(stream, {"a": b"x"}, id="5000-10")

    def act():
        if goes_back:
            quarantine(tiers).release_entry("850-1")
        else:
            quarantine(tiers).add_entry("5000-10")

    before, parts = redis_client.xrange(stream), []

    def part():
        assert redis_client.xrange(stream) == before
        parts.append(redis_client.xlen(copy))

    with failpoints.armed("quarantine.after_part", kill), pytest.raises(Killed):
        act()
    assert 0 < redis_client.xlen(copy) < 1000
    with failpoints.armed("quarantine.after_part", part):
        act()
    assert len(parts) >= 2  # it went on, without what the first one did
    assert parts == sorted(parts)
    assert redis_client.xrange(stream) == expected
    assert not redis_client.exists(copy)
    assert findings(tiers) == []
    tiers.append(20, entry_records=20)
    assert offsets(tiers) == list(range(1720))


def test_what_comes_and_goes_while_a_stream_is_written_anew_is_in_it(make_tiers, redis_client):
    tiers = make_tiers(local_retention_ms=-1)
    tiers.append(1700, entry_records=1)
    stream = keys(tiers).stream
    aside(tiers, "850-1")
    aside(tiers, "1200-1")
    left = [1]

    def others():
        if left:
            left.pop()
            tiers.append(3, entry_records=1)
            tiers.hot.trim(tiers.topic.partition(0), 100, topic_id=tiers.topic.topic_id)
            quarantine(tiers).release_entry("1200-1")  # another process's, with its own parts

    with failpoints.armed("quarantine.after_part", others):
        quarantine(tiers).release_entry("850-1")
    ids = [entry_id for entry_id, _ in redis_client.xrange(stream)]
    assert ids == [b"%d-1" % offset for offset in range(100, 1703)]
    assert not redis_client.exists(keys(tiers).rebuilt, keys(tiers).quarantine)


def test_a_copy_of_a_stream_that_an_erasure_drops_is_begun_anew(make_tiers, redis_client):
    tiers = make_tiers(local_retention_ms=-1)
    tiers.append(1700, entry_records=1)
    aside(tiers, "850-1")
    with failpoints.armed("quarantine.after_part", kill), pytest.raises(Killed):
        quarantine(tiers).release_entry("850-1")
    held = tiers.hot.quarantine(tiers.topic.partition(0), tiers.topic.topic_id)
    held.drop_copy()
    assert not redis_client.exists(keys(tiers).rebuilt)
    quarantine(tiers).release_entry("850-1")
    assert redis_client.xlen(keys(tiers).stream) == 1700


def aside(tiers, entry_id):
    tiers.hot.quarantine(tiers.topic.partition(0), tiers.topic.topic_id).add(
        entry_id, "", "me", 5, whatever=True
    )


def test_an_archiver_that_copied_without_an_entry_does_not_go_past_it_once_it_is_back(tiers):
    aside(tiers, "39-20")
    left = [quarantine(tiers)]

    def release():
        if left:  # the commit that fences the archiver comes by here too
            left.pop().release_entry("39-20")

    with failpoints.armed("cold.after_files", release):
        tiers.archiver().run_once()
    assert not left
    assert quarantine(tiers).held() == []
    assert tiers.archived() == tiers.expected()


def test_an_archiver_that_looked_before_an_entry_was_back_copies_it(tiers, monkeypatch):
    aside(tiers, "39-20")
    table = tiers.table()
    released, snapshot = [], table.snapshot

    def late(newer_than=None):
        if not released:
            released.append(quarantine(tiers).release_entry("39-20"))
        return snapshot(newer_than)

    monkeypatch.setattr(table, "snapshot", late)
    Archiver(tiers.topic, tiers.hot, table).run_once()
    assert released
    assert tiers.archived() == tiers.expected()


@pytest.mark.parametrize("step", ["before_fence", "before_forget"])
def test_an_entry_that_goes_back_too_late_is_kept_in_quarantine(tiers, redis_client, step):
    """An archiver goes past its place while it is put back, and whoever does that is killed."""
    aside(tiers, "39-20")
    stream = keys(tiers).stream
    before = redis_client.xrange(stream)
    archived = failpoints.armed("quarantine.before_release", lambda: tiers.archiver().run_once())
    killed = failpoints.armed(f"quarantine.{step}", kill)
    with archived, killed, pytest.raises((Killed, PolicyViolationError)) as ended:
        quarantine(tiers).release_entry("39-20")
    assert ended.type is (Killed if step == "before_fence" else PolicyViolationError)
    assert [one.entry_id for one in quarantine(tiers).held()] == ["39-20"]
    for _ in range(2):
        with pytest.raises(PolicyViolationError, match="the archive has gone past it"):
            quarantine(tiers).release_entry("39-20")
        assert redis_client.xrange(stream) == before
        assert [one.entry_id for one in quarantine(tiers).held()] == ["39-20"]
        assert offsets(tiers) == without(OffsetRange(20, 40))
        assert findings(tiers) == []


def test_a_dropped_topic_takes_its_quarantine_along(tiers, redis_client):
    damage(tiers, redis_client, 39)
    quarantine(tiers).add_entry("39-20")
    assert redis_client.exists(keys(tiers).quarantine)
    tiers.hot.topics().delete("orders")
    assert not redis_client.exists(keys(tiers).quarantine)


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
def test_a_file_moved_aside_blocks_nobody_and_goes_back(archived, tmp_path, kind, at):
    assert len(files(archived)) >= 3
    file = files(archived)[at]
    gap, path = (
        OffsetRange(file.start_offset, file.end_offset),
        Path(archived.table().path) / file.path,
    )
    shutil.copy(path, tmp_path / "backup")
    hurt(path, kind)
    bad = path.read_bytes() if kind == "damaged" else None
    with pytest.raises((MissingFileError, CorruptRecordError)) as refused:
        offsets(archived)
    assert f"lakelog quarantine add orders -p 0 --file {file.path}" in str(refused.value)

    held = quarantine(archived)
    assert held.add_file(path.name, dry_run=True).gap == gap
    assert held.held() == []
    moved = held.add_file(path.name)
    assert moved.gap == gap
    assert [one.path for one in held.held()] == [file.path]
    kept = Path(archived.table().path) / "_quarantine" / file.path
    assert (kept.read_bytes() if kind == "damaged" else None) == bad
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
    with pytest.raises((MissingFileError, CorruptRecordError)):
        held.release_file(path.name)
    kept.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(tmp_path / "backup", kept)
    held.release_file(path.name)
    assert held.held() == []
    assert not kept.exists()
    assert archived.archived() == archived.expected()
    assert offsets(archived) == list(range(140))
    assert findings(archived) == []


def test_hot_copies_are_read_while_the_file_is_in_quarantine(tiers):
    tiers.archiver().run_once()
    path = Path(tiers.table().path) / files(tiers)[1].path
    path.unlink()
    quarantine(tiers).add_file(path.name)
    assert offsets(tiers) == list(range(120))
    assert log(tiers).offsets()[0].gaps == ()


def test_a_file_that_can_be_read_stays(archived):
    name = Path(files(archived)[0].path).name
    with pytest.raises(PolicyViolationError, match="can be read"):
        quarantine(archived).add_file(name)
    with pytest.raises(InvalidArgumentError, match="names no files"):
        quarantine(archived).add_file("other.parquet")


def test_a_copy_with_other_records_does_not_go_back(archived):
    path = Path(archived.table().path) / files(archived)[1].path
    other = Path(archived.table().path) / files(archived)[0].path
    path.unlink()
    quarantine(archived).add_file(path.name)
    kept = Path(archived.table().path) / "_quarantine" / files(archived)[1].path
    kept = next(p for p in kept.parents if p.name == "_quarantine")
    (note,) = kept.rglob("*.json")
    shutil.copy(other, note.with_suffix(""))
    with pytest.raises((ContradictionError, CorruptRecordError), match=r"instead of|log says"):
        quarantine(archived).release_file(path.name)
    assert [one.path for one in quarantine(archived).held()]


@pytest.mark.parametrize(
    "step",
    ["quarantine.before_copy", "quarantine.after_copy", "cold.after_files", "cold.before_commit"],
)
def test_killed_anywhere_the_next_run_moves_the_file(archived, step):
    file = files(archived)[1]
    path = Path(archived.table().path) / file.path
    path.write_bytes(b"no Parquet")
    with failpoints.armed(step, kill), pytest.raises(Killed):
        quarantine(archived).add_file(path.name)
    quarantine(archived).add_file(path.name)
    assert [one.path for one in quarantine(archived).held()] == [file.path]
    assert offsets(archived) == without(OffsetRange(file.start_offset, file.end_offset))
    assert findings(archived) == []


@pytest.mark.parametrize("step", ["quarantine.before_return", "quarantine.after_return"])
def test_killed_while_it_goes_back_a_file_is_there_once(archived, tmp_path, step):
    file = files(archived)[1]
    path = Path(archived.table().path) / file.path
    shutil.copy(path, tmp_path / "backup")
    path.unlink()
    quarantine(archived).add_file(path.name)
    kept = Path(archived.table().path) / "_quarantine" / file.path
    shutil.copy(tmp_path / "backup", kept)
    with failpoints.armed(step, kill), pytest.raises(Killed):
        quarantine(archived).release_file(path.name)
    if quarantine(archived).held():
        quarantine(archived).release_file(path.name)
    assert offsets(archived) == list(range(120))
    assert archived.archived() == archived.expected()
