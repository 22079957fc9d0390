"""A power cut anywhere within what changes a partition other than an append."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from cuts import Cuts, values_of

from lakelog.cold.reserve import reserving
from lakelog.read.unified_log import UnifiedLog


@dataclass(frozen=True)
class Operation:
    """Something that a script does, between two states of a log of 96 records."""

    run: Callable[[Any], object]
    before: Callable[[Any], object] = lambda tiers: None
    restarts: bool = False  # another run of the server is to begin before it
    tiered: bool = True
    gone: tuple[range, ...] = ()  # offsets that may be missing since, each range as a whole
    expires: bool = False  # so may what lies below the log start


def tp(tiers: Any) -> Any:
    return tiers.topic.partition(0)


def held(tiers: Any) -> Any:
    return tiers.hot.quarantine(tp(tiers), tiers.topic.topic_id)


def move(tiers: Any) -> None:
    held(tiers).add("47-16", "", "me", 5, whatever=True)


def move_last(tiers: Any) -> None:
    held(tiers).add("95-16", "", "me", 5, whatever=True)


def put_back(tiers: Any) -> None:
    held(tiers).put_back("47-16", 5)
    held(tiers).forget("47-16")


def expire(tiers: Any) -> None:
    tiers.hot.topics().alter("orders", {"retention.bytes": 1_000})


MOVED = range(32, 48)

OPERATIONS = {
    "recover": Operation(lambda tiers: tiers.hot.recover(tp(tiers), 0), restarts=True),
    "trim": Operation(
        lambda tiers: tiers.hot.trim(tp(tiers), 56, archived_end=96, planned_at_ms=9),
        lambda tiers: tiers.archiver().run_once(),
    ),
    "retain": Operation(
        lambda tiers: tiers.hot.retain(tp(tiers)),
        expire,
        tiered=False,
        expires=True,
    ),
    "move aside": Operation(move, gone=(MOVED,)),
    "move the last aside": Operation(move_last, gone=(range(80, 96),)),
    "put back": Operation(put_back, move, gone=(MOVED,)),
    "raise the log start": Operation(
        lambda tiers: tiers.hot.raise_log_start(tp(tiers), 56),
        tiered=False,
        gone=(range(56),),
    ),
    "pause": Operation(lambda tiers: tiers.hot.pause([tp(tiers)])),
    "resume": Operation(
        lambda tiers: tiers.hot.resume([tp(tiers)]), lambda tiers: tiers.hot.pause([tp(tiers)])
    ),
    "adopt": Operation(
        lambda tiers: tiers.hot.recover(tp(tiers), 0),
        lambda tiers: tiers.hot.pause([tp(tiers)]),
        restarts=True,
    ),
}


def may_read(
    found: list[tuple[int, bytes]], all_there: dict[int, bytes], operation: Operation, start: int
) -> bool:
    """Whether a reader may find this: all there is, or all but what the operation took."""
    gone = (range(start),) if operation.expires else (range(0), *operation.gone)
    return dict(found) in [
        {offset: value for offset, value in all_there.items() if offset not in left_out}
        for left_out in gone
    ]


@pytest.mark.parametrize("most", [2, pytest.param(None, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_file_cut_within_it_loses_no_record_and_uses_no_offset_twice(
    make_redis, make_tiers, redis_program, name, most
):
    operation = OPERATIONS[name]
    server = make_redis(program=redis_program, appendfsync="always")
    config = {"local_retention_ms": -1} if operation.tiered else {"remote_storage_enable": "false"}
    tiers = make_tiers(
        url=server.url,
        internal_segment_bytes=3_000,
        index_interval_bytes=1,
        lakelog_entry_format="arrow",
        **config,
    )
    for _ in range(6):
        tiers.clock.advance(5)
        tiers.append(16, entry_records=16)
    written = dict(tiers.expected())
    operation.before(tiers)
    kept_cold = tiers.root.with_name("kept-cold")
    if tiers.root.exists():
        shutil.copytree(tiers.root, kept_cold)
    if operation.restarts:
        server.restart(clean=False)
    size = server.append_only_size()
    operation.run(tiers)
    cuts, places = Cuts.of(server, size)
    assert len(places) >= 3
    tiers.clock.advance(1)

    for place in cuts.some(places, most):
        shutil.rmtree(tiers.root, ignore_errors=True)
        if kept_cold.exists():
            shutil.copytree(kept_cold, tiers.root)
        cuts.start(place)
        log = UnifiedLog(tiers.topic, tiers.hot, tiers.table() if operation.tiered else None)
        expected = dict(written)
        start = log.offsets()[0].log_start
        assert may_read(values_of(log, 0, start), expected, operation, start), place
        for _ in range(2):
            tiers.producer_id, tiers.sequences = tiers.producer_id + 1, {}
            settle = tiers.hot.archived_into().settle
            reserve = reserving(tiers.topic, tiers.table(), settle) if operation.tiered else None
            end = tiers.hot.recover(tp(tiers), 0, reserve).log_end
            assert end not in expected, place
            tiers._append(0, [b"after %d" % end])
            expected[end] = b"after %d" % end
            server.restart(clean=False)
            start = log.offsets()[0].log_start
            assert may_read(values_of(log, 0, start), expected, operation, start), place
        if operation.tiered:
            tiers.archiver().run_once()
            start = log.offsets()[0].log_start
            assert may_read(values_of(log, 0, start), expected, operation, start), place
            assert may_read(tiers.archived(), expected, operation, start), place
        else:
            tiers.hot.recover(tp(tiers), 0)
            tiers.hot.retain(tp(tiers))
        if "aside" in name or name == "put back":
            moved = [one.entry_id for one in held(tiers).held()]
            missing = written.keys() - {offset for offset, _ in values_of(log, 0, start)}
            assert bool(missing) <= bool(moved), (place, moved)
