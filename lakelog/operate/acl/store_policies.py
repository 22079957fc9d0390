"""What a role may do below a cold root in S3, as a policy of AWS. Pure.

| role             | reads and lists            | writes                      | deletes    |
|------------------|----------------------------|-----------------------------|------------|
| reader, consumer | its topics' folders        |                             |            |
| producer         | its topics' folders        | the Delta log in them: a    |            |
|                  |                            | reservation is a commit     |            |
| archiver         | its topics' folders, the   | the same                    | the same   |
|                  | tables of runs and groups  |                             |            |
| admin            | the root                   | the root                    | the root   |

A commit is a write that fails where the object is there already (``If-None-Match``): no right of
its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import urlsplit

from ...errors import InvalidArgumentError
from ...values.topic import GROUPS_TABLE, STATUS_TABLE
from .redis_rules import Role


def s3_policy(role: Role, root: str, topics: Iterable[str]) -> dict[str, Any]:
    """The policy document of AWS.

    Args:
        root: the cold root, ``s3://bucket/path``.
        topics: names; ``web.*`` for all that begin with ``web.``.

    Raises:
        InvalidArgumentError: the root is none in S3.
    """
    parts = urlsplit(root)
    prefix = "".join(f"{part}/" for part in parts.path.split("/") if part)
    if parts.scheme not in ("s3", "s3a") or not parts.netloc or set(prefix) & set("*?\"'\\"):
        raise InvalidArgumentError(
            f"{root} is no root that a policy can name; policies are made for s3://bucket/path, "
            "without stars, question marks, quotes and backslashes",
            name="cold",
            value=root,
        )
    names = [*topics, STATUS_TABLE, GROUPS_TABLE] if role is Role.ARCHIVER else topics
    folders = [prefix] if role is Role.ADMIN else [f"{prefix}{name}/" for name in names]
    bucket = f"arn:aws:s3:::{parts.netloc}"
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
    if role is Role.PRODUCER:
        logs = [f"{bucket}/{folder}*/_delta_log/*" for folder in folders]
        statements.append(_statement("Reserve", ["s3:PutObject"], logs))
    elif role in (Role.ARCHIVER, Role.ADMIN):
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
