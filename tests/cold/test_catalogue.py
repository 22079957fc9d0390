"""What a cold root tells of its topics to someone who has no Redis."""

from __future__ import annotations

import shutil
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from contract import settings
from deltalake import DeltaTable, write_deltalake
from made_up import archive
from msgspec.structs import replace

from lakelog.cold.by_path.listing import tables
from lakelog.cold.catalogue import Catalogue
from lakelog.cold.properties import (
    CONFIG_PROPERTY,
    DELETED_PROPERTY,
    FILE_RETENTION_PROPERTY,
    FORMAT_PROPERTY,
    MAX_INTERVAL_MS,
    STATISTICS_PROPERTY,
    TIERED_PROPERTY,
    file_retention_ms,
    is_untiered,
    mirrored_properties,
    mirrored_topic,
    table_properties,
)
from lakelog.cold.store.storage import Storage
from lakelog.errors import (
    AmbiguousTopicError,
    ColdTierError,
    ColdTierRefusedError,
    ForeignTableError,
    NewerVersionError,
    UnknownTopicOrPartitionError,
)
from lakelog.values.config import DAY_MS, INT64_MAX, TopicConfig
from lakelog.values.topic import Topic


@pytest.fixture
def make(make_table):
    """Makes a topic's table and says where it lies."""

    def make(topic: Topic) -> Path:
        table = make_table(topic=topic)
        table.apply(archive(topic, table.snapshot(), 10), table.snapshot())
        return Path(table.path)

    return make


@pytest.fixture
def storage(root) -> Storage:
    return Storage(str(root))


def test_nothing_lies_under_a_root_that_is_not_there(storage):
    assert tables(storage) == Catalogue()


def test_topics_come_back_as_they_were_described(make, make_table, storage, topic):
    config = TopicConfig.of({"cleanup.policy": "compact", "retention.ms": 5}).with_defaults(
        [("segment.ms", "77")]
    )
    orders = replace(topic, config=config, config_version=3, partitions=5, generation=17)
    other = Topic("a.b_c-d", UUID(int=3), 1)
    make(orders)
    make(other)
    assert tables(storage).topics == (other, orders)

    altered = replace(orders, config_version=4, partitions=6)
    make_table(topic=orders).mirror(altered)
    assert tables(storage).topics == (other, altered)


def test_of_several_creations_of_a_name_the_newest_is_the_topic(make, storage, topic):
    creations = [replace(topic, topic_id=UUID(int=9 - n), generation=n) for n in range(3)]
    for creation in reversed(creations):
        make(creation)
    found = tables(storage)
    assert (found.topics, found.abandoned) == ((creations[2],), tuple(creations[:2]))


def test_a_creation_that_came_back_is_the_topic_though_a_newer_one_was_deleted() -> None:
    keyspace_id = UUID(int=8)
    first, second, third = (
        replace(TABLE, topic_id=UUID(int=n), generation=n, keyspace="k", keyspace_id=keyspace_id)
        for n in range(3)
    )
    deleted = replace(third, deleted_ms=5)
    catalogue = Catalogue((first, second, deleted))
    assert catalogue.topics == catalogue.lost(keyspace_id) == (second,)
    assert (catalogue.abandoned, catalogue.deleted) == ((first, deleted), (deleted,))
    none = Catalogue(tuple(replace(one, deleted_ms=7) for one in (first, second)))
    assert (none.topics, none.lost(keyspace_id)) == ((), ())


TABLE = Topic("orders", UUID(int=1), 1, generation=1)


def of(keyspace: str | None, number: int = 1, keyspace_id: int | None = None) -> Topic:
    """The orders of a keyspace, the younger the larger the number."""
    given = None if keyspace_id is None else UUID(int=keyspace_id)
    table = replace(TABLE, topic_id=UUID(int=number), generation=number)
    return replace(table, keyspace=keyspace, keyspace_id=given)


@pytest.mark.parametrize(
    ("tables", "keyspace", "meant", "abandoned"),
    [
        # one keyspace, or none that says it is another
        ([of(None, 1), of(None, 2)], None, of(None, 2), [of(None, 1)]),
        ([of("a", 2, 7), of("a", 1, 7)], None, of("a", 2, 7), [of("a", 1, 7)]),
        ([of("a", 1), of("a", 2, 7)], None, of("a", 2, 7), [of("a", 1)]),
        ([of("a", 1), of("a", 2, 7)], "a", of("a", 2, 7), [of("a", 1)]),
        ([of("a", 1), of("a", 2)], "a", of("a", 2), [of("a", 1)]),
        # another one, of whose tables none is abandoned
        ([of("a", 1, 7), of("b", 2, 8)], None, None, []),
        ([of("a", 1, 7), of("b", 2, 8)], "a", of("a", 1, 7), []),
        ([of("a", 1, 7), of("b", 2, 8)], "b", of("b", 2, 8), []),
        ([of("a", 1, 7), of("b", 2, 8), of("a", 3, 7)], "a", of("a", 3, 7), [of("a", 1, 7)]),
        ([of("a", 1), of("b", 2)], None, None, []),
        # of the same name in another Redis
        ([of("a", 1, 7), of("a", 2, 8)], None, None, []),
        ([of("a", 1, 7), of("a", 2, 8)], "a", None, []),
        ([of("a", 1), of("a", 2, 7), of("a", 3, 8)], "a", None, []),
        # of an older lakelog, which does not say whose they are
        ([of(None, 1), of("a", 2, 7)], None, None, []),
        ([of(None, 1), of("a", 2, 7)], "a", of("a", 2, 7), []),
        ([of(None, 1)], "a", of(None, 1), []),
        ([of(None, 1), of("b", 2, 7)], "a", of(None, 1), []),
    ],
)
def test_a_name_means_one_keyspaces_topic_or_is_refused(tables, keyspace, meant, abandoned):
    for ordered in (tables, tables[::-1]):
        catalogue = Catalogue(tuple(ordered), (), keyspace)
        assert list(catalogue.abandoned) == abandoned
        if meant is not None:
            assert catalogue.topics == (meant,)
            assert catalogue.topic("orders", "here") == meant
            assert catalogue.untold("here") == ()
        else:
            assert catalogue.topics == ()
            (said,) = catalogue.untold("here")
            assert isinstance(said, AmbiguousTopicError)
            with pytest.raises(AmbiguousTopicError, match=r"under here are named 'orders'"):
                catalogue.topic("orders", "here")


def test_a_keyspace_that_has_no_such_topic_is_not_given_anothers():
    catalogue = Catalogue((of("a", 1, 7),), (), "b")
    assert (catalogue.topics, catalogue.untold("here")) == ((), ())
    with pytest.raises(UnknownTopicOrPartitionError, match="of keyspace 'b' lies under here"):
        catalogue.topic("orders", "here")


def test_a_mistyped_name_is_told_which_are_near():
    catalogue = Catalogue((of("a", 1, 7),), (), "a")
    with pytest.raises(UnknownTopicOrPartitionError, match=r"here; did you mean 'orders'\?$"):
        catalogue.topic("Order", "here")
    with pytest.raises(UnknownTopicOrPartitionError, match=r"here; there are orders$"):
        catalogue.topic("flights", "here")


def test_folders_of_others_are_passed_over(make, storage, root, topic, caplog):
    make(topic)
    (root / "notes.txt").write_text("mine")
    (root / "bad name!" / "x").mkdir(parents=True)
    (root / "orders" / "backup").mkdir()
    (root / "orders" / str(topic.topic_id).upper()).mkdir(exist_ok=True)
    (root / "empty" / str(UUID(int=4))).mkdir(parents=True)
    with caplog.at_level("INFO", "lakelog.cold.by_path.listing"):
        assert tables(storage) == Catalogue((topic,))
    for name in ("bad name!", "orders/backup", f"empty/{UUID(int=4)}"):
        assert f"{name} " in caplog.text


def test_tables_that_cannot_be_told_are_named_and_the_others_found(make, storage, root, topic):
    good = make(topic)
    broken = make(Topic("broken", UUID(int=1), 1))
    (broken / "_delta_log" / f"{0:020}.json").write_text("{}")
    copied = root / "copied" / str(UUID(int=2))
    shutil.copytree(good, copied)
    unsaid = make(Topic("unsaid", UUID(int=3), 1))
    DeltaTable(unsaid).alter.set_table_properties(
        {CONFIG_PROPERTY: '{"no": "config"}'}, raise_if_not_exists=False
    )
    foreign = root / "foreign" / str(UUID(int=4))
    write_deltalake(foreign, pa.table({"a": [1]}))

    found = tables(storage)

    assert found.topics == (topic,)
    assert [Path(error.path) for error in found.broken] == [broken, copied, foreign, unsaid]
    assert [type(error) for error in found.broken] == [
        ColdTierRefusedError,
        ForeignTableError,
        ColdTierRefusedError,
        ColdTierRefusedError,
    ]


# -- properties --------------------------------------------------------------------------------


def test_properties_say_the_topic_and_back(topic):
    changed = settings(topic, 12, retention_ms=-1, cleanup_policy="compact,delete")
    assert mirrored_topic(table_properties(changed)) == changed
    told = replace(
        changed,
        keyspace="sales",
        keyspace_id=UUID(int=8),
        keyspace_defaults=(("log.retention.hours", "5"),),
        defaults_version=3,
    )
    assert mirrored_topic(table_properties(told)) == told
    assert mirrored_topic(table_properties(replace(told, keyspace_id=None))).keyspace == "sales"


@pytest.mark.parametrize("name", sorted(mirrored_properties(Topic("t", UUID(int=1), 1))))
def test_a_property_that_lacks_or_is_strange_is_an_error(topic, name):
    properties = table_properties(topic)
    del properties[name]
    if name == FORMAT_PROPERTY:  # an older lakelog made it, or a newer one
        assert mirrored_topic(properties) == topic
        with pytest.raises(NewerVersionError):
            mirrored_topic({**properties, name: "strange"})
    elif name == DELETED_PROPERTY:
        assert mirrored_topic(properties) == topic
        with pytest.raises(ValueError, match="strange"):
            mirrored_topic({**properties, name: "strange"})
    elif name == TIERED_PROPERTY:  # the config says it too; tables of older lakelogs are tiered
        assert mirrored_topic(properties) == topic
        assert not is_untiered(properties)
        assert is_untiered({**properties, name: "false"})
    elif name not in (FILE_RETENTION_PROPERTY, STATISTICS_PROPERTY):
        with pytest.raises(KeyError):
            mirrored_topic(properties)
        with pytest.raises(ValueError, match="strange"):
            mirrored_topic({**properties, name: "strange"})


@pytest.mark.parametrize(
    ("text", "retention_ms"),
    [
        ("interval 1234 milliseconds", 1234),
        ("interval 0 milliseconds", 0),
        ("interval 1 week", 7 * DAY_MS),
        ("7 days", 7 * DAY_MS),
        ("INTERVAL 36 HOURS", 36 * DAY_MS // 24),
        (None, 7 * DAY_MS),
    ],
)
def test_the_retention_is_read_as_people_write_it(text, retention_ms):
    assert file_retention_ms({} if text is None else {FILE_RETENTION_PROPERTY: text}) == (
        retention_ms
    )


@pytest.mark.parametrize("text", ["", "soon", "interval 1 month", "interval 1 day 2 hours"])
def test_a_retention_that_cannot_be_read_is_not_guessed(text):
    with pytest.raises(ColdTierError, match=r"file\.delete\.delay\.ms"):
        file_retention_ms({FILE_RETENTION_PROPERTY: text})


def test_the_longest_retention_is_one_that_spark_can_count(topic):
    forever = settings(topic, 2, file_delete_delay_ms=INT64_MAX)
    assert file_retention_ms(mirrored_properties(forever)) == MAX_INTERVAL_MS
