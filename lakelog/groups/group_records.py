"""All groups of a keyspace at once, to be recorded outside of Redis and brought back from there."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ..base.clock import Clock
from ..errors import HotTierUnavailableError
from ..hot.connection import Command, Servers, by_server, call_script
from ..hot.foreign import foreign_if_illegible
from ..hot.keys import DEFAULT_KEYSPACE, Keys
from ..values.record import OffsetAndMetadata
from ..values.topic_partition import TopicPartition
from .group_values import GroupState, pack_offset, parse_field, unpack_offset
from .recorded_offset import GroupType, RecordedOffset, RecordingMark, SeenGroup, SeenGroups
from .scripts import GroupScripts
from .share.share_partitions import listed_partitions, share_field

Found = TypeVar("Found")

#: Of so many groups at a time is read, so that Redis serves others in between.
_AT_ONCE = 200


class GroupRecords:
    """Reads all groups of one keyspace in a few round trips, and puts back what was lost.

    Reading changes nothing: sessions that are over are ended by whoever calls the group next.
    Thread-safe.

    Args:
        servers: from `connection.connect`.
        clock: only for tests; without one the scripts ask Redis for the time.
    """

    def __init__(
        self, servers: Servers, keyspace: str = DEFAULT_KEYSPACE, clock: Clock | None = None
    ) -> None:
        self._servers = servers
        self._keys = Keys(keyspace)
        self._clock = clock
        self._scripts = GroupScripts(servers, self._keys, clock)

    # -- reading -------------------------------------------------------------------------------

    def read(self) -> SeenGroups:
        """All groups as they are now, each by itself; also what has expired and was not removed.

        Raises:
            ForeignEntryError: somebody else writes to the keyspace.
        """
        groups, missing = self._seen(self._scripts.listed())
        return SeenGroups(groups, missing, tuple(self._shares()))

    def read_some(self, count: int) -> SeenGroups:
        """Some of the groups of consumers, at random."""
        groups, missing = self._seen(self._scripts.some_listed(count))
        return SeenGroups(groups, missing, ())

    def _seen(self, listed: Sequence[str]) -> tuple[dict[str, SeenGroup], frozenset[str]]:
        groups: dict[str, SeenGroup] = {}
        missing = []
        for start in range(0, len(listed), _AT_ONCE):
            chunk = listed[start : start + _AT_ONCE]
            for group_id, (about, offsets, members) in zip(chunk, self._raw(chunk), strict=True):
                if about[0] is None:
                    missing.append(group_id)
                else:
                    with foreign_if_illegible((about, offsets), "group"):
                        groups[group_id] = _seen(group_id, about, offsets, members)
        return groups, frozenset(missing)

    def positions(self, topic: str, topic_id: uuid.UUID) -> dict[str, dict[int, int]]:
        """What groups of consumers have committed of a topic as it is now: by id and partition.

        Costs what `read` does; share groups are not among them.
        """
        found: dict[str, dict[int, int]] = {}
        for group_id, group in self._seen(self._scripts.listed())[0].items():
            of_topic = {
                one.topic_partition.partition: one.committed.offset
                for one in group.offsets
                if one.topic_partition.topic == topic and one.topic_id in (None, topic_id)
            }
            if of_topic:
                found[group_id] = of_topic
        return found

    def now_ms(self) -> int:
        """The time that offsets are committed at."""
        if self._clock is not None:
            return self._clock.now_ms()
        key = self._keys.groups
        (found,) = self._servers.for_key(key).call(("TIME",))
        return int(found[0]) * 1000 + int(found[1]) // 1000

    def run_id(self) -> str:
        """Of the server that has the list of groups: another one may have lost something."""
        return self._servers.for_key(self._keys.groups_recorded).run_id()

    def mark(self) -> RecordingMark | None:
        """What was recorded; None if nothing was, or Redis has lost the list of groups since."""
        key = self._keys.groups_recorded
        fields = ("id", "taken", "digest", "recorded_ms")
        (found,) = self._servers.for_key(key).call(("HMGET", key, *fields))
        if found[0] is None:
            return None
        with foreign_if_illegible(found, "mark of what was recorded of groups"):
            id_, taken, digest, recorded_ms = found
            return RecordingMark(
                id_.decode(),
                int(taken or 0),
                (digest or b"").decode(),
                None if recorded_ms is None else int(recorded_ms),
            )

    # -- writing -------------------------------------------------------------------------------

    def take(self, at_least: int) -> RecordingMark:
        """A number for the next recording, above all others; what is read after it is as new."""
        id_, taken = self._record("take", at_least, uuid.uuid4().hex[:12])
        return RecordingMark(id_.decode(), int(taken))

    def confirm(self, mark: RecordingMark, digest: str, recorded_ms: int) -> None:
        """That what has this digest was recorded under the number."""
        self._record("confirm", mark.id, mark.taken, digest, recorded_ms)

    def expiry_is_due(self, every_ms: int) -> bool:
        """Whether nobody has looked for expired offsets for so long; then it is the caller's."""
        now_ms = "" if self._clock is None else self._clock.now_ms()
        (due,) = self._record("due", now_ms, every_ms)
        return bool(due)

    def bring_back(self, offsets: Iterable[RecordedOffset]) -> list[RecordedOffset]:
        """Puts offsets back that Redis has not; one that was committed there later stays.

        A share group is put back only where the topic is the one it was of.

        Returns:
            Those that were put back.
        """
        by_group: dict[str, list[RecordedOffset]] = {}
        back: list[RecordedOffset] = []
        for one in offsets:
            if one.group_type is GroupType.CLASSIC:
                by_group.setdefault(one.group_id, []).append(one)
            elif self._bring_back_share(one):
                back.append(one)
        for group_id, lost in by_group.items():
            values: list[Any] = []
            for one in lost:
                rest = pack_offset(one.committed, one.topic_id)
                values += [str(one.topic_partition), one.committed.offset, one.committed_ms, rest]

            def arguments(
                token: str, lost: list[RecordedOffset] = lost, values: list[Any] = values
            ) -> list[Any]:
                return [token, lost[0].protocol_type, *values]

            _, *done = self._scripts.call_or_make("bring_back", group_id, arguments)
            back += [one for one, is_back in zip(lost, done, strict=True) if is_back]
        return back

    # -- how -----------------------------------------------------------------------------------

    def _record(self, *arguments: Any) -> list[Any]:
        answer: list[Any] = call_script(
            self._servers, "groups/record", [self._keys.groups_recorded], arguments
        )
        return answer

    def _raw(self, group_ids: Sequence[str]) -> list[tuple[Any, Any, int]]:
        """Of each group what it is, its offsets, and how many members it has."""

        def commands(group_id: str) -> list[Command]:
            keys = self._keys.group(group_id)
            return [
                ("HMGET", keys.group, "state", "type", "since"),
                ("HGETALL", keys.offsets),
                ("HLEN", keys.members),
            ]

        def ask() -> dict[str, tuple[Any, Any, int]]:
            found: dict[str, tuple[Any, Any, int]] = {}
            for server, ids in by_server(
                self._servers, group_ids, lambda group_id: self._keys.group(group_id).group
            ):
                replies = server.call(*(one for id_ in ids for one in commands(id_)))
                of_each = zip(replies[::3], replies[1::3], replies[2::3], strict=True)
                found |= dict(zip(ids, of_each, strict=True))
            return found

        answers = self._where_it_lies(ask)
        return [answers[group_id] for group_id in group_ids]

    def _where_it_lies(self, ask: Callable[[], Found]) -> Found:
        """Asks again once, if a slot has moved."""
        try:
            return ask()
        except HotTierUnavailableError as error:
            if not error.moved:
                raise
            self._servers.refresh()
            return ask()

    def _shares(self) -> Iterable[RecordedOffset]:
        partitions = {tp for _, tp in listed_partitions(self._servers, self._keys)}
        for topic_partition in sorted(partitions):
            found = self._share("starts", topic_partition, "", "")
            with foreign_if_illegible(found, "list of share groups"):
                for group_id, topic_id, start in zip(*[iter(found)] * 3, strict=True):
                    yield RecordedOffset(
                        group_id.decode(),
                        GroupType.SHARE,
                        "",
                        topic_partition,
                        uuid.UUID(topic_id.decode()),
                        OffsetAndMetadata(int(start)),
                        None,
                    )

    def _bring_back_share(self, one: RecordedOffset) -> bool:
        key, field = self._keys.share_groups, share_field(one.group_id, one.topic_partition)
        self._servers.for_key(key).call(("HSET", key, field, str(one.topic_id)))
        code, *done = self._share(
            "bring_back", one.topic_partition, one.group_id, one.topic_id, one.committed.offset
        )
        return code == b"OK" and bool(int(done[0]))

    def _share(self, script: str, topic_partition: TopicPartition, *arguments: Any) -> list[Any]:
        keys = self._keys.partition(topic_partition)
        now_ms = "" if self._clock is None else self._clock.now_ms()
        given = [now_ms, *(str(argument) for argument in arguments)]
        name = f"groups/share/{script}"
        answer: list[Any] = call_script(self._servers, name, (keys.shares,), given)
        return answer


def _seen(group_id: str, about: Sequence[bytes], offsets: Any, members: int) -> SeenGroup:
    state, kind, since_ms = about
    pairs: Mapping[bytes, bytes] = offsets
    if not isinstance(offsets, dict):  # a flat list, in the older of redis-py's protocols
        pairs = dict(zip(offsets[::2], offsets[1::2], strict=True))
    found = []
    for field, value in pairs.items():
        one = unpack_offset(value)
        found.append(
            RecordedOffset(
                group_id,
                GroupType.CLASSIC,
                kind.decode(),
                parse_field(field),
                one.topic_id,
                one.committed,
                one.committed_ms,
            )
        )
    is_empty = GroupState(state.decode()) is GroupState.EMPTY
    since = int(since_ms) if is_empty else None
    return SeenGroup(tuple(found), since, kind != b"", members)
