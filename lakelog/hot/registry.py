"""The topics of a keyspace: definitions in one hash, settings copied to where append reads them.

A topic is created or altered in the definitions first, with a version, then in the ``:state`` of
each partition. A process that dies in between leaves partitions behind; `TopicRegistry.repair`
(which create, alter and ``lakelog topics apply`` all end with) brings them up to date.

The keyspace's defaults are a field of the same hash. A topic's config version is the definition's
plus theirs: a change of the defaults is written once, and every topic under them is a version
further, without a definition being touched.
"""

from __future__ import annotations

import builtins
import logging
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ..base.clock import Clock
from ..base.secret_reference import check_secret_reference
from ..base.text_table import counted
from ..codec.encryption.keyring import with_new_key, wrapped_under
from ..codec.encryption.of_topic import key_encryption_key, keyring_of
from ..errors import (
    ConcurrentChangeError,
    ForeignEntryError,
    HotTierUnavailableError,
    InvalidConfigError,
    InvalidTopicError,
    LakelogError,
    PartlyFailedError,
    QuotaExceededError,
    TopicExistsError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
    by_topic,
)
from ..values import reservation
from ..values.config import (
    DATA_KEYS,
    DAY_MS,
    ENCRYPTION_KEY,
    QUOTA_HOT_BYTES,
    QUOTA_TOPICS,
    TopicConfig,
    check_change,
    check_keys_kept,
)
from ..values.data_keys import DataKeys
from ..values.keyspace_defaults import KeyspaceDefaults
from ..values.topic import Topic, catalog_name, check_new_topic_name, check_topic_name, near_names
from ..values.topic_partition import OffsetRange, TopicPartition
from .archived_into import ArchivedInto, ArchivedIntoRegister
from .connection import Servers, by_name, call_script
from .foreign import foreign_if_illegible
from .keys import (
    CHANGES_FIELD,
    DEFAULTS_FIELD,
    DELETED_FIELDS,
    DELETED_INTO_FIELDS,
    DELETED_MS_FIELDS,
    DELETING_FIELDS,
    DELETIONS_FIELD,
    KEYSPACE_ID_FIELD,
    PURGED_MS_FIELDS,
    TENANT_FIELDS,
    Keys,
)
from .quotas import Allowances
from .topic_definition import (
    TIERED,
    Fresh,
    check_not_ours,
    checked_partitions,
    defaults_from_json,
    defaults_to_json,
    from_json,
    name_taken,
    new_settings,
    own_version,
    parse_keyspace_id,
    purged,
    settings_text,
    to_json,
    under,
    under_prefix,
    with_data_keys,
)

logger = logging.getLogger(__name__)

#: What is kept for longer has no expiry: Redis counts one from its own epoch.
MAX_EXPIRY_MS = 10 * 365 * DAY_MS


_DELETE_TENANT = "Delete the tenant first; until then the topic is kept as it was deleted"


class Copies(Protocol):
    """Where else topics are told of: their tables."""

    @property
    def has_root(self) -> bool:
        """Whether a cold root was given, so that topics can have tables."""
        ...

    def log_starts(self, topic: Topic) -> Mapping[int, int]:
        """Where its table says that the partitions of a topic start that is untiered from now on.

        They start no later any more: the table takes up the settings first.

        Raises:
            ColdTierError: it cannot be read or committed to.
        """
        ...

    def mirrored(self, topic: Topic) -> Topic | None:
        """The topic as its table has it; None: it has none.

        Raises:
            ColdTierError: it cannot be read.
            MissingExtraError, SparkUnavailableError: it lies with a catalog, and there is no Spark.
        """
        ...

    def foreign_columns(self, topic: Topic) -> Mapping[str, str]:
        """The topic's value columns that its table has in another spelling or of another type, as
        the table has them. None where the table cannot be seen from here.
        """
        ...

    def unwritten_columns(self, topic: Topic) -> Collection[str]:
        """The topic's value columns that no file can have: its table lacks them, or has them in
        another spelling or of another type. None where its table cannot be seen from here.
        """
        ...

    def settled(self, topic: Topic) -> None:
        """The topic's settings were written."""
        ...

    def deleted(self, topic: Topic) -> None:
        """The topic was deleted here; it says when."""
        ...

    def defaults_set(self, defaults: KeyspaceDefaults) -> None:
        """The keyspace's defaults were changed to these."""
        ...

    def lost(self, keyspace_id: uuid.UUID | None, name: str | None) -> Sequence[Topic]:
        """The topics of this keyspace, or the one of a name, that were never deleted.

        Args:
            keyspace_id: the keyspace's; None if it has no topics.
        """
        ...


class Ends(Struct, frozen=True):
    """Where a partition that is restored goes on."""

    log_start: int
    archived_end: int
    reserved_end: int
    was_lost: bool = True  # False: it comes from elsewhere, and this Redis never had it
    gaps: tuple[OffsetRange, ...] = ()  # offsets below that were skipped


class TopicRegistry:
    """Creates, looks up and changes topics. Every call asks Redis; nothing is cached.

    Args:
        copies: what is told elsewhere; None where that is nowhere.
    """

    def __init__(
        self,
        servers: Servers,
        keys: Keys,
        clock: Clock | None = None,
        copies: Copies | None = None,
    ) -> None:
        self._servers = servers
        self._keys = keys
        self._clock = clock
        self._copies = copies
        #: What partitions made here may give out before the cold tier hears of it; see
        #: `lakelog.reservation`.
        self.first_offsets = reservation.FIRST_OFFSETS

    def __repr__(self) -> str:
        return f"TopicRegistry(keyspace={self._keys.keyspace!r})"

    @property
    def is_hot_alone(self) -> bool:
        """Whether no cold root was given, so that topics are untiered unless they say otherwise."""
        return self._copies is not None and not self._copies.has_root

    def create(
        self,
        name: str,
        partitions: int = 1,
        config: TopicConfig | Mapping[str, object] | None = None,
        *,
        anew: bool = False,
        if_not_exists: bool = False,
    ) -> Topic:
        """Creates a topic and returns it.

        Where no cold root was given, a topic that does not set ``remote.storage.enable`` itself is
        untiered, and a warning says so.

        Args:
            name: by Kafka's rule.
            partitions: 1..10,000.
            config: settings by Kafka's names, over the keyspace's defaults.
            anew: at offset 0, although the table of a topic of that name is there that Redis has
                lost, or tables of others in a keyspace without topics. They stay where they are.
            if_not_exists: one that is there is returned as it is, whatever its settings.

        Raises:
            TopicExistsError: there is one of that name, or its table is there; see
                `Lakelog.restore`.
            InvalidTopicError, InvalidConfigError: not legal; nothing was created.
            EncryptionKeyError: its values are to be encrypted, and the key cannot be had here.
            QuotaExceededError: the keyspace may have no more topics.
        """
        check_new_topic_name(name)
        partitions = checked_partitions(partitions)
        if if_not_exists and (there := self._definition(name)) is not None:
            self.repair(there[0])
            return there[0]
        overrides: Mapping[str, object]
        overrides = dict(config.overrides) if isinstance(config, TopicConfig) else config or {}
        is_hot_alone = self.is_hot_alone and overrides.get(TIERED) is None
        check_not_ours(overrides)
        if is_hot_alone:
            overrides = {**overrides, TIERED: False}
        if not anew:
            self._check_not_lost(name)
        self._finish_earlier(name)
        # A deleted topic keeps its table, and so may a lost one.
        others = {catalog_name(other.name) for other in self.deleted()}
        named_by_id = anew or catalog_name(name) in others
        while True:
            defaults = self._defaults()
            settings = new_settings(overrides, defaults, is_hot_alone=is_hot_alone)
            settings = with_data_keys(name, settings, clear=False)
            topic = Topic(
                name,
                uuid.uuid4(),
                partitions,
                settings,
                config_version=1 + defaults.version,
                defaults_version=defaults.version,
                named_by_id=named_by_id,
            )
            fresh = self._fresh(topic, 0)
            answer = self._compare_and_set(topic, 0, to_json(topic, None, fresh))
            if answer[0] != b"DEFAULTS_CHANGED":  # else look again: the old ones were not asked for
                break
        self._check_taken(name, answer, "Choose another name")
        if answer[0] != b"OK":
            if if_not_exists:  # somebody else made it meanwhile
                return self.get(name)
            raise TopicExistsError(
                f"topic {name!r} exists; use it, alter it, or delete it first", topic=name
            )
        topic = replace(
            topic,
            generation=int(answer[1]),
            keyspace=self._keys.keyspace,
            keyspace_id=parse_keyspace_id(answer[2]),
            keyspace_defaults=defaults.settings,
        )
        self.repair(topic)
        if is_hot_alone:
            logger.warning(
                "topic %r lives in Redis alone (%s=false), which forgets it by retention.ms and "
                "retention.bytes: no cold root was given to archive it to. With one, `lakelog "
                "topics alter %s --config %s=true` archives what Redis holds by then",
                name,
                TIERED,
                name,
                TIERED,
            )
        return topic

    def get(self, name: str) -> Topic:
        """The topic of that name.

        Raises:
            UnknownTopicOrPartitionError: there is none.
        """
        check_topic_name(name)
        found = self._definition(name)
        if found is None:
            raise UnknownTopicOrPartitionError(
                f"there is no topic {name!r} in keyspace {self._keys.keyspace!r}; "
                f"{self._way_on(name)}",
                topic=name,
            )
        return found[0]

    def renewed(self, topic: Topic) -> Topic:
        """The topic as it is now; decisions about a topic looked up before go by this.

        Raises:
            UnknownTopicIdError: it was deleted since, and perhaps created again.
        """
        return self._renewed(topic)[0]

    def list(self) -> list[Topic]:
        """All topics, by name."""
        return list(self._everything()[0])

    def version(self) -> tuple[int, int]:
        """Another one whenever a topic is made, changed or deleted, or the defaults change.

        After Redis has lost its tail, or everything, none that it told before stands for anything
        else.
        """
        command = ("HMGET", self._keys.topics, CHANGES_FIELD, DELETIONS_FIELD)
        told = self._server().call(command)[0]
        with foreign_if_illegible(told[0], "time of a change"):
            return int(told[0] or 0), int(told[1] or 0)

    def alter(self, name: str, changes: Mapping[str, object | None]) -> Topic:
        """Changes settings (None: back to the default) and returns the topic as it is then.

        ``remote.storage.enable=true`` has what Redis holds by then archived, and all that follows.
        Switched off again, with ``remote.log.delete.on.disable=true``, what only the table holds is
        deleted: the log starts at its local log start.

        Raises:
            InvalidConfigError: not legal, or it would remove a value column that files have or
                change its type, or delete what is archived although nothing says that it may go,
                or have a topic archived where no cold root was given; nothing was changed.
            EncryptionKeyError: its values are to be encrypted, and the key cannot be had here.
            ConcurrentChangeError: somebody else altered it meanwhile.
        """
        check_not_ours(changes)
        topic = self._whole(name)
        config, above = self._with_data_keys(topic, topic.config.replace(changes))
        check_change(topic.config, config, lambda: self._unwritten_columns(topic))
        if config.tiered and config.value_columns != topic.config.value_columns:
            self._check_columns(topic, config)
        if self.is_hot_alone and config.tiered and not topic.config.tiered:
            raise InvalidConfigError(
                f"topic {name!r} cannot be archived: no cold root was given. Connect with one "
                f"(cold=…, --cold) and set {TIERED}=true then",
                name=TIERED,
            )
        if config == topic.config:
            self.repair(topic)
            return topic
        return self._replace(topic, topic.partitions, config, None, above=above)

    def _foreign_columns(self, topic: Topic, config: TopicConfig) -> Mapping[str, str]:
        if self._copies is None:
            return {}
        return self._copies.foreign_columns(replace(topic, config=config))

    def _unwritten_columns(self, topic: Topic) -> Collection[str]:
        return () if self._copies is None else self._copies.unwritten_columns(topic)

    def _check_columns(self, topic: Topic, config: TopicConfig) -> None:
        """Refuse value columns that the table has otherwise: nothing could be archived."""
        for name, there in self._foreign_columns(topic, config).items():
            raise InvalidConfigError(
                f"the table of topic {topic.name!r} has a column {there}, which somebody else "
                f"added, so it cannot have the value column {name!r}; names that differ in case "
                "alone are one to Delta. Nothing was changed: give the value column another name",
                name="lakelog.value.columns",
                value=config.value_columns,
                column=name,
            )

    def rotate_key(self, name: str, *, wrap_with: str | None = None) -> Topic:
        """Gives a topic a new data key, or wraps those it has under another key.

        No record is rewritten. What is appended from then on is encrypted with the new data key
        (producers that run learn of it within ``metadata_max_age_ms``); the old ones stay, to read
        what they encrypted. The topic's first data key is made in the same way, where the
        keyspace's defaults have said that its values are to be encrypted.

        Keys that Redis has lost, after a restart without its last second, come back from the
        topic's table, which is looked at first.

        Args:
            wrap_with: the reference of another key-encryption key; the data keys stay the same.

        Raises:
            InvalidConfigError: the topic's values are not encrypted.
            InvalidArgumentError: `wrap_with` is no reference.
            EncryptionKeyError: the old or the new key cannot be had here; nothing was changed.
            ColdTierError, MissingExtraError, SparkUnavailableError: the topic's table cannot be
                looked at here; nothing was changed.
            ConcurrentChangeError: somebody else altered the topic meanwhile.
        """
        if wrap_with is not None:
            check_secret_reference(wrap_with, "wrap_with")
        topic = self._whole(name)
        config, above = self._with_keys_of_table(topic, topic.config)
        found = keyring_of(replace(topic, config=config))
        if found is None:
            if not config.encrypts:
                raise InvalidConfigError(
                    f"the values of topic {name!r} are not encrypted, so there is no key to "
                    f"rotate: {ENCRYPTION_KEY} says where a key is that they shall be encrypted "
                    "under",
                    name=ENCRYPTION_KEY,
                )
            if wrap_with is not None:
                config = config.replace({ENCRYPTION_KEY: wrap_with})
            changed = with_data_keys(name, config, clear=True)
            return self._replace(topic, topic.partitions, changed, None)
        keyring, key = found
        if wrap_with == keyring.data_keys.reference:
            changes = {}
        elif wrap_with is None:
            changes = {DATA_KEYS: with_new_key(keyring, key).to_text()}
        else:
            other = key_encryption_key(wrap_with, name)
            changes = {DATA_KEYS: wrapped_under(keyring, wrap_with, other).to_text()}
        if wrap_with is not None and config.encrypts:
            changes[ENCRYPTION_KEY] = wrap_with
        changed = config.replace(changes)
        check_change(config, changed)
        if changed == topic.config:
            return topic
        return self._replace(topic, topic.partitions, changed, None, above=above)

    def add_partitions(self, name: str, total: int) -> Topic:
        """Grows the topic to that many partitions.

        Raises:
            InvalidTopicError: fewer than it has (its records would be lost).
        """
        topic = self._whole(name)
        total = checked_partitions(total)
        if total < topic.partitions:
            raise InvalidTopicError(
                f"topic {name!r} has {topic.partitions} partitions and cannot shrink to {total}",
                topic=name,
            )
        if total == topic.partitions:
            self.repair(topic)
            return topic
        grown = replace(topic, partitions=total)
        return self._replace(topic, total, topic.config, self._fresh(grown, topic.partitions))

    def defaults(self) -> Mapping[str, str]:
        """What the keyspace sets for all its topics: text by Kafka's broker names."""
        return dict(self._defaults().settings)

    def keyspace_defaults(self) -> KeyspaceDefaults:
        """As `defaults`, as a value."""
        return self._defaults()

    def set_defaults(self, changes: Mapping[str, object | None]) -> Mapping[str, str]:
        """Changes the keyspace's defaults (None takes one back) and returns them as they are then.

        They reach every topic that does not set the same itself, and every new topic. A call that
        was cut short is finished by the next one (even without changes), or topic by topic when a
        topic is repaired.

        Args:
            changes: by Kafka's broker names, such as ``log.retention.hours``.

        Raises:
            InvalidConfigError: not legal, or a topic would contradict itself; nothing was changed.
            EncryptionKeyError: values of a topic are to be encrypted, and the key cannot be had
                here; nothing was changed.
            ConcurrentChangeError: somebody else changed defaults or topics meanwhile.
            PartlyFailedError: they are set, but did not reach every topic yet.
        """
        topics, current, seen, _ = self._everything()
        defaults = current.replace(changes)
        if defaults.settings != current.settings:
            changed = [under(topic, defaults) for topic in topics]
            for topic in changed:  # whose keys cannot be had is found before anything changes
                with_data_keys(topic.name, topic.config, clear=True)
            if self._allow_clear_values(changed):
                topics, _, seen, _ = self._everything()
            topics = [under(topic, defaults) for topic in topics]
            arguments = [seen, defaults_to_json(defaults)]
            answer = call_script(self._servers, "defaults", [self._keys.topics], arguments)
            if answer[0] != b"OK":
                raise ConcurrentChangeError(
                    f"defaults or topics of keyspace {self._keys.keyspace!r} were changed by "
                    "somebody else meanwhile; look at the defaults again and repeat the change",
                    keyspace=self._keys.keyspace,
                )
            if self._copies is not None:
                self._copies.defaults_set(defaults)
        self._settle_all(topics)
        if QUOTA_HOT_BYTES in changes and defaults.settings != current.settings:
            # What was allowed under a higher quota is not to be used any more.
            Allowances(self._servers, self._keys, self.list, self._clock).count_anew()
        return dict(defaults.settings)

    def delete(self, name: str) -> Topic:
        """Deletes the topic and returns what it was, with the time of its deletion.

        Its hot records are kept aside for ``file.delete.delay.ms``, and so is the cold table, which
        says that the topic was deleted: until then `Lakelog.undelete` brings all of it back. Both
        are known by the topic's id, which is never used again.

        Raises:
            UnknownTopicOrPartitionError: there is none.
        """
        topic = self.get(name)
        # The definition first: from then on nobody looks the topic up, and each partition goes
        # only if it still belongs to this id.
        into = self._archived_into(topic)
        arguments = [name, str(topic.topic_id), self._now_ms(), into.to_text() if into else ""]
        deleted_ms = int(call_script(self._servers, "undefine", [self._keys.topics], arguments))
        if not deleted_ms:  # somebody else was faster
            found = [one for one in self.deleted(name) if one.topic_id == topic.topic_id]
            return found[0] if found else topic
        topic = replace(topic, deleted_ms=deleted_ms)
        self.finish_deletion(topic)
        return topic

    def deleted(self, name: str | None = None) -> builtins.list[Topic]:
        """The deleted topics of which Redis still knows, in the order of their deletions.

        They say since when they are deleted, and since when they are removed for good, if they are.

        Args:
            name: those that had it; None for all.
        """
        kept = self._everything()[3]
        return [topic for topic in kept if name is None or topic.name == name]

    def deleted_into(self, topic: Topic) -> str | None:
        """The table that a deleted topic was archived into, as `HotOffsets` have it; None: none is
        known.
        """
        field = f"{DELETED_INTO_FIELDS}{topic.topic_id}"
        found = self._server().call(("HGET", self._keys.topics, field))[0]
        return None if found is None else found.decode()

    def finish_deletion(self, topic: Topic) -> None:
        """Does what is left of a deletion that was cut short; nothing otherwise.

        Args:
            topic: a deleted one.
        """
        self._delete_partitions(topic)
        self._server().call(("HDEL", self._keys.topics, f"{DELETING_FIELDS}{topic.name}"))
        if self._copies is not None:
            self._copies.deleted(topic)

    def undelete(self, topic: Topic, ends: Mapping[int, Ends]) -> Topic:
        """Brings back a deleted topic with the hot records that were kept of it.

        A partition of which none were is made as by `restore`, and takes appends after
        `HotLog.recover`. Doing it again, also by several at once, or after a call that was cut
        short, does the rest.

        Args:
            topic: as it is to be, with a config version of its own; what Redis does not know of it
                any more is made as by `restore`.
            ends: where each partition goes on of which nothing was kept.

        Raises:
            TopicExistsError: there is another topic of that name.
            PolicyViolationError: it is being removed for good, or was.
            InvalidTopicError: a tenant has the name by now.
            QuotaExceededError: the keyspace may have no more topics.
        """
        self._finish_earlier(topic.name)  # so that what came half aside comes back whole
        arguments = [topic.name, str(topic.topic_id), own_version(topic)]
        answer = call_script(self._servers, "redefine", [self._keys.topics], arguments)
        if answer[0] == b"EXISTS":
            raise name_taken(topic)
        if answer[0] == b"PURGED":
            raise purged(topic)
        self._check_taken(topic.name, answer, _DELETE_TENANT)
        if answer[0] == b"MISSING":
            return self.restore(topic, ends)
        return self._made_again(self.get(topic.name), ends)

    def may_return(self, topic: Topic) -> bool:
        """Whether a deleted topic is not being removed for good yet, as far as Redis knows.

        Raises:
            TopicExistsError: there is another topic of its name.
            InvalidTopicError: a tenant has the name.
        """
        found = self._definition(topic.name)
        if found is not None and found[0].topic_id != topic.topic_id:
            raise name_taken(topic)
        topics = self._keys.topics
        is_purged, is_tenants = self._server().call(
            ("HEXISTS", topics, f"{PURGED_MS_FIELDS}{topic.topic_id}"),
            ("HEXISTS", topics, f"{TENANT_FIELDS}{topic.name}"),
        )
        if is_tenants and found is None:
            raise self._tenants_name(topic.name, _DELETE_TENANT)
        return not is_purged

    def has_kept(self, topic: Topic) -> bool:
        """Whether the hot records of a deleted topic are still there, of all partitions."""
        for tp in topic.topic_partitions():
            keys = self._keys.partition(tp)
            kept = keys.kept(topic.topic_id)[1]
            own = str(topic.topic_id).encode()
            state, left = self._servers.for_key(kept).call(
                ("EXISTS", kept), ("HGET", keys.state, "topic_id")
            )
            if not state and left != own:
                return False
        return True

    def begin_purge(self, topic: Topic) -> Topic:
        """Notes that a deleted topic is removed for good, so that it cannot come back any more.

        Raises:
            PolicyViolationError: Redis knows of no such deleted topic: it is gone, or came back.
        """
        arguments = [str(topic.topic_id), "begin", self._now_ms()]
        purged_ms = int(call_script(self._servers, "purge", [self._keys.topics], arguments))
        if not purged_ms:
            raise purged(topic)
        return replace(topic, purged_ms=purged_ms)

    def end_purge(self, topic: Topic) -> None:
        """Frees what Redis kept of a deleted topic, and forgets it."""
        self._delete_partitions(topic)
        for tp in topic.topic_partitions():
            kept = self._keys.partition(tp).kept(topic.topic_id)
            self._servers.for_key(kept[0]).call(("UNLINK", *kept))
        arguments = [str(topic.topic_id), "end", ""]
        call_script(self._servers, "purge", [self._keys.topics], arguments)

    def restore(
        self, topic: Topic, ends: Mapping[int, Ends], *, is_one_more: bool = False
    ) -> Topic:
        """Brings back a topic that Redis has lost, as its table tells it.

        Its partitions take appends after `HotLog.recover`. Doing it again, also by several at once,
        or after a call that was cut short, does the rest.

        Args:
            ends: of each partition.
            is_one_more: it was made elsewhere, and the keyspace may have too many topics for it.

        Raises:
            TopicExistsError: there is another topic of that name.
            TopicExistsError: the keyspace is another one, which has topics of its own.
            InvalidTopicError: a tenant has the name.
            QuotaExceededError: it is one topic too many.
        """
        given = KeyspaceDefaults(topic.keyspace_defaults, topic.defaults_version)
        arguments = [
            topic.name,
            str(topic.topic_id),
            to_json(topic, topic.generation, None),
            str(topic.keyspace_id or uuid.uuid4()),
            defaults_to_json(given) if given.version else "",
            topic.generation,
            topic.config_version,
            "1" if is_one_more else "",
        ]
        answer = call_script(self._servers, "restore", [self._keys.topics], arguments)
        if answer[0] == b"EXISTS":
            raise TopicExistsError(
                f"there is another topic {topic.name!r} in keyspace {self._keys.keyspace!r}: the "
                "lost one cannot come back beside it. Delete it first, with its records",
                topic=topic.name,
            )
        self._check_taken(topic.name, answer, _DELETE_TENANT)
        if answer[0] == b"IN_USE":
            names = sorted(text.decode() for text in answer[1:])
            raise TopicExistsError(
                f"keyspace {self._keys.keyspace!r} has topics that were made since "
                f"({', '.join(names)}), so topic {topic.name!r} of an earlier keyspace of that "
                "name cannot come back into it. Delete them first, or restore in another Redis",
                topic=topic.name,
                keyspace=self._keys.keyspace,
            )
        return self._made_again(self.get(topic.name), ends)

    def _tenants_name(self, name: str, do: str) -> InvalidTopicError:
        return InvalidTopicError(
            f"{name!r} cannot be a topic of keyspace {self._keys.keyspace!r}: a tenant has the "
            f"name, and its tables lie where the topic's would. {do}",
            topic=name,
        )

    def _made_again(self, topic: Topic, ends: Mapping[int, Ends]) -> Topic:
        """The topic, with its partitions, whose definition is back."""
        settings = settings_text(topic.config)
        for number, tp in enumerate(topic.topic_partitions()):
            self._init(topic, tp, settings, (), ends.get(number))
        self.repair(topic)
        return topic

    def repair(self, topic: Topic) -> None:
        """Writes the settings to every partition that does not have them yet.

        A partition that was there before and is lost is made anew, but takes appends only after
        `HotLog.recover` went past the offsets it may have given.

        Raises:
            UnknownTopicIdError: the topic was deleted (and perhaps created again) meanwhile.
        """
        # As it is now: a topic looked up long ago must not bring back its old settings.
        topic, fresh = self._renewed(topic)
        settings = settings_text(topic.config)
        starts: Mapping[int, int] = {}
        if not topic.config.tiered and self._copies is not None and fresh is None:
            starts = self._copies.log_starts(topic)
        for topic_partition in topic.topic_partitions():
            runs = fresh.runs if fresh and topic_partition.partition >= fresh.first else ()
            start = starts.get(topic_partition.partition, 0)
            ends = Ends(start, 0, reservation.FIRST_OFFSETS) if start else None
            self._init(topic, topic_partition, settings, runs, ends)
        try:
            self._renewed(topic)
        except UnknownTopicIdError:
            self._delete_partitions(topic)  # what was made after its deletion
            raise
        if fresh:
            # Every partition is there now; one that is missing from here on was lost.
            whole = to_json(topic, topic.generation, None)
            self._compare_and_set(topic, own_version(topic), whole)
        if self._copies is not None:
            self._copies.settled(topic)

    # -- how ---------------------------------------------------------------------------------

    def _archived_into(self, topic: Topic) -> ArchivedInto | None:
        """None: no table is known, or cannot be told of now."""
        try:
            return ArchivedIntoRegister(self._servers, self._keys).said(topic)
        except (HotTierUnavailableError, UnknownTopicIdError, UnknownTopicOrPartitionError):
            return None

    def _now_ms(self) -> int | str:
        """For a script: the time, or "" for the server's own."""
        return "" if self._clock is None else self._clock.now_ms()

    def _server(self) -> Any:
        return self._servers.for_key(self._keys.topics)

    def _check_not_lost(self, name: str) -> None:
        """Refuse to begin anew what can come back.

        Raises:
            TopicExistsError: a topic that Redis has lost should come back first.
        """
        if self._copies is None:
            return
        keyspace_id, names, deleted = self._own_names()
        lost = self._copies.lost(keyspace_id if names else None, name if names else None)
        lost = [topic for topic in lost if topic.topic_id not in deleted]
        if not lost or name in names:
            return
        if any(topic.name == name for topic in lost):
            raise TopicExistsError(
                f"the table of a topic {name!r} is there, which Redis has lost: lake.restore("
                f"{name!r}) or `lakelog restore {name}` brings it back. To begin anew at offset 0 "
                "beside it: anew=True (--anew)",
                topic=name,
            )
        raise TopicExistsError(
            f"keyspace {self._keys.keyspace!r} is empty, but the tables of topics are there that "
            f"Redis has lost ({', '.join(sorted(topic.name for topic in lost)[:5])}"
            f"{', …' if len(lost) > 5 else ''}): lake.restore() or `lakelog restore` brings them "
            "back. If they are another Redis's, choose another keyspace or cold root; to begin "
            "anew beside them: anew=True (--anew)",
            topic=name,
        )

    def _check_taken(self, name: str, answer: Sequence[Any], do: str) -> None:
        """Raises if a script answered that a tenant has the name, or that there are enough topics.

        Args:
            do: about the tenant.
        """
        if answer[0] == b"TENANT":
            raise self._tenants_name(name, do)
        if answer[0] != b"QUOTA":
            return
        used, limit = int(answer[1]), int(answer[2])
        raise QuotaExceededError(
            f"keyspace {self._keys.keyspace!r} has {counted(used, 'topic')}, and "
            f"{QUOTA_TOPICS}={limit}: topic {name!r} would be one too many. Delete one, "
            "or have the quota raised",
            quota=QUOTA_TOPICS,
            used=used,
            limit=limit,
            topic=name,
        )

    def _finish_earlier(self, name: str) -> None:
        """Take aside what a deletion that was cut short left in the place of the name's keys."""
        field = f"{DELETING_FIELDS}{name}"
        topic_id = self._server().call(("HGET", self._keys.topics, field))[0]
        if topic_id is not None:
            with foreign_if_illegible(topic_id, "id of a topic that is being deleted"):
                unfinished = uuid.UUID(topic_id.decode())
            for topic in self.deleted(name):
                if topic.topic_id == unfinished:
                    self.finish_deletion(topic)

    def _way_on(self, name: str) -> str:
        """What to do about a name that no topic has."""
        topics, _, _, deleted = self._everything()
        if any(topic.name == name and topic.purged_ms is None for topic in deleted):
            return (
                f"it was deleted: lake.undelete({name!r}) or `lakelog topics undelete {name}` "
                "brings it back while it is kept"
            )
        if self._lost(name):
            return (
                f"its table is there: lake.restore({name!r}) or `lakelog restore {name}` brings it "
                "back"
            )
        create = f"create it with topics.create({name!r}) or `lakelog topics create {name}`"
        near = near_names(name, [topic.name for topic in topics])
        return f"{near} Else {create}" if near else create

    def _lost(self, name: str) -> bool:
        """Whether a topic's table says that Redis has lost it; no answer is no."""
        if self._copies is None:
            return False
        keyspace_id, names, deleted = self._own_names()
        lost = self._copies.lost(keyspace_id if names else None, name)
        return any(topic.topic_id not in deleted for topic in lost)

    def keyspace_id(self) -> uuid.UUID | None:
        """What tells the keyspace from one of the same name in another Redis; None before its
        first topic.
        """
        found = self._server().call(("HGET", self._keys.topics, KEYSPACE_ID_FIELD))[0]
        return parse_keyspace_id(found)

    def _own_names(self) -> tuple[uuid.UUID | None, set[str], set[uuid.UUID]]:
        """The keyspace's id, the names of its topics, and the ids of the deleted ones."""
        commands = (
            ("HGET", self._keys.topics, KEYSPACE_ID_FIELD),
            ("HKEYS", self._keys.topics),
        )
        keyspace_id, fields = self._server().call(*commands)
        with foreign_if_illegible(fields, "set of topics' names"):
            names = {field.decode() for field in fields if not field.startswith(b"#")}
            deleted = {uuid.UUID(text) for text in under_prefix(fields, DELETED_FIELDS)}
        return parse_keyspace_id(keyspace_id), names, deleted

    def _definition(self, name: str) -> tuple[Topic, Fresh | None] | None:
        command = ("HMGET", self._keys.topics, name, DEFAULTS_FIELD, KEYSPACE_ID_FIELD)
        found, defaults, keyspace_id = self._server().call(command)[0]
        if found is None:
            return None
        topic, fresh = from_json(found, defaults_from_json(defaults))
        return self._own(topic, keyspace_id), fresh

    def _own(self, topic: Topic, keyspace_id: bytes | None) -> Topic:
        return replace(
            topic, keyspace=self._keys.keyspace, keyspace_id=parse_keyspace_id(keyspace_id)
        )

    def _defaults(self) -> KeyspaceDefaults:
        command = ("HGET", self._keys.topics, DEFAULTS_FIELD)
        return defaults_from_json(self._server().call(command)[0])

    def _everything(self) -> tuple[Sequence[Topic], KeyspaceDefaults, bytes, Sequence[Topic]]:
        """The topics by name, the defaults under them, the last change of either, and the
        deleted topics.
        """
        found: dict[bytes, bytes]
        found = by_name(self._server().call(("HGETALL", self._keys.topics))[0])
        defaults = defaults_from_json(found.get(DEFAULTS_FIELD.encode()))
        definitions = [text for name, text in found.items() if not name.startswith(b"#")]
        keyspace_id = found.get(KEYSPACE_ID_FIELD.encode())
        topics = [self._own(from_json(text, defaults)[0], keyspace_id) for text in definitions]
        changes = found.get(CHANGES_FIELD.encode(), b"0")
        kept = []
        for topic_id in under_prefix(found, DELETED_FIELDS):
            topic = from_json(found[f"{DELETED_FIELDS}{topic_id}".encode()], defaults)[0]
            deleted_ms, purged_ms = (
                found.get(f"{field}{topic_id}".encode())
                for field in (DELETED_MS_FIELDS, PURGED_MS_FIELDS)
            )
            with foreign_if_illegible((deleted_ms, purged_ms), "pair of times of a deletion"):
                topic = replace(
                    self._own(topic, keyspace_id),
                    deleted_ms=int(deleted_ms or 0),
                    purged_ms=None if purged_ms is None else int(purged_ms),
                )
            kept.append(topic)
        kept.sort(key=lambda topic: topic.deleted_ms or 0)
        return sorted(topics, key=lambda topic: topic.name), defaults, changes, kept

    def _allow_clear_values(self, topics: Iterable[Topic]) -> bool:
        """Has the topics' keys say that values come in the clear, before any does.

        Args:
            topics: under the defaults to come.

        Returns:
            Whether a topic was changed.
        """
        changed = False
        for topic in topics:
            data_keys: DataKeys | None = topic.config[DATA_KEYS]
            if topic.config.encrypts or data_keys is None or data_keys.clear:
                continue
            try:
                now = self.renewed(topic)
            except UnknownTopicIdError:
                continue  # deleted since
            data_keys = now.config[DATA_KEYS]  # perhaps with one more
            if data_keys is not None and not data_keys.clear:
                config = now.config.replace({DATA_KEYS: replace(data_keys, clear=True).to_text()})
                self._replace(now, now.partitions, config, None)
                changed = True
        return changed

    def _settle_all(self, topics: Sequence[Topic]) -> None:
        """Gives the topics what their settings ask for, to each partition, and data keys.

        Goes on after a topic that cannot be settled, and says so at the end.
        """
        errors: dict[str, LakelogError] = {}
        for topic in topics:
            try:
                config, above = self._with_data_keys(topic, topic.config)
                if config == topic.config:
                    self.repair(topic)
                else:
                    self._replace(topic, topic.partitions, config, None, above=above)
            except UnknownTopicIdError:
                continue  # deleted since
            except LakelogError as error:
                errors[topic.name] = error
        if errors:
            raise PartlyFailedError(
                "the defaults hold, but these topics do not all go by them yet: "
                f"{by_topic(errors)}. Set the defaults again, also without a change",
                changes=(),
                errors=errors,
            )

    def _whole(self, name: str) -> Topic:
        """The topic, with the partitions that an interrupted creation left out."""
        topic = self.get(name)
        if self._renewed(topic)[1]:
            self.repair(topic)
        return topic

    def _renewed(self, topic: Topic) -> tuple[Topic, Fresh | None]:
        found = self._definition(topic.name)
        if found is None or found[0].topic_id != topic.topic_id:
            raise UnknownTopicIdError(
                f"topic {topic.name!r} was deleted{' and created again' if found else ''} since it "
                "was looked up; look it up again",
                topic=topic.name,
                topic_id=topic.topic_id,
            )
        return found

    def _fresh(self, topic: Topic, first: int) -> Fresh:
        """The new partitions' mark; to be made before any client can know of them."""
        streams = (self._keys.partition(tp).stream for tp in topic.topic_partitions()[first:])
        servers = {id(server): server for server in map(self._servers.for_key, streams)}
        return Fresh(first, tuple(server.run_id() for server in servers.values()))

    def _delete_partitions(self, topic: Topic) -> None:
        """Take aside the partitions that are still in their place, for as long as they are kept."""
        keep_ms = topic.config["file.delete.delay.ms"]
        if topic.deleted_ms is not None and self._clock is not None:
            keep_ms = max(0, topic.deleted_ms + keep_ms - self._clock.now_ms())
        if topic.purged_ms is not None:
            keep_ms = 0
        keep = "" if keep_ms > MAX_EXPIRY_MS else keep_ms
        arguments = [str(topic.topic_id), keep, topic.config_version]
        for topic_partition in topic.topic_partitions():
            keys = self._keys.partition(topic_partition)
            both = (*keys.lasting(), *keys.kept(topic.topic_id))
            call_script(self._servers, "delete", both, arguments)

    def _init(
        self,
        topic: Topic,
        topic_partition: TopicPartition,
        settings: str,
        runs: Sequence[str],
        ends: Ends | None = None,
    ) -> None:
        keys = self._keys.partition(topic_partition)
        arguments = [
            str(topic.topic_id),
            topic.generation,
            topic.config_version,
            settings,
            self._now_ms(),
            ",".join(runs),
            reservation.FIRST_OFFSETS if ends is None else ends.reserved_end,
            0 if ends is None else max(ends.archived_end, ends.log_start),
            0 if ends is None else ends.log_start,
            "1" if ends is None or ends.was_lost else "",
            "" if ends is None else ",".join(f"{one.start}-{one.end}" for one in ends.gaps),
            self.first_offsets if ends is None else ends.reserved_end,
        ]
        both = (*keys.lasting(), *keys.kept(topic.topic_id))
        answer = call_script(self._servers, "init", both, arguments)
        if answer[0] == b"FOREIGN_KEY":
            kind = answer[1].decode()
            kept = (
                f"If it is lakelog's, whose other keys were evicted or deleted, `lakelog check "
                f"{topic.name} --repair` writes those anew, and no record is lost. Otherwise"
                if kind == "stream"
                else "It is not lakelog's:"
            )
            raise ForeignEntryError(
                f"key {keys.stream} holds a {kind}, and nothing beside it says of what. {kept} "
                "rename it, or use another keyspace",
                topic_partition=topic_partition,
            )
        if answer[0] == b"STALE":
            raise ConcurrentChangeError(
                f"topic {topic.name!r} was deleted and created again meanwhile; look it up again",
                topic=topic.name,
            )

    def _with_data_keys(self, topic: Topic, config: TopicConfig) -> tuple[TopicConfig, int]:
        """As the function, of a topic that is there, with what `_with_keys_of_table` gives."""
        above = 0
        if config.encrypts and config[DATA_KEYS] is None:
            with_keys, above = self._with_keys_of_table(topic, config)
            check_keys_kept(with_keys.replace({ENCRYPTION_KEY: None}), with_keys)
            config = with_keys
        return with_data_keys(topic.name, config, clear=True), above

    def _with_keys_of_table(self, topic: Topic, config: TopicConfig) -> tuple[TopicConfig, int]:
        """The config with the data keys that Redis has lost and the topic's table has.

        Other ones in their place would be the end of what those encrypted.

        Returns:
            The config, and the version of the settings in the table, which newer ones are above.
        """
        held = None if self._copies is None else self._copies.mirrored(topic)
        theirs: DataKeys | None = None if held is None else held.config[DATA_KEYS]
        if held is None or theirs is None:
            return config, 0
        ours: DataKeys | None = config[DATA_KEYS]
        if ours is None:
            theirs = replace(theirs, clear=True)  # what came meanwhile was not encrypted
        elif not (
            theirs.ring == ours.ring
            and theirs.numbers >= ours.numbers
            and (theirs.numbers > ours.numbers or held.config_version > topic.config_version)
        ):
            return config, held.config_version
        return config.replace({DATA_KEYS: theirs.to_text()}), held.config_version

    def _replace(
        self,
        topic: Topic,
        partitions: int,
        config: TopicConfig,
        fresh: Fresh | None,
        *,
        above: int = 0,
    ) -> Topic:
        version = max(topic.config_version, above) + 1
        changed = replace(topic, partitions=partitions, config=config, config_version=version)
        definition = to_json(changed, topic.generation, fresh)
        answer = self._compare_and_set(changed, own_version(topic), definition)
        if answer[0] != b"OK":
            raise ConcurrentChangeError(
                f"topic {topic.name!r} or the keyspace's defaults were changed by somebody else "
                "meanwhile, or it was deleted; look at it again and repeat the change",
                topic=topic.name,
            )
        self.repair(changed)
        return changed

    def _compare_and_set(self, topic: Topic, version: int, definition: str) -> Any:
        """Replaces the definition of that version (0: there is none).

        A new version counts only under the defaults that it has been checked against.
        """
        under = "" if version == own_version(topic) else topic.defaults_version
        keyspace_id = str(topic.keyspace_id or uuid.uuid4())  # counts if the keyspace has none yet
        arguments = [topic.name, version, definition, str(topic.topic_id), under, keyspace_id]
        return call_script(self._servers, "define", [self._keys.topics], arguments)
