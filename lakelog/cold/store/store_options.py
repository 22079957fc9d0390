"""The options that open an object store, in delta-rs's spelling, whichever library opens it.

| option                    | store | secret | meaning                                            |
|---------------------------|-------|--------|----------------------------------------------------|
| AWS_ACCESS_KEY_ID         | s3    |        | with the next one: a key                           |
| AWS_SECRET_ACCESS_KEY     | s3    | yes    |                                                    |
| AWS_SESSION_TOKEN         | s3    | yes    | of temporary keys                                  |
| AWS_REGION                | s3    |        | default: asked of the bucket                       |
| AWS_ENDPOINT_URL          | s3    |        | of a store that is not Amazon's                    |
| AZURE_STORAGE_ACCOUNT_KEY | abfss | yes    | of the account in the URL                          |
| AZURE_STORAGE_SAS_TOKEN   | abfss | yes    | instead of a key                                   |
| AZURE_TENANT_ID           | abfss |        | with the next two: a service principal             |
| AZURE_CLIENT_ID           | abfss |        |                                                    |
| AZURE_CLIENT_SECRET       | abfss | yes    |                                                    |
| AZURE_STORAGE_ENDPOINT    | abfss |        | of an emulator                                     |
| CREDENTIALS               | s3,   |        | ``unity-catalog``: short-lived keys, asked of the  |
|                           | abfss |        | Databricks workspace and renewed                   |

Options that are not given are taken from environment variables of the same names. If these hold no
credentials either, each library finds its own (profiles, instance and workload identities).
``gs://`` takes everything from the environment: Arrow cannot be given a Google key.

A value may be a reference (``env:NAME``, ``file:/PATH``, ``databricks:SCOPE/KEY``; see
`secret_reference`), which is resolved in the process that opens the store.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ...base.secret_reference import check_executors_can_resolve, resolve_secret
from ...errors import InvalidArgumentError
from . import unity_catalog
from .unity_catalog import RENEW_BEFORE_MS, Keys

CREDENTIALS = "CREDENTIALS"
UNITY_CATALOG = "unity-catalog"

#: By store: the names of the table above.
NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "s3": (
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "AWS_REGION",
            "AWS_ENDPOINT_URL",
            CREDENTIALS,
        ),
        "abfss": (
            "AZURE_STORAGE_ACCOUNT_KEY",
            "AZURE_STORAGE_SAS_TOKEN",
            "AZURE_TENANT_ID",
            "AZURE_CLIENT_ID",
            "AZURE_CLIENT_SECRET",
            "AZURE_STORAGE_ENDPOINT",
            CREDENTIALS,
        ),
        "gs": (),
    }
)
SECRETS = frozenset(
    {
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AZURE_STORAGE_ACCOUNT_KEY",
        "AZURE_STORAGE_SAS_TOKEN",
        "AZURE_CLIENT_SECRET",
    }
)
#: The options that say who asks. All of them come from one place: a key from one and a token from
#: another open nothing.
IDENTITY = SECRETS | {"AWS_ACCESS_KEY_ID", "AZURE_TENANT_ID", "AZURE_CLIENT_ID"}

#: Given one, these are needed too.
_NEEDS = {
    "AWS_ACCESS_KEY_ID": ("AWS_SECRET_ACCESS_KEY",),
    "AWS_SECRET_ACCESS_KEY": ("AWS_ACCESS_KEY_ID",),
    "AZURE_CLIENT_SECRET": ("AZURE_CLIENT_ID", "AZURE_TENANT_ID"),
}

_ALSO_IN_ENVIRONMENT = {"AWS_REGION": "AWS_DEFAULT_REGION"}
_REFERENCES = ("env:", "file:/", "databricks:")


@dataclass(frozen=True, slots=True, repr=False)
class StoreOptions(Mapping[str, str]):
    """Options as they were given, references unresolved. Hashable; shows no secret.

    Args:
        store: ``s3``, ``abfss``, ``gs``; empty for a folder, which takes none.
        given: by the names of the table above.
        vended: what Unity Catalog is asked for, if it gives the credentials.
    """

    store: str = ""
    given: tuple[tuple[str, str], ...] = ()
    vended: Keys | None = None

    @classmethod
    def of(
        cls, store: str, options: Mapping[str, str] | None, keys: Keys | None = None
    ) -> StoreOptions:
        """The options of a store, checked.

        Args:
            keys: used if the options ask for credentials of Unity Catalog.

        Raises:
            InvalidArgumentError: a name that the store does not take, or contradicting values.
        """
        given = dict(options or {})
        for name, value in given.items():
            if name not in NAMES.get(store, ()):
                _refuse_unknown(store, name)
            if not isinstance(value, str) or not value:
                raise InvalidArgumentError(f"the storage option {name} is empty, or no text")
        if given.get(CREDENTIALS, UNITY_CATALOG) != UNITY_CATALOG:
            raise InvalidArgumentError(
                f"{CREDENTIALS}={given[CREDENTIALS]!r} is not {UNITY_CATALOG!r}; leave it out for "
                "credentials of your own"
            )
        if CREDENTIALS in given and (own := sorted(IDENTITY & given.keys())):
            raise InvalidArgumentError(
                f"{CREDENTIALS}={UNITY_CATALOG} and {own[0]} contradict each other: give one"
            )
        return cls(store, tuple(sorted(given.items())), keys if CREDENTIALS in given else None)

    def resolved(self, lasting_ms: int = RENEW_BEFORE_MS) -> dict[str, str]:
        """What opens the store in this process: given, vended, or from the environment.

        Args:
            lasting_ms: how long vended credentials should last at least.

        Raises:
            InvalidArgumentError: a reference names nothing here, or the environment contradicts.
            MissingExtraError: what it takes to follow a reference, or to log in, is not installed.
            ColdTierError: Unity Catalog gives no credentials.

        Runs on: driver|executor.
        """
        values = {name: _value(name, text) for name, text in self.given if name != CREDENTIALS}
        if self.vended is not None:
            values |= dict(unity_catalog.vended(self.vended, lasting_ms).values)
        foreign = IDENTITY if IDENTITY & values.keys() else frozenset()
        for name in NAMES.get(self.store, ()):
            found = os.environ.get(name) or os.environ.get(_ALSO_IN_ENVIRONMENT.get(name, ""))
            if not found or name in values:
                continue
            if name not in foreign:
                values[name] = found
            elif name == "AWS_SESSION_TOKEN":  # delta-rs takes it all the same: tried
                raise InvalidArgumentError(
                    "AWS_SESSION_TOKEN is in the environment and would be mixed with the key that "
                    "was given. Give it as an option too, or unset it"
                )
        for name in sorted(values.keys() & _NEEDS.keys()):
            for other in _NEEDS[name]:
                if other not in values:
                    raise InvalidArgumentError(
                        f"{name} is there and {other} is not: set both, as storage options or in "
                        "the environment"
                    )
        return values

    def portable(self) -> dict[str, str]:
        """The options in a form that others may read in plans, job parameters and logs.

        Raises:
            InvalidArgumentError: one of them is a secret in clear, or a reference that executors
                cannot resolve.
        """
        for name, value in self.given:
            check_executors_can_resolve(value, f"the storage option {name}")
            if name in SECRETS and not value.startswith(_REFERENCES):
                raise InvalidArgumentError(
                    f"the storage option {name} is a secret in clear, and Spark shows a reader's "
                    "options in plans, event logs and checkpoints. Say where it is instead: "
                    f"{name}=env:VARIABLE, with the variable in the environment of the driver and "
                    "of every executor"
                )
        return dict(self.given)

    def __getitem__(self, name: str) -> str:
        return dict(self.given)[name]

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.given)

    def __len__(self) -> int:
        return len(self.given)

    def __repr__(self) -> str:
        shown = {
            name: "***" if name in SECRETS and not value.startswith(_REFERENCES) else value
            for name, value in self.given
        }
        return repr(shown)


def workspace_options(root: str) -> dict[str, str] | None:
    """What a job on Databricks opens tables at a path with, where the environment does not.

    On Databricks the path lies in an external location, and Unity Catalog gives short-lived keys to
    it. Keys in the environment take precedence, as they do everywhere.

    Args:
        root: a folder or URL, or ``catalog.schema``, which needs none.

    Returns:
        Options for `cold_root`; None where none are needed.
    """
    names = NAMES.get(root.partition("://")[0], ())
    if (
        CREDENTIALS not in names
        or "DATABRICKS_RUNTIME_VERSION" not in os.environ
        or IDENTITY & os.environ.keys()
    ):
        return None
    return {CREDENTIALS: UNITY_CATALOG}


def parse_options(texts: Iterable[str]) -> dict[str, str]:
    """The options in ``NAME=VALUE`` texts of a command line.

    Raises:
        InvalidArgumentError: one is no such text, or a secret in clear, which every user of the
            machine sees in its list of processes.
    """
    options = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise InvalidArgumentError(
                f"--storage-option {name} has no value; write NAME=VALUE, such as "
                "AWS_ENDPOINT_URL=https://host:9000"
            )
        if name in SECRETS and not value.startswith(_REFERENCES):
            raise InvalidArgumentError(
                f"--storage-option {name}=… would show a secret to all who list processes. Set "
                f"the environment variable {name}, or write {name}=env:VARIABLE"
            )
        options[name] = value
    return options


def _value(name: str, text: str) -> str:
    if not text.startswith(_REFERENCES):
        return text
    return (
        _resolve_once(text, name) if text.startswith("databricks:") else resolve_secret(text, name)
    )


#: A workspace is not asked for the same secret for each file.
_resolve_once = functools.lru_cache(maxsize=64)(resolve_secret)


def _refuse_unknown(store: str, name: str) -> None:
    if not store:
        raise InvalidArgumentError(
            f"a folder takes no storage options such as {name}; they are for s3:// and abfss://"
        )
    if store == "gs":
        raise InvalidArgumentError(
            f"gs:// takes no storage options such as {name}: set GOOGLE_APPLICATION_CREDENTIALS to "
            "the path of a key file, in the environment of the driver and of every executor"
        )
    import difflib

    near = difflib.get_close_matches(name.upper(), NAMES[store], n=2, cutoff=0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"legal: {', '.join(NAMES[store])}"
    raise InvalidArgumentError(f"{store}:// takes no storage option {name!r}; {hint}")
