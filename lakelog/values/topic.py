"""A topic: its name, its id, its partitions and its settings."""

from __future__ import annotations

import re
from collections.abc import Iterable
from uuid import UUID

from msgspec import Struct, field

from ..base.text_table import counted
from ..errors import InvalidArgumentError, InvalidTopicError, UnknownTopicOrPartitionError
from .arguments import whole
from .config import TopicConfig
from .topic_partition import TopicPartition

MAX_NAME_LENGTH = 249  # Kafka's Topic.MAX_NAME_LENGTH
#: The table of job runs, which lies where a topic of that name would have its table.
STATUS_TABLE = "_lakelog_status"
#: The table of what groups have committed, likewise.
GROUPS_TABLE = "_lakelog_groups"
#: Where a cold root keeps notes of the exports that were made of it.
EXPORTS_FOLDER = "_lakelog_exports"
#: Topics that Kafka keeps for itself (``Topic.INTERNAL_TOPICS``), under their names there.
INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


class Topic(Struct, frozen=True):
    """What every stage is handed; only the registry (``hot/registry.py``) loads one."""

    name: str
    topic_id: UUID  # new at each creation, so a dropped topic's data is never taken for this one's
    partitions: int  # ≥ 1, only grows
    config: TopicConfig = field(default_factory=TopicConfig)
    config_version: int = 1  # grows by one at each change of config, its defaults, or partitions
    generation: int = 0  # microseconds since the epoch at creation; grows with each under a name
    defaults_version: int = 0  # of the keyspace's defaults, whose changes config_version counts too
    keyspace: str | None = None  # None: made by hand, or told by a table of an older lakelog
    keyspace_id: UUID | None = None  # given with its first topic; another Redis has another
    keyspace_defaults: tuple[tuple[str, str], ...] = ()  # text by broker names
    deleted_ms: int | None = None  # when it was deleted; None: it was not
    purged_ms: int | None = None  # when its removal for good began; None: it can be brought back
    named_by_id: bool = False  # its table by name has its id in the name; see `table_name`

    def __repr__(self) -> str:
        """One line, with the settings of its own."""
        said = [
            repr(self.name),
            counted(self.partitions, "partition"),
        ]
        said += [f"{name}={text}" for name, text in self.config.overrides]
        if self.deleted_ms is not None:
            said.append("deleted")
        return f"<Topic {', '.join(said)}; id {self.topic_id}>"

    @property
    def kept_until_ms(self) -> int | None:
        """Until when a deleted topic can be brought back for certain; None: it was not deleted."""
        if self.deleted_ms is None:
            return None
        return self.deleted_ms + int(self.config["file.delete.delay.ms"])

    def has(self, partition: int) -> bool:
        """Whether there is a partition of that number."""
        return 0 <= partition < self.partitions

    def partition(self, partition: int) -> TopicPartition:
        """The topic-partition of that number.

        Raises:
            UnknownTopicOrPartitionError: the topic has no such partition.
        """
        number = whole(partition)
        if number is None:
            raise UnknownTopicOrPartitionError(
                f"partition {partition!r} is not a whole number; topic {self.name!r} has "
                f"partitions 0..{self.partitions - 1}",
                topic=self.name,
                partition=partition,
            )
        if not self.has(number):
            raise UnknownTopicOrPartitionError(
                f"topic {self.name!r} has no partition {number}: it has partitions "
                f"0..{self.partitions - 1}",
                topic=self.name,
                partition=number,
            )
        return TopicPartition(self.name, number)

    def topic_partitions(self) -> list[TopicPartition]:
        return [TopicPartition(self.name, number) for number in range(self.partitions)]


def near_names(name: str, names: Iterable[str]) -> str:
    """``did you mean 'orders'?``, of the topics that a mistyped name may mean; empty for none."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(names))
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def topic_name(given: object) -> str:
    """A topic's name, also of the topic itself.

    Raises:
        InvalidTopicError: no topic can have it.
    """
    return given.name if isinstance(given, Topic) else check_topic_name(given)


def topic_names(given: object) -> list[str]:
    """The names of several topics, or of one.

    Raises:
        InvalidArgumentError: it is neither.
        InvalidTopicError: no topic can have one of them.
    """
    if isinstance(given, str | Topic):
        return [topic_name(given)]
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise InvalidArgumentError(
            f"{given!r:.200} is no topic's name, and no list of names", value=given
        )
    return [topic_name(one) for one in given]


def catalog_name(name: str) -> str:
    """What a topic is called in a catalog, which allows fewer characters and ignores case."""
    return name.replace(".", "_").replace("-", "_").lower()


def check_new_topic_name(name: str) -> str:
    """The name, if a topic may be created with it.

    Raises:
        InvalidTopicError: as `check_topic_name`, or its table would lie where another one does.
    """
    check_topic_name(name)
    tables = {
        STATUS_TABLE: "job runs",
        GROUPS_TABLE: "groups' offsets",
        EXPORTS_FOLDER: "notes of exports",
    }
    if catalog_name(name) in tables:
        raise InvalidTopicError(
            f"{name!r} cannot be a topic: the table of {tables[catalog_name(name)]}, "
            f"{catalog_name(name)}, lies where its table would. Choose another name",
            topic=name,
        )
    return name


def check_topic_name(name: object) -> str:
    """The name, if it follows Kafka's rule.

    Raises:
        InvalidTopicError: empty, "." or "..", longer than 249, or other than [a-zA-Z0-9._-].
    """
    if not isinstance(name, str) or name in {"", ".", ".."} or not _LEGAL.fullmatch(name):
        raise InvalidTopicError(
            f"{name!r:.200} is not a legal topic name: use letters, digits, '.', '_' and '-', "
            "and not just '.' or '..'",
            topic=name if isinstance(name, str) else None,
        )
    if len(name) > MAX_NAME_LENGTH:
        raise InvalidTopicError(
            f"a topic name has at most {MAX_NAME_LENGTH} characters; this one has {len(name)}",
            topic=name,
        )
    return name
