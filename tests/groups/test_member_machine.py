"""Consumers of a group may do anything, and share as they must; each named defect is noticed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from machine_run import run, scripts_changed
from member_machine import Broken, MemberMachine

from lakelog import Lakelog, TopicPartition
from lakelog.groups.membership import Membership
from lakelog.read.consumer import Consumer
from lakelog.read.cursor import Cursor
from lakelog.read.following import Following
from lakelog.values.record import OffsetAndMetadata
from tests.support.servers import RedisServer


@contextmanager
def member_machine(directory: Path) -> Iterator[type[MemberMachine]]:
    server = RedisServer(directory / "redis", {"appendonly": "no", "save": ""}).start()
    lake = Lakelog.connect(server.url)
    try:
        yield type("Machine", (MemberMachine,), {"server": server, "lake": lake})
    finally:
        lake.close()
        server.kill()


def test_members_share_whatever_happens(tmp_path: Path) -> None:
    with member_machine(tmp_path) as machine:
        run(machine, 25, 40)


@pytest.mark.slow
def test_members_share_whatever_happens_for_long(tmp_path: Path) -> None:
    with member_machine(tmp_path) as machine:
        run(machine, 500, 80)


def instead(of: type, name: str, by: Callable[..., Any]) -> AbstractContextManager[Any]:
    return mock.patch.object(of, name, by)


def commits_what_is_ahead(self: Consumer) -> dict[TopicPartition, OffsetAndMetadata]:
    return {
        cursor.topic_partition: OffsetAndMetadata(cursor.position + 1)
        for cursor in self._reading
        if cursor.position is not None
    }


def keeps_what_goes(self: Following, partitions: set[TopicPartition]) -> None:
    self._offsets.auto_commit()


def begins_where_it_was_told_last(self: Cursor, committed: int | None) -> None:
    self.asks_group = False
    self.position = None if committed is None else committed + 1


def never_joins_again(self: Membership) -> bool:
    return self.state.value == "<stable>"


def gives_all_to_itself(self: Membership, joined: Any) -> dict[str, bytes]:
    shares = ASSIGN(self, joined)
    everything = max(shares.values(), key=len, default=b"")
    return dict.fromkeys(shares, everything)


ASSIGN = Membership._assign


def forgets_what_it_assigned_by(self: Membership, joined: Any) -> dict[str, bytes]:
    shares = ASSIGN(self, joined)
    return dict(list(shares.items())[1:])


def in_group(old: str, new: str) -> AbstractContextManager[None]:
    """Of the scripts in front of which `group.lua` is loaded."""

    def is_of(name: str) -> bool:
        is_of_groups = name.startswith("groups/") and not name.startswith("groups/share/")
        return is_of_groups and name not in ("groups/listing", "groups/record")

    return scripts_changed(is_of, {old: new})


def in_commit(old: str, new: str) -> AbstractContextManager[None]:
    return scripts_changed("groups/commit".__eq__, {old: new})


MEMBER_MUTANTS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "no generation check": lambda: in_group(
        "if generation and generation ~= g.generation then", "if false then"
    ),
    "sessions never end": lambda: in_group(
        "for _, id in ipairs(over) do", "for _, id in ipairs({}) do"
    ),
    "a commit is forgotten": lambda: in_commit("for i = 6, #ARGV, 3 do", "for i = 9, #ARGV, 3 do"),
    "a commit beyond what was handed out": lambda: instead(
        Consumer, "_consumed", commits_what_is_ahead
    ),
    "two owners": lambda: instead(Membership, "_assign", gives_all_to_itself),
    "a member gets nothing": lambda: instead(Membership, "_assign", forgets_what_it_assigned_by),
    "what was revoked is read on": lambda: instead(Following, "revoked", keeps_what_goes),
    "a record is skipped at the start": lambda: instead(
        Cursor, "start_at", begins_where_it_was_told_last
    ),
    "a rebalance is not heard": lambda: instead(Membership, "_is_settled", never_joins_again),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MEMBER_MUTANTS)
def test_the_machine_notices(name: str, tmp_path: Path) -> None:
    with MEMBER_MUTANTS[name](), member_machine(tmp_path) as machine, pytest.raises(Broken):
        run(machine, 100, 50, shrink=False)
