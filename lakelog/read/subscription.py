"""Which topics a consumer wants, and which there are now."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from math import inf
from typing import Any

from msgspec import Struct

from ..errors import InvalidArgumentError, LakelogError, UnknownTopicOrPartitionError
from ..values.topic import Topic, check_topic_name
from ..values.topic_partition import TopicPartition
from .topic_log import TopicLog

logger = logging.getLogger(__name__)


class ConsumerRebalanceListener:
    """Is told which partitions a subscription gives and takes, from within `poll`.

    By kafka-python's names: its own listeners serve as well.
    """

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        """Before these go; positions can still be asked for."""

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """After these have come; the consumer may seek in them."""

    def on_partitions_lost(self, lost: set[TopicPartition]) -> None:
        """After these went without warning: other members of the group may read them already.

        By default as if they were revoked, as in Kafka; but what is committed then is refused.
        """
        self.on_partitions_revoked(lost)


class Subscription(Struct, frozen=True):
    """Topics by name, or all whose names match a pattern from their beginning, as `re.match` does.

    Attributes:
        names: those to read; a topic that is not there yet is waited for.
        pattern: instead of names.
        listener: is told of changes.
    """

    names: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    listener: Any = None
    raised: list[Exception] = []  # by the listener, the last time that it raised something

    @classmethod
    def of(cls, topics: Iterable[str], pattern: object, listener: object) -> Subscription:
        """From the arguments of `Consumer.subscribe`.

        Raises:
            InvalidArgumentError: neither or both of names and pattern, a text in the place of a
                list, a pattern that is none, or no listener.
            InvalidTopicError: a name that no topic can have.
        """
        if isinstance(topics, str):
            raise InvalidArgumentError(
                f"topics={topics!r} is one text; subscribe to a list of names, such as [{topics!r}]"
            )
        names = topic_names(topics)
        if bool(names) == bool(pattern):
            raise InvalidArgumentError(
                "subscribe to names or to a pattern, one of both: subscribe(['flights']) or "
                "subscribe(pattern='flights-.*'); unsubscribe() ends a subscription"
            )
        for name in names:
            check_topic_name(name)
        for method in ("on_partitions_revoked", "on_partitions_assigned"):
            if listener is not None and not callable(getattr(listener, method, None)):
                raise InvalidArgumentError(
                    f"listener={listener!r} has no {method}; make it a ConsumerRebalanceListener"
                )
        return cls(names, _compiled(pattern), listener)

    def of_these(self, topics: Iterable[Topic]) -> list[Topic]:
        """The topics among these that are subscribed to."""
        if self.pattern is None:
            return [topic for topic in topics if topic.name in self.names]
        return [topic for topic in topics if self.pattern.match(topic.name)]

    def tell_revoked(self, partitions: Set[TopicPartition]) -> None:
        if partitions and self.listener is not None:
            self._tell(self.listener.on_partitions_revoked, partitions)

    def tell_lost(self, partitions: Set[TopicPartition]) -> None:
        if partitions and self.listener is not None:
            told = getattr(self.listener, "on_partitions_lost", self.listener.on_partitions_revoked)
            self._tell(told, partitions)

    def tell_assigned(self, partitions: Set[TopicPartition]) -> None:
        if self.listener is not None:
            self._tell(self.listener.on_partitions_assigned, partitions)

    def _tell(
        self, told: Callable[[set[TopicPartition]], object], partitions: Set[TopicPartition]
    ) -> None:
        try:
            told(set(partitions))
        except Exception as error:
            self.raised[:] = [error]
            raise

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"pattern {self.pattern.pattern!r}"
        return f"topics {', '.join(sorted(self.names))}"


def topic_names(topics: Iterable[str]) -> frozenset[str]:
    """The names that were given.

    Raises:
        InvalidArgumentError: several are given in the place of one.
    """
    given = [*topics] if isinstance(topics, Iterable) else [topics]
    for one in given:
        if isinstance(one, list | tuple | set | frozenset):
            raise InvalidArgumentError(
                f"{one!r} is no topic's name; give names one by one (consumer('a', 'b')), or "
                "subscribe(['a', 'b'])"
            )
    return frozenset(one.name if isinstance(one, Topic) else one for one in given)


class SeenTopics:
    """The topics there are, listed again only when something has changed.

    Args:
        list_topics: all topics there are.
        version: is another one whenever a topic came, went or changed; None: that is not known.
    """

    def __init__(
        self,
        list_topics: Callable[[], Sequence[Topic]],
        version: Callable[[], object] | None = None,
    ) -> None:
        self._list = list_topics
        self._version = version
        self._seen: tuple[object, Sequence[Topic]] | None = None

    def now(self) -> Sequence[Topic]:
        """The topics, as of now.

        Raises:
            LakelogError: they cannot be asked for.
        """
        if self._version is None:
            return self._list()
        version = self._version()  # before the list, so that a change meanwhile is seen next time
        if self._seen is None or self._seen[0] != version:
            self._seen = version, self._list()
        return self._seen[1]


class FollowedTopics:
    """The topics there are, looked at now and then, and their logs.

    Args:
        seen: which there are.
        logs: opens one.
        max_age_ms: how often it looks.
    """

    def __init__(self, seen: SeenTopics, logs: Callable[[str], TopicLog], max_age_ms: int) -> None:
        self._seen = seen
        self._logs = logs
        self._max_age_s = max_age_ms / 1000
        self.due_s = -inf  # when to look again; monotonic
        self.now: Mapping[str, Topic] = {}
        self._missing: set[str] = set()  # that the log was told of

    def look_again(self) -> None:
        """The next call looks."""
        self.due_s = -inf

    def look(self) -> bool:
        """Whether it was time to look."""
        if time.monotonic() < self.due_s:
            return False
        self.now = {topic.name: topic for topic in self._seen.now()}
        self.due_s = time.monotonic() + self._max_age_s
        return True

    def partition_counts(self) -> Mapping[str, int]:
        return {name: topic.partitions for name, topic in self.now.items()}

    def tell_missing(self, names: Iterable[str]) -> None:
        """Warns, once each time it goes, of a topic that is subscribed to and not there."""
        missing = {name for name in names if name not in self.now}
        for name in sorted(missing - self._missing):
            logger.warning(
                "there is no topic %r; this consumer waits until it is created. Look whether its "
                "name is spelt as meant",
                name,
            )
        self._missing = missing

    def logs(self, names: Iterable[str], known: Mapping[str, TopicLog]) -> dict[str, TopicLog]:
        """The logs of those that are there; one that is known is not opened again."""
        found = {}
        for name in names:
            topic, log = self.now.get(name), known.get(name)
            if (
                topic is not None
                and log is not None
                and log.topic.topic_id == topic.topic_id
                and log.topic.partitions >= topic.partitions
            ):
                found[name] = log
                continue
            try:
                found[name] = self._logs(name)
            except UnknownTopicOrPartitionError:
                continue  # deleted since
            except LakelogError:
                self.look_again()  # nothing was made of what was seen
                raise
        return found


def _compiled(pattern: object) -> re.Pattern[str] | None:
    if not pattern:
        return None
    try:
        compiled: re.Pattern[str] = re.compile(pattern)  # type: ignore[call-overload]
        compiled.match("")  # refuses a pattern of bytes
        return compiled
    except (re.error, TypeError) as error:
        raise InvalidArgumentError(
            f"pattern={pattern!r} is no regular expression: {error}"
        ) from None
