"""``lakelog delete-records``: Kafka's file, Kafka's answers, and the form that people type."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lakelog.cli import main as cli
from lakelog.lakelog import Lakelog
from lakelog.read.topic_log import TopicLog

Run = Callable[..., str]

NOON_MS = 1_388_491_200_000  # 2013-12-31T12:00:00Z


@pytest.fixture
def run(where: list[str], command: Callable[..., tuple[str, str]]) -> Run:
    def run(*arguments: str, code: int = 0) -> str:
        out, err = command(*where, *arguments, code=code)
        return out or err

    return run


@pytest.fixture
def make_topic(log: Lakelog) -> Callable[..., None]:
    """A topic of ten records a partition, one a second from noon on, six of them archived."""

    def make(name: str = "t", partitions: int = 1, **config: object) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        settings = {"retention.ms": -1, **settings}
        topic = log.topics.create(name, partitions, settings)
        with log.producer() as producer:
            for partition in range(partitions):
                for at in range(10):
                    producer.send(
                        name,
                        str(at),
                        key="k",
                        partition=partition,
                        timestamp_ms=NOON_MS + 1000 * at,
                    )
        if topic.config.tiered:
            log.archive(name, until=6)

    return make


def offsets_file(tmp_path: Path, *items: tuple[str, int, int], **more: object) -> str:
    content = {
        "partitions": [
            {"topic": topic, "partition": partition, "offset": offset}
            for topic, partition, offset in items
        ],
        "version": 1,
        **more,
    }
    path = tmp_path / "offsets.json"
    path.write_text(json.dumps(content))
    return str(path)


def left(log: Lakelog, topic: str = "t", partition: int = 0) -> list[int]:
    return [record.offset for record in log.log(topic).read(partition).records()]


@pytest.mark.parametrize("tiered", [True, False], ids=["tiered", "untiered"])
def test_kafkas_file_and_kafkas_answer(run, log, make_topic, tmp_path, tiered):
    make_topic(remote_storage_enable=tiered)
    shown = run("delete-records", "--offset-json-file", offsets_file(tmp_path, ("t", 0, 1)))
    assert shown == "partition: t-0\tlow_watermark: 1\n"
    assert left(log) == list(range(1, 10))


@pytest.mark.parametrize(("before", "low"), [("4", 4), ("8", 8), ("-1", 10), ("latest", 10)])
def test_it_may_end_in_either_tier(run, log, make_topic, before, low):
    make_topic()
    assert run("delete-records", "t", "--before", before) == (
        f"partition: t-0\tlow_watermark: {low}\n"
    )
    assert left(log) == list(range(low, 10))


@pytest.mark.parametrize(
    ("before", "first"),
    [
        ("2013-12-31T12:00:04Z", 4),
        (f"@{NOON_MS + 7500}", 8),
        ("2013-12-31T11:00:00Z", 0),
        ("2013-12-31T13:00:00Z", 10),
        ("-1d", 10),
        ("earliest", 0),
        ("latest-tiered", 5),
        ("max-timestamp", 9),
    ],
)
def test_a_time_or_a_name_counts_in_every_partition(run, log, make_topic, before, first):
    make_topic(partitions=2)
    shown = run("delete-records", "t", f"--before={before}")
    assert shown == "".join(f"partition: t-{n}\tlow_watermark: {first}\n" for n in (0, 1))
    assert left(log, partition=0) == left(log, partition=1) == list(range(first, 10))


def test_where_nothing_is_tiered_nothing_lies_before_the_latest_tiered(run, log, make_topic):
    make_topic(remote_storage_enable=False)
    shown = run("delete-records", "t", "--before", "latest-tiered")
    assert shown == "partition: t-0\tlow_watermark: 0\n"


def test_an_offset_is_of_one_partition(run, log, make_topic):
    make_topic(partitions=3)
    shown = run("delete-records", "t", "--before", "5", code=1)
    assert "say which with -p" in shown
    run("delete-records", "t", "-p", "0", "-p", "2", "--before", "5")
    assert [len(left(log, partition=n)) for n in range(3)] == [5, 10, 5]
    run("delete-records", "t", "--before", "-1")
    assert [len(left(log, partition=n)) for n in range(3)] == [0, 0, 0]


def test_each_partition_stands_by_itself(run, where, capsys, log, make_topic, tmp_path):
    make_topic(partitions=2)
    make_topic("compacted", cleanup_policy="compact")
    make_topic("both", cleanup_policy="compact,delete")
    asked = [
        ("t", 0, 11),
        ("t", 1, 3),
        ("t", 2, 1),
        ("nope", 0, 1),
        ("compacted", 0, 1),
        ("both", 0, -2),
        ("t", -1, 1),
    ]
    file = offsets_file(tmp_path, *asked)

    shown = run("delete-records", "--offset-json-file", file, "--output", "json", code=1)

    rows = json.loads(shown)["partitions"]
    assert [(row["topic"], row["partition"]) for row in rows] == [one[:2] for one in asked]
    assert rows[1] == {"topic": "t", "partition": 1, "low_watermark": 3}
    expected = {
        0: "offset 11 of t-0 is out of range",
        2: "topic 't' has no partition 2",
        3: "there is no topic 'nope'",
        4: "cleanup.policy is compact",
        5: "offset -2 of both-0 is out of range",
        6: "topic 't' has no partition -1",
    }
    for at, says in expected.items():
        assert says in rows[at]["error"]
        assert "low_watermark" not in rows[at]
    assert "Delete before an offset up to 10, or before -1" in rows[0]["error"]
    assert left(log, partition=1) == list(range(3, 10))
    assert left(log, "both") == left(log, "compacted") == left(log) == list(range(10))
    assert cli.main([*where, "delete-records", "--offset-json-file", str(file)]) == 1
    shown, said = capsys.readouterr()
    assert "lakelog: partition: t-0\terror: offset 11 of t-0 is out of range" in said
    assert shown == "partition: t-1\tlow_watermark: 3\n"


@pytest.mark.parametrize("tiered", [True, False], ids=["tiered", "untiered"])
def test_a_dry_run_counts_and_deletes_nothing(run, log, make_topic, tiered):
    make_topic(remote_storage_enable=tiered)
    for before, records in (("0", 0), ("4", 4), ("6", 6), ("8", 8), ("-1", 10)):
        shown = run("delete-records", "t", "--before", before, "--dry-run")
        assert shown == f"partition: t-0\twould_delete: {records} records\n"
    assert left(log) == list(range(10))
    run("delete-records", "t", "--before", "3")
    shown = run("delete-records", "t", "--before", "8", "--dry-run", "--output", "json")
    assert json.loads(shown)["partitions"] == [{"topic": "t", "partition": 0, "would_delete": 5}]
    assert "out of range" in run("delete-records", "t", "--before", "11", "--dry-run", code=1)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("{", "is not JSON"),
        ("[" * 100_000, "is not JSON"),
        ("[]", "has no list of partitions"),
        ('{"version": 1}', "has no list of partitions"),
        ('{"partitions": [], "version": 2}', "only version 1 is known"),
        ('{"partitions": [5]}', "5 has no topic"),
        ('{"partitions": [{"topic": "t", "offset": 1}]}', "has no partition that is a whole"),
        ('{"partitions": [{"topic": "t", "partition": 0}]}', "has no offset that is a whole"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": "1"}]}', "has no offset"),
        ('{"partitions": [{"topic": "t", "partition": true, "offset": 1}]}', "has no partition"),
        ('{"partitions": [{"topic": 1, "partition": 0, "offset": 1}]}', "has no topic that is"),
    ],
)
def test_a_file_that_is_none_is_refused_as_a_whole(run, log, make_topic, tmp_path, content, says):
    make_topic()
    path = tmp_path / "offsets.json"
    path.write_text(content)
    shown = run("delete-records", "--offset-json-file", str(path), code=1)
    assert shown.startswith("lakelog: ")
    assert says in shown
    assert len(left(log)) == 10


def test_a_file_without_a_version_is_of_the_first(run, make_topic, tmp_path):
    make_topic()
    path = tmp_path / "offsets.json"
    path.write_text('{"partitions": [{"topic": "t", "partition": 0, "offset": 1}]}')
    assert "low_watermark: 1" in run("delete-records", "--offset-json-file", str(path))


def test_a_file_of_no_partitions_deletes_nothing(run, log, make_topic, tmp_path):
    make_topic()
    assert "no partition is named" in run(
        "delete-records", "--offset-json-file", offsets_file(tmp_path)
    )
    assert len(left(log)) == 10


def test_a_partition_named_twice_is_refused_before_anything_goes(run, log, make_topic, tmp_path):
    make_topic()
    file = offsets_file(tmp_path, ("t", 0, 2), ("t", 0, 3))
    assert "t-0 is named more than once" in run(
        "delete-records", "--offset-json-file", file, code=1
    )
    assert "t-0 is named more than once" in run(
        "delete-records", "t", "-p", "0", "-p", "0", "--before", "3", code=1
    )
    assert len(left(log)) == 10


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "give TOPIC and --before POSITION, or --offset-json-file FILE"),
        (["t"], "give TOPIC and --before POSITION"),
        (["--before", "3"], "give TOPIC and --before POSITION"),
        (["t", "--offset-json-file", "x"], "without TOPIC, -p and --before"),
        (["--offset-json-file", "/nowhere.json"], "/nowhere.json cannot be read: No such file"),
        (["t", "--before", "yesterday"], "no time zone"),
        (["t", "--before", "soon"], "is not a position"),
        (["t", "--before", "2013-12-31T12:00:00"], "no time zone"),
        (["nope", "--before", "1"], "there is no topic 'nope'"),
    ],
)
def test_wrong_usage_is_told_in_a_sentence(run, make_topic, arguments, says):
    make_topic()
    shown = run("delete-records", *arguments, code=1)
    assert shown.startswith("lakelog: ")
    assert says in shown


def test_what_lies_after_the_time_meanwhile_is_kept(run, log, make_topic, monkeypatch):
    """Everything was older when it was looked at; the record that comes then is not."""
    make_topic()
    seek = TopicLog.seek

    def slow_seek(unified: TopicLog, partition: int, to: Any) -> int | None:
        found = seek(unified, partition, to)
        with log.producer() as producer:
            producer.send("t", "young", partition=0, timestamp_ms=NOON_MS + 3_600_000).result()
        return found

    monkeypatch.setattr(TopicLog, "seek", slow_seek)
    assert "low_watermark: 10" in run("delete-records", "t", "--before=2013-12-31T12:30:00Z")
    assert left(log) == [10]
