"""A member in a process of its own: joins, says what it got, then does what its stdin says.

``commit N`` commits offset N for what it got. Each answer is a line of JSON. It sends no heartbeats
of its own, so that it lives for one session after its last call.
"""

from __future__ import annotations

import json
import sys

from lakelog.errors import GroupError
from lakelog.groups.answers import JoinRequest
from lakelog.groups.assignors import Subscriber, assignor_named
from lakelog.groups.coordinator import GroupCoordinator
from lakelog.groups.protocol import Assignment, Subscription
from lakelog.groups.settings import GroupSettings
from lakelog.hot.connection import connect
from lakelog.values.record import OffsetAndMetadata


def main(url: str, group_id: str, session_ms: str) -> None:
    settings = GroupSettings(min_session_timeout_ms=1, initial_rebalance_delay_ms=0)
    coordinator = GroupCoordinator(connect(url), settings=settings)
    request = JoinRequest(
        (("range", Subscription(("orders",)).encode()),), session_timeout_ms=int(session_ms)
    )
    joined = coordinator.join(group_id, request)
    asked = {m.member_id: Subscriber(Subscription.decode(m.metadata)) for m in joined.members}
    shares = assignor_named("range").assign({"orders": 4}, asked)
    given = {member_id: share.encode() for member_id, share in shares.items()}
    synced = coordinator.sync(group_id, joined, given, session_timeout_ms=int(session_ms))
    partitions = Assignment.decode(synced.assignment).partitions
    say({"generation": joined.generation_id, "partitions": [str(tp) for tp in partitions]})
    for line in sys.stdin:
        try:
            coordinator.commit(
                group_id,
                dict.fromkeys(partitions, OffsetAndMetadata(int(line.split()[1]))),
                member_id=joined.member_id,
                generation_id=joined.generation_id,
            )
            say({"committed": True})
        except GroupError as error:
            say({"error": type(error).__name__})


def say(answer: object) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
