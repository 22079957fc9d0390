"""``lakelog groups``: the scenarios, columns and files of kafka-consumer-groups."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lakelog.cli import main as cli
from lakelog.lakelog import Lakelog
from lakelog.read.consumer import Consumer
from lakelog.values.record import OffsetAndMetadata
from lakelog.values.topic_partition import TopicPartition

Run = Callable[..., str]

NOON_MS = 1_388_491_200_000  # 2013-12-31T12:00:00Z


@pytest.fixture
def run(redis_url: str, command: Callable[..., tuple[str, str]]) -> Run:
    def run(*arguments: str, code: int = 0) -> str:
        out, err = command("--redis", redis_url, "groups", *arguments, code=code)
        return out + err if code else out

    return run


@pytest.fixture
def lake(redis_url: str) -> Iterator[Lakelog]:
    """Topic t of two partitions, a hundred records in each, one a second from noon on."""
    with Lakelog.connect(redis_url) as lake:
        lake.topics.create("t", 2, {"remote.storage.enable": False, "retention.ms": -1})
        with lake.producer() as producer:
            for n in range(200):
                time_ms = NOON_MS + 1000 * (n // 2)
                producer.send("t", str(n), partition=n % 2, timestamp_ms=time_ms)
        yield lake


@pytest.fixture
def read(lake: Lakelog) -> Callable[..., Consumer]:
    """A consumer of a group that has read so many of each partition."""

    def read(group: str = "g", count: int = 100, **settings: Any) -> Consumer:
        consumer = lake.consumer("t", group_id=group, auto_offset_reset="earliest", **settings)
        while not consumer.assignment():
            consumer.poll(100)
        for tp in consumer.assignment():
            consumer.seek(tp, count)
        consumer.commit()
        return consumer

    return read


def committed(lake: Lakelog, group: str = "g") -> dict[int, int | None]:
    with lake.consumer(group_id=group) as consumer:
        return {n: consumer.committed(TopicPartition("t", n)) for n in range(2)}  # type: ignore[misc]


def as_json(run: Run, *arguments: str) -> Any:
    return json.loads(run(*arguments, "--output", "json"))


# -- looking -----------------------------------------------------------------------------------


def test_groups_are_listed_with_their_states(run: Run, read: Callable[..., Consumer]) -> None:
    assert "no groups" in run("list")
    read("one").close()
    other = read("other")
    assert run("list").split() == ["GROUP", "─────", "one", "other"]
    assert as_json(run, "list") == [
        {"group": "one", "state": "Empty"},
        {"group": "other", "state": "Stable"},
    ]
    assert [one["group"] for one in as_json(run, "list", "--state", "stable")] == ["other"]
    assert run("list", "--type").splitlines()[-1].split() == ["other", "classic"]
    other.close()


def test_offsets_are_described_as_kafka_describes_them(
    run: Run, read: Callable[..., Consumer]
) -> None:
    consumer = read(count=40, client_id="ada")
    member_id = consumer.group_metadata().member_id
    found = as_json(run, "describe", "--group", "g")
    assert [(row["partition"], row["current_offset"], row["lag"]) for row in found] == [
        (0, 40, 60),
        (1, 40, 60),
    ]
    assert {(row["consumer_id"], row["client_id"]) for row in found} == {(member_id, "ada")}
    columns = "GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG CONSUMER-ID HOST CLIENT-ID"
    assert run("describe", "--group", "g").splitlines()[0].split() == columns.split()
    consumer.close()
    found = as_json(run, "describe", "--group", "g")
    assert {row["consumer_id"] for row in found} == {None}


def test_a_partition_without_a_commit_is_described_too(run: Run, lake: Lakelog) -> None:
    with lake.consumer("t", group_id="g", enable_auto_commit=False) as consumer:
        while not consumer.assignment():
            consumer.poll(100)
        (row, _) = as_json(run, "describe", "--group", "g")
    assert (row["current_offset"], row["log_end_offset"], row["lag"]) == (None, 100, None)


def test_a_lag_counts_records_and_not_the_offsets_that_a_lost_tail_skipped(
    run: Run, lake: Lakelog, read: Callable[..., Consumer]
) -> None:
    read(count=40).close()
    lake.hot.recover(TopicPartition("t", 0), 1_000_000)
    first, second = as_json(run, "describe", "--group", "g")
    assert (first["lag"], second["lag"]) == (60, 60)
    assert first["log_end_offset"] > 1_000_000
    assert first["lag_ms"] > 0
    assert "LAG-MS" in run("describe", "--group", "g", "--verbose")


def test_what_is_committed_beyond_the_end_is_said(
    redis_url: str, lake: Lakelog, capsys: pytest.CaptureFixture[str]
) -> None:
    with lake.consumer(group_id="g") as consumer:
        consumer.commit(
            {TopicPartition("t", n): OffsetAndMetadata(m) for n, m in ((0, 500), (1, 100))}
        )
    assert cli.main(["--redis", redis_url, "groups", "describe", "--group", "g"]) == 0
    said = capsys.readouterr().err
    assert "has committed 500 of t-0, beyond the log end 100" in said
    assert "t-1" not in said


def test_what_is_committed_of_a_deleted_topic_has_no_end(
    run: Run, lake: Lakelog, read: Callable[..., Consumer]
) -> None:
    read().close()
    lake.topics.delete("t")
    assert {row["log_end_offset"] for row in as_json(run, "describe", "--group", "g")} == {None}
    assert run("export", "--group", "g") == ""


def test_members_and_states_are_described(run: Run, read: Callable[..., Consumer]) -> None:
    consumer = read(group_instance_id="first")
    (row,) = as_json(run, "describe", "--group", "g", "--members", "--verbose")
    assert row["group_instance_id"] == "first"
    assert (row["#partition_count"], row["assignment"]) == (2, "t(0,1)")
    assert "#PARTITIONS" in run("describe", "--all-groups", "--members")
    assert as_json(run, "describe", "--group", "g", "--state") == [
        {
            "group": "g",
            "assignment_strategy": "range",
            "state": "Stable",
            "generation": 1,
            "#member_count": 1,
        }
    ]
    consumer.close()


def test_a_group_that_is_not_there(run: Run, lake: Lakelog) -> None:
    assert "there is no group 'h'" in run("describe", "--group", "h", code=1)
    assert "there is no group 'h'" in run("delete", "--group", "h", code=1)


# -- taking away -------------------------------------------------------------------------------


def test_groups_are_deleted_but_for_those_with_members(
    run: Run, lake: Lakelog, read: Callable[..., Consumer]
) -> None:
    read("one").close()
    other = read("other")
    said = run("delete", "--all-groups", code=1)
    assert "deleted: one" in said
    assert "has members" in said
    other.close()
    run("delete", "--group", "other")
    assert lake.groups.list() == []


def test_offsets_are_deleted_by_topic_and_partition(
    run: Run, lake: Lakelog, read: Callable[..., Consumer]
) -> None:
    read().close()
    assert as_json(run, "delete-offsets", "--group", "g", "--topic", "t:1") == [
        {"topic": "t", "partition": 1, "status": "deleted"}
    ]
    assert committed(lake) == {0: 100, 1: None}
    consumer = read()
    assert "read 't'" in run("delete-offsets", "--group", "g", "--topic", "t", code=1)
    consumer.close()


# -- moving ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scenario", "offset"),
    [
        (["--to-earliest"], 0),
        (["--to-latest"], 100),
        (["--to-current"], 40),
        (["--to-offset", "50"], 50),
        (["--to-offset", "500"], 100),
        (["--shift-by", "-10"], 30),
        (["--shift-by=-100"], 0),
        (["--shift-by", "10"], 50),
        (["--to-datetime", "2013-12-31T12:00:30.000"], 30),
        (["--to-datetime", "2013-12-31T13:00:30.000+01:00"], 30),
        (["--to-datetime", "2030-01-01T00:00:00.000Z"], 100),
        (["--by-duration", "PT1M"], 100),
        (["--by-duration", "P36500D"], 0),
    ],
    ids=str,
)
def test_a_scenario_moves_the_group(
    run: Run, lake: Lakelog, read: Callable[..., Consumer], scenario: list[str], offset: int
) -> None:
    read(count=40).close()
    asked = ("reset-offsets", "--group", "g", "--topic", "t:1", *scenario)
    expected = [{"group": "g", "topic": "t", "partition": 1, "new_offset": offset}]
    assert as_json(run, *asked) == expected
    assert as_json(run, *asked, "--dry-run") == expected
    assert run(*asked, "--export") == f"t,1,{offset}\n"
    assert run(*asked, "--export", "--dry-run") == f"t,1,{offset}\n"
    assert committed(lake) == {0: 40, 1: 40}
    assert as_json(run, *asked, "--execute") == expected
    assert committed(lake) == {0: 40, 1: offset}


def test_the_usage_tells_that_a_reset_takes_one_scenario(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        cli.main(["groups", "reset-offsets", "--help"])
    usage = " ".join(capsys.readouterr().out.partition("\n\n")[0].split())
    assert "(--to-earliest | --to-latest | --to-offset N |" in usage
    assert "| --to-current | --shift-by N | --from-file FILE)" in usage


def test_the_columns_of_a_reset_are_kafkas(run: Run, read: Callable[..., Consumer]) -> None:
    read().close()
    said = run("reset-offsets", "--group", "g", "--all-topics", "--to-earliest").splitlines()
    assert said[0].split() == ["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]
    assert said[2].split() == ["g", "t", "0", "0"]


def test_a_group_that_is_new_may_be_put_somewhere(run: Run, lake: Lakelog) -> None:
    run("reset-offsets", "--group", "new", "--topic", "t", "--to-offset", "7", "--execute")
    assert committed(lake, "new") == {0: 7, 1: 7}
    asked = ("reset-offsets", "--group", "newer", "--topic", "t", "--shift-by", "7", "--execute")
    assert "nothing to shift" in run(*asked, code=1)


def test_a_group_with_members_is_left_as_it_is(
    run: Run, lake: Lakelog, read: Callable[..., Consumer]
) -> None:
    consumer = read()
    asked = ("reset-offsets", "--group", "g", "--topic", "t", "--to-earliest", "--execute")
    assert "only while it has no members" in run(*asked, code=1)
    assert consumer.committed(TopicPartition("t", 0)) == 100
    consumer.close()


def test_what_is_exported_can_be_imported(
    run: Run, lake: Lakelog, read: Callable[..., Consumer], tmp_path: Path
) -> None:
    read("one", 10).close()
    read("other", 20).close()
    file = tmp_path / "offsets.csv"
    file.write_text(run("export", "--all-groups"))
    assert file.read_text() == "one,t,0,10\none,t,1,10\nother,t,0,20\nother,t,1,20\n"
    run("reset-offsets", "--all-groups", "--all-topics", "--to-latest", "--execute")
    assert committed(lake, "one") == {0: 100, 1: 100}
    run("import", str(file), "--group", "one")
    assert committed(lake, "one") == {0: 100, 1: 100}  # a dry run
    run("import", str(file), "--all-groups", "--execute")
    assert (committed(lake, "one"), committed(lake, "other")) == ({0: 10, 1: 10}, {0: 20, 1: 20})
    file.write_text(run("export", "--group", "one"))
    assert file.read_text() == "t,0,10\nt,1,10\n"
    run("reset-offsets", "--group", "other", "--from-file", str(file), "--execute")
    assert committed(lake, "other") == {0: 10, 1: 10}
    assert "give it as --group" in run("import", str(file), "--all-groups", code=1)


def test_a_file_passes_over_no_group_in_silence(
    run: Run, lake: Lakelog, read: Callable[..., Consumer], tmp_path: Path
) -> None:
    read("one", 10).close()
    file = tmp_path / "offsets.csv"
    file.write_text("one,t,0,20\ngone,t,0,30\n")
    said = run("import", str(file), "--all-groups", "--execute", code=1)
    assert "names groups that there are not: gone" in said
    said = run("import", str(file), "--group", "one", "--group", "two", "--execute", code=1)
    assert "says nothing of group 'two'" in said
    assert committed(lake, "one") == {0: 10, 1: 10}
    run("import", str(file), "--group", "gone", "--execute")
    assert (committed(lake, "gone"), committed(lake, "one")[0]) == ({0: 30, 1: None}, 10)


def test_commits_of_a_topic_that_was_made_again_are_not_current(
    run: Run, lake: Lakelog, read: Callable[..., Consumer]
) -> None:
    read(count=40).close()
    lake.topics.delete("t")
    lake.topics.create("t", 2, {"remote.storage.enable": False})
    assert {row["current_offset"] for row in as_json(run, "describe", "--group", "g")} == {None}
    assert as_json(run, "reset-offsets", "--group", "g", "--all-topics", "--to-current") == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--to-earliest"], "--all-topics"),
        (["--topic", "t", "--all-topics", "--to-earliest"], "not both"),
        (["--topic", "unknown", "--to-earliest"], "unknown"),
        (["--topic", "t:7", "--to-earliest"], "7"),
        (["--topic", "t:x", "--to-earliest"], "'x' is not the number"),
        (["--topic", "t", "--to-datetime", "2013-12-31"], "2013-12-31"),
        (["--topic", "t", "--by-duration", "1h"], "1h"),
        (["--topic", "t", "--to-earliest", "--export", "--execute"], "--export changes nothing"),
        (["--from-file", "/nowhere"], "/nowhere"),
        (["--from-file", "/nowhere", "--topic", "t"], "without --topic"),
    ],
    ids=str,
)
def test_what_cannot_be_asked_changes_nothing(
    run: Run, lake: Lakelog, read: Callable[..., Consumer], arguments: list[str], said: str
) -> None:
    read().close()
    assert said in run("reset-offsets", "--group", "g", *arguments, code=1)
    assert committed(lake) == {0: 100, 1: 100}
