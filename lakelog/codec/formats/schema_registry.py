"""A schema registry by Confluent's API, as far as schemas are read from it.

Source: the REST API of Confluent's Schema Registry, which Apicurio and Karapace have as well.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import time
from collections.abc import Iterator
from functools import lru_cache
from typing import Any
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from ...values.topic import Topic
from ...values.value_format import CONFLUENT, Schema, parse_schemas, schemas_text

logger = logging.getLogger(__name__)

#: Where the registry is, with user and password where it wants some.
REGISTRY_VARIABLE = "LAKELOG_SCHEMA_REGISTRY"

_TIMEOUT_S = 3.0
#: How long a registry that did not answer is not asked again: each value would wait for it.
_PAUSE_S = 30.0
#: How often a topic's subjects are looked through.
_AGAIN_S = 60.0


class RegistryError(Exception):
    """A schema cannot be had; says why."""


class SchemaRegistry:
    """The registry at a URL.

    Args:
        url: ``https://[user:password@]host[:port][/path]``.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._headers = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        host = parts.netloc.rpartition("@")[2]
        self.url = urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))
        self._away_until_s = 0.0
        self._schemas: dict[int, Schema | RegistryError] = {}
        self._looked_s: dict[str, float] = {}  # when, by topic

    def schema(self, schema_id: int) -> Schema:
        """A schema, asked for once.

        Raises:
            RegistryError: there is none, or the registry does not answer.
        """
        found = self._schemas.get(schema_id)
        if found is None:
            try:
                found = self._whole(self._get(f"/schemas/ids/{schema_id}"))
            except RegistryError as error:
                found = error
            if self._away_until_s <= time.monotonic():
                self._schemas[schema_id] = found
        if isinstance(found, RegistryError):
            raise found
        return found

    def schemas_of(self, topic: str) -> dict[int, Schema]:
        """The schemas of a topic's subjects: those that begin with its name and a dash.

        Asked for once a minute, and none in between.

        Raises:
            RegistryError: the registry does not answer.
        """
        found: dict[int, Schema] = {}
        now_s = time.monotonic()
        if now_s < self._looked_s.get(topic, -_AGAIN_S) + _AGAIN_S:
            return found
        self._looked_s[topic] = now_s
        for subject in self._get("/subjects"):
            if subject.startswith(f"{topic}-"):
                path = f"/subjects/{quote(subject, safe='')}/versions"
                for version in self._get(path):
                    told = self._get(f"{path}/{version}")
                    found[int(told["id"])] = self._whole(told)
        return found

    def _whole(self, told: Any) -> Schema:
        kind = told.get("schemaType") or "AVRO"
        return Schema(told["schema"], kind, dict(self._references(told)))

    def _references(self, told: Any) -> Iterator[tuple[str, str]]:
        """What it refers to, what those refer to first."""
        for one in told.get("references") or ():
            subject = quote(one["subject"], safe="")
            other = self._get(f"/subjects/{subject}/versions/{one['version']}")
            yield from self._references(other)
            yield one["name"], other["schema"]

    def _get(self, path: str) -> Any:
        from urllib.error import HTTPError, URLError
        from urllib.request import Request, urlopen

        if time.monotonic() < self._away_until_s:
            raise RegistryError(f"the schema registry {self.url} does not answer")
        try:
            with urlopen(
                Request(self.url + path, headers=self._headers), timeout=_TIMEOUT_S
            ) as got:
                return json.load(got)
        except HTTPError as error:
            if error.code == 404:
                raise RegistryError(f"the schema registry {self.url} has none") from None
            self._away_until_s = time.monotonic() + _PAUSE_S
            raise RegistryError(f"the schema registry {self.url} answers {error.code}") from None
        except (URLError, OSError, ValueError) as error:
            self._away_until_s = time.monotonic() + _PAUSE_S
            reason = getattr(error, "reason", error)
            raise RegistryError(
                f"the schema registry {self.url} does not answer ({reason})"
            ) from None


def newest_schemas(topic: Topic) -> str | None:
    """``lakelog.schemas`` with what the registry has of a topic, so that they are kept with it.

    Returns:
        None: there is nothing new, or nothing is asked of a registry.
    """
    config, there = topic.config, registry()
    is_asked = CONFLUENT in (config.value_format.name, config.key_format.name)
    if there is None or not is_asked:
        return None
    try:
        found = there.schemas_of(topic.name)
    except RegistryError as error:
        logger.warning("%s: its schemas are not looked for now: %s", topic.name, error)
        return None
    known = parse_schemas(config.value_format.schemas)
    return schemas_text({**found, **known}) if found.keys() - known.keys() else None


def registry() -> SchemaRegistry | None:
    """The registry that this process was told of."""
    url = os.environ.get(REGISTRY_VARIABLE)
    return _opened(url) if url else None


@lru_cache(4)
def _opened(url: str) -> SchemaRegistry:
    return SchemaRegistry(url)
