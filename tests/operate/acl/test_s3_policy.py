"""The requests that each role makes of a store are those that its policy allows."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import pytest

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError
from lakelog.operate.acl.acl import acl
from lakelog.operate.acl.redis_rules import Role
from lakelog.operate.acl.store_policies import s3_policy
from lakelog.testing.object_store import FaultyFront, s3_options

BUCKET = "lakelog"


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


def allows(policy: dict[str, Any], action: str, what: str) -> bool:
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
        beyond = {request for request in requests if not allows(policy, *request)}
        assert requests, role
        assert beyond == set(), role


def test_a_policy_of_one_topic_says_nothing_of_another() -> None:
    root = f"s3://{BUCKET}/log"
    for role in (Role.READER, Role.CONSUMER, Role.PRODUCER):
        policy = s3_policy(role, root, ["orders"])
        assert allows(policy, "s3:GetObject", "log/orders/id/part.parquet")
        assert not allows(policy, "s3:GetObject", "log/orders2/id/part.parquet")
        assert not allows(policy, "s3:ListBucket", "log/others/")
        assert not allows(policy, "s3:ListBucket", "")
        assert not allows(policy, "s3:DeleteObject", "log/orders/id/_delta_log/0.json")
        assert not allows(policy, "s3:PutObject", "log/orders/id/part.parquet")
        may_reserve = allows(policy, "s3:PutObject", "log/orders/id/_delta_log/0.json")
        assert may_reserve == (role is Role.PRODUCER)
    policy = s3_policy(Role.ARCHIVER, root, ["orders"])
    assert allows(policy, "s3:DeleteObject", "log/orders/id/part.parquet")
    assert not allows(policy, "s3:PutObject", "log/others/id/part.parquet")


def test_there_is_a_policy_for_a_root_in_s3_alone() -> None:
    assert acl("reader", cold="/srv/log").s3 is None
    assert acl("reader", cold=None).s3 is None
    with pytest.raises(InvalidArgumentError, match="s3://bucket/path"):
        s3_policy(Role.READER, "s3://", ["orders"])
