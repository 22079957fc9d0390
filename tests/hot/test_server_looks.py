"""One cheap look at many partitions, what archivers say of themselves, and when topics change."""

from __future__ import annotations

import pytest

from lakelog.errors import HotTierAccessError, HotTierUnavailableError
from lakelog.hot import HotLog
from lakelog.hot.looks import PartitionLook


@pytest.fixture
def bench(make_bench):
    return make_bench(3)


def test_a_look_says_what_offsets_say(bench):
    bench.append(1, 2, 3, partition=1)
    (looks,) = bench.hot.server_looks()
    seen = looks.look(bench.topic.topic_partitions())
    assert seen.now_ms == bench.clock.now_ms()
    for tp, offsets in bench.hot.offsets(bench.topic.topic_partitions()).items():
        assert seen.partitions[tp] == PartitionLook(
            str(bench.topic.topic_id),
            offsets.recovered,
            offsets.log_end,
            offsets.unarchived_since_ms,
        )
    assert seen.partitions[bench.tp(1)].log_end == 3


def test_a_partition_that_is_not_there_is_none(bench):
    (looks,) = bench.hot.server_looks()
    bench.hot.topics().delete(bench.topic.name)
    seen = looks.look(bench.topic.topic_partitions()).partitions
    assert set(seen.values()) == {None}


def test_a_server_that_does_not_tell_the_time_is_an_error_of_ours(make_bench, make_redis):
    server = make_redis()
    bench = make_bench(url=server.url)
    (looks,) = bench.hot.server_looks()
    with server.client() as client:
        client.acl_setuser("default", enabled=True, commands=["-time"], nopass=True)
    with pytest.raises(HotTierAccessError, match="lacks a right"):
        looks.look([bench.tp()])


def test_a_server_that_restarted_shows_in_every_partition(make_bench, make_redis):
    server = make_redis(appendfsync="always")
    bench = make_bench(2, url=server.url)
    (looks,) = bench.hot.server_looks()
    seen = looks.look([bench.tp(0), bench.tp(1)]).partitions
    assert [one.recovered for one in seen.values()] == [True, True]
    server.kill()
    with pytest.raises(HotTierUnavailableError):
        looks.look([bench.tp(0)])
    server.start()
    seen = looks.look([bench.tp(0), bench.tp(1)]).partitions
    assert [one.recovered for one in seen.values()] == [False, False]


def test_each_server_of_a_cluster_is_looked_at_for_what_it_holds(make_bench, redis_cluster):
    bench = make_bench(12, url=redis_cluster.url)
    server_looks = bench.hot.server_looks()
    assert len(server_looks) == 3
    seen = {}
    for looks in server_looks:
        own = [tp for tp in bench.topic.topic_partitions() if looks.holds(tp)]
        seen |= looks.look(own).partitions
    assert len(seen) == 12
    assert all(one is not None and one.recovered for one in seen.values())


def test_a_beat_counts_until_its_time_is_over(redis_url, redis_client, pass_ms):
    hot = HotLog.connect(redis_url)
    beats = hot.beats()
    beats.leave("one", {"troubles": []}, 60_000)
    beats.leave("short", {"troubles": [1]}, 20)
    assert "one" in beats.alive()
    pass_ms(hot, 25)
    assert {name: beat["troubles"] for name, beat in beats.alive().items()} == {"one": []}
    beats.leave("other", {"troubles": [2]}, 60_000)
    assert redis_client.hkeys("lakelog:archivers") == [b"one", b"other"]
    assert 0 < redis_client.pttl("lakelog:archivers") <= 60_000
    beats.end("one")
    assert set(beats.alive()) == {"other"}
    hot.close()


def test_every_change_of_topics_shows_in_their_version(bench):
    topics = bench.hot.topics()
    seen = [topics.version()]

    def is_news() -> bool:
        seen.append(topics.version())
        return seen[-1] not in seen[:-1]

    assert not is_news()
    topics.create("another")
    assert is_news()
    topics.alter("another", {"retention.ms": 5})
    assert is_news()
    topics.add_partitions("another", 2)
    assert is_news()
    topics.set_defaults({"log.retention.ms": 7})
    assert is_news()
    before = topics.version()
    topics.delete("another")
    assert topics.version() != before
    before = topics.version()
    topics.create("another")
    topics.delete("another")
    assert topics.version() != before
