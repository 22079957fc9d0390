"""Tenants: apart in both tiers, bounded by quotas, brought back, deleted with what they have."""

from __future__ import annotations

import json

import pytest

from lakelog import Lakelog
from lakelog.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidTopicError,
    QuotaExceededError,
    RestoreFailedError,
    TenantExistsError,
    TenantNotEmptyError,
    TopicExistsError,
    UnknownTenantError,
)
from lakelog.values.config import QUOTA_COLD_BYTES, QUOTA_HOT_BYTES, QUOTA_TOPICS
from lakelog.values.tenant_name import check_tenant_name

KEPT = {"retention.ms": -1, "local.retention.ms": 0}


class Place:
    """A Redis and a cold root, opened as whoever."""

    def __init__(self, url, cold):
        self.url, self.cold, self._opened = url, cold, []

    def as_(self, tenant=None, **more):
        lake = Lakelog.connect(self.url, self.cold, tenant=tenant, engine="inline", **more)
        self._opened.append(lake)
        return lake

    def archived_as(self, tenant=None):
        return Lakelog.connect(None, self.cold, tenant=tenant, engine="inline")

    def close(self):
        for lake in self._opened:
            lake.close()


@pytest.fixture
def place(redis_url, tmp_path):
    place = Place(redis_url, tmp_path / "cold")
    yield place
    place.close()


def produce(lake, topic, values):
    with lake.producer() as producer:
        for value in values:
            producer.send(topic, value, partition=0)


def values(lake, topic):
    return [record.value for record in lake.log(topic).read(0).records()]


def test_tenants_with_topics_of_one_name_never_meet(place):
    lake = place.as_()
    assert [lake.tenants.create(name).keyspace for name in ("acme", "b-corp")] == [
        "lakelog.acme",
        "lakelog.b-corp",
    ]
    for tenant in (None, "acme", "b-corp", "shared"):
        own = place.as_(tenant)
        own.topics.create("orders", 1, KEPT)
        produce(own, "orders", [f"{tenant} 1", f"{tenant} 2"])
        own.archive()
        produce(own, "orders", [f"{tenant} 3"])
        with own.consumer("orders", group_id="readers", auto_offset_reset="earliest") as consumer:
            while not consumer.poll(200):
                pass
            consumer.commit()
    places = {None: "", "acme": "acme/", "b-corp": "b-corp/", "shared": "shared/"}
    for tenant, folder in places.items():
        own = place.as_(tenant)
        expected = [f"{tenant} {n}".encode() for n in (1, 2, 3)]
        assert values(own, "orders") == expected
        assert [topic.name for topic in own.topics.list()] == ["orders"]
        assert [topic.name for topic in place.archived_as(tenant).topics.list()] == ["orders"]
        assert values(place.archived_as(tenant), "orders") == expected[:2]
        assert [one.group_id for one in own.groups.list()] == ["readers"]
        assert own.check().sound
        topic = own.topics.get("orders")
        assert (place.cold / f"{folder}orders" / str(topic.topic_id) / "_delta_log").is_dir()
    assert [tenant.name for tenant in lake.tenants.list()] == ["acme", "b-corp", "shared"]
    with pytest.raises(InvalidArgumentError, match="sees no others"):
        place.as_("acme").tenants.list()


def test_names_are_told_apart_everywhere(place):
    lake = place.as_()
    for name in ("", "a.b", "a_b", "A", "-a", "a-", "a/b", "..", "x" * 64, None):
        with pytest.raises(InvalidArgumentError, match="legal name of a tenant"):
            check_tenant_name(name)
    lake.topics.create("orders")
    with pytest.raises(TopicExistsError, match="a topic of keyspace 'lakelog' has the name"):
        lake.tenants.create("orders")
    assert not (place.cold / "orders" / "_lakelog_tenant.json").exists()
    lake.tenants.create("acme")
    with pytest.raises(InvalidTopicError, match="a tenant has the name"):
        lake.topics.create("acme")
    with pytest.raises(TenantExistsError):
        lake.tenants.create("acme")
    with pytest.raises(UnknownTenantError, match=r"there are: acme\)"):
        place.as_("nobody")
    with pytest.raises(InvalidConfigError, match="no quota; there are hot"):
        lake.tenants.create("b", {"log.retention.ms": 5})
    assert [tenant.name for tenant in lake.tenants.list()] == ["acme"]


def test_a_deleted_topic_does_not_come_back_into_a_tenants_folder(place):
    """It came back, and its table lay among the tenant's."""
    lake = place.as_()
    lake.topics.create("acme", 1, KEPT)
    with lake.producer() as producer:
        producer.send("acme", "parent's")
    lake.archive("acme")
    lake.topics.delete("acme")
    lake.tenants.create("acme")
    with pytest.raises(InvalidTopicError, match="Delete the tenant first"):
        lake.undelete("acme")
    assert [topic.name for topic in lake.deleted()] == ["acme"]  # nothing was changed
    assert lake.topics.list() == []
    lake.tenants.delete("acme")
    lake.undelete("acme")
    assert [record.value for record in lake.log("acme").read(0).records()] == [b"parent's"]


def test_a_lost_topic_is_not_restored_into_a_tenants_folder(place):
    lake = place.as_()
    lake.topics.create("acme", 1, KEPT)
    with lake.producer() as producer:
        producer.send("acme", "parent's")
    lake.archive("acme")
    (server,) = lake.hot.connections.all()
    server.call(("FLUSHALL",))
    again = place.as_()
    again.tenants.create("acme")
    with pytest.raises(RestoreFailedError, match="a tenant has the"):
        again.restore()
    assert again.topics.list() == []


def test_a_tenant_has_quotas_and_defaults_of_its_own(place):
    lake = place.as_()
    lake.tenants.create("acme", {"topics": 1}, {"log.retention.hours": 48})
    own = place.as_("acme")
    assert own.topics.create("orders", 1, {"local.retention.ms": 0}).config["retention.ms"] == (
        48 * 3_600_000
    )
    with pytest.raises(QuotaExceededError):
        own.topics.create("more")
    lake.topics.create("one"), lake.topics.create("two")  # others are not bounded
    usage = lake.tenants.set_quotas("acme", {"hot.bytes": "2KiB", "topics": None})
    limits = {one.quota: one.limit for one in usage.quotas if one.limit is not None}
    assert limits == {QUOTA_HOT_BYTES: 2048}
    assert usage.defaults == {"log.retention.hours": "48"}
    with own.producer(delivery_timeout_ms=2_000) as producer:
        producer.send("orders", b"x" * 1500).result()
        refused = producer.send("orders", b"x" * 1500)
        with pytest.raises(Exception, match=r"hot\.bytes=2048") as told:
            refused.result()
    assert isinstance(told.value.last_error, QuotaExceededError)
    used = {one.quota: one.used for one in own.quotas()}
    assert 1500 < used[QUOTA_HOT_BYTES] < 2048
    assert used[QUOTA_TOPICS] == 1
    own.archive()
    assert {one.quota: one.used for one in own.quotas()}[QUOTA_HOT_BYTES] == 0
    with own.producer() as producer:
        producer.send("orders", b"x" * 1500).result()


def test_archiving_stops_at_the_quota_of_cold_bytes_and_goes_on_when_there_is_room(place):
    lake = place.as_()
    lake.tenants.create("acme", {"cold.bytes": 1})
    own = place.as_("acme")
    for name in ("first", "second"):
        own.topics.create(name, 1, KEPT)
        produce(own, name, [b"1"])
    own.archive("first")
    produce(own, "first", [b"2"])
    for name in ("first", "second"):  # all topics together
        with pytest.raises(QuotaExceededError, match="Redis keeps it") as refused:
            own.archive(name)
        assert refused.value.quota == QUOTA_COLD_BYTES
        assert refused.value.used > refused.value.limit == 1
    assert own.log("first").offsets()[0].archived_end == 1
    assert values(own, "first") == [b"1", b"2"]
    (first, second) = (own.quotas()[1], own.quotas()[1])
    assert first == second
    assert first.used == refused.value.used
    own.topics.delete("first")
    own.purge("first")
    own.quotas()  # as a cleanup does
    own.archive("second")
    assert own.log("second").offsets()[0].archived_end == 1


def test_cleanup_tells_archivers_what_it_freed(place):
    lake = place.as_()
    lake.tenants.create("acme")
    own = place.as_("acme")
    own.topics.create("old", 1, {"retention.ms": 1, "local.retention.ms": 0})
    own.topics.create("new", 1, KEPT)
    with own.producer() as producer:
        producer.send("old", b"1", timestamp_ms=1)
        producer.send("new", b"1")
    own.archive("old")
    own.hot.roll(own.topics.get("old").partition(0), 1, own.topics.get("old").topic_id)
    lake.tenants.set_quotas("acme", {"cold.bytes": 1})
    with pytest.raises(QuotaExceededError):
        own.archive("new")
    own.cleanup("old")
    own.archive("new")
    assert own.log("new").offsets()[0].archived_end == 1


def test_what_redis_lost_comes_back_with_its_quotas(place, redis_client):
    lake = place.as_()
    lake.tenants.create("acme", {"topics": 3}, {"log.retention.hours": 48})
    own = place.as_("acme")
    own.topics.create("orders", 1, {"local.retention.ms": 0})
    produce(own, "orders", [b"1"])
    own.archive()
    lake.tenants.set_quotas("acme", {"hot.bytes": 2048})
    redis_client.flushall()
    own = place.as_("acme")
    assert [one.topic.name for one in own.restore()] == ["orders"]
    assert values(own, "orders") == [b"1"]
    usage = lake.tenants.describe("acme")
    limits = {one.quota: one.limit for one in usage.quotas if one.limit is not None}
    assert limits == {QUOTA_HOT_BYTES: 2048, QUOTA_TOPICS: 3}
    assert usage.defaults == {"log.retention.hours": "48"}
    assert own.topics.get("orders").config["retention.ms"] == 48 * 3_600_000


def test_a_tenant_goes_with_its_topics_once_nothing_of_them_is_kept(place, redis_client):
    lake = place.as_()
    lake.tenants.create("acme", {"topics": 3})
    own = place.as_("acme")
    own.topics.create("orders", 1, KEPT)
    produce(own, "orders", [b"1"])
    own.archive()
    with own.consumer("orders", group_id="readers", auto_offset_reset="earliest") as consumer:
        while not consumer.poll(200):
            pass
        consumer.commit()
    own.archive()  # records the groups
    with pytest.raises(TenantNotEmptyError, match="has 1 topic "):
        lake.tenants.delete("acme")
    done = lake.tenants.delete("acme", topics=True)
    assert not done.is_gone
    assert [topic.name for topic in done.kept] == ["orders"]
    own.undelete("orders")  # it is still there
    assert values(own, "orders") == [b"1"]
    done = lake.tenants.delete("acme", topics=True, purge=True)
    assert done.is_gone
    assert [topic.name for topic in done.purged] == ["orders"]
    assert lake.tenants.list() == []
    assert redis_client.keys("*acme*") == []
    left = [path.name for path in (place.cold / "acme").rglob("*") if path.is_file()]
    assert left == ["_purged"]  # for archivers that are late
    with pytest.raises(UnknownTenantError):
        place.as_("acme")
    lake.tenants.create("acme")
    assert lake.tenants.describe("acme").quotas[2].limit is None


def test_the_definition_in_the_cold_root_is_readable(place):
    lake = place.as_()
    lake.tenants.create("acme", {"topics": 3})
    held = json.loads((place.cold / "acme" / "_lakelog_tenant.json").read_text())
    assert held["tenant"] == "acme"
    assert held["defaults"] == {QUOTA_TOPICS: "3"}
