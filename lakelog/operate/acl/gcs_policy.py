"""The rights of a role below a cold root in Google Cloud Storage; see `cold_rights`.

Custom roles with the permissions, and the bindings of the bucket's policy (version 3: it needs
uniform bucket-level access) that grant each of them under a condition. There is a binding for each
folder, since a condition holds few operators. A listing is a request to the bucket, whose prefix
the condition asks for.

``storage.objects.create`` alone writes no object that is there: a producer commits with it, and
cannot write over a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from .cold_rights import ColdRights, cold_rights
from .role import Role

SCHEMES = ("gs",)

#: By the id of the custom role.
_PERMISSIONS = {
    "lakelogRead": ("storage.objects.get", "storage.objects.list"),
    "lakelogReserve": ("storage.objects.create",),
    "lakelogChange": (
        *("storage.objects.create", "storage.objects.delete"),
        *("storage.multipartUploads.create", "storage.multipartUploads.abort"),
        "storage.multipartUploads.listParts",
    ),
}


def gcs_policy(role: Role, root: str, topics: Iterable[str]) -> dict[str, Any]:
    """Roles, and the bindings of the bucket's policy; PROJECT and MEMBER are to be filled in.

    Args:
        root: the cold root, ``gs://bucket/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in Google Cloud Storage.
    """
    rights = cold_rights(role, root, topics, SCHEMES, "gs://bucket/path")
    bindings = list(_bindings(rights))
    used = {binding["role"].rpartition("/")[2] for binding in bindings}
    roles = {
        name: {"title": name, "includedPermissions": list(permissions), "stage": "GA"}
        for name, permissions in _PERMISSIONS.items()
        if name in used
    }
    return {"bucket": rights.bucket, "roles": roles, "policy": {"version": 3, "bindings": bindings}}


def _bindings(rights: ColdRights) -> Iterator[dict[str, Any]]:
    objects = f"projects/_/buckets/{rights.bucket}/objects/"
    for folder, prefix in zip(rights.folders, rights.prefixes, strict=True):
        place = folder or "the bucket"
        below = f'resource.name.startsWith("{objects}{prefix}")'
        asked = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "")'
        listed = [f'{asked}.startsWith("{prefix}")']
        listed += [f'{asked} == "{prefix[:-1]}"'] if prefix.endswith("/") else []
        is_bucket = 'resource.type == "storage.googleapis.com/Bucket"'
        read = f"{below} || ({is_bucket} && ({' || '.join(listed)}))"
        yield _binding("lakelogRead", f"read {place}", read)
        if rights.reserves:
            # What stands between a topic's folder and its log: the topic's id.
            between = f'resource.name.extract("/objects/{prefix}{{any}}/_delta_log/") != ""'
            yield _binding("lakelogReserve", f"reserve in {place}", f"{below} && {between}")
        elif rights.changes:
            yield _binding("lakelogChange", f"change {place}", below)


def _binding(role: str, title: str, expression: str) -> dict[str, Any]:
    members: Sequence[str] = ["MEMBER"]
    condition = {"title": title, "expression": expression}
    return {"role": f"projects/PROJECT/roles/{role}", "members": members, "condition": condition}
