"""Where a cold root may lie. All that cannot be one is refused here, before anything is opened."""

from __future__ import annotations

import os
import re

from ...base.local_path import path_or_url
from ...errors import ColdTierRefusedError, InvalidArgumentError
from .object_store import S3, Azure, Gcs, ObjectStore


def resolve_root(root: str) -> tuple[str, ObjectStore | None]:
    """The absolute path or the URL that is meant, and the object store of a URL.

    Raises:
        InvalidArgumentError: it is mistyped; or a URL that is not a store's, has credentials in it
            (the message does not repeat them), or characters that the libraries write differently.
        ColdTierError: no Delta commit can be made there.
    """
    path = path_or_url(root, "cold root")
    if "://" in path:
        return path, _object_store(path)
    if path.startswith(("/Volumes/", "/dbfs/")) or path in ("/Volumes", "/dbfs"):
        raise ColdTierRefusedError(
            f"{root} is storage of a Databricks workspace (a volume, DBFS), where no Delta commit "
            "can be made (it has no atomic rename). Use the URL of an external location (s3://, "
            "abfss://, gs://)",
            path=root,
        )
    if "%" in path or "\\" in path:  # delta-rs decodes the path twice and looks elsewhere: tried
        raise ColdTierRefusedError(
            f"delta-rs cannot open paths with '%' or a backslash, such as {path}; choose another",
            path=path,
        )
    return path, None


def check_lasts(path: str, name: str) -> None:
    """Refuse what a user of Databricks rarely means: a folder that is lost with the cluster.

    Args:
        path: as it was given.
        name: of the argument, for the message.
    """
    relative = ":/" not in path and not path.startswith("/")
    if relative and "DATABRICKS_RUNTIME_VERSION" in os.environ:
        raise InvalidArgumentError(
            f"{name}={path!r} would be a folder on the driver's own disk, which is lost with the "
            "cluster. On Databricks give 'catalog.schema', for tables by name; a folder's URL, "
            "such as 'abfss://container@account.dfs.core.windows.net/lakelog' or "
            "'s3://bucket/lakelog'; or, for a log that may be lost, a path that begins with '/', "
            "such as '/local_disk0/lakelog'",
            name=name,
            value=path,
        )


def _object_store(url: str) -> ObjectStore:
    scheme, _, rest = url.partition("://")
    authority, _, path = rest.partition("/")
    if scheme == "abfss":
        found = re.fullmatch(r"([\w$-]+)@([a-z0-9]+)\.([\w.-]+)", authority)
        wanted = "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/FOLDER"
    else:
        found = re.fullmatch(r"([\w.-]+)", authority)
        wanted = f"{scheme}://BUCKET/FOLDER, without credentials"
    # delta-rs encodes a blank or a percent sign twice when it looks for checkpoints: tried.
    if found is None or not re.fullmatch(r"[\w.~=+@,:/-]*", path, re.ASCII):
        raise InvalidArgumentError(
            f"a {scheme}:// cold root is written {wanted}, of letters, digits and -_.~=+@,: only"
        )
    if scheme == "abfss":
        return Azure(*found.groups())
    return S3(found[1]) if scheme == "s3" else Gcs(found[1])
