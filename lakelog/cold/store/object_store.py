"""Where a cold root may lie, and how delta-rs, Arrow and Spark are set up for each object store.

Each class is one bucket or container, with what the three need for it: `arrow_path` is a place in
it as Arrow's file system takes it, `arrow` is that file system, `delta` gives delta-rs's storage
options, and `spark` gives Hadoop's settings as options of a DataFrame reader. `values` are
`StoreOptions.resolved`.

All of them try again with growing pauses when the store is busy or away (500, 503 SlowDown, 429, a
broken connection), for about a minute. Then they give the store's own error.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, Union
from urllib.parse import urlsplit

import pyarrow as pa
from msgspec import Struct

from ...base.local_path import path_or_url
from ...errors import ColdTierRefusedError, InvalidArgumentError

if TYPE_CHECKING:
    import pyarrow.fs as pafs


#: delta-rs: pauses of 0.1, 0.2, 0.4 … seconds.
DELTA_RETRIES = {
    "max_retries": "10",
    "retry_timeout": "60s",
    "backoff_config.init_backoff": "100ms",
    "backoff_config.max_backoff": "10s",
}

#: Azure's secrets that Arrow does not look for in the environment.
SECRETS_ALONE = ("AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN")

#: Arrow on S3: pauses of up to 1, 2, 4 … 20 seconds.
S3_ATTEMPTS = 8


class S3(Struct, frozen=True):
    """Amazon S3, or a store with the same API that knows ``If-None-Match``."""

    bucket: str
    scheme: str = "s3"

    def arrow_path(self, url: str) -> str:
        return url.partition("://")[2]

    def delta(self, values: Mapping[str, str]) -> dict[str, str]:
        endpoint = values.get("AWS_ENDPOINT_URL", "")
        return {
            **DELTA_RETRIES,
            **values,
            **self._region(values),
            "AWS_ALLOW_HTTP": str(endpoint.startswith("http://")).lower(),
            # A commit is a PUT that the store refuses if the version is there. This is the default,
            # but an environment variable could turn it off.
            "AWS_CONDITIONAL_PUT": "etag",
        }

    def arrow(self, values: Mapping[str, str]) -> pafs.FileSystem:
        import pyarrow.fs as pafs

        endpoint = urlsplit(values.get("AWS_ENDPOINT_URL", ""))
        opened = functools.partial(
            pafs.S3FileSystem,
            access_key=values.get("AWS_ACCESS_KEY_ID"),
            secret_key=values.get("AWS_SECRET_ACCESS_KEY"),
            session_token=values.get("AWS_SESSION_TOKEN"),
            region=self._region(values).get("AWS_REGION"),
            scheme=endpoint.scheme or "https",
            endpoint_override=endpoint.netloc + endpoint.path.rstrip("/") or None,
            retry_strategy=pafs.AwsStandardS3RetryStrategy(max_attempts=S3_ATTEMPTS),
        )
        try:
            return opened(allow_delayed_open=True)  # a small file is one request instead of three
        except TypeError:  # an older pyarrow
            return opened()

    def spark(self, values: Mapping[str, str]) -> dict[str, str]:
        a3 = "org.apache.hadoop.fs.s3a"
        conf = {"fs.s3.impl": f"{a3}.S3AFileSystem"}
        if region := self._region(values).get("AWS_REGION"):
            conf["fs.s3a.endpoint.region"] = region
        if endpoint := values.get("AWS_ENDPOINT_URL"):
            conf["fs.s3a.endpoint"] = endpoint
            conf["fs.s3a.path.style.access"] = "true"
            conf["fs.s3a.connection.ssl.enabled"] = str(endpoint.startswith("https:")).lower()
        if "AWS_SECRET_ACCESS_KEY" in values:
            temporary = "AWS_SESSION_TOKEN" in values
            provider = f"{'Temporary' if temporary else 'Simple'}AWSCredentialsProvider"
            conf["fs.s3a.aws.credentials.provider"] = f"{a3}.{provider}"
            conf["fs.s3a.access.key"] = values["AWS_ACCESS_KEY_ID"]
            conf["fs.s3a.secret.key"] = values["AWS_SECRET_ACCESS_KEY"]
            if temporary:
                conf["fs.s3a.session.token"] = values["AWS_SESSION_TOKEN"]
        return conf

    def _region(self, values: Mapping[str, str]) -> dict[str, str]:
        """One region for all libraries: without it, each would choose its own default."""
        region = values.get("AWS_REGION") or (
            "us-east-1" if "AWS_ENDPOINT_URL" in values else _region_of(self.bucket)
        )
        return {"AWS_REGION": region} if region else {}


@functools.lru_cache(maxsize=64)
def _region_of(bucket: str) -> str | None:
    """Amazon tells anybody where a bucket is."""
    import pyarrow.fs as pafs

    try:
        return str(pafs.resolve_s3_region(bucket))
    except (OSError, ValueError):
        return None


class Azure(Struct, frozen=True):
    """A container of Azure Data Lake Storage."""

    container: str
    account: str
    host: str  # dfs.core.windows.net
    scheme: str = "abfss"

    def arrow_path(self, url: str) -> str:
        return self.container + urlsplit(url).path

    def delta(self, values: Mapping[str, str]) -> dict[str, str]:
        options = {**DELTA_RETRIES, **values, "AZURE_STORAGE_ACCOUNT_NAME": self.account}
        if endpoint := options.get("AZURE_STORAGE_ENDPOINT"):
            options["allow_http"] = str(endpoint.startswith("http://")).lower()
        return options

    def arrow(self, values: Mapping[str, str]) -> pafs.FileSystem:
        import pyarrow.fs as pafs

        given: dict[str, Any] = {
            argument: values[name]
            for argument, name in (
                ("account_key", "AZURE_STORAGE_ACCOUNT_KEY"),
                ("sas_token", "AZURE_STORAGE_SAS_TOKEN"),
                ("tenant_id", "AZURE_TENANT_ID"),
                ("client_id", "AZURE_CLIENT_ID"),
                ("client_secret", "AZURE_CLIENT_SECRET"),
            )
            # Arrow finds an identity of the environment by itself, older versions too.
            if name in values and (name in SECRETS_ALONE or values[name] != os.environ.get(name))
        }
        if endpoint := values.get("AZURE_STORAGE_ENDPOINT"):
            parts = urlsplit(endpoint)
            for service in ("blob", "dfs"):
                given[f"{service}_storage_authority"] = parts.netloc
                given[f"{service}_storage_scheme"] = parts.scheme
        try:
            return pafs.AzureFileSystem(self.account, **given)
        except TypeError as error:  # older versions know only account keys and identities
            raise ColdTierRefusedError(
                f"pyarrow {pa.__version__} cannot open Azure with {', '.join(sorted(given))}: use "
                "a newer pyarrow, an account key, or an identity of the machine"
            ) from error

    def spark(self, values: Mapping[str, str]) -> dict[str, str]:
        at = f"{self.account}.{self.host}"
        oauth = "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider"
        if key := values.get("AZURE_STORAGE_ACCOUNT_KEY"):
            return {f"fs.azure.account.key.{at}": key}
        if token := values.get("AZURE_STORAGE_SAS_TOKEN"):
            return {
                f"fs.azure.account.auth.type.{at}": "SAS",
                f"fs.azure.sas.fixed.token.{at}": token.lstrip("?"),
            }
        if "AZURE_CLIENT_SECRET" in values:
            login = f"https://login.microsoftonline.com/{values['AZURE_TENANT_ID']}/oauth2/token"
            return {
                f"fs.azure.account.auth.type.{at}": "OAuth",
                f"fs.azure.account.oauth.provider.type.{at}": oauth,
                f"fs.azure.account.oauth2.client.endpoint.{at}": login,
                f"fs.azure.account.oauth2.client.id.{at}": values["AZURE_CLIENT_ID"],
                f"fs.azure.account.oauth2.client.secret.{at}": values["AZURE_CLIENT_SECRET"],
            }
        return {}


class Gcs(Struct, frozen=True):
    """Google Cloud Storage; credentials come from the environment alone."""

    bucket: str
    scheme: str = "gs"

    def arrow_path(self, url: str) -> str:
        return url.partition("://")[2]

    def delta(self, values: Mapping[str, str]) -> dict[str, str]:
        return dict(DELTA_RETRIES)

    def arrow(self, values: Mapping[str, str]) -> pafs.FileSystem:
        import pyarrow.fs as pafs

        return pafs.GcsFileSystem()

    def spark(self, values: Mapping[str, str]) -> dict[str, str]:
        return {"fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem"}


ObjectStore: TypeAlias = Union[S3, Azure, Gcs]  # noqa: UP007 - an alias at run time, on Python 3.10


@functools.lru_cache(maxsize=32)
def arrow_filesystem(store: ObjectStore, values: frozenset[tuple[str, str]]) -> pafs.FileSystem:
    """One for each store and process, since it holds the connections."""
    try:
        return store.arrow(dict(values))
    except (pa.ArrowException, AttributeError, OSError, ValueError) as error:
        raise ColdTierRefusedError(
            f"pyarrow {pa.__version__} cannot open {store.scheme}://: {error}"
        ) from error


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
