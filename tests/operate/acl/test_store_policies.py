"""What policies for object stores allow: a role's topics' folders, and all that it asks for.

No service of Google or Azure judges here: their conditions are read as their documentation says.
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from uuid import uuid4

import pytest

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.errors import InvalidArgumentError
from lakelog.operate.acl.acl import acl
from lakelog.operate.acl.redis_rules import Role
from lakelog.operate.acl.store_policies import azure_policy, gcs_policy, s3_policy
from tests.support.object_store import FaultyFront, s3_options

BUCKET = "lakelog"
S3, GCS, AZURE = (
    f"s3://{BUCKET}/log",
    "gs://bucket/log",
    "abfss://box@account.dfs.core.windows.net/log",
)
LOG_FILE, DATA_FILE = "log/orders/id/_delta_log/0.json", "log/orders/id/part.parquet"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"


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


class Text(str):
    """A string of CEL."""

    def startsWith(self, start: str) -> bool:
        return self.startswith(start)

    def extract(self, template: str) -> str:
        before, after = (re.escape(part) for part in template.split("{any}"))
        found = re.search(f"{before}(.*?){after}", self)
        return found[1] if found else ""


def in_gcs(policy: dict[str, Any], permission: str, what: str) -> bool:
    """Whether a binding allows it: of a listing, `what` is the prefix."""
    assert policy["policy"]["version"] == 3
    is_list = permission == "storage.objects.list"
    kind = "Bucket" if is_list else "Object"
    name = "projects/_/buckets/bucket" + ("" if is_list else f"/objects/{what}")

    class Resource:
        type = f"storage.googleapis.com/{kind}"

    Resource.name = Text(name)  # type: ignore[attr-defined]

    class Api:
        @staticmethod
        def getAttribute(attribute: str, otherwise: str) -> Text:
            assert attribute == "storage.googleapis.com/objectListPrefix"
            return Text(what if is_list else otherwise)

    for binding in policy["policy"]["bindings"]:
        role = policy["roles"][binding["role"].removeprefix("projects/PROJECT/roles/")]
        expression = binding["condition"]["expression"]
        assert expression.count("&&") + expression.count("||") <= 12
        meant = expression.replace("&&", " and ").replace("||", " or ")
        if permission in role["includedPermissions"] and eval(
            meant, {"resource": Resource, "api": Api}
        ):
            return True
    return False


def in_azure(policy: dict[str, Any], action: str, what: str, *, lists: bool = False) -> bool:
    """Whether the assignment allows it: of a listing, `what` is the prefix."""
    if f"{BLOBS}/{action}" not in policy["role"]["DataActions"]:
        return False
    condition = policy["assignment"].get("condition")
    if condition is None:
        return True
    assert policy["assignment"]["conditionVersion"] == "2.0"

    def compared(found: re.Match[str]) -> str:
        # A request that has not the attribute fulfils nothing.
        if (found[1] == "prefix") != lists:
            return "False"
        like = {
            "StringStartsWith": what.startswith,
            "StringEquals": what.__eq__,
            "StringLike": lambda pattern: fnmatch.fnmatchcase(what, pattern),
        }
        return str(bool(like[found[2]](found[3])))

    meant = re.sub(rf"@(?:Resource|Request)\[{BLOBS}:(\w+)\] (\w+) '([^']*)'", compared, condition)
    meant = meant.replace("SubOperationMatches{'Blob.List'}", str(lists))
    meant = re.sub(
        r"ActionMatches\{'([^']*)'\}", lambda found: str(found[1] == f"{BLOBS}/{action}"), meant
    )
    meant = meant.replace("!(", "not (").replace(" AND NOT ", " and not ")
    meant = meant.replace(" AND ", " and ").replace(" OR ", " or ")
    return bool(eval(meant))


#: What S3, Google Cloud Storage and Azure call it.
ACTIONS = {
    "read": ("s3:GetObject", "storage.objects.get", "read"),
    "list": ("s3:ListBucket", "storage.objects.list", "read"),
    "write": ("s3:PutObject", "storage.objects.create", "write"),
    "delete": ("s3:DeleteObject", "storage.objects.delete", "delete"),
}


def may(store: str, policy: dict[str, Any], action: str, what: str) -> bool:
    s3, gcs, azure = ACTIONS[action]
    if store == "s3":
        return in_s3(policy, s3, what)
    if store == "gcs":
        return in_gcs(policy, gcs, what)
    allowed = in_azure(policy, azure, what, lists=action == "list")
    assert action != "write" or in_azure(policy, "add/action", what) == allowed
    return allowed


STORES: dict[str, tuple[Callable[..., dict[str, Any]], str]] = {
    "s3": (s3_policy, S3),
    "gcs": (gcs_policy, GCS),
    "azure": (azure_policy, AZURE),
}


@pytest.mark.parametrize("store", STORES)
def test_a_role_has_its_topics_folders_alone(store: str) -> None:
    make, root = STORES[store]
    for role in (Role.READER, Role.CONSUMER, Role.PRODUCER):
        policy = make(role, root, ["orders", "web.*"])
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
        assert {one for one in allowed | others if may(store, policy, *one)} == allowed, role
    policy = make(Role.ARCHIVER, root, ["orders"])
    for action in ("write", "delete"):
        assert may(store, policy, action, DATA_FILE)
        assert may(store, policy, action, "log/_lakelog_status/part.parquet")
        assert not may(store, policy, action, "log/others/part.parquet")
    admin = make(Role.ADMIN, root.removesuffix("/log"), ["*"])
    assert may(store, admin, "delete", "anything")
    assert may(store, admin, "list", "")


def test_azure_names_the_container_and_needs_no_condition_for_all_of_it() -> None:
    assignment = azure_policy(Role.READER, AZURE, ["orders"])["assignment"]
    end = "storageAccounts/account/blobServices/default/containers/box"
    assert assignment["scope"].endswith(end)
    admin = azure_policy(Role.ADMIN, AZURE.removesuffix("/log"), ["*"])
    assert "condition" not in admin["assignment"]


def test_each_root_has_the_policy_of_its_store(capsys: pytest.CaptureFixture[str]) -> None:
    for cold, name in (("s3://b/log", "s3"), (GCS, "gcs"), (AZURE, "azure"), ("/srv/log", None)):
        made = acl("reader", "orders", cold=cold)
        policies = {one: getattr(made, one) for one in ("s3", "gcs", "azure")}
        assert {one for one, policy in policies.items() if policy} == ({name} if name else set())
        assert main(["acl", "reader", "--topic", "orders", "--cold", cold, "--output", "json"]) == 0
        said = json.loads(capsys.readouterr().out)
        assert said.keys() - {"redis"} == ({name} if name else set())
        assert name is None or said[name] == policies[name]
    for make, root in (
        (s3_policy, "s3://"),
        (gcs_policy, "gs://"),
        (gcs_policy, 'gs://bucket/a"b'),
        (azure_policy, "abfss://container/log"),
        (azure_policy, "abfss://c@a.dfs.core.windows.net/it's"),
    ):
        with pytest.raises(InvalidArgumentError, match="policies are made for"):
            make(Role.READER, root, ["orders"])


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
