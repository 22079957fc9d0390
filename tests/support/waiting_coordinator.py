"""Joins a group and takes part in it by calls that wait, as a client of one thread would."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from msgspec.structs import replace

from lakelog.errors import MemberIdRequiredError, RebalanceInProgressError
from lakelog.groups.coordinator import MAX_WAIT_MS, GroupCoordinator
from lakelog.groups.group_values import Joined, JoinRequest, Pending, Synced

Answer = TypeVar("Answer")


class WaitingCoordinator(GroupCoordinator):
    def join(self, group_id: str, request: JoinRequest) -> Joined:
        """Takes part in the group: waits until all members have joined, or their time is over.

        A new member gets an id on the way. Until the call returns, the member's session lasts.
        """
        while True:
            try:
                answer = self.try_join(group_id, request)
                if isinstance(answer, Joined):
                    return answer
                request = replace(request, member_id=answer.member_id)
                return self._awaited(
                    group_id, answer, request, partial(self.await_join, group_id, request)
                )
            except MemberIdRequiredError as required:
                request = replace(request, member_id=required.member_id)
            except RebalanceInProgressError:
                pass  # another round began before it heard of the end of this one

    def sync(
        self,
        group_id: str,
        joined: Joined,
        assignments: Mapping[str, bytes] | None = None,
        *,
        session_timeout_ms: int = MAX_WAIT_MS,
        instance_id: str | None = None,
    ) -> Synced:
        """What the member is to do; waits until the leader has said so.

        Args:
            session_timeout_ms: of the member, which asks often enough to stay one.
        """
        request = JoinRequest((), session_timeout_ms, instance_id=instance_id)

        def ask() -> Synced | Pending:
            return self.try_sync(group_id, joined, assignments, instance_id=instance_id)

        return self._awaited(group_id, ask(), request, ask)

    def _awaited(
        self,
        group_id: str,
        answer: Answer | Pending,
        request: JoinRequest,
        ask: Callable[[], Answer | Pending],
    ) -> Answer:
        """Asks again whenever there is news, something is due, or the session needs it."""
        while isinstance(answer, Pending):
            self.await_news(group_id, answer, request.session_timeout_ms // 3)
            answer = ask()
        return answer
