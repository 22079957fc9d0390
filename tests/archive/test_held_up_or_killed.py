"""Whoever stands still for long or is killed, at any step, costs the log nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from mutants import PAUSE_MUTANTS
from paused import PARTITION, SETTINGS, Party, Producing, go_on

from lakelog.base import failpoints
from lakelog.base.failpoints import Pause
from lakelog.errors import LakelogError, PolicyViolationError
from lakelog.hot.hot_log import HotLog
from lakelog.values.config import HOUR_MS

PROGRAM = Path(__file__).with_name("paused.py")
ARCHIVE, CLEANUP, COMMIT = (
    [name for name in failpoints.NAMES if name.startswith(stage)]
    for stage in ("archive.", "cleanup.", "cold.")
)
STEPS = [
    *(("archive", step) for step in (*ARCHIVE, *COMMIT)),
    *(("cleanup", step) for step in CLEANUP),
    # The same steps as in an archiver's commit.
    *(pytest.param("cleanup", step, marks=pytest.mark.slow) for step in COMMIT),
]
OLD_LOOK, OLD_POLICY = PAUSE_MUTANTS


@pytest.fixture
def make_party(redis_url: str, tmp_path: Path) -> Iterator[Callable[..., Party]]:
    """Each call opens the one log anew, as another process would."""
    opened: list[Party] = []

    def make(**settings: object) -> Party:
        if not opened:
            changes = {name.replace("_", "."): value for name, value in settings.items()}
            hot = HotLog.connect(redis_url)
            hot.topics().create("orders", 1, {**SETTINGS, **changes})
            hot.close()
        opened.append(Party(redis_url, str(tmp_path / "cold"), "orders"))
        return opened[-1]

    yield make
    for party in opened:
        party.close()


def lived(party: Party) -> Producing:
    """A log that has something for every step: old segments, open ones in files, a hot tail."""
    producing = Producing(party)
    producing.append(100, age_ms=2 * HOUR_MS)
    party.archiver.run_once()
    for _ in range(4):
        producing.append(30)
        party.archiver.run_once()
    producing.append(30)
    return producing


def begun(party: Party, mode: str, step: str, action: str) -> subprocess.Popen[str]:
    """Another process at the same work, to which this happens at that step."""
    return subprocess.Popen(
        [sys.executable, str(PROGRAM), party.url, party.root, "orders", mode],
        env={**os.environ, failpoints.ENVIRONMENT_VARIABLE: f"{step}={action}"},
        stderr=subprocess.PIPE,
        text=True,
    )


def settled(make_party: Callable[..., Party], party: Party, producing: Producing) -> None:
    """All that was given is there, all goes on, and nothing is left over."""
    for reader in (party, make_party()):
        producing.check(reader)
    go_on(make_party(), producing)
    there = {path.name for path in Path(party.table.path).glob("partition=*/*/*.parquet")}
    active = {Path(file.path).name for file in make_party().table.snapshot().files}
    assert there == active


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "step"), STEPS)
def test_who_is_held_up_at_any_step_while_all_others_go_on_costs_nothing(
    make_party, tmp_path, mode, step
):
    party = make_party()
    producing = lived(party)
    pause = Pause(tmp_path / "pause")
    pause.folder.mkdir()
    process = begun(party, mode, step, f"pause:{pause.folder}")
    assert pause.wait_reached(lambda: process.poll() is not None), process.stderr.read()

    go_on(party, producing)
    pause.release()
    _, errors = process.communicate(timeout=60)

    assert process.returncode == 0, errors
    settled(make_party, party, producing)


def killed(make_party: Callable[..., Party], producing: Producing, mode: str, step: str) -> None:
    """Another process dies at that step of its work, and all goes on."""
    party = producing.party
    process = begun(party, mode, step, "exit")
    _, errors = process.communicate(timeout=60)
    assert process.returncode == failpoints.KILLED, errors
    producing.check(make_party())
    go_on(party, producing)
    settled(make_party, party, producing)


@pytest.mark.parametrize(("mode", "step"), STEPS)
def test_who_is_killed_at_any_step_costs_nothing(make_party, mode, step):
    killed(make_party, lived(make_party()), mode, step)


@pytest.mark.slow
@pytest.mark.parametrize("step", [*ARCHIVE, *COMMIT])
def test_who_is_killed_in_a_logs_first_run_costs_nothing(make_party, step):
    producing = Producing(make_party())
    producing.append(60)
    killed(make_party, producing, "archive", step)


def archived_and_optimized_meanwhile(make_party: Callable[..., Party]) -> None:
    """One comes to the trim and its clearing up; another one archives more and merges it."""
    slow, other = make_party(cleanup_policy="delete", internal_segment_bytes=100_000), make_party()
    producing = Producing(slow)
    producing.append(30)
    slow.archiver.run_once()
    slow = make_party()  # the first run of a process looks for what others left
    producing.append(30)
    done: list[int] = []

    def meanwhile() -> None:
        if not done:
            done.append(1)
            producing.append(30)
            other.archiver.run_once()
            other.cleanup().run(["optimize"])

    with failpoints.armed("cold.after_list", meanwhile):
        slow.archiver.run_once()
    assert done
    producing.check(make_party())


def test_files_that_others_commit_between_list_and_look_stay(make_party):
    archived_and_optimized_meanwhile(make_party)


def test_without_the_order_of_list_and_look_they_are_lost(make_party):
    with OLD_LOOK.applied(), pytest.raises((AssertionError, LakelogError)):
        archived_and_optimized_meanwhile(make_party)


def test_what_a_failed_run_left_goes_once_it_is_old_by_the_stores_clock(make_party):
    party = make_party()
    lived(party)
    left = Path(party.table.path) / "partition=0/segment=0"
    left /= f"archive-{0:020}-{10:020}-{'0' * 32}.parquet"
    left.write_bytes(b"left over")
    table = party.table
    name = str(left.relative_to(table.path))

    class Clock:
        """The store's own, of a file written at the beginning of time, and some time more."""

        later_ms = 0

        def now_ms(self) -> int:
            return left.stat().st_mtime_ns // 1_000_000 + self.later_ms

    table._store_now_ms = Clock().now_ms
    assert table.orphans().young == (name,)
    Clock.later_ms = 599_999
    assert table.remove_orphans().old == ()
    assert left.exists()
    Clock.later_ms = 600_000
    assert table.remove_orphans().old == (name,)
    assert not left.exists()


def test_the_store_says_how_old_a_file_is_and_not_this_machine(make_party, monkeypatch):
    party = make_party()
    lived(party)
    left = Path(party.table.path) / "partition=0/segment=0"
    left /= f"archive-{0:020}-{10:020}-{'0' * 32}.parquet"
    left.write_bytes(b"left over")
    monkeypatch.setattr("time.time_ns", lambda: 2**62)  # a machine in a far future
    party.table._store_now_ms = lambda: party.table.storage.now_ms(party.table.path)
    found = party.table.remove_orphans()
    assert (found.old, len(found.young)) == ((), 1)
    day_ago_s = left.stat().st_mtime - 86_400
    os.utime(left, (day_ago_s, day_ago_s))
    assert len(party.table.remove_orphans().old) == 1


def test_an_archiver_comes_back_to_what_was_too_young(make_party, monkeypatch):
    party = make_party()
    producing = lived(party)
    left = Path(party.table.path) / "partition=0/segment=0"
    left /= f"archive-{0:020}-{10:020}-{'0' * 32}.parquet"
    left.write_bytes(b"left over")
    archiver = make_party().archiver
    table = archiver._table
    store_clock, table._store_now_ms = table._store_now_ms, lambda: 0
    assert archiver.run_once().orphans_removed == 0
    table._store_now_ms = store_clock
    looks = []
    monkeypatch.setattr(table, "remove_orphans", lambda: looks.append(1))
    producing.append(10)
    archiver.run_once()
    assert looks == []  # it lists the folders again when something can have become old enough
    monkeypatch.undo()
    archiver._next_orphans_s = 0.0
    assert archiver.run_once().orphans_removed == 1
    assert not left.exists()


# -- policies ----------------------------------------------------------------------------------


def test_delete_records_goes_by_the_policy_of_now(make_party):
    old, other = make_party(), make_party()
    producing = lived(old)
    other.hot.topics().alter("orders", {"cleanup.policy": "compact"})
    with pytest.raises(PolicyViolationError, match=r"cleanup\.policy is compact"):
        old.log.raise_log_start(PARTITION, 50)
    with pytest.raises(PolicyViolationError):
        old.log.records_below(PARTITION, 50)
    assert old.log.offsets()[PARTITION].log_start == 0
    other.hot.topics().alter("orders", {"cleanup.policy": "compact,delete"})
    assert old.log.raise_log_start(PARTITION, 50) == 50
    producing.check(old)


def altered_before_the_commit(make_party: Callable[..., Party], mirrored: bool) -> None:
    old, other = make_party(cleanup_policy="delete"), make_party()
    producing = lived(old)

    def alter() -> None:
        topic = other.topic
        if topic.config_version == other.renewed().config_version:
            topic = other.hot.topics().alter("orders", {"cleanup.policy": "compact"})
            if mirrored:
                other.table.mirror(topic)

    with failpoints.armed("cold.after_check" if mirrored else "cold.before_commit", alter):
        report = old.cleanup().run()
    assert not report.failures
    assert report.retained == ()
    assert old.table.snapshot().log_start(PARTITION) == 0
    producing.check(make_party())


@pytest.mark.parametrize("mirrored", [True, False], ids=["in the table too", "in Redis alone"])
def test_retention_is_refused_once_the_topic_keeps_its_latest_values(make_party, mirrored):
    altered_before_the_commit(make_party, mirrored)


def test_without_the_commits_look_at_the_policy_it_goes_by_the_old_one(make_party):
    with OLD_POLICY.applied(), pytest.raises(AssertionError):
        altered_before_the_commit(make_party, mirrored=True)


def test_delete_records_is_refused_when_the_policy_changes_under_it(make_party):
    old, other = make_party(), make_party()
    lived(old)

    def alter() -> None:
        if other.topic.config_version == other.renewed().config_version:
            topic = other.hot.topics().alter("orders", {"cleanup.policy": "compact"})
            other.table.mirror(topic)

    with (
        failpoints.armed("cold.after_check", alter),
        pytest.raises(PolicyViolationError),
    ):
        old.log.raise_log_start(PARTITION, 50)
    assert old.table.snapshot().log_start(PARTITION) == 0


def test_compaction_is_refused_once_the_topic_keeps_all_records(make_party):
    old, other = make_party(retention_ms=-1), make_party()
    producing = lived(old)

    def alter() -> None:
        if other.topic.config_version == other.renewed().config_version:
            topic = other.hot.topics().alter("orders", {"cleanup.policy": "delete"})
            other.table.mirror(topic)

    with failpoints.armed("cleanup.after_find", alter):
        report = old.cleanup().run()
    assert report.compacted == ()
    assert old.table.snapshot().cleaned_end(PARTITION) == 0
    assert len(old.log.read(PARTITION).to_arrow()) == len(producing.written)


def test_a_cleanup_object_of_long_ago_goes_by_the_settings_of_now(make_party):
    old, other = make_party(cleanup_policy="delete"), make_party()
    cleanup = old.cleanup()
    lived(old)
    other.hot.topics().alter("orders", {"retention.ms": 3 * HOUR_MS})
    assert cleanup.plan().limits["retention.ms"] == 3 * HOUR_MS
    assert cleanup.run().retained == ()


def test_an_archiver_trims_by_the_local_retention_of_now(make_party):
    old, other = make_party(), make_party()
    Producing(old).append(50)

    def lengthen() -> None:
        other.hot.topics().alter("orders", {"local.retention.ms": HOUR_MS})

    with failpoints.armed("archive.before_trim", lengthen):
        report = old.archiver.run_once()
    assert report.trimmed == {}
    assert old.log.offsets()[PARTITION].local_log_start == 0


def test_a_lost_partition_is_made_anew_with_the_settings_of_now(make_party, redis_client):
    old, other = make_party(), make_party()
    topic = other.hot.topics().alter("orders", {"max.message.bytes": 100})
    redis_client.delete("{lakelog:stream:orders:0}:state")
    old.hot.topics().repair(old.topic)
    state = redis_client.hgetall("{lakelog:stream:orders:0}:state")
    assert int(state[b"config_version"]) == topic.config_version
    assert state[b"settings"].split()[3] == b"100"
