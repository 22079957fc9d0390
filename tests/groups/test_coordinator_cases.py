"""Cases of Kafka's own coordinator tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from group_bench import GroupBench
from msgspec.structs import replace

from lakelog.errors import GroupError, MemberIdRequiredError
from lakelog.groups.group_values import Joined, JoinRequest, Leaving, Pending, Synced
from lakelog.groups.protocol import Subscription
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

CASES = yaml.safe_load(Path(__file__).with_name("coordinator_cases.yml").read_text("utf-8"))
GROUP = "g"
PARTITION = TopicPartition("t", 0)


class Story:
    """The clients of one case, and what each knows."""

    def __init__(self, bench: GroupBench) -> None:
        self.bench = bench
        self.ids: dict[str, str] = {}
        self.requests: dict[str, JoinRequest] = {}
        self.joined: dict[str, Joined] = {}

    def tell(self, step: dict[str, Any]) -> None:
        verb, value = next((k, v) for k, v in step.items() if k != "expect")
        said = value if isinstance(value, dict) else {"as": value}
        if verb == "wait":
            self.bench.clock.advance(value)
        elif verb == "group":
            self.check_group(value)
        elif verb == "committed":
            found = self.bench.coordinator.committed(GROUP).get(PARTITION)
            assert (found and found.committed.offset) == value, step
        else:
            assert self.answered(verb, said) == step["expect"], step

    def check_group(self, expected: dict[str, Any]) -> None:
        group = self.bench.admin.describe(GROUP)
        found = {
            "state": group.state.value,
            "generation": group.generation_id,
            "members": len(group.members),
            "protocol": group.protocol_name,
            "leader": next((n for n, id_ in self.ids.items() if id_ == group.leader_id), None),
        }
        assert {name: found[name] for name in expected} == expected

    def answered(self, verb: str, said: dict[str, Any]) -> Any:
        try:
            answer = getattr(self, verb.replace(" ", "_"))(said)
        except MemberIdRequiredError as required:
            self.ids[said["as"]] = required.member_id
            return "MemberIdRequired"
        except GroupError as error:
            return type(error).__name__.removesuffix("Error")
        if isinstance(answer, (Joined, Pending)) and verb in ("join", "await"):
            self.ids[said["as"]] = answer.member_id
        if isinstance(answer, Joined):
            self.joined[said["as"]] = answer
        kinds = {Joined: "joined", Pending: "pending", Synced: "synced", type(None): "ok"}
        return kinds.get(type(answer), answer)

    def id_of(self, said: dict[str, Any]) -> str:
        given = said.get("id", said["as"])
        return self.ids.get(given, given)

    def join(self, said: dict[str, Any]) -> Joined | Pending:
        topics = tuple(said.get("topics", ["t"]))
        names = said.get("protocols", ["range"])
        request = JoinRequest(
            tuple((name, Subscription(topics).encode()) for name in names),
            session_timeout_ms=said.get("session", 10_000),
            rebalance_timeout_ms=said.get("rebalance", 10_000),
            member_id=self.id_of(said) if "id" in said else "",
            instance_id=said.get("instance"),
            client_id=said["as"],
            protocol_type=said.get("type", "consumer"),
            requires_known_member_id=said.get("known", False),
        )
        self.requests[said["as"]] = request
        return self.bench.coordinator.try_join(GROUP, request)

    def await_(self, said: dict[str, Any]) -> Joined | Pending:
        request = replace(self.requests[said["as"]], member_id=self.id_of(said))
        return self.bench.coordinator.await_join(GROUP, request)

    def sync(self, said: dict[str, Any]) -> Synced | Pending:
        nothing = Joined(1, "consumer", "range", "", "")
        joined = self.joined.get(said["as"], nothing)
        asked = replace(
            joined,
            member_id=self.id_of(said),
            generation_id=joined.generation_id + said.get("generation", 0),
            protocol_name=said.get("protocol", joined.protocol_name),
        )
        given = {member.member_id: b"some" for member in joined.members}
        return self.bench.coordinator.try_sync(
            GROUP, asked, given, instance_id=said.get("instance")
        )

    def generation(self, said: dict[str, Any]) -> int:
        joined = self.joined.get(said["as"])
        return (joined.generation_id if joined else 0) + int(said.get("generation", 0))

    def heartbeat(self, said: dict[str, Any]) -> None:
        member_id = self.id_of(said)
        self.bench.coordinator.heartbeat(
            GROUP, member_id, self.generation(said), said.get("instance")
        )

    def commit(self, said: dict[str, Any]) -> None:
        offsets = {PARTITION: OffsetAndMetadata(7)}
        if said.get("by hand"):
            self.bench.coordinator.commit(GROUP, offsets)
        else:
            self.bench.coordinator.commit(
                GROUP,
                offsets,
                member_id=self.id_of(said),
                generation_id=self.generation(said),
                instance_id=said.get("instance"),
            )

    def leave(self, said: dict[str, Any]) -> None:
        leaving = Leaving(self.id_of(said), said.get("instance"))
        (why,) = self.bench.coordinator.leave(GROUP, [leaving]).values()
        if why is not None:
            raise why

    def delete(self, said: dict[str, Any]) -> None:
        self.bench.admin.delete(GROUP)

    def delete_offsets(self, said: dict[str, Any]) -> None:
        assert self.bench.admin.delete_offsets(GROUP, [PARTITION]) == {PARTITION: True}

    def expire(self, said: dict[str, Any]) -> int:
        return self.bench.admin.expire_offsets(GROUP)


setattr(Story, "await", Story.await_)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["kafka"][1])
def test_kafkas_case(case: dict[str, Any], make_groups: Callable[..., GroupBench]) -> None:
    story = Story(make_groups(**case.get("settings", {})))
    for step in case["steps"]:
        story.tell(step)


def test_there_are_cases_of_each_verb() -> None:
    verbs = {next(iter(step)) for case in CASES for step in case["steps"]}
    assert len(CASES) > 50
    assert verbs >= {"join", "await", "sync", "heartbeat", "commit", "leave", "delete", "expire"}
