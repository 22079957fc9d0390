"""Topics declared in YAML files, and what it takes to make the keyspace match them.

One file declares one topic or a list of them::

    name: orders
    partitions: 4
    config:
      retention.ms: 604800000
      cleanup.policy: delete

Applying is idempotent: settings that are not declared go back to their defaults (the keyspace's, if
it sets them), partitions only grow, and topics that no file declares are left alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from ..config import TopicConfig, parse, setting, text_of
from ..errors import ApplyFailedError, InvalidConfigError, InvalidTopicError, LakelogError, by_topic
from ..keyspace_defaults import KeyspaceDefaults
from ..topic import Topic, check_topic_name
from .registry import TopicRegistry

_FIELDS = {"name", "partitions", "config"}


@dataclass(frozen=True, slots=True)
class DeclaredTopic:
    """What a file says a topic should be."""

    name: str
    partitions: int
    settings: tuple[tuple[str, str], ...]  # legal one by one; together only the keyspace can tell
    source: str  # the file, for messages


@dataclass(frozen=True, slots=True)
class TopicChange:
    """One difference between a declaration and the keyspace."""

    topic: str
    action: str  # create, add partitions, alter
    setting: str | None = None
    before: str | None = None  # None: the default, or nothing
    after: str | None = None

    def __str__(self) -> str:
        if self.action == "create":
            return f"+ {self.topic}: create with {self.after}"
        if self.action == "add partitions":
            return f"~ {self.topic}: partitions {self.before} → {self.after}"
        before = "(default)" if self.before is None else self.before
        after = "(default)" if self.after is None else self.after
        return f"~ {self.topic}: {self.setting} {before} → {after}"


def load_declared(paths: Iterable[str | Path]) -> list[DeclaredTopic]:
    """The topics that files declare; of a folder, its ``*.yml`` and ``*.yaml`` in name order.

    Raises:
        InvalidConfigError, InvalidTopicError: a file says something illegal; names the file.
        InvalidConfigError: no file there, or two declare the same topic.
    """
    declared: dict[str, DeclaredTopic] = {}
    for path in paths:
        for file in _files(Path(path)):
            for topic in _parse(file):
                other = declared.get(topic.name)
                if other is not None:
                    raise InvalidConfigError(
                        f"topic {topic.name!r} is declared in {other.source} and in {file}; "
                        "remove one of them",
                        name=topic.name,
                    )
                declared[topic.name] = topic
    return list(declared.values())


def diff(declared: DeclaredTopic, existing: Topic | None) -> list[TopicChange]:
    """What applying the declaration would change.

    Raises:
        InvalidTopicError: the topic has more partitions than declared.
    """
    name = declared.name
    if existing is None:
        settings = "".join(f", {key}={value}" for key, value in declared.settings)
        return [TopicChange(name, "create", after=f"{declared.partitions} partitions{settings}")]
    if declared.partitions < existing.partitions:
        raise InvalidTopicError(
            f"{declared.source}: topic {name!r} has {existing.partitions} partitions and cannot "
            f"shrink to {declared.partitions}",
            topic=name,
        )
    changes = []
    if declared.partitions > existing.partitions:
        before, after = str(existing.partitions), str(declared.partitions)
        changes.append(TopicChange(name, "add partitions", before=before, after=after))
    old, new = dict(existing.config.overrides), dict(declared.settings)
    changes += [
        TopicChange(name, "alter", key, old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]
    return changes


def apply(
    registry: TopicRegistry, declared: Iterable[DeclaredTopic], *, dry_run: bool = False
) -> list[TopicChange]:
    """Makes the keyspace match the declarations and returns what was (or would be) changed.

    All declarations are compared before the first is applied: nothing is changed while one of them
    cannot hold. After that a topic that fails does not stop the others. Topics that match are
    repaired, in case an earlier change was cut short.

    Raises:
        ApplyFailedError: settings contradict each other or the keyspace's defaults, a topic has
            more partitions than declared, or a change failed; every error is in it, and every
            change that was made.
    """
    declared = list(declared)
    defaults = KeyspaceDefaults(tuple(registry.defaults().items())).for_topics
    existing = {topic.name: topic for topic in registry.list()}
    changes: dict[str, list[TopicChange]] = {}
    errors: dict[str, LakelogError] = {}
    for topic in declared:
        try:
            with _naming(topic.source):
                TopicConfig(topic.settings, defaults)
            changes[topic.name] = diff(topic, existing.get(topic.name))
        except LakelogError as error:
            errors[topic.name] = error
    if errors:
        raise ApplyFailedError(
            f"nothing was changed: {by_topic(errors)}. Mend the files and apply them again",
            changes=(),
            errors=errors,
        )
    if dry_run:
        return [change for topic in declared for change in changes[topic.name]]
    made: list[TopicChange] = []
    for topic in declared:
        try:
            before = existing.get(topic.name)
            made.extend(_applied(registry, topic, before, changes[topic.name]))
        except LakelogError as error:
            errors[topic.name] = error
    if errors:
        raise ApplyFailedError(
            f"not all topics are as declared, the others are: {by_topic(errors)}. Apply the files "
            "again when that is mended; what is done is not done twice",
            changes=made,
            errors=errors,
        )
    return made


def _applied(
    registry: TopicRegistry,
    declared: DeclaredTopic,
    existing: Topic | None,
    changes: list[TopicChange],
) -> Iterator[TopicChange]:
    """Makes the changes, and gives each when it is made."""
    if existing is None:
        registry.create(declared.name, declared.partitions, dict(declared.settings))
        yield from changes
        return
    if not changes:
        registry.repair(existing)
    if declared.partitions > existing.partitions:
        registry.add_partitions(declared.name, declared.partitions)
        yield from (change for change in changes if change.setting is None)
    settings = {change.setting: change.after for change in changes if change.setting}
    if settings:
        registry.alter(declared.name, settings)
        yield from (change for change in changes if change.setting is not None)


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(file for file in path.iterdir() if file.suffix in {".yml", ".yaml"})
    if path.is_file():
        return [path]
    raise InvalidConfigError(
        f"there is no file or folder {path}; give YAML files that declare topics, such as "
        "conf/topics/",
        name=str(path),
    )


def _parse(file: Path) -> list[DeclaredTopic]:
    try:
        content = yaml.safe_load(file.read_text("utf-8"))
    except RecursionError:
        raise InvalidConfigError(f"{file} nests too deep", name=str(file)) from None
    except OSError as error:
        raise InvalidConfigError(
            f"{file} cannot be read: {error}. Give files that this user may read", path=str(file)
        ) from error
    except Exception as error:  # what PyYAML makes of 2024-13-45, !!bool x … has no common base
        raise InvalidConfigError(f"{file} is not YAML: {error}", name=str(file)) from None
    items = content if isinstance(content, list) else [] if content is None else [content]
    return [_declared(file, item) for item in items]


def _declared(file: Path, item: Any) -> DeclaredTopic:
    if not isinstance(item, Mapping) or "name" not in item:
        raise InvalidConfigError(
            f"{file}: a topic is declared as a mapping with name, partitions and config; got "
            f"{item!r}",
            name=str(file),
        )
    unknown = set(item) - _FIELDS
    if unknown:
        raise InvalidConfigError(
            f"{file}: {', '.join(sorted(map(str, unknown)))} is not a field of a topic; legal: "
            f"{', '.join(sorted(_FIELDS))}",
            name=str(file),
        )
    partitions = item.get("partitions", 1)
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1:
        raise InvalidTopicError(
            f"{file}: partitions: {partitions!r} is not a whole number ≥ 1", partitions=partitions
        )
    settings = item.get("config") or {}
    if not isinstance(settings, Mapping):
        raise InvalidConfigError(f"{file}: config is a mapping of settings", name=str(file))
    with _naming(str(file)):
        name = check_topic_name(item["name"])
        texts = {str(key): text_of(value) for key, value in settings.items()}
        for key, text in texts.items():
            parse(setting(key), text)
    return DeclaredTopic(name, partitions, tuple(sorted(texts.items())), str(file))


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Puts the file in front of what an error says."""
    try:
        yield
    except LakelogError as error:
        raise replace(error, message=f"{source}: {error.message}") from None
