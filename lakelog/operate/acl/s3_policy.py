"""The rights of a role below a cold root in S3, as a policy document of AWS; see `cold_rights`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .cold_rights import cold_rights
from .role import Role

SCHEMES = ("s3", "s3a")


def s3_policy(role: Role, root: str, topics: Iterable[str]) -> dict[str, Any]:
    """The policy document.

    Args:
        root: the cold root, ``s3://bucket/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in S3.
    """
    rights = cold_rights(role, root, topics, SCHEMES, "s3://bucket/path")
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
