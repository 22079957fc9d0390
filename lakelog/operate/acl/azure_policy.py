"""The rights of a role below a cold root in Azure's blob storage; see `cold_rights`.

A role of its own with the actions on data, and its assignment on the container, under a condition
on the paths of blobs (attribute-based access control, version 2.0). Reading and listing are one
action there, told apart by a suboperation: a listing has no path, but a prefix.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import InvalidArgumentError
from .cold_rights import cold_rights
from .role import Role

SCHEMES = ("abfss",)

_BLOBS = "Microsoft.Storage/storageAccounts/blobServices/containers/blobs"
_READ, _WRITE, _ADD = f"{_BLOBS}/read", f"{_BLOBS}/write", f"{_BLOBS}/add/action"
_DELETE = f"{_BLOBS}/delete"
_PATH, _PREFIX = f"@Resource[{_BLOBS}:path]", f"@Request[{_BLOBS}:prefix]"
_LISTING = "SubOperationMatches{'Blob.List'}"
_WANTED = "abfss://container@account.dfs.core.windows.net/path"


def azure_policy(role: Role, root: str, topics: Iterable[str]) -> dict[str, Any]:
    """A role definition and its assignment; SUBSCRIPTION, GROUP, PRINCIPAL are to be filled in.

    Args:
        root: the cold root, ``abfss://container@account.dfs.core.windows.net/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in Azure.
    """
    rights = cold_rights(role, root, topics, SCHEMES, _WANTED)
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
