"""Settings on the command line: Kafka's form, and what is said of those that are none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.errors import InvalidArgumentError

Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(embedded: Path, command: Run) -> Run:
    return partial(command, "--dir", str(embedded))


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("settings") / "log"
    with closing(Lakelog.embedded(folder)):
        yield folder


def _settings(run: Run, topic: str) -> dict[str, str]:
    shown, _ = run("topics", "describe", topic, "--output", "json")
    return {row["setting"]: row["value"] for row in json.loads(shown)["settings"]}


def test_several_settings_come_in_kafkas_form_and_values_keep_their_commas(run: Run) -> None:
    columns = "lakelog.value.columns=flight int, origin string"
    run("topics", "create", "kafkas", "--add-config", f"retention.ms=-1,{columns},segment.ms=5")
    assert _settings(run, "kafkas") == {
        "lakelog.value.columns": "flight int, origin string",
        "retention.ms": "-1",
        "segment.ms": "5",
    }
    policy = "cleanup.policy=[compact,delete],retention.ms=7d"
    run("topics", "alter", "kafkas", "--config", "segment.ms=6", "--add-config", policy)
    found = _settings(run, "kafkas")
    assert found["cleanup.policy"] == "compact,delete"
    assert (found["retention.ms"], found["segment.ms"]) == (str(7 * 86_400_000), "6")
    run("topics", "defaults", "--add-config", "log.roll.hours=6,log.cleanup.policy=compact,delete")
    run("topics", "defaults", "--unset", "log.roll.hours", "--unset", "log.cleanup.policy")


def test_several_settings_in_one_config_are_told_how_to_be_given(run: Run) -> None:
    _, said = run("topics", "create", "t", "--config", "retention.ms=1,segment.ms=2", code=1)
    assert "gives 2 settings" in said
    assert "--config retention.ms=1 --config segment.ms=2" in said
    assert "--add-config" in said


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("log.roll.hours=1", "topics defaults --config log.roll.hours=…"),
        ("log.retention.check.interval.ms=1", "topics defaults --config log.retention.check"),
        ("offsets.retention.minutes=1", "topics defaults --config offsets.retention.minutes"),
        ("FLUSH_POLICY=rows:1000,interval:60", "lakelog.flush.rows=1000"),
        ("lakelog.flush.rows=rows:1000,interval:60", "lakelog.flush.interval.ms=60s"),
    ],
)
def test_a_setting_that_is_none_of_a_topic_names_what_is_meant(
    run: Run, setting: str, hint: str
) -> None:
    assert hint in run("topics", "create", "hinted", "--config", setting, code=1)[1]


def test_a_size_of_offset_indexes_is_taken_as_that_of_a_broker_is(run: Run) -> None:
    run("topics", "create", "indexed", "--config", "segment.index.bytes=1MiB")
    assert _settings(run, "indexed") == {"segment.index.bytes": str(2**20)}


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (("segments", "dump", "t", "-p", "0", "--print-data-log"), "--records"),
        (("segments", "dump", "t", "-p", "0", "--files"), "segments dump TOPIC -p N"),
        (("consume", "t", "-n", "5"), "--max N"),
        (("consume", "t", "--limit", "5"), "--max N"),
    ],
)
def test_options_of_other_tools_name_what_they_are_here(
    arguments: tuple[str, ...], hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main(list(arguments))
    assert hint in capsys.readouterr().err


def test_json_keeps_any_alphabet_and_escapes_what_a_terminal_obeys(
    run: Run, embedded: Path, tmp_path: Path
) -> None:
    run("topics", "create", "letters")
    with closing(Lakelog.embedded(embedded)) as lake, lake.producer() as producer:
        producer.send("letters", "жук \u202e\x9b", headers=[("имя", b"\xd0\xb6")])
    run("consume", "letters", "--output", "json", "-o", str(tmp_path / "file.json"))
    written = (tmp_path / "file.json").read_text("utf-8")
    assert "жук \\u202e\\u009b" in written
    assert "имя" in written
    assert json.loads(written)["value"] == "жук \u202e\x9b"


def test_a_log_whose_topics_are_deleted_says_what_brings_them_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Lakelog.embedded(tmp_path / "log")) as lake:
        topic = lake.topics.create("orders", 2, {"retention.ms": -1})
        assert (
            repr(topic) == f"<Topic 'orders', 2 partitions, retention.ms=-1; id {topic.topic_id}>"
        )
        assert repr(lake.status()) == ("<Status: 2 partitions of 1 topic, 0 records not archived>")
        lake.topics.delete("orders")
        for command in ("status", "topics list", "offsets"):
            assert cli.main(["--dir", str(tmp_path / "log"), *command.split()]) in (0, 1)
            said = capsys.readouterr()
            assert "undelete` brings back what was deleted: orders" in said.out + said.err


def test_a_consumer_of_a_topic_that_is_not_there_says_so_once(
    embedded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Lakelog.embedded(embedded)) as lake, lake.consumer("odrers") as consumer:
        assert consumer.poll() == {}
        assert consumer.poll() == {}
    assert caplog.text.count("there is no topic 'odrers'") == 1


def test_so_does_a_share_consumer_and_a_closed_one_says_that_it_is(
    embedded: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(Lakelog.embedded(embedded)) as lake:
        consumer = lake.share_consumer("odrers", group_id="workers")
        assert consumer.poll(0) == consumer.poll(0) == {}
        consumer.close()
        with pytest.raises(InvalidArgumentError, match="was closed"):
            consumer.poll(0)
    assert caplog.text.count("there is no topic 'odrers'") == 1
