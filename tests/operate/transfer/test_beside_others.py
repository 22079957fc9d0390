"""Imports beside others of the same name, within a quota, between tenants, and in object stores."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from transfer_bench import rows, send

from lakelog import Lakelog
from lakelog.base.failpoints import armed
from lakelog.errors import (
    KeyspaceInUseError,
    LakelogError,
    QuotaExceededError,
    TopicExistsError,
)
from lakelog.values.config import QUOTA_TOPICS
from tests.support.object_store import S3Server, s3_options

KEPT = {"retention.ms": -1, "local.retention.ms": 0}


def imported_at_once(
    lake: Lakelog, sources: list[Path], name: str
) -> tuple[list[bool], list[LakelogError]]:
    """Imports each under the same name, when all of them have made their tables."""
    together = threading.Barrier(len(sources))
    won: list[bool] = []
    told: list[LakelogError] = []

    def work(source: Path) -> None:
        try:
            (one,) = lake.import_topics(source, name=name)
            won.append(one.is_new)
        except LakelogError as error:
            told.append(error)

    with armed("import.after_table", lambda: bool(together.wait(60))):
        threads = [threading.Thread(target=work, args=(source,)) for source in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return won, told


def tables(root: Path, name: str) -> list[Path]:
    return [path for path in (root / name).iterdir() if (path / "_delta_log").is_dir()]


def test_of_two_imports_of_one_name_one_wins_and_the_other_is_told(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    other.topics.create("there", 1)
    sources = [tmp_path / "first", tmp_path / "second"]
    lake.export(sources[0], "orders")
    send(lake, "orders", 960, 30)
    lake.export(sources[1], "orders")

    won, told = imported_at_once(other, sources, "orders")

    assert won == [True]
    assert [type(error) for error in told] == [TopicExistsError]
    assert sum(table.num_rows for table in rows(other, "orders").values()) in (960, 990)
    assert len(tables(tmp_path / "other", "orders")) == 1  # the loser's is gone
    assert other.check().sound
    assert not other.restore()
    other.topics.delete("orders")  # and the loser may come now
    for source in sources:
        assert other.import_topics(source, name=source.name)[0].is_new


def test_two_imports_of_different_exports_into_an_empty_keyspace(
    lake: Lakelog, other: Lakelog, tmp_path: Path
) -> None:
    """Both come in, or one is told and comes in when it is asked again: nothing is left over."""
    lake.topics.create("clicks", 1, KEPT)
    send(lake, "clicks", 0, 40)
    lake.archive("clicks")
    for name in ("clicks", "orders"):
        lake.export(tmp_path / name, name)
    together = threading.Barrier(2)
    told: list[LakelogError] = []

    def work(name: str) -> None:
        try:
            other.import_topics(tmp_path / name)
        except LakelogError as error:
            told.append(error)

    with armed("import.after_table", lambda: bool(together.wait(60))):
        threads = [threading.Thread(target=work, args=(name,)) for name in ("clicks", "orders")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert all(isinstance(error, KeyspaceInUseError) for error in told)
    for name in ("clicks", "orders"):
        other.import_topics(tmp_path / name)
        assert rows(other, name) == rows(lake, name)
        assert len(tables(tmp_path / "other", name)) == 1
    assert other.check().sound
    assert len({topic.keyspace_id for topic in other.topics.list()}) == 1


@pytest.fixture
def tenants(redis_url: str, tmp_path: Path) -> Iterator[tuple[Lakelog, Lakelog, Lakelog]]:
    """A log, and two tenants of it: one with two topics and a group, one with room for two."""
    with Lakelog.connect(redis_url, tmp_path / "cold", engine="inline") as lake:
        lake.tenants.create("acme", {"topics": 7}, {"log.retention.hours": 48})
        lake.tenants.create("b-corp", {"topics": 2})
        with (
            Lakelog.connect(redis_url, tmp_path / "cold", tenant="acme", engine="inline") as acme,
            Lakelog.connect(redis_url, tmp_path / "cold", tenant="b-corp", engine="inline") as corp,
        ):
            acme.topics.create("clicks", 1)
            acme.topics.create("orders", 2, KEPT)
            send(acme, "orders", 0, 50)
            acme.archive()
            send(acme, "orders", 50, 20)
            with acme.consumer("orders", group_id="g", auto_offset_reset="earliest") as consumer:
                consumer.poll(20_000)
                consumer.commit()
            yield lake, acme, corp


@pytest.mark.parametrize("name", ["export", "acme.tar"])
def test_all_of_a_tenant_comes_into_another(
    tenants: tuple[Lakelog, Lakelog, Lakelog], tmp_path: Path, name: str
) -> None:
    lake, acme, corp = tenants
    lake.topics.create("others", 1)
    manifest = acme.export(tmp_path / name)
    assert [one.topic.name for one in manifest.topics] == ["clicks", "orders"]

    imported = corp.import_topics(tmp_path / name)

    assert [one.topic.name for one in imported] == ["clicks", "orders"]
    assert rows(corp, "orders") == rows(acme, "orders")
    assert [group.group_id for group in corp.groups.list()] == ["g"]
    assert corp.topics.get("clicks").config["retention.ms"] == 48 * 3_600_000
    assert not any("quota" in name for name, _ in corp.topics.get("orders").config.overrides)
    assert {one.quota: one.limit for one in corp.quotas()}[QUOTA_TOPICS] == 2
    assert (tmp_path / "cold" / "b-corp" / "orders").is_dir()
    assert [topic.name for topic in lake.topics.list()] == ["others"]
    assert corp.check().sound


def test_an_import_is_bound_by_the_quota_of_topics(
    tenants: tuple[Lakelog, Lakelog, Lakelog], tmp_path: Path
) -> None:
    _, acme, corp = tenants
    acme.export(tmp_path / "export")
    corp.topics.create("there", 1)

    with pytest.raises(QuotaExceededError, match="2 topics were to be imported") as told:
        corp.import_topics(tmp_path / "export")
    assert (told.value.used, told.value.limit) == (1, 2)
    assert not (tmp_path / "cold" / "b-corp" / "orders").exists()

    with (
        armed("import.after_table", lambda: bool(corp.topics.create("faster", 1))),
        pytest.raises(QuotaExceededError, match="one too many"),
    ):
        corp.import_topics(tmp_path / "export", "orders")
    assert not tables(tmp_path / "cold" / "b-corp", "orders")

    corp.topics.delete("faster")
    assert corp.import_topics(tmp_path / "export", "orders")[0].records == 70
    assert not corp.import_topics(tmp_path / "export", "orders")[0].is_new  # no topic more


def test_exports_lie_in_object_stores_and_come_from_there(
    redis_url: str, s3_server: S3Server, tmp_path: Path
) -> None:
    options, bucket = s3_options(s3_server.url), f"s3://lakelog/{uuid4().hex}"
    with Lakelog.connect(
        redis_url, f"{bucket}/cold", engine="inline", storage_options=options
    ) as lake:
        lake.topics.create("orders", 2, KEPT)
        send(lake, "orders", 0, 80)
        lake.archive()
        send(lake, "orders", 80, 20)
        before = rows(lake, "orders")
        for number in (1, 2):  # the second brings it up to date
            lake.export(f"{bucket}/export", "orders")
            lake.import_topics(f"{bucket}/export", name=f"from-store-{number}")
            assert rows(lake, f"from-store-{number}") == before
        lake.export(tmp_path / "orders.tar", "orders")
        lake.import_topics(tmp_path / "orders.tar", name="from-disk")
        assert rows(lake, "from-disk") == before
    with Lakelog.connect(redis_url, tmp_path / "cold", keyspace="k", engine="inline") as disk:
        disk.import_topics(f"{bucket}/export", storage_options=options)
        assert rows(disk, "orders") == before
