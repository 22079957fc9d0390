"""``lakelog topics``: create, list, describe, alter, rotate-key, delete, undelete, purge, infer,
apply, defaults.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from ..base.text_table import counted
from .connect import no_topics, open_archived, open_log
from .options import Offer, add_config_option, parse_changes, parse_settings
from .output import Failed, Message, Page, Table, row, said_of_each, utc_text

if TYPE_CHECKING:
    from ..values.topic import Topic

_CREATE = """\
examples:
  lakelog --dir ./log topics create orders -p 4
  lakelog --dir ./log topics create audit --config retention.ms=-1 --config compression.type=zstd
"""
_DELETE = """\
What is deleted is kept for file.delete.delay.ms: the hot records in Redis (where they take their
room until then, or until a purge) and the archived ones in the cold root. Then cleanup removes it.

examples:
  lakelog --dir ./log topics delete orders
  lakelog --dir ./log topics list --deleted
  lakelog --dir ./log topics undelete orders     all of it is back
  lakelog --dir ./log topics purge orders        gone for good, now
"""
_PURGE = """\
Removes what is kept of a deleted topic without waiting for file.delete.delay.ms: hot records, the
cold table, its names in a catalog. Lists afterwards what is left.
More: `lakelog help deleted topics`.

examples:
  lakelog --dir ./log topics delete orders && lakelog --dir ./log topics purge orders
  lakelog --cold s3://bucket/log topics purge orders      without Redis, by what the table says
"""
_INFER = """\
Looks at some of the records, all over the log, and proposes lakelog.value.columns: the columns that
the topic's Delta table gets out of its JSON values. Columns that are set already stay. Changes
nothing; the command that would is printed.

examples:
  lakelog --dir ./log topics infer flights
  lakelog --dir ./log topics infer flights --sample 10000 --output json
"""
_ROTATE_KEY = """\
A new data key, which values are encrypted with from then on; the old ones stay, to read what they
encrypted. With --wrap-with, the data keys stay as they are, and are wrapped under another key: the
old key has to be there too. No record is rewritten either way.

examples:
  lakelog --dir ./log topics create orders --config lakelog.encryption.key=env:ORDERS_KEY
  lakelog --dir ./log topics rotate-key orders
  lakelog --dir ./log topics rotate-key orders --wrap-with databricks:prod/orders-2027
"""
_APPLY = """\
A file declares one topic (name, partitions, config) or a list of them. Applying twice changes
nothing; topics that no file declares are left alone. Nothing is changed while a file is wrong, and
all that is wrong is told at once.

examples:
  lakelog --dir ./log topics apply conf/topics --dry-run
  lakelog --dir ./log topics apply conf/topics/orders.yml
"""
_DEFAULTS = """\
The names are those of Kafka's brokers, with their precedence: log.retention.ms goes before
log.retention.minutes, and that before log.retention.hours. What a topic sets itself goes before
any of them. Topics that are there already follow at once. Without --config and --unset nothing
changes and the defaults are shown.

examples:
  lakelog --dir ./log topics defaults --config log.retention.hours=48 --config log.roll.hours=6
  lakelog --dir ./log topics defaults --config log.cleaner.enable=false   pauses compaction
  lakelog --dir ./log topics defaults --unset log.retention.hours
  lakelog --dir ./log topics defaults --all                               every name there is
"""


def add_topics(offer: Offer) -> None:
    verb = offer.verbs("Create, list, describe, alter, declare and delete topics.")

    def change(name: str, *how: Any, **defaults: Any) -> Any:
        """A verb that is in the list of runs."""
        return verb(name, *how, recorded=f"topics {name}", **defaults)

    create = change("create", _create, "create a topic", _CREATE, makes_log=True)
    create.add_argument("topic")
    create.add_argument("-p", "--partitions", type=int, default=1, help="default: 1")
    add_config_option(create)
    create.add_argument(
        "--if-not-exists", action="store_true", help="do nothing when it is there already"
    )
    create.add_argument(
        "--anew",
        action="store_true",
        help="at offset 0, beside the table of a topic that Redis has lost",
    )
    listed = verb("list", _list, "list the topics")
    listed.add_argument(
        "--deleted", action="store_true", help="those that were deleted and are still kept"
    )
    describe = verb("describe", _describe, "show a topic's partitions and settings")
    describe.add_argument("topic")
    describe.add_argument("--all", action="store_true", help="show defaults too")
    alter = change("alter", _alter, "change settings or add partitions")
    alter.add_argument("topic")
    add_config_option(alter)
    alter.add_argument(
        "--unset", action="append", default=[], metavar="NAME", help="back to the default"
    )
    alter.add_argument("-p", "--partitions", type=int, help="grow to so many")
    rotate = change("rotate-key", _rotate_key, "give an encrypted topic a new key", _ROTATE_KEY)
    rotate.add_argument("topic")
    rotate.add_argument(
        "--wrap-with",
        metavar="REFERENCE",
        help="wrap its data keys under the key there: env:NAME, file:/PATH, databricks:SCOPE/KEY",
    )
    infer = verb("infer", _infer, "propose columns for a topic's JSON values", _INFER)
    infer.add_argument("topic")
    infer.add_argument(
        "--sample", type=int, default=1000, metavar="N", help="records to look at; default: 1000"
    )
    delete = change(
        "delete", _delete, "delete a topic; it can be brought back for a while", _DELETE
    )
    delete.add_argument("topic")
    undelete = change("undelete", _undelete, "bring back a deleted topic", _DELETE)
    purge = change("purge", _purge, "remove what is kept of a deleted topic, now", _PURGE)
    for added in (undelete, purge):
        added.add_argument("topic")
        added.add_argument(
            "--id", metavar="ID", help="which, of several of that name; default: the last one"
        )
        added.add_argument(
            "--gone", action="store_true", help="its table is gone for good, not only away"
        )
    apply = change(
        "apply", _apply, "make topics match the files that declare them", _APPLY, makes_log=True
    )
    apply.add_argument("paths", nargs="+", metavar="PATH", help="YAML files, or folders of them")
    apply.add_argument("--dry-run", action="store_true", help="show the changes, make none")
    defaults = verb(
        "defaults", _defaults, "show or change what all topics go by", _DEFAULTS, makes_log=True
    )
    add_config_option(defaults)
    defaults.add_argument(
        "--unset", action="append", default=[], metavar="NAME", help="back to the built-in default"
    )
    defaults.add_argument("--all", action="store_true", help="show also what is not set")


def _row(topic: Topic, **more: Any) -> dict[str, Any]:
    return {
        **row(topic, "topic=name partitions tiered=config.tiered"),
        "cleanup": topic.config.text("cleanup.policy"),
        "topic_id": str(topic.topic_id),
        "config_version": topic.config_version,
        "config": dict(topic.config.overrides),
        **more,
    }


def _create(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        if arguments.if_not_exists:
            existing = {topic.name: topic for topic in log.topics.list()}.get(arguments.topic)
            if existing is not None:
                log.topics.repair(existing)
                return Message(f"topic {arguments.topic} exists", _row(existing))
        topic = log.topics.create(
            arguments.topic,
            arguments.partitions,
            parse_settings("--config", arguments.config),
            anew=arguments.anew,
            if_not_exists=arguments.if_not_exists,
        )
        alone = log.topics.is_hot_alone and not topic.config.tiered
    said = f"created topic {topic.name} with {counted(topic.partitions, 'partition')}"
    if alone:
        said += (
            " in Redis alone (remote.storage.enable=false): no cold root was given (--cold). "
            "Redis forgets its records by retention.ms and retention.bytes"
        )
    return Message(said, _row(topic))


def _list(arguments: argparse.Namespace) -> Table:
    if not arguments.deleted:
        with open_log(arguments) as log:
            rows = [_row(topic) for topic in log.topics.list()]
            empty = "" if rows else no_topics(log)
        return Table(rows, ["topic", "partitions", "tiered", "cleanup"], empty)
    with open_archived(arguments) as log:
        rows = [
            {
                "topic": topic.name,
                "topic_id": str(topic.topic_id),
                **row(topic, "deleted_ms kept_until_ms tiered=config.tiered"),
                "state": "being removed" if topic.purged_ms is not None else "kept",
            }
            for topic in log.deleted()
        ]
    return Table(rows, empty="no deleted topic is kept")


def _describe(arguments: argparse.Namespace) -> Page:
    from ..values.config import DATA_KEYS, KEYSPACE_SETTINGS, SCHEMAS, SETTINGS

    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        offsets = log.log(topic).offsets()
    config = topic.config
    told = [
        (SETTINGS[name], config.text(name), config.source(name))
        for name in SETTINGS
        if arguments.all or config.source(name) != "default"
    ]
    told += [
        (KEYSPACE_SETTINGS[name], value, "keyspace")
        for name, value in config.defaults
        if name in KEYSPACE_SETTINGS
    ]
    settings = [
        {
            "setting": setting.name,
            "value": value,
            "from": source,
            "kafka_default": setting.kafka_default or setting.default,
            "meaning": setting.doc,
        }
        for setting, value, source in told
    ]
    brief = {DATA_KEYS: str(config[DATA_KEYS] or ""), SCHEMAS: _some_schemas(config[SCHEMAS])}
    shown = [{**one, "value": brief.get(one["setting"], one["value"])} for one in settings]
    partitions = [
        {"partition": number, **row(seen, "log_start local_log_start archived_end log_end")}
        for number, seen in offsets.items()
    ]
    if not config.tiered:
        partitions = [{**one, "archived_end": None} for one in partitions]
    said = f"topic {topic.name}, id {topic.topic_id}, version {topic.config_version}"
    columns = ["setting", "value", "from", "meaning"]
    all_default = "all settings have their defaults (--all)"
    return Page(
        {
            "topic": Message(said, _row(topic)),
            "partitions": Table(partitions),
            "settings": Message(Table(shown, columns, all_default), settings),
        }
    )


def _alter(arguments: argparse.Namespace) -> Message:
    from ..errors import InvalidArgumentError

    changes = parse_changes(arguments.config, arguments.unset)
    if not changes and arguments.partitions is None:
        raise InvalidArgumentError("nothing to change: give --config, --unset or --partitions")
    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        was_tiered = topic.config.tiered
        if changes:
            topic = log.topics.alter(arguments.topic, changes)
        if arguments.partitions is not None:
            topic = log.topics.add_partitions(arguments.topic, arguments.partitions)
    said = f"topic {topic.name} is at version {topic.config_version}"
    if topic.config.tiered and not was_tiered:
        said += "; the next archive run begins with what Redis holds"
    elif was_tiered and not topic.config.tiered:
        said += "; it is archived no more, and what only its table held is deleted"
    return Message(said, _row(topic))


def _rotate_key(arguments: argparse.Namespace) -> Message:
    from ..values.config import DATA_KEYS

    with open_log(arguments) as log:
        topic = log.topics.rotate_key(arguments.topic, wrap_with=arguments.wrap_with)
    data_keys = topic.config[DATA_KEYS]
    values = _row(
        topic,
        data_keys=len(data_keys.wrapped),
        encrypts_with=data_keys.current,
        wrapped_under=data_keys.reference,
    )
    return Message(f"topic {topic.name} has {data_keys}", values)


def _some_schemas(schemas: dict[int, Any]) -> str:
    return counted(len(schemas), "schema") if schemas else ""


def _infer(arguments: argparse.Namespace) -> Page:
    import shlex

    from ..codec.formats.decoders import decoded
    from ..codec.infer import infer

    with open_log(arguments) as log:
        topic = log.topics.get(arguments.topic)
        stored = log.log(topic).sample(arguments.sample).column("value")
        values = decoded(stored, topic.config.value_format).values
    found = infer(values, topic.config.value_columns)
    objects = found.sampled - found.null - found.unparsed
    rows = [row(column, "column=name type present note") for column in found.columns]
    where = f"--dir {shlex.quote(arguments.dir)} " if arguments.dir else ""
    setting = shlex.quote(f"lakelog.value.columns={found.ddl}")
    command = f"lakelog {where}topics alter {shlex.quote(topic.name)} --config {setting}"
    lines = [
        f"{counted(found.sampled, 'value')} looked at: {objects:,} parse, "
        f"{found.unparsed:,} do not, {found.null:,} are null"
    ]
    if found.ddl == topic.config.value_columns:
        command = ""
    else:
        lines += ["to have these columns from the next archive run on:", f"  {command}"]
    proposal = {
        "topic": topic.name,
        **row(found, "sampled null unparsed ddl"),
        "command": command or None,
    }
    return Page(
        {
            "columns": Table(rows, empty="no value is a JSON object with members"),
            "proposal": Message("\n".join(lines), proposal),
        }
    )


def _delete(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        topic = log.topics.delete(arguments.topic)
    until = utc_text(topic.kept_until_ms)
    kept = f"topics undelete {topic.name}` brings all of it back until {until}"
    if topic.kept_until_ms == topic.deleted_ms:
        kept = "cleanup run` removes it (file.delete.delay.ms is 0)"
    values = _row(topic, deleted_ms=topic.deleted_ms, kept_until_ms=topic.kept_until_ms)
    return Message(f"deleted topic {topic.name}; `lakelog {kept}", values)


def _undelete(arguments: argparse.Namespace) -> Message:
    with open_log(arguments) as log:
        restored = log.undelete(arguments.topic, arguments.id, gone=arguments.gone)
    topic = restored.topic
    said = f"topic {topic.name} is back"
    if not restored.kept_hot:
        said += "; records that were not archived are gone: they were kept until the delay was over"
    return Message(said, _row(topic, kept_hot=restored.kept_hot))


def _purge(arguments: argparse.Namespace) -> Message:
    with open_archived(arguments) as log:
        purged = log.purge(arguments.topic, arguments.id, gone=arguments.gone)
    cold, said = purged.cold, str(purged)
    values: dict[str, Any] = {"topic": purged.topic.name, "topic_id": str(purged.topic.topic_id)}
    if cold is not None:
        values |= row(cold, "place files size_bytes", left=list(cold.left))
        if cold.left:
            raise Failed(Message(said, values), f"left at {cold.place}: {cold.left}")
        said += f"\nlisted {cold.place}: nothing of it is left"
    return Message(said, values)


def _apply(arguments: argparse.Namespace) -> Table:
    from ..errors import PartlyFailedError
    from ..hot.declared_topics import apply, load_declared

    title = "would change:" if arguments.dry_run else "changed:"
    try:
        declared = load_declared(arguments.paths)
        with open_log(arguments) as log:
            changes = apply(log.topics, declared, dry_run=arguments.dry_run)
    except PartlyFailedError as error:
        table = Table(map(row, error.changes), empty="nothing was changed", title=title)
        raise Failed(table, said_of_each(error.errors)) from error
    count = f"{counted(len(declared), 'topic')} {'is' if len(declared) == 1 else 'are'} as declared"
    empty = count if declared else "no topics are declared"
    return Table(map(row, changes), empty=empty, title=title)


def _defaults(arguments: argparse.Namespace) -> Table:
    from ..values.keyspace_defaults import BROKER_SETTINGS, KeyspaceDefaults

    changes = parse_changes(arguments.config, arguments.unset)
    with open_log(arguments) as log:
        given = log.topics.set_defaults(changes) if changes else log.topics.defaults()
    defaults = KeyspaceDefaults(tuple(given.items()))
    rows = [
        {
            "setting": name,
            "value": given.get(name),
            "effect": defaults.effect(name),
            "meaning": setting.doc,
        }
        for name, setting in BROKER_SETTINGS.items()
        if arguments.all or name in given
    ]
    return Table(rows, empty="no defaults are set (--all lists the names)")
