"""How a group's scripts are called, whatever they do, and what their refusals mean."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from ..base.clock import Clock
from ..errors import (
    FencedInstanceIdError,
    GroupError,
    GroupMaxSizeReachedError,
    HotTierUnavailableError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    RebalanceInProgressError,
    StaleMemberEpochError,
    UnknownMemberIdError,
)
from ..hot.connection import Servers, call_script
from ..hot.foreign import foreign_if_illegible
from ..hot.keys import Keys
from ..hot.refusals import was_closed


class GroupScripts:
    """The scripts of this folder on the groups of one keyspace.

    Args:
        clock: only for tests; without one the scripts ask Redis for the time.
    """

    def __init__(self, servers: Servers, keys: Keys, clock: Clock | None) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock

    def call(self, script: str, group_id: str, arguments: Iterable[Any]) -> list[Any]:
        """Runs a script on a group."""
        now_ms = "" if self._clock is None else self._clock.now_ms()
        keys = self._keys.group(group_id).all()
        name = f"groups/{script}"
        given = [now_ms, *arguments]
        try:
            answer: list[Any] = call_script(self._servers, name, keys, given)
        except HotTierUnavailableError as error:
            if script != "look" or not was_closed(error):
                raise
            answer = call_script(self._servers, name, keys, given)  # as any later look does
        return answer

    def call_or_make(
        self, script: str, group_id: str, arguments: Callable[[str], Iterable[Any]]
    ) -> list[Any]:
        """Runs a script that makes the group if it is not there; it is listed before that.

        Args:
            arguments: of a token for the new group, or of ``""``: then it is not made.
        """
        answer = self.call(script, group_id, arguments(""))
        if answer == [b"NEW"]:
            token = uuid.uuid4().hex[:12]
            self._list("add", group_id, token)
            answer = self.call(script, group_id, arguments(token))
        return answer

    def listed(self) -> list[str]:
        """The ids of all groups; of one that was never made or is just removed, too.

        Raises:
            ForeignEntryError: somebody else writes to the keyspace.
        """
        return sorted(self._listed(("HKEYS", self._keys.groups)))

    def some_listed(self, count: int) -> list[str]:
        """As `listed`, so many of them, at random."""
        return self._listed(("HRANDFIELD", self._keys.groups, count))

    def _listed(self, command: tuple[str | int, ...]) -> list[str]:
        (found,) = self._servers.for_key(self._keys.groups).call(command)
        with foreign_if_illegible(found, "list of groups"):
            return [group_id.decode() for group_id in found]

    def unlist(self, group_id: str, token: bytes) -> None:
        """Takes a removed group off the list, unless it was made again since."""
        self._list("remove", group_id, token)

    def wait(self, group_id: str, version: int, most_ms: int) -> bool:
        """Waits for a newer version of the group; False if none comes before the time is over."""
        news = self._keys.group(group_id).news
        try:
            return self._servers.for_key(news).wait_for(news, f"{version}-1", most_ms)
        except HotTierUnavailableError as error:
            if not error.moved:
                raise
            self._servers.refresh()
            return False

    def _list(self, verb: str, group_id: str, token: str | bytes) -> None:
        call_script(self._servers, "groups/listing", [self._keys.groups], [verb, group_id, token])


def refusal(
    code: str,
    group_id: str,
    *,
    member_id: str,
    instance_id: str | None,
    generation_id: int | None = None,
    protocols: tuple[str, ...] = (),
    max_size: int = 0,
) -> GroupError:
    """The error that a code stands for."""
    make: dict[str, Callable[[], GroupError]] = {
        "UNKNOWN_MEMBER_ID": lambda: UnknownMemberIdError(
            f"{member_id or 'a client without a member id'!r} is no member of group {group_id!r}: "
            "its session ended, it left, or it never joined. Join (again) without a member id",
            group_id=group_id,
            member_id=member_id,
        ),
        "FENCED_INSTANCE_ID": lambda: FencedInstanceIdError(
            f"instance {instance_id!r} of group {group_id!r} is another member now than "
            f"{member_id!r}: two consumers have one group_instance_id. Stop one of them, or give "
            "it another",
            group_id=group_id,
            instance_id=instance_id,
            member_id=member_id,
        ),
        "ILLEGAL_GENERATION": lambda: IllegalGenerationError(
            f"generation {generation_id} of group {group_id!r} is over: {member_id!r} missed a "
            "rebalance, and its partitions may be somebody else's. Join again",
            group_id=group_id,
            member_id=member_id,
            generation_id=generation_id,
        ),
        "STALE_MEMBER_EPOCH": lambda: StaleMemberEpochError(
            f"{member_id!r} of group {group_id!r} is in another epoch than {generation_id} by now; "
            "its next heartbeat tells which. Try again with that",
            group_id=group_id,
            member_id=member_id,
            member_epoch=generation_id,
        ),
        "REBALANCE_IN_PROGRESS": lambda: RebalanceInProgressError(
            f"group {group_id!r} shares its partitions out anew; {member_id!r} has to join again",
            group_id=group_id,
            member_id=member_id,
        ),
        "INCONSISTENT_GROUP_PROTOCOL": lambda: InconsistentGroupProtocolError(
            f"{', '.join(protocols) or 'no assignor'} of {member_id or 'a new member'!r} is not "
            f"what all members of group {group_id!r} have. Give it an assignor that they have too",
            group_id=group_id,
            protocols=protocols,
        ),
        "CONSUMER_PROTOCOL": lambda: InconsistentGroupProtocolError(
            f"group {group_id!r} has members by Kafka's consumer protocol "
            f"(group.protocol=consumer), and {member_id or 'a new member'!r} speaks the classic "
            "one. Stop them first, or have it join another group",
            group_id=group_id,
            protocols=protocols,
        ),
        "GROUP_MAX_SIZE_REACHED": lambda: GroupMaxSizeReachedError(
            f"group {group_id!r} has {max_size} members and takes no more (group.max.size)",
            group_id=group_id,
            max_size=max_size,
        ),
    }
    return make[code]()
