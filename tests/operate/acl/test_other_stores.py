"""What the conditions for Google Cloud Storage and Azure allow, by the published rules of each.

No service judges them here: the expressions are read as their documentation says.
"""

from __future__ import annotations

import fnmatch
import json
import re
from typing import Any

import pytest

from lakelog.cli.main import main
from lakelog.errors import InvalidArgumentError
from lakelog.operate.acl.acl import acl
from lakelog.operate.acl.redis_rules import Role
from lakelog.operate.acl.store_policies import azure_policy, gcs_policy

GCS, AZURE = "gs://bucket/log", "abfss://box@account.dfs.core.windows.net/log"
LOG_FILE, DATA_FILE = "log/orders/id/_delta_log/0.json", "log/orders/id/part.parquet"
BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"


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


def test_in_google_cloud_storage_a_role_has_its_topics_folders_alone() -> None:
    for role in (Role.READER, Role.CONSUMER, Role.PRODUCER):
        policy = gcs_policy(role, GCS, ["orders", "web.*"])
        assert in_gcs(policy, "storage.objects.get", DATA_FILE)
        assert in_gcs(policy, "storage.objects.get", "log/web.clicks/id/part.parquet")
        assert not in_gcs(policy, "storage.objects.get", "log/orders2/id/part.parquet")
        assert in_gcs(policy, "storage.objects.list", "log/orders/id/_delta_log/")
        assert in_gcs(policy, "storage.objects.list", "log/orders")
        assert not in_gcs(policy, "storage.objects.list", "log/others/")
        assert not in_gcs(policy, "storage.objects.list", "")
        is_producer = role is Role.PRODUCER
        assert in_gcs(policy, "storage.objects.create", LOG_FILE) == is_producer
        clicks = "log/web.clicks/id/_delta_log/0.json"
        assert in_gcs(policy, "storage.objects.create", clicks) == is_producer
        assert not in_gcs(policy, "storage.objects.create", DATA_FILE)
        assert not in_gcs(policy, "storage.objects.create", "log/x/orders/id/_delta_log/0.json")
        assert not in_gcs(policy, "storage.objects.delete", LOG_FILE)
    policy = gcs_policy(Role.ARCHIVER, GCS, ["orders"])
    for permission in ("create", "delete"):
        assert in_gcs(policy, f"storage.objects.{permission}", DATA_FILE)
        assert in_gcs(policy, f"storage.objects.{permission}", "log/_lakelog_status/part.parquet")
        assert not in_gcs(policy, f"storage.objects.{permission}", "log/others/part.parquet")
    admin = gcs_policy(Role.ADMIN, "gs://bucket", ["*"])
    assert in_gcs(admin, "storage.objects.delete", "anything")
    assert in_gcs(admin, "storage.objects.list", "")


def test_in_azure_a_role_has_its_topics_folders_alone() -> None:
    for role in (Role.READER, Role.CONSUMER, Role.PRODUCER):
        policy = azure_policy(role, AZURE, ["orders", "web.*"])
        assert policy["assignment"]["scope"].endswith(
            "storageAccounts/account/blobServices/default/containers/box"
        )
        assert in_azure(policy, "read", DATA_FILE)
        assert in_azure(policy, "read", "log/web.clicks/id/part.parquet")
        assert not in_azure(policy, "read", "log/orders2/id/part.parquet")
        assert in_azure(policy, "read", "log/orders/id/_delta_log/", lists=True)
        assert in_azure(policy, "read", "log/orders", lists=True)
        assert not in_azure(policy, "read", "log/others/", lists=True)
        assert not in_azure(policy, "read", "", lists=True)
        for action in ("write", "add/action"):
            assert in_azure(policy, action, LOG_FILE) == (role is Role.PRODUCER)
            assert not in_azure(policy, action, DATA_FILE)
        assert not in_azure(policy, "delete", LOG_FILE)
    policy = azure_policy(Role.ARCHIVER, AZURE, ["orders"])
    for action in ("write", "add/action", "delete"):
        assert in_azure(policy, action, DATA_FILE)
        assert in_azure(policy, action, "log/_lakelog_status/part.parquet")
        assert not in_azure(policy, action, "log/others/part.parquet")
    admin = azure_policy(Role.ADMIN, AZURE.removesuffix("/log"), ["*"])
    assert "condition" not in admin["assignment"]
    assert in_azure(admin, "delete", "anything")


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
        (gcs_policy, "gs://"),
        (gcs_policy, 'gs://bucket/a"b'),
        (azure_policy, "abfss://container/log"),
        (azure_policy, "abfss://c@a.dfs.core.windows.net/it's"),
    ):
        with pytest.raises(InvalidArgumentError, match="policies are made for"):
            make(Role.READER, root, ["orders"])
