"""What is printed for a role, and what is refused."""

from __future__ import annotations

import json

import pytest

from lakelog.cli import doctor as command
from lakelog.cli.main import main
from lakelog.errors import InvalidArgumentError, InvalidTopicError
from lakelog.hot.key_patterns import KeyPatterns
from lakelog.operate.acl.acl import acl
from lakelog.operate.acl.redis_rules import Role


def test_the_command_takes_the_roles_that_there_are() -> None:
    assert {role.value for role in Role} == {*command.ROLES}


def test_a_command_prints_what_redis_cli_takes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["acl", "consumer", "--topic", "orders", "--group", "a b", "--keyspace", "k"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("ACL SETUSER consumer-orders on resetkeys resetchannels ")
    assert "~k:group:a?b ~{k:group:a?b}:*" in line
    assert "+xadd" in line
    assert "%R~k:stream:orders:[0-9]*" in line


def test_as_json_there_are_rules_and_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    where = ["--cold", "s3://bucket/log", "--output", "json"]
    assert main(["acl", "Archiver", "--user", "night", *where]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["redis"]["user"] == "night"
    assert "+script|load" in said["redis"]["rules"]
    assert said["s3"]["Version"] == "2012-10-17"


def test_signs_of_a_pattern_stand_for_themselves() -> None:
    patterns = KeyPatterns("l*k[e]?")
    assert patterns.topics == r"l\*k\[e\]\?:topics"
    assert patterns.partitions("web.*")[0] == r"l\*k\[e\]\?:stream:web.*:[0-9]*"
    assert patterns.group("a{b}%")[0] == r"l\*k\[e\]\?:group:a%7Bb%7D%25"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"role": "owner"}, InvalidArgumentError),
        ({"role": None}, InvalidArgumentError),
        ({"role": "reader", "topics": "a b"}, InvalidTopicError),
        ({"role": "reader", "topics": "*x"}, InvalidTopicError),
        ({"role": "reader", "keyspace": "lakelog:stream"}, InvalidArgumentError),
        ({"role": "reader", "keyspace": ""}, InvalidArgumentError),
        ({"role": "reader", "user": "a b"}, InvalidArgumentError),
    ],
)
def test_what_no_rules_can_be_made_of_is_refused(
    arguments: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        acl(**arguments)
