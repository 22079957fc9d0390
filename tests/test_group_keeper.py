"""Offsets that have expired go without an operator, and groups go by what the keyspace sets."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakelog import Lakelog, TopicPartition
from lakelog.base.clock import ManualClock
from lakelog.errors import (
    GroupMaxSizeReachedError,
    HotTierUnavailableError,
    InvalidConfigError,
    InvalidSessionTimeoutError,
    OffsetMetadataTooLargeError,
)
from lakelog.groups import settings as module
from lakelog.groups.group_values import Joined, JoinRequest
from lakelog.groups.protocol import Subscription
from lakelog.groups.settings import GroupSettings
from lakelog.jobs import JobRun, status_history
from lakelog.jobs.run_record import recent_troubles
from lakelog.testing.eventually import eventually
from lakelog.values.config import DAY_MS, MINUTE_MS
from lakelog.values.keyspace_defaults import KeyspaceDefaults
from lakelog.values.record import OffsetAndMetadata
from tests.support.servers import RedisServer
from tests.support.waiting_coordinator import WaitingCoordinator

PLACE = TopicPartition("orders", 0)
REQUEST = JoinRequest((("range", Subscription(("orders",)).encode()),))


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def lake(redis_url: str, tmp_path: Path, clock: ManualClock) -> Iterator[Lakelog]:
    cold = tmp_path / "cold"
    with Lakelog.connect(redis_url, cold, engine="inline", clock=clock) as lake:
        lake.topics.create("orders", 1)
        lake.topics.set_defaults({"group.initial.rebalance.delay.ms": 0})
        yield lake


@pytest.fixture
def coordinator(lake: Lakelog, clock: ManualClock) -> WaitingCoordinator:
    return WaitingCoordinator(lake.hot.connections, clock=clock)


def commit(coordinator: WaitingCoordinator, group_id: str, joined: Joined | None = None) -> None:
    member = {}
    if joined is not None:
        member = {"member_id": joined.member_id, "generation_id": joined.generation_id}
    coordinator.commit(group_id, {PLACE: OffsetAndMetadata(1)}, **member)


def join(coordinator: WaitingCoordinator, group_id: str) -> Joined:
    joined = coordinator.join(group_id, REQUEST)
    coordinator.sync(group_id, joined, {joined.member_id: b""})
    return joined


def listed(lake: Lakelog) -> list[str]:
    return [group.group_id for group in lake.groups.list()]


def test_who_archives_has_expired_offsets_go(
    lake: Lakelog, coordinator: WaitingCoordinator, clock: ManualClock
) -> None:
    commit(coordinator, "idle")
    lake.archive()
    clock.advance(7 * DAY_MS - 1)
    lake.archive()
    assert listed(lake) == ["idle"]
    clock.advance(1)
    lake.archive()  # somebody has just looked
    assert listed(lake) == ["idle"]
    clock.advance(10 * MINUTE_MS)
    lake.archive()
    assert listed(lake) == []


def test_so_does_who_cleans_up(
    lake: Lakelog, coordinator: WaitingCoordinator, clock: ManualClock
) -> None:
    commit(coordinator, "idle")
    clock.advance(7 * DAY_MS)
    lake.cleanup()
    assert listed(lake) == []


def test_offsets_stay_while_members_read_the_topic(
    lake: Lakelog, coordinator: WaitingCoordinator, clock: ManualClock
) -> None:
    joined = join(coordinator, "live")
    commit(coordinator, "live", joined)
    for _ in range(8 * DAY_MS // MINUTE_MS // 60):
        clock.advance(60 * MINUTE_MS)
        joined = join(coordinator, "live")  # its session ended with the leap
    lake.archive()
    assert listed(lake) == ["live"]
    assert len(coordinator.committed("live")) == 1


def test_members_that_died_without_a_word_are_noticed(
    lake: Lakelog, coordinator: WaitingCoordinator, clock: ManualClock
) -> None:
    """Nobody calls the group any more: only who looks at all of them finds that it is empty."""
    commit(coordinator, "dead", join(coordinator, "dead"))
    clock.advance(DAY_MS)
    lake.archive()
    clock.advance(7 * DAY_MS - 1)
    lake.archive()
    assert listed(lake) == ["dead"]
    clock.advance(10 * MINUTE_MS)
    lake.archive()
    assert listed(lake) == []


def test_where_nobody_archives_new_groups_have_old_ones_go(
    lake: Lakelog, coordinator: WaitingCoordinator, clock: ManualClock
) -> None:
    for n in range(30):
        commit(coordinator, f"old-{n}")
    clock.advance(7 * DAY_MS)
    for n in range(30):
        commit(coordinator, f"new-{n}")
    assert sorted(listed(lake)) == sorted(f"new-{n}" for n in range(30))


def test_what_is_built_in_is_what_the_settings_say() -> None:
    assert GroupSettings.of(KeyspaceDefaults()) == GroupSettings()


def test_the_keyspace_sets_how_long_offsets_are_kept(
    lake: Lakelog, coordinator: WaitingCoordinator, clock: ManualClock, redis_url: str
) -> None:
    commit(coordinator, "idle")
    lake.topics.set_defaults({"offsets.retention.minutes": 60})
    clock.advance(60 * MINUTE_MS)
    with Lakelog.connect(redis_url, engine="inline", clock=clock) as other:
        assert other.groups.expire_all_offsets() == 1
    assert listed(lake) == []


def test_a_change_is_seen_while_a_coordinator_goes_on(
    lake: Lakelog, coordinator: WaitingCoordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LASTING_S", 0)
    joined = join(coordinator, "readers")
    lake.topics.set_defaults({"offset.metadata.max.bytes": 3, "group.max.size": 1})
    with pytest.raises(OffsetMetadataTooLargeError, match="is 3"):
        coordinator.commit("by hand", {PLACE: OffsetAndMetadata(1, "four")})
    with pytest.raises(GroupMaxSizeReachedError):
        coordinator.join("readers", REQUEST)
    lake.topics.set_defaults({"group.min.session.timeout.ms": 50_000})
    with pytest.raises(InvalidSessionTimeoutError, match=r"within 50000\.\.1800000"):
        coordinator.join("readers", REQUEST)
    assert joined.is_leader
    lake.topics.set_defaults({"group.min.session.timeout.ms": None, "group.max.size": None})
    assert lake.topics.defaults().keys() == {
        "group.initial.rebalance.delay.ms",
        "offset.metadata.max.bytes",
    }


def test_bounds_that_no_member_can_keep_are_refused(lake: Lakelog) -> None:
    for changes in (
        {"group.min.session.timeout.ms": 2_000_000},
        {"group.max.session.timeout.ms": 5_999},
    ):
        with pytest.raises(InvalidConfigError, match="no member could join"):
            lake.topics.set_defaults(changes)
    with pytest.raises(InvalidConfigError, match=r"did you mean offsets\.retention\.minutes"):
        lake.topics.set_defaults({"offsets.retention.minute": 5})
    with pytest.raises(InvalidConfigError):
        lake.topics.set_defaults({"offsets.retention.minutes": 0})


# -- what cannot be recorded -----------------------------------------------------------------------


@pytest.fixture
def refused(lake: Lakelog, tmp_path: Path) -> Path:
    """Something else lies where groups are recorded."""
    folder = tmp_path / "cold" / "_lakelog_groups"
    folder.mkdir(parents=True)
    (folder / "somebody.else").write_text("")
    return folder


def mend(folder: Path) -> None:
    (folder / "somebody.else").unlink()


def test_groups_that_cannot_be_recorded_are_a_trouble_until_they_can(
    lake: Lakelog, coordinator: WaitingCoordinator, refused: Path
) -> None:
    assert lake.group_troubles() == ()
    commit(coordinator, "nightly")
    lake.archive()
    (trouble,) = lake.group_troubles()
    assert (trouble.topic, trouble.state, trouble.tries) == (
        "_lakelog_groups",
        "groups not recorded",
        1,
    )
    assert "something else lies there" in trouble.why
    assert lake.status().troubles == (trouble,)
    lake.cleanup()
    (again,) = lake.group_troubles()
    assert (again.since_ms, again.tries) == (trouble.since_ms, 2)
    mend(refused)
    lake.archive()
    assert lake.group_troubles() == lake.status().troubles == ()


def test_a_job_run_writes_that_down_and_is_done(
    lake: Lakelog, refused: Path, redis_url: str, tmp_path: Path
) -> None:
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as now:
        commit(WaitingCoordinator(now.hot.connections), "nightly")
        result = JobRun(now, "archive", "1").once(lambda: now.archive())
        assert len(result["partitions"]) == 1
        (row,) = [row for row in status_history(now).to_pylist() if row["partition"] is None]
        assert (row["topic"], row["state"]) == ("_lakelog_groups", "groups not recorded")
        assert "next try by whoever archives next" in row["error"]
        assert now.place.cold is not None
        (told,) = recent_troubles(now.place.cold)
        assert told["error"] == row["error"]
        mend(refused)
        JobRun(now, "archive", "2").once(lambda: now.archive())
        assert status_history(now).num_rows == 3


def test_a_continuous_archiver_says_so_in_redis_and_ends_well(
    lake: Lakelog, coordinator: WaitingCoordinator, refused: Path, redis_url: str, tmp_path: Path
) -> None:
    commit(coordinator, "nightly")
    stop = threading.Event()
    archive = lake.archive_continuously(stop=stop)
    thread = threading.Thread(target=list, args=[archive])
    thread.start()
    try:
        with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as other:
            eventually(lambda: bool(other.status().troubles))
            (trouble,) = other.status().troubles
            assert (trouble.topic, trouble.state) == ("_lakelog_groups", "groups not recorded")
    finally:
        stop.set()
        thread.join()


def test_a_redis_that_is_away_is_another_trouble(
    make_redis: Callable[..., RedisServer], tmp_path: Path
) -> None:
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
        lake.topics.create("orders", 1)
        lake.record_groups()
        server.stop()
        with pytest.raises(HotTierUnavailableError):
            lake.cleanup()
        assert lake.group_troubles() == ()
