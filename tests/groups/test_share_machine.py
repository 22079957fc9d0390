"""Anything may happen to a share group, and it does what the model does; each named defect is
noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from machine_run import run, scripts_changed
from share_machine import Differs, ShareMachine

from lakelog.hot import HotLog
from lakelog.hot.embedded.redis_program import RedisProgram
from tests.support.servers import RedisServer


@contextmanager
def share_machine(
    directory: Path, program: RedisProgram | None = None
) -> Iterator[type[ShareMachine]]:
    conf = {"appendonly": "no", "save": ""}
    server = RedisServer(directory / "redis", conf, program).start()
    hot = HotLog.connect(server.url)
    try:
        yield type("Machine", (ShareMachine,), {"server": server, "hot": hot})
    finally:
        hot.close()
        server.kill()


def test_a_share_group_does_what_the_model_does(
    tmp_path: Path, redis_program: RedisProgram
) -> None:
    with share_machine(tmp_path, redis_program) as machine:
        run(machine, 40, 40)


@pytest.mark.slow
def test_a_share_group_does_what_the_model_does_for_long(tmp_path: Path) -> None:
    with share_machine(tmp_path) as machine:
        run(machine, 1_500, 80)


#: name → the script file and what of it is changed.
MUTANTS: dict[str, tuple[str, Mapping[str, str]]] = {
    "no owner check": ("acknowledge", {"r.owner ~= member or": ""}),
    "no check of the lock": ("acknowledge", {"epoch ~= -1 and r.epoch ~= epoch": "false"}),
    "no expiry": ("share", {"if r.owner ~= '' and r.deadline <= now then": "if false then"}),
    "locks end at once": ("share", {"r.deadline <= now": "r.deadline < now + 2"}),
    "the count is not raised": ("acquire", {"r.count + 1, left": "r.count, left"}),
    "no limit of deliveries": ("share", {"if count >= most then": "if false then"}),
    "one delivery too many": ("share", {"if count >= most then": "if count > most then"}),
    "what is acknowledged is available": (
        "share",
        {"local DONE, OVER = free(ACKNOWLEDGED, 0)": "local DONE, OVER = free(AVAILABLE, 0)"},
    ),
    "a range is taken in part": ("acknowledge", {"start == at and is_held(last": "is_held(at + 1"}),
    "a release is an acceptance": (
        "acknowledge",
        {"    return given_back(r.count, most, has_dead_letters)": "    return DONE"},
    ),
    "held records are taken": (
        "acquire",
        {"r.state == AVAILABLE and left > 0": "r.state <= ACQUIRED and left > 0"},
    ),
    "a record is skipped": (
        "acquire",
        {"take(share.end_offset, ": "take(share.end_offset + (left > 4 and 1 or 0), "},
    ),
    "the state of another topic is taken": (
        "share",
        {"if found[1] ~= topic_id then": "if not found[2] then"},
    ),
    "rejected records come again": (
        "acknowledge",
        {"return undelivered(r.count, has_dead_letters)": "return free(AVAILABLE, r.count)"},
    ),
    "dead letters are written by all": (
        "acquire",
        {"r.state == ARCHIVING and r.owner == ''": "r.state == ARCHIVING"},
    ),
    "a gap takes what others hold": (
        "acknowledge",
        {"if r.state == AVAILABLE or r.owner == member then": "if true then"},
    ),
    "deleted records are delivered": ("share", {"at < log_start then": "false then"}),
    "any number of ranges": ("acquire", {"#share.ranges >= max_ranges": "false"}),
}


def mutated(file: str, changes: Mapping[str, str]) -> AbstractContextManager[None]:
    def is_of(name: str) -> bool:
        is_shared = file == "share" and name.startswith("groups/share/")
        return name == f"groups/share/{file}" or is_shared

    return scripts_changed(is_of, changes)


#: These are looked for each time; the others when asked for.
QUICK = {"no owner check", "no expiry", "a record is skipped"}


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=[] if one in QUICK else [pytest.mark.slow]) for one in MUTANTS],
)
def test_the_machine_notices(name: str, tmp_path: Path) -> None:
    with mutated(*MUTANTS[name]), share_machine(tmp_path) as machine, pytest.raises(Differs):
        run(machine, 150, 40, shrink=False)
