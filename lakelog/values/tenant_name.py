"""What a tenant may be called, and what its keyspace, its folder and its schema are called by it.

| | of a log in | of its tenant ``acme`` |
|---|---|---|
| keyspace | ``lakelog`` | ``lakelog.acme`` |
| cold root | ``s3://bucket/log`` | ``s3://bucket/log/acme`` |
| schema | ``main.logs`` | ``main.logs_acme`` |

A name is a label as of a host: with no dot, no underscore and one case, so that no two tenants meet
in a keyspace, a folder or a catalog.
"""

from __future__ import annotations

import re

from ..errors import InvalidArgumentError

#: The tenant for all topics that are nobody's own, in a root of tenants. Made when first used.
SHARED = "shared"

MAX_NAME_LENGTH = 63  # RFC 1123
_LEGAL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


def check_tenant_name(name: str) -> str:
    """The name, if a tenant can have it.

    Raises:
        InvalidArgumentError: other than [a-z0-9-], with a hyphen at an end, or longer than 63.
    """
    if not isinstance(name, str) or len(name) > MAX_NAME_LENGTH or not _LEGAL.fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} is not a legal name of a tenant: use up to {MAX_NAME_LENGTH} lower-case "
            "letters, digits and hyphens, with a letter or a digit at both ends",
            name="tenant",
            value=name,
        )
    return name


def tenant_keyspace(keyspace: str, tenant: str) -> str:
    """The keyspace of a tenant of the log in a keyspace."""
    return f"{keyspace}.{tenant}"


def tenant_schema(schema: str, tenant: str) -> str:
    """The ``catalog.schema`` of a tenant of the log in a schema."""
    return f"{schema}_{tenant.replace('-', '_')}"
