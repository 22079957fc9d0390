"""What a policy for S3 allows: a role's topics' folders, and all that it asks for."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import pytest

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.errors import InvalidArgumentError
from lakelog.operate.acl.acl import acl
from lakelog.operate.acl.redis_rules import Role
from lakelog.operate.acl.store_policies import s3_policy
from tests.support.object_store import FaultyFront, s3_options

BUCKET = "lakelog"
S3 = f"s3://{BUCKET}/log"
LOG_FILE, DATA_FILE = "log/orders/id/_delta_log/0.json", "log/orders/id/part.parquet"


def asked(front: FaultyFront) -> Iterator[tuple[str, str]]:
    """Action and resource of each request; of a listing, the prefix instead."""
    for method, target, _ in front.requests:
        parts = urlsplit(target)
        query = parse_qs(parts.query, keep_blank_values=True)
        bucket, _, key = unquote(parts.path).lstrip("/").partition("/")
        assert bucket == BUCKET
        if not key and method in ("GET", "HEAD"):
            yield "s3:ListBucket", query.get("prefix", [""])[0]
        elif method in ("GET", "HEAD"):
            yield "s3:GetObject", key
        elif "delete" in query:
            continue  # of many at once, named in its body
        elif method == "DELETE":
            yield ("s3:AbortMultipartUpload" if "uploadId" in query else "s3:DeleteObject"), key
        else:
            yield "s3:PutObject", key


def in_s3(policy: dict[str, Any], action: str, what: str) -> bool:
    """Whether a statement allows it: of a listing, `what` is the prefix."""
    for statement in policy["Statement"]:
        if action not in statement["Action"]:
            continue
        if action == "s3:ListBucket":
            patterns = statement.get("Condition", {"StringLike": {"s3:prefix": ["*"]}})
            patterns = patterns["StringLike"]["s3:prefix"]
        else:
            start = f"arn:aws:s3:::{BUCKET}/"
            patterns = [resource.removeprefix(start) for resource in statement["Resource"]]
        if any(fnmatch.fnmatchcase(what, pattern) for pattern in patterns):
            return True
    return False


ACTIONS = {
    "read": "s3:GetObject",
    "list": "s3:ListBucket",
    "write": "s3:PutObject",
    "delete": "s3:DeleteObject",
}


def may(policy: dict[str, Any], action: str, what: str) -> bool:
    return in_s3(policy, ACTIONS[action], what)


def test_a_role_has_its_topics_folders_alone() -> None:
    for role in (Role.READER, Role.CONSUMER, Role.PRODUCER):
        policy = s3_policy(role, S3, ["orders", "web.*"])
        clicks = "log/web.clicks/id/_delta_log/0.json"
        allowed = {
            *(("read", DATA_FILE), ("read", "log/web.clicks/id/part.parquet")),
            *(("list", "log/orders/id/_delta_log/"), ("list", "log/orders")),
            *((("write", LOG_FILE), ("write", clicks)) if role is Role.PRODUCER else ()),
        }
        others = {
            *(("read", "log/orders2/id/part.parquet"), ("list", "log/others/"), ("list", "")),
            *(("write", DATA_FILE), ("delete", LOG_FILE), ("write", LOG_FILE), ("write", clicks)),
            ("write", "log/x/orders/id/_delta_log/0.json"),
        }
        assert {one for one in allowed | others if may(policy, *one)} == allowed, role
    policy = s3_policy(Role.ARCHIVER, S3, ["orders"])
    for action in ("write", "delete"):
        assert may(policy, action, DATA_FILE)
        assert may(policy, action, "log/_lakelog_status/part.parquet")
        assert not may(policy, action, "log/others/part.parquet")
    admin = s3_policy(Role.ADMIN, S3.removesuffix("/log"), ["*"])
    assert may(admin, "delete", "anything")
    assert may(admin, "list", "")


def test_a_root_in_s3_has_a_policy(capsys: pytest.CaptureFixture[str]) -> None:
    for cold in ("s3://b/log", "gs://bucket/log", "/srv/log"):
        made = acl("reader", "orders", cold=cold)
        assert main(["acl", "reader", "--topic", "orders", "--cold", cold, "--output", "json"]) == 0
        assert json.loads(capsys.readouterr().out).get("s3") == made.s3
        assert (made.s3 is not None) == cold.startswith("s3://")
    for root in ("s3://", 's3://bucket/a"b'):
        with pytest.raises(InvalidArgumentError, match="policies are made for"):
            s3_policy(Role.READER, root, ["orders"])


def test_of_another_store_it_is_told_where_the_rights_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for cold, is_told in (("gs://bucket/log", True), ("s3://b/log", False), ("/srv/log", False)):
        assert main(["acl", "reader", "--cold", cold]) == 0
        shown = capsys.readouterr()
        assert shown.out.startswith("ACL SETUSER reader")
        assert ("gs://bucket/log" in shown.err and "lakelog help acl" in shown.err) is is_told


# -- what is asked of a store ------------------------------------------------------------------


def produced(lake: Lakelog, topic: str) -> None:
    with lake.producer() as producer:
        producer.send(topic, b"x").result(20)
    lake.log(topic).recover(0, 10**6)
    with lake.producer() as producer:
        producer.send(topic, b"x").result(20)


def consumed(lake: Lakelog, topic: str) -> None:
    with lake.consumer(topic, group_id="nightly", auto_offset_reset="earliest") as consumer:
        while not consumer.poll(500):
            pass
        consumer.commit()


def archived(lake: Lakelog) -> None:
    lake.archive()
    lake.cleanup()


def read(lake: Lakelog) -> None:
    lake.log("orders").read(0).to_arrow()
    lake.status("orders")


def administered(lake: Lakelog) -> None:
    lake.topics.create("made", 1)
    produced(lake, "made")
    archived(lake)
    lake.check()


@pytest.mark.slow
def test_a_role_asks_for_what_its_policy_allows(redis_url: str, s3_front: FaultyFront) -> None:
    root = f"s3://{BUCKET}/{uuid4().hex}/log"
    options = s3_options(s3_front.url)
    work = {
        Role.PRODUCER: lambda lake: produced(lake, "orders"),
        Role.READER: read,
        Role.ARCHIVER: archived,
        Role.ADMIN: administered,
        # Last: delta-rs writes the table of groups with the GIL, which the front needs, too.
        Role.CONSUMER: lambda lake: consumed(lake, "orders"),
    }
    with Lakelog.connect(redis_url, root, engine="inline", storage_options=options) as lake:
        for name in ("orders", "others"):
            lake.topics.create(name, 1, {"retention.ms": -1, "local.retention.ms": 0})
            produced(lake, name)
        lake.archive()
    for role, does in work.items():
        s3_front.requests.clear()
        with Lakelog.connect(redis_url, root, engine="inline", storage_options=options) as lake:
            topics = "*" if role in (Role.ARCHIVER, Role.ADMIN) else "orders"
            policy = lake.acl(role, topics).s3
            assert policy is not None
            does(lake)
        requests = set(asked(s3_front))
        beyond = {request for request in requests if not in_s3(policy, *request)}
        assert requests, role
        assert beyond == set(), role
