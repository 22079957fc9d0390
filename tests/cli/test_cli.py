"""The command line as people and scripts use it: results, JSON, errors, exit codes."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable, TableFeatures

from lakelog.cli import main as cli
from lakelog.testing.eventually import eventually
from tests.support.servers import RedisServer

Run = Callable[..., str]


@pytest.fixture
def run(where: list[str], command: Callable[..., tuple[str, str]]) -> Run:
    def run(*arguments: str, code: int = 0, **more: Any) -> str:
        return command(*where, *arguments, code=code, **more)[bool(code)]

    return run


def run_json(run: Run, *arguments: str, **more: Any) -> Any:
    return json.loads(run(*arguments, "--output", "json", **more))


def test_the_package_is_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "lakelog", "--dir", str(tmp_path / "log")]
    done = subprocess.run([*command, "topics", "nothing"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    wrong, where = done.stderr.splitlines()
    assert wrong.startswith("lakelog topics: argument VERB: invalid choice: 'nothing'")
    assert where == "`lakelog topics --help` shows how it is used"
    done = subprocess.run([sys.executable, "-m", "lakelog", "--version"], capture_output=True)
    assert done.stdout.startswith(b"lakelog ")


def test_a_command_in_a_process_leaves_its_loggers_as_they_are(run: Run) -> None:
    loggers = [logging.getLogger(name) for name in ("lakelog", "lakelog.ingest.sender")]
    before = [logger.level for logger in loggers]
    run("topics", "create", "orders")
    run("produce", "orders", stdin="a\n")
    assert [logger.level for logger in loggers] == before


def test_a_warning_is_shown_unless_the_error_says_it(redis_url: str, tmp_path: Path) -> None:
    place = ["--redis", redis_url, "--cold", str(tmp_path / "cold"), "--engine", "inline"]

    def shown(script: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", script, *place, "topics", "list"],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stderr

    script = """
import logging, sys
from lakelog.cli import main as cli
cli.main(sys.argv[1:])
for name in ("lakelog.read.fetch", "lakelog.ingest.sender", "redis"):
    logging.getLogger(name).warning("of %s", name)
    logging.getLogger(name).error("error of %s", name)
"""
    said = [line.split(": ", 1)[1] for line in shown(script).splitlines()]
    assert said == [
        "of lakelog.read.fetch",
        "error of lakelog.read.fetch",
        "error of lakelog.ingest.sender",
        "error of redis",
    ]


def test_the_demo_goes_on_after_redis_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--engine", "inline", "--output", "json", "demo", "--rows", "4000", "--lose-redis"]
    assert cli.main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [check["check"] for check in shown["checks"] if not check["holds"]] == []
    assert "lose Redis, and restore" in [step["step"] for step in shown["steps"]]
    assert sum(one["records"] for one in shown["partitions"]) == 4000
    for one in shown["partitions"]:  # it skips what may have been given out
        assert int(one["hot"].strip("[)").split(", ")[1].replace(",", "")) > one["records"]


def test_a_shell_completes_commands_and_options(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    answer = tmp_path / "answer"

    def completed(line: str) -> set[str]:
        shell = {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_SHELL": "bash", "_ARGCOMPLETE_IFS": "\n"}
        place = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "COMP_TYPE": "9"}
        command = [sys.executable, "-m", "lakelog"]
        environment = {**os.environ, **shell, **place, "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
        subprocess.run(command, env=environment, check=True)
        return {word.strip() for word in answer.read_text().splitlines()}

    assert completed("lakelog cons") == {"consume"}
    assert completed("lakelog topics de") >= {"describe", "delete", "defaults"}
    assert "--follow" in completed("lakelog consume orders --fo")


COMMANDS = ("demo", "topics", "produce", "consume", "offsets", "archive", "doctor")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ([], COMMANDS),
        (["topics", "defaults"], ("--config log.retention.hours=48", "log.cleaner.enable=false")),
        (["delete-records"], ("--before=-30d --dry-run",)),
    ],
)
def test_help_shows_the_commands_and_examples(
    command: list[str], words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        cli.main([*command, "--help"])
    assert exit_.value.code == 0
    shown = capsys.readouterr().out
    assert [word for word in words if word not in shown] == []


def test_without_a_place_it_says_how_to_name_one(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith("LAKELOG_"):
            monkeypatch.delenv(name)
    assert cli.main(["offsets"]) == 1
    assert "--dir" in capsys.readouterr().err


def test_a_log_from_creation_to_archive_and_back(run: Run) -> None:
    assert "created topic orders with 2 partitions" in run("topics", "create", "orders", "-p", "2")
    lines = "".join(f"k{i}:value {i}\n" for i in range(10))
    assert "appended 10 records" in run("produce", "orders", "--key-separator", ":", stdin=lines)
    before = run("consume", "orders", "--output", "json")
    archived = run_json(run, "archive")
    assert sum(row["records"] for row in archived) == 10
    assert "nothing to archive" in run("archive")
    assert run("consume", "orders", "--output", "json") == before
    ends = run_json(run, "offsets", "orders")
    assert sum(row["offset"] for row in ends) == 10
    assert run_json(run, "offsets", "orders", "--time", "earliest-pending-upload") == ends


def test_lines_make_their_topic_where_they_are_asked_to(run: Run) -> None:
    for _ in range(2):  # one that is there stays as it is
        run("produce", "orders", "--create", "--partitions", "3", stdin="a\nb\n")
    (topic,) = run_json(run, "topics", "list")
    assert (topic["topic"], topic["partitions"]) == ("orders", 3)
    assert len(run("consume", "orders").splitlines()) == 4


def test_records_survive_a_round_trip_through_json(run: Run) -> None:
    run("topics", "create", "a")
    run("topics", "create", "b")
    records = [
        {"key": "k", "value": "v", "headers": [["h", ""], ["h", None]], "timestamp": 5},
        {"key": None, "value": None, "timestamp": "2013-12-31T23:59:00Z"},
        {"key_base64": "/w==", "value_base64": "gAA=", "headers": [["b", {"base64": "/w=="}]]},
        {"value": {"nested": [1, "é"]}},
    ]
    lines = "\n".join(map(json.dumps, records))
    run("produce", "a", "--format", "json", stdin=lines)
    first = run("consume", "a", "--output", "json")
    run("produce", "b", "--format", "json", stdin=first)
    read = [json.loads(line) for line in first.splitlines()]
    again = [json.loads(line) for line in run("consume", "b", "--output", "json").splitlines()]
    assert [{**row, "topic": "b"} for row in read] == again
    assert read[0]["headers"] == [["h", ""], ["h", None]]
    assert read[1] == {**read[1], "key": None, "value": None, "timestamp_ms": 1388534340000}
    assert (read[2]["key_base64"], read[2]["value_base64"]) == ("/w==", "gAA=")
    assert read[3]["value"] == json.dumps({"nested": [1, "é"]})  # as it was written


def test_consume_takes_offsets_times_and_a_limit(run: Run) -> None:
    run("topics", "create", "t")
    lines = "\n".join(
        json.dumps({"value": str(i), "timestamp": 1_388_534_340_000 + i * 1000}) for i in range(6)
    )
    run("produce", "t", "--format", "json", stdin=lines)

    def values(*arguments: str) -> list[str]:
        shown = run("consume", "t", "--output", "json", *arguments)
        return [json.loads(line)["value"] for line in shown.splitlines()]

    assert values("--from", "4") == ["4", "5"]
    assert values("--from", "2013-12-31T23:59:02Z", "--to", "2013-12-31T23:59:04Z") == ["2", "3"]
    assert values("--max", "2") == ["0", "1"]
    assert values("--max", "0") == []
    assert values("--max", "0", "--follow") == []
    assert values("--max", "1", "--follow", "--from", "5") == ["5"]
    assert values("--from=-10m") == []
    assert run_json(run, "offsets", "t", "--time", "@1388534342500") == [
        {"topic": "t", "partition": 0, "offset": 3}
    ]
    assert "t-0@4\t2013-12-31T23:59:04+00:00\tnull\t4" in run("consume", "t", "--from", "4")


def test_what_records_say_moves_no_terminal(run: Run) -> None:
    """Neither escape sequences nor a line of one's own come through."""
    evil = "\x1b]0;owned\x07\x1b[2J\n\u202et-0@99\tno\ttime\r\x9b31m\u2028"
    run("topics", "create", "t", "--config", "lakelog.entry.format=fields")
    line = json.dumps({"key": evil, "value": evil, "headers": [[evil, evil]]})
    run("produce", "t", "--format", "json", stdin=line)
    shown = run("consume", "t")
    (only,) = shown.removesuffix("\n").split("\n")
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u202e]", only)
    assert only.startswith("t-0@0\t")
    assert only.count("\t") == 4  # between what it is made of
    assert r"\x1b]0;owned\x07\x1b[2J\n\u202et-0@99\tno\ttime\r\x9b31m\u2028" in only
    (record,) = map(json.loads, run("consume", "t", "--output", "json").splitlines())
    assert (record["key"], record["value"]) == (evil, evil)


def test_errors_move_no_terminal(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--redis", "redis://host/\x1b[31m", "topics", "list"]) == 1
    said = capsys.readouterr().err
    assert r"\x1b[31m" in said
    assert "\x1b" not in said


def test_topics_are_altered_described_and_deleted(run: Run) -> None:
    run("topics", "create", "t", "--config", "retention.ms=1000")
    run("topics", "alter", "t", "--config", "segment.ms=5000", "--unset", "retention.ms", "-p", "3")
    described = run_json(run, "topics", "describe", "t")
    assert described["topic"]["config"] == {"segment.ms": "5000"}
    assert described["topic"]["partitions"] == 3
    assert [row["setting"] for row in described["settings"]] == ["segment.ms"]
    assert "remote.storage.enable" in run("topics", "describe", "t", "--all")
    assert "undelete t` brings all of it back until 20" in run("topics", "delete", "t")
    assert run_json(run, "topics", "list") == []
    (kept,) = run_json(run, "topics", "list", "--deleted")
    assert (kept["topic"], kept["state"]) == ("t", "kept")
    assert "is back" in run("topics", "undelete", "t", "--id", kept["topic_id"])
    assert len(run_json(run, "topics", "list")) == 1
    assert "no deleted topic 't'" in run("topics", "purge", "t", code=1)
    run("topics", "alter", "t", "--config", "file.delete.delay.ms=0")
    assert "cleanup run` removes it" in run("topics", "delete", "t")
    (planned,) = run_json(run, "cleanup", "plan")["plan"]
    assert (planned["topic"], planned["step"]) == ("t", "purge")
    assert "gone for good" in run("topics", "purge", "t")
    assert run_json(run, "topics", "list", "--deleted") == []
    assert "cleanup (after file.delete.delay.ms)" in run("topics", "undelete", "t", code=1)


def test_declared_topics_apply_once(run: Run, tmp_path: Path) -> None:
    (tmp_path / "t.yml").write_text(
        "- name: a\n  partitions: 2\n  config: {retention.ms: 1000}\n- name: b\n"
    )
    planned = run_json(run, "topics", "apply", str(tmp_path), "--dry-run")
    assert [row["action"] for row in planned] == ["create", "create"]
    assert [row["after"] for row in planned] == ["2 partitions, retention.ms=1000", "1 partition"]
    assert run_json(run, "topics", "list") == []
    run("topics", "apply", str(tmp_path))
    assert "2 topics are as declared" in run("topics", "apply", str(tmp_path))
    (tmp_path / "t.yml").write_text("{name: a, partitions: 3, config: {segment.ms: 7}}\n")
    assert run_json(run, "topics", "apply", str(tmp_path)) == [
        {"topic": "a", "action": "add partitions", "setting": None, "before": "2", "after": "3"},
        {
            "topic": "a",
            "action": "alter",
            "setting": "retention.ms",
            "before": "1000",
            "after": None,
        },
        {"topic": "a", "action": "alter", "setting": "segment.ms", "before": None, "after": "7"},
    ]
    assert len(run_json(run, "topics", "list")) == 2


def test_every_declared_topic_is_applied_or_said_to_have_failed(
    run: Run,
    where: list[str],
    redis_client: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in ("bad", "worse"):
        redis_client.set(f"lakelog:stream:{name}:0", "somebody else's")
    file = tmp_path / "t.yml"
    file.write_text("".join(f"- name: {name}\n" for name in ("a", "bad", "b", "worse", "c")))
    assert cli.main([*where, "topics", "apply", str(file), "--output", "json"]) == 1
    told = capsys.readouterr()
    assert [row["topic"] for row in json.loads(told.out)] == ["a", "b", "c"]
    assert re.findall(r"^(?:lakelog: )?(\w+): ", told.err, re.MULTILINE) == ["bad", "worse"]
    assert run("topics", "apply", str(file), code=1).count("is not lakelog's") == 2


def test_every_topic_that_no_declaration_fits_is_named_and_none_is_changed(
    run: Run, tmp_path: Path
) -> None:
    for name in ("a", "b"):
        run("topics", "create", name, "-p", "3")
    file = tmp_path / "t.yml"
    file.write_text("- {name: new}\n- {name: a}\n- {name: b}\n")
    for dry_run in (["--dry-run"], []):
        said = run("topics", "apply", str(file), *dry_run, code=1)
        assert said.count("cannot shrink to 1") == 2
    assert [row["topic"] for row in run_json(run, "topics", "list")] == ["a", "b"]


def test_every_declaration_that_is_wrong_is_told_at_once(
    run: Run, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = {
        "a.yml": "name: a\nconfig: {retention.msec: 1}\n",
        "b.yml": "name: [\n",
        "c.yml": "- {name: c, partitions: 0}\n- {name: d}\n- {partitions: 1}\n- {name: fine}\n",
        "d.yml": "{name: d, partition: 2}\n",
        "e.yml": "name: d\n",
    }
    folder = tmp_path / "topics"
    (folder / "f.yml").mkdir(parents=True)
    for name, text in wrong.items():
        (folder / name).write_text(text)
    nowhere = [str(tmp_path / "nowhere.yml"), str(tmp_path / ("x" * 300))]
    command = ["topics", "apply", nowhere[0], str(folder), nowhere[1]]
    assert cli.main([*where, *command, "--output", "json"]) == 1
    told = capsys.readouterr()
    assert json.loads(told.out) == []
    said = [line.split(": ", 1) for line in told.err.removeprefix("lakelog: ").splitlines()]
    assert {place.removeprefix(f"{tmp_path}/"): says for place, says in said} == {
        "nowhere.yml": "no file or folder is there; give YAML files that declare topics, such as "
        "conf/topics/",
        "topics/a.yml": "there is no topic setting 'retention.msec'; did you mean retention.ms or "
        "retention.bytes or local.retention.ms?",
        "topics/b.yml": said[2][1],
        "topics/c.yml, topic 1": "partitions: 0 is not a whole number ≥ 1",
        "topics/c.yml, topic 3": "a topic is declared as a mapping with name, partitions and "
        "config; got {'partitions': 1}",
        "topics/d.yml": "partition is not a field of a topic; legal: config, name, partitions",
        "topics/e.yml": f"topic 'd' is declared in {folder}/c.yml, topic 2 too; remove one of them",
        "topics/f.yml": "it cannot be read: Is a directory. Give files that this user may read",
        "x" * 300: "it cannot be read: File name too long. Give files that this user may read",
    }
    assert said[2][1].startswith("the file is not YAML: while parsing a flow")
    assert run_json(run, "topics", "list") == []


def test_an_archive_run_shows_what_it_archived_and_every_error(
    run: Run, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("a", "bad", "c", "worse"):
        topic = run_json(run, "topics", "create", name)
        run("produce", name, stdin="value\n")
        if name in ("bad", "worse"):
            (tmp_path / "cold" / name).mkdir(parents=True)
            (tmp_path / "cold" / name / topic["topic_id"]).write_text("in the way")
    assert cli.main([*where, "archive", "--output", "json"]) == 1
    told = capsys.readouterr()
    assert [(row["topic"], row["records"]) for row in json.loads(told.out)] == [("a", 1), ("c", 1)]
    assert re.findall(r"^(?:lakelog: )?(\w+): ", told.err, re.MULTILINE) == ["bad", "worse"]


def test_what_is_declared_is_judged_by_what_is_in_effect(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "t.yml"
    file.write_text("{name: a, config: {local.retention.ms: 2592000000}}\n")
    for dry_run in (["--dry-run"], []):
        said = run("topics", "apply", str(file), *dry_run, code=1)
        assert f"{file}: local.retention.ms=2592000000 must be at most retention.ms" in said
    assert run_json(run, "topics", "list") == []
    run("topics", "defaults", "--config", "log.retention.hours=-1")
    run("topics", "apply", str(file))
    assert "1 topic is as declared" in run("topics", "apply", str(file))
    file.write_text("{name: a, config: {5: 6}}\n")
    assert f"{file}: there is no topic setting '5'" in run("topics", "apply", str(file), code=1)


def test_defaults_are_set_shown_and_taken_back(run: Run) -> None:
    run("topics", "create", "t", "--config", "segment.ms=7")
    assert run_json(run, "topics", "defaults") == []
    assert "no defaults are set" in run("topics", "defaults")
    settings = ("log.retention.hours=2", "log.roll.ms=5", "log.cleaner.enable=false")
    more = [argument for pair in settings for argument in ("--config", pair)]
    rows = run_json(run, "topics", "defaults", *more)
    assert rows == run_json(run, "topics", "defaults")
    assert {row["setting"]: (row["value"], row["effect"]) for row in rows} == {
        "log.cleaner.enable": ("false", "compaction of all topics"),
        "log.retention.hours": ("2", "retention.ms=7200000"),
        "log.roll.ms": ("5", "segment.ms=5"),
    }
    described = run_json(run, "topics", "describe", "t")["settings"]
    assert {row["setting"]: (row["value"], row["from"]) for row in described} == {
        "log.cleaner.enable": ("false", "keyspace"),
        "retention.ms": ("7200000", "keyspace"),
        "segment.ms": ("7", "topic"),
    }
    everything = run_json(run, "topics", "describe", "t", "--all")["settings"]
    assert {row["from"] for row in everything} == {"topic", "keyspace", "default"}
    shown = run(
        "topics", "defaults", "--unset", "log.roll.ms", "--config", "log.cleaner.backoff.ms=1"
    )
    assert "no effect here: cleanup runs when it is started" in shown
    assert "log.roll.ms" not in shown
    assert "log.roll.ms" in run("topics", "defaults", "--all")


def test_a_paused_hot_tier_refuses_appends_until_resumed(run: Run) -> None:
    run("topics", "create", "t")
    assert "paused" in run("hot", "pause")
    assert run_json(run, "status")["partitions"][0]["state"] == "paused"
    resumed = run_json(run, "hot", "resume")
    assert resumed in ({"left_with_a_gap": []}, {"left_with_a_gap": ["t-0"]})
    run("produce", "t", stdin="x\n")
    assert '"x"' in run("consume", "t", "--output", "json")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["topics", "create", "no good"], "not a legal topic name"),
        (["topics", "create", "t", "-p", "0"], "number of partitions"),
        (["topics", "create", "t", "--config", "retention.msec=1"], "did you mean retention.ms"),
        (["topics", "create", "t", "--config", "retention.ms=-2"], "whole number ≥ -1"),
        (["topics", "create", "t", "--config", "retention.ms"], "NAME=VALUE"),
        (
            ["topics", "create", "t", "--config", "retention.ms=1", "--config", "retention.ms=2"],
            "--config gives retention.ms twice, as '1' and as '2'",
        ),
        (
            ["topics", "alter", "there", "--config", "retention.ms=1", "--unset", "retention.ms"],
            "--config sets retention.ms and --unset takes it back",
        ),
        (["topics", "describe", "nope"], "there is no topic 'nope'"),
        (["topics", "defaults", "--config", "retention.ms=1"], "for all topics set log.retention"),
        (["topics", "defaults", "--config", "log.retention.hours=0"], "or -1 for no limit"),
        (["topics", "defaults", "--unset", "log.retention.hour"], "did you mean log.retention"),
        (["topics", "defaults", "--config", "log.roll.ms"], "NAME=VALUE"),
        (["consume", "nope"], "there is no topic 'nope'"),
        (["consume", "there", "-p", "7"], "no partition 7"),
        (["consume", "there", "--from", "99"], "out of range"),
        (["consume", "there", "--from", "2013-12-31T00:00:00"], "no time zone"),
        (["consume", "there", "--from", "yesterday"], "if it is UTC, say 'yesterday UTC'"),
        (["consume", "there", "--to", "12:00"], "12:00 UTC'; as an option, --zone UTC"),
        (["grep", "x", "--from", "12:00"], "12:00 UTC'; as an option, --zone UTC"),
        (["consume", "there", "--from", "soon"], "is not a position"),
        (["consume", "there", "--from", "2", "--to", "1"], "ends before it begins"),
        (["archive", "--until", "earliest"], "does not bound"),
        (["archive", "--continuous", "--max-duration", "soon"], "30s, 10m"),
        (["produce", "there", "--acks", "all"], "lakelog: acks='all' is not legal: write"),
        (["produce", "there", "--key-separator", ""], "--key-separator is empty"),
        (["produce", "there", "--partitions", "2"], "give --create, too"),
        (["produce", "there", "a.csv", "--partitions", "2"], "give --create, too"),
        (["produce", "new", "--create", "--partitions", "0"], "partitions"),
        (["demo"], "brings its own Redis"),
    ],
)
def test_bad_input_is_told_in_a_sentence(run: Run, arguments: list[str], says: str) -> None:
    run("topics", "create", "there")
    run("produce", "there", stdin="a\nb\nc\n")
    shown = run(*arguments, code=1)
    assert says in shown
    assert shown.startswith("lakelog: ")


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "line 2: not a JSON object"),
        ("[]", "line 2: not a JSON object"),
        ("[" * 100_000, "line 2: not a JSON object"),
        ('{"key": "k"}', "line 2: no value"),
        ('{"value": "v", "offest": 1}', "line 2: unknown field 'offest'"),
        ('{"value": "v", "timestamp": "2013-01-01T00:00:00"}', "no time zone"),
        ('{"value_base64": "?"}', "line 2: value_base64"),
        ('{"value": "v", "headers": [1]}', "line 2: headers are"),
        ('{"value": "v", "headers": 5}', "line 2: headers are"),
        ('{"value": "v", "headers": {"h": {"base64": "?"}}}', "line 2: base64 of header 'h'"),
        ('{"value": "v", "headers": {"h": {"base64": 5}}}', "line 2: base64 of header 'h'"),
        ('{"value": "\\ud800"}', "line 2: the value is no valid text"),
        ('{"value": "v", "partition": 9}', "line 2: topic 't' has no partition 9"),
    ],
)
def test_a_bad_line_names_itself_and_loses_none_before(run: Run, line: str, says: str) -> None:
    run("topics", "create", "t")
    first = '{"value": "first"}'
    shown = run("produce", "t", "--format", "json", stdin=f"{first}\n{line}\n{first}\n", code=1)
    assert says in shown
    assert len(run("consume", "t").splitlines()) == 1


def test_a_refused_record_names_its_line_and_how_many_failed(run: Run) -> None:
    run("topics", "create", "t", "--config", "max.message.bytes=1000")
    lines = "".join(f"{value}\n" for value in ("a", "b" * 2000, "c", "d" * 2000))
    # More than LZ4 could make small enough.
    lines = lines.replace("b" * 2000, os.urandom(1000).hex()).replace(
        "d" * 2000, os.urandom(900).hex()
    )
    shown = run("produce", "t", stdin=lines, code=1)
    assert "line 2: " in shown
    assert ". 2 records that were read are not in the log" in shown
    assert len(run("consume", "t").splitlines()) == 2


def test_a_terminal_without_unicode_gets_escapes(run: Run, where: list[str]) -> None:
    run("topics", "create", "t")
    run("produce", "t", stdin="größe\n")
    done = subprocess.run(
        [sys.executable, "-m", "lakelog.cli.main", *where, "consume", "t"],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "gr\\xf6\\xdfe" in done.stdout


def test_an_unreachable_redis_is_told_without_its_password(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["--redis", "redis://:s3cret@127.0.0.1:1", "topics", "list"]) == 1
    shown = capsys.readouterr().err
    assert "cannot reach Redis" in shown
    assert ".. " not in shown
    assert "s3cret" not in shown


def test_doctor_tells_risks_and_what_mends_them(
    run: Run, make_redis: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    findings = {row["what"]: row for row in json.loads(_doctor(run))}
    assert findings["deltalake"]["state"] == "ok"
    assert findings["cold root"]["state"] == "ok"
    evicting = make_redis(maxmemory="100mb", **{"maxmemory-policy": "allkeys-lru"})
    code = cli.main(["doctor", "--redis", evicting.url, "--output", "json"])
    findings = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    assert code == 1
    assert findings["eviction"]["state"] == "broken"
    assert findings["eviction"]["do"].endswith("maxmemory-policy noeviction")


def test_doctor_tells_which_extras_are_installed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--output", "json"]) == 0
    findings = {row["what"]: row for row in json.loads(capsys.readouterr().out)}
    for what in ("voila (page)", "fastavro (schemas)", "cbor2 (schemas)", "plotly (explore)"):
        assert findings[what]["state"] == "ok"
    text = " ".join(findings)
    for extra in ("spark", "sql", "metrics", "tracing", "encryption", "databricks", "completion"):
        assert f"({extra})" in text


def test_doctor_tells_of_tables_that_somebody_changed(
    run: Run, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for topic in ("orders", "plain", "refused"):
        run("topics", "create", topic)
        run("produce", topic, stdin="v\n")
        run("archive", topic)
    cold = Path(where[where.index("--cold") + 1])
    (path,) = (cold / "orders").iterdir()
    DeltaTable(path).alter.set_table_properties({"delta.appendOnly": "true"})
    (path,) = (cold / "refused").iterdir()
    DeltaTable(path).alter.add_feature(
        TableFeatures.DeletionVectors, allow_protocol_versions_increase=True
    )

    shutil.copytree(cold, tmp_path / "log" / "cold")

    for place in (where, ["--cold", str(cold)], ["--dir", str(tmp_path / "log")]):
        assert cli.main([*place, "doctor", "--output", "json"]) == 1
        rows = json.loads(capsys.readouterr().out)
        found = {row["what"]: row for row in rows if row["what"].startswith("table of ")}
        assert set(found) == {"table of orders", "table of refused"}
        assert found["table of orders"]["state"] == "risky"
        assert "UNSET TBLPROPERTIES ('delta.appendOnly')" in found["table of orders"]["found"]
        assert found["table of refused"]["state"] == "broken"
        assert "somebody turned on deletionVectors" in found["table of refused"]["found"]


def test_doctor_knows_a_redis_that_somebody_else_runs(
    make_redis: Callable[..., RedisServer], capsys: pytest.CaptureFixture[str]
) -> None:
    def told(server: RedisServer) -> dict[str, Any]:
        cli.main(["doctor", "--redis", server.url, "--output", "json"])
        return {row["what"]: row for row in json.loads(capsys.readouterr().out)}

    served = {"appendonly": "no", "repl-diskless-sync-delay": 0, "rename-command": 'CONFIG ""'}
    server = make_redis(**served, **{"maxmemory-policy": "volatile-lru"})
    found = told(server)
    assert "the service's own settings" in found["eviction"]["do"]
    assert found["persistence"]["state"] == "broken"
    make_redis(replicaof=f"127.0.0.1 {server.port}")
    with server.client() as client:
        eventually(lambda: client.info("replication")["connected_slaves"])
    found = told(server)
    assert (found["persistence"]["state"], found["persistence"]["found"][:9]) == (
        "risky",
        "1 replica",
    )
    assert "acks=replicas=1" in found["persistence"]["do"]


def test_doctor_does_not_look_from_spark_at_a_log_in_a_directory(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["--dir", str(tmp_path / "log"), "doctor", "--spark"]) == 1
    assert "--spark goes with --redis, --cold, or both" in capsys.readouterr().err
    assert not (tmp_path / "log").exists()


def _doctor(run: Run) -> str:
    """The findings, whatever the shared server's persistence makes the exit code."""
    try:
        return run("doctor", "--output", "json")
    except AssertionError:
        pytest.fail("doctor should find the test server sound")


def test_where_nothing_is_to_be_archived_it_says_why(run: Run) -> None:
    assert run("archive") == "nothing to archive: no topics yet\n"
    said = run("topics", "create", "hot", "--config", "remote.storage.enable=false")
    assert said == "created topic hot with 1 partition\n"
    assert "no topic has a cold tier" in run("archive")
    assert "with 2 partitions" in run("topics", "create", "t", "-p", "2")
    assert run("archive") == "nothing to archive: the cold tier holds everything already\n"
