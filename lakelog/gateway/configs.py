"""Settings of topics, and the defaults of the keyspace as those of brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from ..errors import InvalidConfigError, LakelogError, UnknownTopicOrPartitionError
from ..values.config import SETTINGS, Setting, TopicConfig
from ..values.keyspace_defaults import BROKER_SETTINGS, SYNONYMS, KeyspaceDefaults
from ..values.topic import Topic
from .protocol.codes import Asked, ErrorCode, code_of
from .protocol.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from .session import Session

#: Kinds of resources (``ConfigResource.Type``).
TOPIC, BROKER = 2, 4
#: What a change does (``AlterConfigOp.OpType``).
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
#: Where a value comes from (``DescribeConfigsResponse.ConfigSource``).
_OF_TOPIC, _OF_KEYSPACE, _BUILT_IN = 1, 3, 5
#: ``DescribeConfigsResponse.ConfigType``.
_BOOLEAN, _STRING, _LONG, _DOUBLE, _LIST = 1, 2, 5, 6, 7

_LISTS = frozenset({"cleanup.policy", "log.cleanup.policy"})
#: Settings that name keys, whose values are not told to whoever can connect.
_SENSITIVE = frozenset(one.name for one in SETTINGS.values() if one.may_be_secret)

_Told: TypeAlias = DescribeConfigsResponse.DescribeConfigsResourceResult
_Synonym: TypeAlias = DescribeConfigsResponse.DescribeConfigsSynonym
Changes: TypeAlias = "dict[str, object | None]"


# -- looks -----------------------------------------------------------------------------------------


async def describe_configs(
    session: Session, request: DescribeConfigsRequest, version: int
) -> DescribeConfigsResponse:
    """The settings of topics, and of the keyspace for any broker."""
    results = []
    for asked in request.resources:
        result = DescribeConfigsResponse.DescribeConfigsResult(
            resource_type=asked.resource_type, resource_name=asked.resource_name, configs=[]
        )
        results.append(result)
        try:
            if asked.resource_type == TOPIC:
                topics = await session.log.topics(fresh=True)
                configs = _of_topic(_named(topics, asked.resource_name))
            elif asked.resource_type == BROKER:
                defaults = await session.log.run(session.log.lake.topics.keyspace_defaults)
                configs = _of_keyspace(defaults)
            else:
                raise _no_resource(asked.resource_type)
        except LakelogError as error:
            result.error_code = code_of(error, _asked(asked.resource_type))
            result.error_message = error.message
            continue
        wanted = asked.configuration_keys
        told = [one for one in configs if wanted is None or one.name in wanted]
        for one in told:
            if not request.include_synonyms:
                one.synonyms = []
            if not request.include_documentation:
                one.documentation = None
        result.configs = told
    return DescribeConfigsResponse(results=results)


def _named(topics: Mapping[str, Topic], name: str) -> Topic:
    if name not in topics:
        raise UnknownTopicOrPartitionError(f"there is no topic {name!r}", topic=name, partition=0)
    return topics[name]


def _no_resource(kind: int) -> InvalidConfigError:
    return InvalidConfigError(
        f"resources of kind {kind} have no settings here; topics and brokers have", name=""
    )


def _of_topic(topic: Topic) -> Iterable[_Told]:
    sources = {"topic": _OF_TOPIC, "keyspace": _OF_KEYSPACE, "default": _BUILT_IN}
    config = topic.config
    for name, setting in SETTINGS.items():
        source = sources[config.source(name)]
        synonyms = []
        if source == _OF_TOPIC:
            synonyms.append(_Synonym(name, _value(name, config.text(name)), _OF_TOPIC))
        given = dict(config.defaults).get(name)
        if given is not None:
            broker_name = next(iter(SYNONYMS.get(name, {name: 1})))
            synonyms.append(_Synonym(broker_name, _value(name, given), _OF_KEYSPACE))
        synonyms.append(_Synonym(name, _value(name, setting.default), _BUILT_IN))
        yield _told(setting, config.text(name), source, synonyms)


def _of_keyspace(defaults: KeyspaceDefaults) -> Iterable[_Told]:
    given = dict(defaults.settings)
    for name, setting in BROKER_SETTINGS.items():
        source = _OF_KEYSPACE if name in given else _BUILT_IN
        text = given.get(name, setting.default)
        yield _told(setting, text, source, [_Synonym(name, _value(name, text), source)])


def _told(setting: Setting, text: str, source: int, synonyms: Sequence[_Synonym]) -> _Told:
    return _Told(
        name=setting.name,
        value=_value(setting.name, text),
        config_source=source,
        is_sensitive=setting.name in _SENSITIVE,
        synonyms=synonyms,
        config_type=_kind(setting),
        documentation=setting.doc,
    )


def _value(name: str, text: str) -> str | None:
    return None if name in _SENSITIVE else text


def _kind(setting: Setting) -> int:
    if setting.name in _LISTS:
        return _LIST
    value = setting.parse(setting.default)
    kinds: Mapping[type, int] = {bool: _BOOLEAN, int: _LONG, float: _DOUBLE}
    return kinds.get(type(value), _STRING)


# -- changes ---------------------------------------------------------------------------------------


async def incremental_alter_configs(
    session: Session, request: IncrementalAlterConfigsRequest, version: int
) -> IncrementalAlterConfigsResponse:
    """Changes settings, all of a resource or none."""
    results = []
    for asked in request.resources:
        operations = [(one.name, one.config_operation, one.value) for one in asked.configs]
        error = await _altered(
            session,
            asked.resource_type,
            asked.resource_name,
            partial(_changes, operations),
            validate_only=request.validate_only,
        )
        results.append(
            IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
                *error, asked.resource_type, asked.resource_name
            )
        )
    return IncrementalAlterConfigsResponse(responses=results)


async def alter_configs(
    session: Session, request: AlterConfigsRequest, version: int
) -> AlterConfigsResponse:
    """Replaces settings: what is not named goes back to its default, but lakelog's own, of which
    the client may know nothing: how records are stored, and who can read them.
    """
    results = []
    for asked in request.resources:
        given: Changes = {one.name: one.value for one in asked.configs}
        error = await _altered(
            session,
            asked.resource_type,
            asked.resource_name,
            partial(_replacing, given),
            validate_only=request.validate_only,
        )
        results.append(
            AlterConfigsResponse.AlterConfigsResourceResponse(
                *error, asked.resource_type, asked.resource_name
            )
        )
    return AlterConfigsResponse(responses=results)


async def _altered(
    session: Session,
    kind: int,
    name: str,
    changes_of: Callable[[Mapping[str, str]], Changes],
    *,
    validate_only: bool,
) -> tuple[ErrorCode, str | None]:
    """What stood against a change of a topic or the keyspace, if anything did.

    Args:
        changes_of: given what is set now.
    """
    registry: Any = session.log.lake.topics
    try:
        if kind == TOPIC:
            topic = _named(await session.log.topics(fresh=True), name)
            changes = changes_of(dict(topic.config.overrides))
            if validate_only:
                topic.config.replace(changes)
            else:
                await session.log.run(registry.alter, name, changes)
                await session.log.topics(fresh=True)
        elif kind == BROKER:
            defaults = await session.log.run(registry.keyspace_defaults)
            changes = changes_of(dict(defaults.settings))
            if validate_only:
                defaults.replace(changes)
            else:
                await session.log.run(registry.set_defaults, changes)
        else:
            raise _no_resource(kind)
    except LakelogError as error:
        session.note(f"settings of {name!r}", error)
        return code_of(error, _asked(kind)), error.message
    return ErrorCode.NONE, None


def _asked(kind: int) -> Asked:
    return Asked.CLUSTER if kind == BROKER else Asked.ADMIN


def _replacing(given: Changes, current: Mapping[str, str]) -> Changes:
    """The settings that leave those that are given, and no other of Kafka's."""
    of_kafka = [name for name in current if not name.startswith("lakelog.")]
    return {**dict.fromkeys(of_kafka), **given}


def _changes(
    operations: Sequence[tuple[str, int, str | None]], current: Mapping[str, str]
) -> Changes:
    """The settings that the operations set (None: take back).

    Raises:
        InvalidConfigError: it adds to a setting that is no list.
    """
    changes: Changes = {}
    for name, operation, value in operations:
        if operation == _SET:
            changes[name] = value
        elif operation == _DELETE:
            if name in current:  # what is not set, unknown or not, is nothing that could stay
                changes[name] = None
        elif name not in _LISTS or operation not in (_APPEND, _SUBTRACT):
            raise InvalidConfigError(
                f"{name} is no list, so nothing can be added to it or taken out; set it", name=name
            )
        else:
            changes[name] = _edited(
                current.get(name) or TopicConfig().text("cleanup.policy"),
                value or "",
                adds=operation == _APPEND,
            )
    return changes


def _edited(text: str, value: str, *, adds: bool) -> str:
    """A list with parts added or taken out."""
    parts = [part for part in text.split(",") if part]
    given = [part.strip() for part in value.split(",") if part.strip()]
    if adds:
        return ",".join(dict.fromkeys([*parts, *given]))
    return ",".join(part for part in parts if part not in given)
