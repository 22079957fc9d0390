"""How a group's scripts are called, whatever they do."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from typing import Any

from ..base.clock import Clock
from ..errors import HotTierUnavailableError
from ..hot.connection import Servers, call_script
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
        """The ids of all groups; of one that was never made or is just removed, too."""
        server = self._servers.for_key(self._keys.groups)
        return sorted(found.decode() for found in server.call(("HKEYS", self._keys.groups))[0])

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
