"""What a role may do below a cold root in an object store, as S3, Google and Azure say it. Pure.

| role             | reads and lists            | writes                      | deletes    |
|------------------|----------------------------|-----------------------------|------------|
| reader, consumer | its topics' folders        |                             |            |
| producer         | its topics' folders        | the Delta log in them: a    |            |
|                  |                            | reservation is a commit     |            |
| archiver         | its topics' folders, the   | the same                    | the same   |
|                  | tables of runs and groups  |                             |            |
| admin            | the root                   | the root                    | the root   |

A commit is a write that fails where the object is there already (in S3 and Azure by
``If-None-Match``, in Google Cloud Storage by the generation 0): in none of them a right of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from ...errors import InvalidArgumentError
from ...values.topic import GROUPS_TABLE, STATUS_TABLE
from .redis_rules import Role


class ColdRights(Struct, frozen=True):
    """The rights of one role, by the names of objects.

    Args:
        bucket: its name; in Azure ``container@account…``.
        folders: what it reads and lists, each ending in ``/`` or empty for the whole bucket; a
            ``*`` stands for any rest of a name.
        reserves: whether it writes in the Delta logs below them.
        changes: whether it writes and deletes anything below them.
    """

    bucket: str
    folders: tuple[str, ...]
    reserves: bool
    changes: bool

    @property
    def prefixes(self) -> tuple[str, ...]:
        """Without stars: what the names of all objects below each folder begin with."""
        return tuple(folder.partition("*")[0] for folder in self.folders)


def cold_rights(
    role: Role, root: str, topics: Iterable[str], schemes: Iterable[str], wanted: str
) -> ColdRights:
    """The rights of a role under a root.

    Args:
        topics: names; ``web.*`` for all that begin with ``web.``.
        schemes: those of the store.
        wanted: what a root there looks like.

    Raises:
        InvalidArgumentError: the root is none in that store.
    """
    parts = urlsplit(root)
    prefix = "".join(f"{part}/" for part in parts.path.split("/") if part)
    if parts.scheme not in schemes or not parts.netloc or set(prefix) & set("*?\"'\\"):
        raise InvalidArgumentError(
            f"{root} is no root that a policy can name; policies are made for {wanted}, without "
            "stars, question marks, quotes and backslashes",
            name="cold",
            value=root,
        )
    topics = tuple(topics)
    if role is Role.ADMIN:
        folders = [prefix]
    elif role is Role.ARCHIVER:
        folders = [f"{prefix}{name}/" for name in (*topics, STATUS_TABLE, GROUPS_TABLE)]
    else:
        folders = [f"{prefix}{name}/" for name in topics]
    return ColdRights(
        parts.netloc,
        tuple(folders),
        reserves=role is Role.PRODUCER,
        changes=role in (Role.ARCHIVER, Role.ADMIN),
    )


# -- S3 ----------------------------------------------------------------------------------------


def s3_policy(role: Role, root: str, topics: Iterable[str]) -> dict[str, Any]:
    """The policy document of AWS.

    Args:
        root: the cold root, ``s3://bucket/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in S3.
    """
    rights = cold_rights(role, root, topics, ("s3", "s3a"), "s3://bucket/path")
    folders = rights.folders
    bucket = f"arn:aws:s3:::{rights.bucket}"
    objects = [f"{bucket}/{folder}*" for folder in folders]
    listed = [text for folder in folders for text in (folder.rstrip("/"), f"{folder}*") if text]
    statements = [
        _statement(
            "List",
            ["s3:ListBucket"],
            [bucket],
            {} if listed == ["*"] else {"StringLike": {"s3:prefix": listed}},
        ),
        _statement("Read", ["s3:GetObject"], objects),
    ]
    if rights.reserves:
        logs = [f"{bucket}/{folder}*/_delta_log/*" for folder in folders]
        statements.append(_statement("Reserve", ["s3:PutObject"], logs))
    elif rights.changes:
        changes = ["s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"]
        statements.append(_statement("Change", changes, objects))
    return {"Version": "2012-10-17", "Statement": statements}


def _statement(
    name: str,
    actions: Sequence[str],
    resources: Sequence[str],
    condition: dict[str, Any] | None = None,
) -> dict[str, Any]:
    allowed = {"Sid": name, "Effect": "Allow", "Action": actions, "Resource": resources}
    return {**allowed, "Condition": condition} if condition else allowed


# -- Google Cloud Storage ----------------------------------------------------------------------

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

    The policy is of version 3, which needs uniform bucket-level access. Each custom role is granted
    under a condition, folder by folder, since a condition holds few operators. A listing is a
    request to the bucket, whose prefix the condition asks for. ``storage.objects.create`` alone
    writes no object that is there: a producer commits with it, and cannot write over a commit.

    Args:
        root: the cold root, ``gs://bucket/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in Google Cloud Storage.
    """
    rights = cold_rights(role, root, topics, ("gs",), "gs://bucket/path")
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


# -- Azure -------------------------------------------------------------------------------------

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_READ, _WRITE, _ADD = f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action"
_DELETE = f"{_BLOBS}/delete"
_PATH, _PREFIX = f"@Resource[{_BLOBS}:path]", f"@Request[{_BLOBS}:prefix]"
_LISTING = "SubOperationMatches{'Blob.List'}"
_WANTED = "abfss://container@account.dfs.core.windows.net/path"


def azure_policy(role: Role, root: str, topics: Iterable[str]) -> dict[str, Any]:
    """A role definition and its assignment; SUBSCRIPTION, GROUP, PRINCIPAL are to be filled in.

    The assignment is on the container, under a condition on the paths of blobs (attribute-based
    access control, version 2.0). Reading and listing are one action there, told apart by a
    suboperation: a listing has no path, but a prefix.

    Args:
        root: the cold root, ``abfss://container@account.dfs.core.windows.net/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in Azure.
    """
    rights = cold_rights(role, root, topics, ("abfss",), _WANTED)
    container, _, account = rights.bucket.partition("@")
    if not container or not account:
        raise InvalidArgumentError(
            f"{root} names no container and account; policies are made for {_WANTED}",
            name="cold",
            value=root,
        )
    written: Sequence[str] = ()
    clauses = [
        _clause(f"ActionMatches{{'{_READ}'}} AND NOT {_LISTING}", _below(_PATH, rights.prefixes)),
        _clause(f"ActionMatches{{'{_READ}'}} AND {_LISTING}", _below(_PREFIX, rights.prefixes)),
    ]
    if rights.reserves:
        written = (_WRITE, _ADD)
        logs = [f"{_PATH} StringLike '{folder}*/_delta_log/*'" for folder in rights.folders]
        clauses += [_clause(f"ActionMatches{{'{action}'}}", logs) for action in written]
    elif rights.changes:
        written = (_WRITE, _ADD, _DELETE)
        below = _below(_PATH, rights.prefixes)
        clauses += [_clause(f"ActionMatches{{'{action}'}}", below) for action in written]
    is_whole = "" in rights.prefixes  # then nothing is left to be told apart
    in_group = "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP"
    stored = f"{in_group}/providers/Microsoft.Storage/storageAccounts/{account.partition('.')[0]}"
    assignment = {
        "scope": f"{stored}/blobServices/default/containers/{container}",
        "principalId": "PRINCIPAL",
    }
    if not is_whole or rights.reserves:
        chosen = clauses[2:] if is_whole else clauses
        assignment |= {"condition": " AND ".join(chosen), "conditionVersion": "2.0"}
    name = f"lakelog {role.value}"
    definition = {
        "Name": name,
        "IsCustom": True,
        "Description": f"What a {role.value} of lakelog does with a cold root",
        "Actions": [],
        "DataActions": [_READ, *written],
        "AssignableScopes": [in_group],
    }
    return {"role": definition, "assignment": assignment}


def _below(attribute: str, prefixes: Iterable[str]) -> list[str]:
    """That an attribute lies in one of the folders, or is one."""
    found = []
    for prefix in prefixes:
        found.append(f"{attribute} StringStartsWith '{prefix}'")
        if prefix.endswith("/"):
            found.append(f"{attribute} StringEquals '{prefix[:-1]}'")
    return found


def _clause(actions: str, allowed: Iterable[str]) -> str:
    """A condition that leaves other actions alone."""
    return f"((!({actions})) OR ({' OR '.join(allowed)}))"
