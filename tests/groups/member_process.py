"""A member with its heartbeats, in a process of its own, which does what its stdin says.

| line | |
|---|---|
| ``attend`` | until it is settled; answers what it has |
| ``commit N`` | offset N for all it has |

Each answer is a line of JSON; an error is its class. Between two lines only heartbeats go on.
"""

from __future__ import annotations

import json
import sys

from lakelog.errors import GroupError
from lakelog.groups.assignors import assignor_named
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.member_config import MemberConfig
from lakelog.groups.membership import Membership
from lakelog.groups.settings import GroupSettings
from lakelog.hot.connection import connect
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition


class Owner:
    """Notes that it lost something."""

    has_lost = False

    def revoked(self, partitions: set[TopicPartition]) -> None:
        pass

    def lost(self, partitions: set[TopicPartition]) -> None:
        self.has_lost = True

    def assigned(self, partitions: set[TopicPartition]) -> None:
        pass


def main(url: str, group_id: str, session_ms: str, instance_id: str) -> None:
    settings = GroupSettings(min_session_timeout_ms=1, initial_rebalance_delay_ms=0)
    owner = Owner()
    member = Membership(
        GroupCoordinator(connect(url), settings=settings),
        group_id,
        owner,
        lambda: {"orders": 4},
        MemberConfig(
            assignors=(assignor_named("cooperative-sticky"),),
            group_instance_id=instance_id or None,
            session_timeout_ms=int(session_ms),
            heartbeat_interval_ms=100,
        ),
    )
    member.subscribe(["orders"])
    for line in sys.stdin:
        try:
            if line.startswith("attend"):
                while not member.attend(100):
                    pass
                partitions = sorted(map(str, member.partitions))
                answer: object = {"partitions": partitions, "has_lost": owner.has_lost}
            else:
                member.commit(
                    dict.fromkeys(member.partitions, OffsetAndMetadata(int(line.split()[1])))
                )
                answer = {"committed": True}
        except GroupError as error:
            answer = {"error": type(error).__name__}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
