"""Share groups (KIP-932) by raw requests, beside lakelog's own consumers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import confluent_kafka as ck
import pytest
from kafka.record.memory_records import MemoryRecords

from lakelog import AcknowledgeType, Lakelog
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.protocol.messages import (
    AlterShareGroupOffsetsRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeShareGroupOffsetsRequest,
    ListGroupsRequest,
    ShareAcknowledgeRequest,
    ShareFetchRequest,
    ShareGroupDescribeRequest,
    ShareGroupHeartbeatRequest,
)
from lakelog.groups.group_values import GroupState
from lakelog.testing.eventually import eventually
from lakelog.values.topic import Topic
from tests.gateway.raw_client import RawClient

GROUP = "workers"
GAP, ACCEPT, RELEASE, REJECT = range(4)
BEGINS, ENDS = 0, -1

#: partition → (first offset, last offset, types)
Said = Mapping[int, Sequence[tuple[int, int, Sequence[int]]]]


class Got(NamedTuple):
    """What a fetch brought of a partition."""

    error: int
    acknowledge_error: int
    acquired: list[tuple[int, int, int]]  # first and last offset, delivery count
    values: list[bytes | None]  # of the records that were acquired


class Member:
    """A client of Kafka in a share group, by hand."""

    def __init__(self, gateway: Gateway, topic: Topic, member_id: str) -> None:
        self.client = RawClient(gateway.bootstrap_servers)
        self.topic = topic
        self.member_id = member_id
        self.epoch = BEGINS

    def heartbeat(self, epoch: int, *topics: str, group_id: str = GROUP) -> Any:
        names = list(topics) or None
        request = ShareGroupHeartbeatRequest(group_id, self.member_id, epoch, None, names)
        return self.client.ask(request, 1)

    def ask_fetch(self, *, epoch: int | None = None, said: Said | None = None, **more: Any) -> Any:
        told, wanted = ShareFetchRequest, said or {}
        batch = told.AcknowledgementBatch
        numbers = more.pop("partitions", range(self.topic.partitions))
        partitions = [
            told.FetchPartition(number, [batch(*one) for one in wanted.get(number, ())])
            for number in numbers
        ]
        asked = {"max_wait_ms": 0, "min_bytes": 1, "max_records": 100, "max_bytes": 1 << 20, **more}
        request = told(
            group_id=GROUP,
            member_id=self.member_id,
            share_session_epoch=self.epoch if epoch is None else epoch,
            topics=[told.FetchTopic(more.pop("topic_id", self.topic.topic_id), partitions)],
            **asked,
        )
        if epoch is None:
            self.epoch += 1
        return self.client.ask(request, 1)

    def fetch(self, **more: Any) -> dict[int, Got]:
        response = self.ask_fetch(**more)
        assert response.error_code == 0, response.error_message
        return {
            one.partition_index: _got(one)
            for topic in response.responses
            for one in topic.partitions
        }

    def ask_acknowledge(self, said: Said, epoch: int | None = None) -> Any:
        told = ShareAcknowledgeRequest
        partitions = [
            told.AcknowledgePartition(number, [told.AcknowledgementBatch(*one) for one in batches])
            for number, batches in said.items()
        ]
        topics = [told.AcknowledgeTopic(self.topic.topic_id, partitions)]
        asked = self.epoch if epoch is None else epoch
        if epoch is None:
            self.epoch += 1
        return self.client.ask(told(GROUP, self.member_id, asked, topics), 1)

    def acknowledge(self, *batches: tuple[int, int, Sequence[int]]) -> int:
        """Of partition 0; the error of that."""
        response = self.ask_acknowledge({0: batches})
        assert response.error_code == 0
        (one,) = response.responses[0].partitions
        return int(one.error_code)


def _got(data: Any) -> Got:
    ranges = [
        (one.first_offset, one.last_offset, one.delivery_count) for one in data.acquired_records
    ]
    values = []
    batches = MemoryRecords(bytes(data.records or b""))
    while (batch := batches.next_batch()) is not None:
        values += [
            record.value
            for record in batch
            if any(first <= record.offset <= last for first, last, _ in ranges)
        ]
    return Got(data.error_code, data.acknowledge_error_code, ranges, values)


@pytest.fixture(autouse=True)
def topic(lake: Lakelog) -> Topic:
    lake.topics.set_defaults(
        {
            "lakelog.share.auto.offset.reset": "earliest",
            "group.share.delivery.count.limit": 3,
            "group.consumer.session.timeout.ms": 1_000,
            "group.consumer.heartbeat.interval.ms": 200,
        }
    )
    return lake.topics.create("jobs", 1, {"lakelog.entry.format": "kafka"})


@pytest.fixture
def member(gateway: Gateway, topic: Topic) -> Iterator[Callable[..., Member]]:
    made: list[Member] = []

    def make(name: str = "ada", of: Topic = topic) -> Member:
        made.append(Member(gateway, of, name))
        return made[-1]

    yield make
    for one in made:
        one.client.socket.close()


def send(lake: Lakelog, *values: bytes, topic: str = "jobs") -> None:
    with lake.producer() as producer:
        for value in values:
            producer.send(topic, value, partition=0)


def numbered(first: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, end)]


# -- records ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry_format", ["kafka", "arrow"])
def test_each_record_goes_to_one_member(lake: Lakelog, member: Any, entry_format: str) -> None:
    topic = lake.topics.create("other", 1, {"lakelog.entry.format": entry_format})
    send(lake, *numbered(0, 6), topic="other")
    ada, bob = member("ada", topic), member("bob", topic)
    assert ada.fetch(max_records=4) == {0: Got(0, 0, [(0, 3, 1)], numbered(0, 4))}
    assert bob.fetch() == {0: Got(0, 0, [(4, 5, 1)], numbered(4, 6))}
    assert ada.fetch(said={0: [(0, 3, [ACCEPT])]}) == {}
    assert bob.acknowledge((4, 4, [ACCEPT]), (5, 5, [ACCEPT])) == 0
    (found,) = lake.share_groups.describe(GROUP).partitions
    assert (found.start_offset, found.ranges) == (6, ())


def test_records_that_are_released_come_again_and_rejected_ones_do_not(
    lake: Lakelog, member: Any
) -> None:
    send(lake, *numbered(0, 4))
    ada = member()
    ada.fetch()
    assert ada.acknowledge((0, 3, [ACCEPT, RELEASE, REJECT, RELEASE])) == 0
    assert ada.fetch() == {0: Got(0, 0, [(1, 1, 2), (3, 3, 2)], [b"1", b"3"])}
    assert ada.acknowledge((1, 1, [RELEASE])) == 0
    assert ada.fetch() == {0: Got(0, 0, [(1, 1, 3)], [b"1"])}
    assert ada.acknowledge((1, 1, [RELEASE]), (3, 3, [GAP])) == 0
    assert ada.fetch() == {}  # it was delivered as often as it may be


def test_records_whose_lock_ends_come_again_and_their_first_holder_is_refused(
    lake: Lakelog, make_gateway: Any, topic: Topic
) -> None:
    lake.topics.set_defaults({"group.share.record.lock.duration.ms": 300})
    gateway = make_gateway()
    ada, bob = Member(gateway, topic, "ada"), Member(gateway, topic, "bob")
    send(lake, *numbered(0, 2))
    response = ada.ask_fetch()
    assert response.acquisition_lock_timeout_ms == 300
    assert bob.fetch(max_wait_ms=20_000) == {0: Got(0, 0, [(0, 1, 2)], numbered(0, 2))}
    assert ada.acknowledge((0, 1, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE
    assert bob.acknowledge((0, 1, [ACCEPT])) == 0
    for one in (ada, bob):
        one.client.socket.close()


def test_a_member_that_is_gone_releases_what_it_holds(lake: Lakelog, member: Any) -> None:
    send(lake, *numbered(0, 3))
    ada, bob = member("ada"), member("bob")
    assert ada.fetch(max_records=1)[0].acquired == [(0, 0, 1)]
    assert bob.fetch(max_records=1)[0].acquired == [(1, 1, 1)]
    assert ada.ask_acknowledge({}, ENDS).error_code == 0
    assert lake.share_groups.describe(GROUP).member_ids == {"bob"}
    bob.client.socket.close()
    eventually(lambda: not lake.share_groups.describe(GROUP).member_ids)
    assert member("cleo").fetch()[0].acquired == [(0, 1, 1), (2, 2, 1)]  # as a broker counts


def test_a_fetch_waits_for_records_and_for_what_others_release(lake: Lakelog, member: Any) -> None:
    ada, bob = member("ada"), member("bob")
    ada.fetch()
    begun = ada.client.begin(_fetch_of(ada, max_wait_ms=20_000), 1)
    send(lake, b"new")
    assert ada.client.take(ShareFetchRequest, 1)[0] == begun
    begun = bob.client.begin(_fetch_of(bob, max_wait_ms=20_000), 1)
    assert ada.acknowledge((0, 0, [RELEASE])) == 0
    _, response = bob.client.take(ShareFetchRequest, 1)
    assert _got(response.responses[0].partitions[0]).acquired == [(0, 0, 2)]


def _fetch_of(member: Member, **more: Any) -> ShareFetchRequest:
    topic = ShareFetchRequest.FetchTopic(
        member.topic.topic_id, [ShareFetchRequest.FetchPartition(0)]
    )
    asked = ShareFetchRequest(
        GROUP, member.member_id, member.epoch, topics=[topic], max_records=10, **more
    )
    member.epoch += 1
    return asked


def test_what_does_not_fit_is_given_back_as_if_it_had_not_been_delivered(
    lake: Lakelog, member: Any
) -> None:
    values = [bytes([number]) * 1000 for number in range(8)]
    with lake.producer(compression_type="none") as producer:
        for value in values:
            producer.send("jobs", value).result()
    ada, bob = member("ada"), member("bob")
    got = ada.fetch(max_bytes=2500)[0]
    assert got.values == values[: len(got.values)]
    assert 1 <= len(got.values) < 8
    rest = bob.fetch()[0]
    assert rest.acquired == [(len(got.values), 7, 1)]
    assert rest.values == values[len(got.values) :]


def test_archived_records_and_gaps_are_passed_over(lake: Lakelog, member: Any) -> None:
    lake.topics.alter("jobs", {"local.retention.ms": 0, "segment.ms": 1})
    send(lake, *numbered(0, 10))
    lake.archive("jobs")
    send(lake, *numbered(10, 12))
    ada = member()
    assert ada.fetch(max_records=5) == {0: Got(0, 0, [(0, 4, 1)], numbered(0, 5))}
    lake.log("jobs").raise_log_start(0, 8)
    assert ada.acknowledge((0, 4, [RELEASE])) == 0
    assert ada.fetch(max_records=5)[0].values[0] == b"8"


def test_what_compaction_removed_is_not_taken(lake: Lakelog, member: Any) -> None:
    compacted = {"cleanup.policy": "compact", "segment.ms": 1, "local.retention.ms": 0}
    topic = lake.topics.create("keys", 1, compacted)
    with lake.producer() as producer:
        for number in range(10):
            at_ms = 1_700_000_000_000 + 1000 * number
            producer.send("keys", b"%d" % number, key=b"k", timestamp_ms=at_ms)
            producer.flush()
    lake.archive("keys")
    lake.cleanup("keys")
    (first, *_) = left = [record.offset for record in lake.log("keys").read(0).records()]
    assert first > 3
    ada = member("ada", topic)
    assert ada.fetch(max_records=2, max_wait_ms=20_000)[0].values[0] == b"%d" % first
    (found,) = lake.share_groups.describe(GROUP).partitions
    assert found.start_offset == first
    assert len(left) > 1


def test_partitions_have_their_turns(lake: Lakelog, member: Any) -> None:
    topic = lake.topics.create("wide", 3)
    with lake.producer() as producer:
        for number in range(6):
            producer.send("wide", b"%d" % number, partition=number % 3)
    ada = member("ada", topic)
    found = [ada.fetch(max_records=1) for _ in range(3)]
    assert sorted(number for one in found for number in one) == [0, 1, 2]
    assert {number: len(one.values) for number, one in ada.fetch().items()} == {0: 1, 1: 1, 2: 1}


# -- beside lakelog's own consumers ----------------------------------------------------------------


def test_a_client_of_kafka_and_a_share_consumer_take_from_one_queue(
    lake: Lakelog, member: Any
) -> None:
    send(lake, *numbered(0, 6))
    ada = member()
    bob = lake.share_consumer(
        "jobs", group_id=GROUP, share_acknowledgement_mode="explicit", share_delivery_count_limit=3
    )
    assert ada.fetch(max_records=2)[0].values == numbered(0, 2)
    (records,) = bob.poll(5_000, max_records=2).values()
    assert [record.value for record in records] == numbered(2, 4)
    assert ada.acknowledge((2, 2, [ACCEPT])) == ErrorCode.INVALID_RECORD_STATE  # they are bob's
    bob.acknowledge(records[0], AcknowledgeType.RELEASE)
    bob.acknowledge(records[1])
    assert bob.commit_sync() == {("jobs", 0): None}
    assert ada.acknowledge((0, 1, [ACCEPT, RELEASE])) == 0
    (records,) = bob.poll(5_000, max_records=1).values()
    assert [record.value for record in records] == [b"1"]
    assert ada.fetch()[0].acquired == [(2, 2, 2), (4, 5, 1)]
    bob.close()
    assert ada.fetch()[0].acquired == [(1, 1, 3)]


def test_librdkafka_shares_a_queue_with_a_share_consumer(lake: Lakelog, gateway: Gateway) -> None:
    lake.topics.create("wide", 2)
    settings = {
        "bootstrap.servers": gateway.bootstrap_servers,
        "group.id": GROUP,
        "share.acknowledgement.mode": "explicit",
    }
    bob = lake.share_consumer(
        "jobs", "wide", group_id=GROUP, max_poll_records=7, share_auto_offset_reset="earliest"
    )
    with lake.producer() as producer:
        for number in range(100):
            producer.send("jobs", b"%d" % number)
            producer.send("wide", b"%d" % number)
    counts: Counter[tuple[str, int, int]] = Counter()
    released, seen_by = set(), [0, 0]

    def poll_bob(timeout_ms: int) -> None:
        for records in bob.poll(timeout_ms).values():
            seen_by[1] += len(records)
            counts.update((one.topic, one.partition, one.offset) for one in records)

    poll_bob(5_000)
    ada = ck.ShareConsumer(settings)
    ada.subscribe(["jobs", "wide"])

    def poll() -> bool:
        for message in ada.poll(0.1):
            assert message.error() is None
            place = message.topic(), message.partition(), message.offset()
            counts[place] += 1
            if place[2] % 10 == 0 and place not in released:
                released.add(place)
                ada.acknowledge(message, ck.AcknowledgeType.RELEASE)
            else:
                seen_by[0] += 1
                ada.acknowledge(message)
        assert not any(ada.commit_sync().values())
        poll_bob(0)
        return sum(seen_by) >= 200

    eventually(poll)
    bob.commit_sync()
    bob.close()
    assert len(counts) == 200
    assert {place for place, count in counts.items() if count > 1} == released
    assert all(seen_by)
    (group,) = lake.share_groups.list()
    assert len(group.member_ids) == 1
    assert all(not one.ranges for one in group.partitions)
    ada.close()
    assert not lake.share_groups.describe(GROUP).member_ids


# -- share sessions --------------------------------------------------------------------------------


def test_requests_of_a_share_session_follow_each_other(lake: Lakelog, member: Any) -> None:
    send(lake, b"0")
    ada = member()
    assert ada.ask_fetch(epoch=1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ada.ask_acknowledge({}, 1).error_code == ErrorCode.SHARE_SESSION_NOT_FOUND
    assert ada.ask_acknowledge({}, BEGINS).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    said = {0: [(0, 0, [ACCEPT])]}
    assert ada.ask_fetch(epoch=BEGINS, said=said).error_code == ErrorCode.INVALID_REQUEST
    assert ada.fetch()[0].acquired
    assert ada.ask_fetch(epoch=2).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    assert ada.ask_acknowledge({}, 3).error_code == ErrorCode.INVALID_SHARE_SESSION_EPOCH
    # Partitions stay in a session until they are forgotten.
    assert ada.acknowledge((0, 0, [RELEASE])) == 0
    forgotten = ShareFetchRequest.ForgottenTopic(ada.topic.topic_id, [0])
    assert ada.fetch(partitions=[])[0].acquired == [(0, 0, 2)]
    assert ada.acknowledge((0, 0, [RELEASE])) == 0
    assert ada.fetch(partitions=[], forgotten_topics_data=[forgotten]) == {}
    assert ada.ask_fetch(epoch=ENDS, partitions=[]).error_code == 0
    assert ada.ask_fetch().error_code == ErrorCode.SHARE_SESSION_NOT_FOUND


@pytest.mark.parametrize(
    "batches",
    [
        [(0, 1, [])],
        [(0, 1, [ACCEPT] * 3)],
        [(1, 0, [ACCEPT])],
        [(1, 1, [ACCEPT]), (0, 0, [ACCEPT])],
        [(0, 0, [4])],
        [(-1, 0, [ACCEPT])],
    ],
)
def test_acknowledgements_that_say_nothing_are_refused(
    lake: Lakelog, member: Any, batches: Any
) -> None:
    send(lake, b"0", b"1")
    ada = member()
    ada.fetch()
    assert ada.acknowledge(*batches) == ErrorCode.INVALID_REQUEST
    assert ada.fetch(said={0: batches})[0].acknowledge_error == ErrorCode.INVALID_REQUEST
    assert ada.acknowledge((0, 1, [ACCEPT])) == 0


def test_what_is_not_there_is_told_of(lake: Lakelog, member: Any, topic: Topic) -> None:
    ada = member()
    assert ada.fetch(partitions=[7])[7].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    lake.topics.delete("jobs")
    gone = (ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert ada.fetch(partitions=[0])[0].error in gone
    assert ada.acknowledge((0, 0, [ACCEPT])) in gone
    nobody = ShareFetchRequest("", "ada", BEGINS)
    assert ada.client.ask(nobody, 1).error_code == ErrorCode.INVALID_GROUP_ID
    assert ada.client.ask(ShareFetchRequest(GROUP, "", BEGINS), 1).error_code


# -- members ---------------------------------------------------------------------------------------


def test_members_all_have_all_partitions(lake: Lakelog, member: Any) -> None:
    wide = lake.topics.create("wide", 3)
    ada, bob = member("ada"), member("bob")
    for one in (ada, bob):
        told = one.heartbeat(0, "jobs", "wide", "absent")
        assert (told.error_code, told.member_id) == (0, one.member_id)
        found = {
            part.topic_id: sorted(part.partitions) for part in told.assignment.topic_partitions
        }
        assert found == {ada.topic.topic_id: [0], wide.topic_id: [0, 1, 2]}
    epoch = told.member_epoch
    assert bob.heartbeat(epoch).assignment is None
    assert ada.heartbeat(1).member_epoch == epoch
    lake.topics.add_partitions("wide", 4)
    eventually(lambda: bob.heartbeat(epoch).member_epoch > epoch)
    (group,) = ada.client.ask(ShareGroupDescribeRequest([GROUP]), 1).groups
    assert (group.group_state, group.assignor_name) == ("Stable", "simple")
    assert [(one.member_id, one.client_id) for one in group.members] == [
        ("ada", "raw"),
        ("bob", "raw"),
    ]
    assigned = group.members[1].assignment.topic_partitions
    assert {one.topic_name: len(one.partitions) for one in assigned} == {"jobs": 1, "wide": 4}
    for one in (ada, bob):
        assert one.heartbeat(ENDS).member_epoch == ENDS
    assert lake.share_groups.describe(GROUP).state is GroupState.EMPTY


def test_members_that_are_none_are_told_so(lake: Lakelog, member: Any) -> None:
    ada = member()
    assert ada.heartbeat(1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert ada.heartbeat(0).error_code == ErrorCode.INVALID_REQUEST  # it subscribes to nothing
    assert ada.heartbeat(-2, "jobs").error_code == ErrorCode.INVALID_REQUEST
    assert ada.heartbeat(0, "jobs", group_id="").error_code == ErrorCode.INVALID_GROUP_ID
    epoch = ada.heartbeat(0, "jobs").member_epoch
    assert ada.heartbeat(epoch + 1).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    eventually(lambda: not lake.share_groups.describe(GROUP).member_ids)  # it is silent
    assert ada.heartbeat(epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    send(lake, b"0")
    settings = {"group_id": "classic", "auto_offset_reset": "earliest"}
    with lake.consumer("jobs", **settings) as consumer:
        assert consumer.poll(5_000)
        told = ada.heartbeat(0, "jobs", group_id="classic")
        assert told.error_code == ErrorCode.GROUP_ID_NOT_FOUND


# -- administration --------------------------------------------------------------------------------


def test_tools_list_describe_and_delete_share_groups(lake: Lakelog, member: Any) -> None:
    send(lake, b"0", b"1")
    ada = member()
    epoch = ada.heartbeat(0, "jobs").member_epoch
    bob = lake.share_consumer("jobs", group_id=GROUP, share_auto_offset_reset="earliest")
    assert bob.poll(5_000, max_records=1)
    listed = ada.client.ask(ListGroupsRequest(types_filter=["Share"]), 5).groups
    assert [(one.group_id, one.group_type, one.group_state) for one in listed] == [
        (GROUP, "share", "Stable")
    ]
    assert lake.groups.list() == []
    described = ShareGroupDescribeRequest([GROUP, "absent"])
    group, absent = ada.client.ask(described, 1).groups
    assert absent.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert {one.member_id for one in group.members} == {"ada", bob.member_id}
    (classic,) = ada.client.ask(DescribeGroupsRequest([GROUP]), 5).groups
    assert classic.group_state == "Dead"
    ada.heartbeat(epoch)

    def deleted() -> int:
        return int(ada.client.ask(DeleteGroupsRequest([GROUP]), 2).results[0].error_code)

    assert deleted() == ErrorCode.NON_EMPTY_GROUP
    bob.close()
    assert deleted() == ErrorCode.NON_EMPTY_GROUP
    ada.heartbeat(ENDS)
    assert deleted() == 0
    assert deleted() == ErrorCode.GROUP_ID_NOT_FOUND
    assert lake.groups.list(None) == []


def test_share_groups_are_moved(lake: Lakelog, member: Any) -> None:
    send(lake, *numbered(0, 4))
    ada = member()
    told = DescribeShareGroupOffsetsRequest
    asked = told([told.DescribeShareGroupOffsetsRequestGroup(GROUP, None)])

    def starts() -> list[tuple[str, int, int]]:
        (group,) = ada.client.ask(asked, 0).groups
        return [
            (topic.topic_name, one.partition_index, one.start_offset)
            for topic in group.topics
            for one in topic.partitions
        ]

    def moved(offset: int) -> Any:
        alter = AlterShareGroupOffsetsRequest
        one = alter.AlterShareGroupOffsetsRequestPartition(0, offset)
        topics = [alter.AlterShareGroupOffsetsRequestTopic("jobs", [one])]
        return ada.client.ask(alter(GROUP, topics), 0)

    assert ada.client.ask(asked, 0).groups[0].error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert moved(3).error_code == 0
    assert starts() == [("jobs", 0, 3)]
    assert ada.fetch()[0].acquired == [(3, 3, 1)]
    assert moved(0).error_code == ErrorCode.NON_EMPTY_GROUP
    assert ada.acknowledge((3, 3, [ACCEPT])) == 0
    assert starts() == [("jobs", 0, 4)]
    assert moved(1).error_code == 0
    assert ada.fetch()[0].acquired == [(1, 3, 1)]
