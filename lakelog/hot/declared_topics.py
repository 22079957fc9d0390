"""Topics declared in YAML files, and the changes that make the keyspace match them.

One file declares one topic or a list of them::

    name: orders
    partitions: 4
    config:
      retention.ms: 604800000
      cleanup.policy: delete

Where no cold root is given, a topic that does not declare ``remote.storage.enable`` is untiered.

Applying is idempotent: settings that are not declared go back to their defaults (the keyspace's, if
it sets them), partitions only grow, and topics that no file declares are left alone. So are a
topic's data keys, which no file can declare.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

from ..base.text_table import counted
from ..errors import (
    InvalidConfigError,
    InvalidTopicError,
    LakelogError,
    PartlyFailedError,
    by_topic,
)
from ..values.config import DATA_KEYS, TopicConfig, parse, setting, text_of
from ..values.keyspace_defaults import KeyspaceDefaults
from ..values.topic import Topic, check_topic_name
from .registry import TopicRegistry
from .topic_definition import TIERED, check_not_ours

_FIELDS = {"name", "partitions", "config"}


class DeclaredTopic(Struct, frozen=True):
    """What a file says a topic should be."""

    name: str
    partitions: int
    settings: tuple[tuple[str, str], ...]  # each is legal; together, only the keyspace can tell
    source: str  # the file, and which of its topics if it declares several; for messages


class TopicChange(Struct, frozen=True):
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
        PartlyFailedError: a file is not there or says something illegal, or two declare the same
            topic. All are read first, and every error is in it, by where it stands.
    """
    declared: dict[str, DeclaredTopic] = {}
    errors: dict[str, LakelogError] = {}
    for where, found in _declarations(map(Path, paths)):
        if isinstance(found, LakelogError):
            errors[where] = found
        elif found.name in declared:
            errors[where] = InvalidConfigError(
                f"topic {found.name!r} is declared in {declared[found.name].source} too; remove "
                "one of them",
                name=found.name,
            )
        else:
            declared[found.name] = found
    if errors:
        raise PartlyFailedError(_nothing_changed(errors), changes=(), errors=errors)
    return list(declared.values())


def diff(declared: DeclaredTopic, existing: Topic | None) -> list[TopicChange]:
    """What applying the declaration would change.

    Raises:
        InvalidTopicError: the topic has more partitions than declared.
    """
    name = declared.name
    if existing is None:
        settings = "".join(f", {key}={value}" for key, value in declared.settings)
        after = f"{counted(declared.partitions, 'partition')}{settings}"
        return [TopicChange(name, "create", after=after)]
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
    old.pop(DATA_KEYS, None)
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
        PartlyFailedError: settings contradict each other or the keyspace's defaults, a topic has
            more partitions than declared, or a change failed; it holds every error, and every
            change that was made.
    """
    declared = list(declared)
    if registry.is_hot_alone:
        declared = [_in_redis_alone(topic) for topic in declared]
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
        raise PartlyFailedError(_nothing_changed(errors), changes=(), errors=errors)
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
        raise PartlyFailedError(
            f"not all topics are as declared, the others are: {by_topic(errors)}. Apply the files "
            "again when that is mended; what is done is not done twice",
            changes=made,
            errors=errors,
        )
    return made


def _in_redis_alone(declared: DeclaredTopic) -> DeclaredTopic:
    """What the declaration means where there is no cold root."""
    settings = {TIERED: "false", **dict(declared.settings)}
    return replace(declared, settings=tuple(sorted(settings.items())))


def _applied(
    registry: TopicRegistry,
    declared: DeclaredTopic,
    existing: Topic | None,
    changes: list[TopicChange],
) -> Iterator[TopicChange]:
    """Makes the changes, and yields each one once it is made."""
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


def _nothing_changed(errors: Mapping[str, LakelogError]) -> str:
    return f"nothing was changed: {by_topic(errors)}. Mend the files and apply them again"


def _declarations(paths: Iterable[Path]) -> Iterator[tuple[str, DeclaredTopic | LakelogError]]:
    """Where something is declared, and the topic, or why it is none."""
    for path in paths:
        try:
            files = _files(path)
        except LakelogError as error:
            yield str(path), error
            continue
        for file in files:
            try:
                items = _items(file)
            except LakelogError as error:
                yield str(file), error
                continue
            for number, item in enumerate(items, 1):
                where = str(file) if len(items) == 1 else f"{file}, topic {number}"
                try:
                    yield where, _declared(where, item)
                except LakelogError as error:
                    yield where, error


def _files(path: Path) -> list[Path]:
    try:
        if path.is_dir():
            return sorted(file for file in path.iterdir() if file.suffix in {".yml", ".yaml"})
        if path.is_file():
            return [path]
    except OSError as error:
        raise _unreadable(path, error) from error
    raise InvalidConfigError(
        "no file or folder is there; give YAML files that declare topics, such as conf/topics/",
        path=str(path),
    )


def _items(file: Path) -> list[Any]:
    """What a file declares: one topic, or each of a list."""
    try:
        content = _loaded(file.read_text("utf-8"))
    except InvalidConfigError as error:
        raise error.changed(path=str(file)) from None
    except RecursionError:
        raise InvalidConfigError("the file nests too deep", path=str(file)) from None
    except OSError as error:
        raise _unreadable(file, error) from error
    except Exception as error:  # what PyYAML makes of 2024-13-45, !!bool x … has no common base
        said = " ".join(str(error).split())
        raise InvalidConfigError(f"the file is not YAML: {said}", path=str(file)) from None
    return content if isinstance(content, list) else [] if content is None else [content]


#: Ten thousand topics with as many settings as there are.
_MOST_VALUES = 1_000_000


def _loaded(text: str) -> Any:
    """What a text in YAML says.

    Raises:
        InvalidConfigError: aliases of aliases make it far longer than it looks, or endless.
        yaml.YAMLError: it is none.
    """
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        left, todo = _MOST_VALUES, [node]
        while todo:  # before values are made of it: merged mappings are copied
            inner = todo.pop().value
            if isinstance(inner, list):
                left -= len(inner)
                for one in inner:
                    todo += one if isinstance(one, tuple) else (one,)
            if left < 0:
                raise InvalidConfigError(
                    f"its aliases make the file more than {_MOST_VALUES:,} values"
                )
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _unreadable(path: Path, error: OSError) -> InvalidConfigError:
    return InvalidConfigError(
        f"it cannot be read: {error.strerror or error}. Give files that this user may read",
        path=str(path),
    )


def _declared(where: str, item: Any) -> DeclaredTopic:
    if not isinstance(item, Mapping) or "name" not in item:
        raise InvalidConfigError(
            f"a topic is declared as a mapping with name, partitions and config; got {item!r:.200}"
        )
    unknown = set(item) - _FIELDS
    if unknown:
        raise InvalidConfigError(
            f"{', '.join(sorted(map(str, unknown)))} is not a field of a topic; legal: "
            f"{', '.join(sorted(_FIELDS))}"
        )
    partitions = item.get("partitions", 1)
    if isinstance(partitions, bool) or not isinstance(partitions, int) or partitions < 1:
        raise InvalidTopicError(
            f"partitions: {partitions!r} is not a whole number ≥ 1", partitions=partitions
        )
    settings = item.get("config") or {}
    if not isinstance(settings, Mapping):
        raise InvalidConfigError("config is a mapping of settings", name="config", value=settings)
    name = check_topic_name(item["name"])
    texts = {str(key): text_of(value) for key, value in settings.items()}
    check_not_ours(texts)
    for key, text in texts.items():
        parse(setting(key), text)
    return DeclaredTopic(name, partitions, tuple(sorted(texts.items())), where)


@contextmanager
def _naming(source: str) -> Iterator[None]:
    """Puts the file in front of what an error says."""
    try:
        yield
    except LakelogError as error:
        raise error.changed(message=f"{source}: {error.message}") from None
