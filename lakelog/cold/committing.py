"""Commits one change to a table of either kind, in as many attempts as it takes.

Each attempt looks at the newest version, commits what still stands of the change, and finds out
whether that landed. A lost reply looks like a lost race; only the table knows.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from ..base.back_off import BackOff, Tries
from ..base.failpoints import failpoint
from ..errors import (
    ColdTierError,
    CommitConflictError,
    CommitUnknownError,
    MissingFileError,
    PolicyViolationError,
    UnknownTopicIdError,
)
from ..values.topic import Topic
from .change import Change
from .planned import standing_partitions
from .segment import SegmentFile
from .store_errors import error_class, one_line
from .table import Applied, ColdSnapshot, ColdTable

T = TypeVar("T")

#: A VACUUM with a short retention that began before a commit deletes the commit's files after it.
#: Where there was one before, files are looked at so much later.
VACUUM_S = 1.0

_SAID_CHARACTERS = 1000  # kept of Spark's or a store's words; a stack trace is no message


class CommitBackOff(Struct, frozen=True):
    """How long commits, and the reads that belong to them, are retried."""

    races: BackOff  # commits lost to others; its tries count all of them
    refusals: BackOff  # commits that failed although nobody else committed; tries in a row
    reads: BackOff  # reads that find out whether a commit landed


class NotLanded(Struct, frozen=True):
    """An attempt that did not land."""

    error: Exception | None  # what it failed with; None if it did not say
    to_others: bool  # whether somebody else committed meanwhile
    advice: str  # what to do about a store that refuses


#: Commits the given partitions of a change, which are those that stand.
Attempt = Callable[[frozenset[int]], Applied | NotLanded]


class Committing(Struct, frozen=True):
    """A change and what decides whether it is still wanted.

    Args:
        topic: whose table it is.
        newest_config: gives the topic's config version from where it is decided; None: the table's
            properties alone tell.
        turn: held from a look at the table until the outcome of the attempt after it is known.
    """

    topic: Topic
    change: Change
    planned_on: ColdSnapshot
    newest_config: Callable[[], int] | None
    turn: AbstractContextManager[object] = nullcontext()

    def run(
        self, prepare: Callable[[], tuple[ColdSnapshot, Attempt]], lost: LostCommits
    ) -> Applied:
        """Commits what stands of the change; the rest was superseded.

        Args:
            prepare: looks at the newest version, and gives an attempt on top of it.

        Raises:
            UnknownTopicIdError: the table says that its topic was deleted.
            PolicyViolationError: the change archives, and the table says that its topic is
                archived no more.
            ColdTierError, CommitConflictError: see `LostCommits`.
            Exception: what an attempt raises.
        """
        while True:
            with self.turn:
                current, attempt = prepare()
                if current.is_deleted:
                    raise deleted_topic(self.topic)
                if current.is_untiered and self.change.hot_partitions:
                    raise _untiered_topic(self.topic, current.config_version)
                standing = standing_partitions(self.change, self.planned_on, current)
                if not standing:
                    return Applied(current, superseded=self.change.partitions)
                failpoint("cold.before_commit")
                if self._is_outdated():
                    return Applied(current, superseded=self.change.partitions)
                outcome = attempt(standing)
            if isinstance(outcome, Applied):
                return outcome
            lost.lost(outcome)
            lost.wait()

    def _is_outdated(self) -> bool:
        """Whether the policy that asked for the change is no longer the topic's.

        A topic's new settings are written where this asks first, and then committed to the table.
        So if this look came too early to see them, that commit makes ours fail.
        """
        under, newest = self.change.config_version, self.newest_config
        return under is not None and newest is not None and newest() > under


def deleted_topic(topic: Topic) -> UnknownTopicIdError:
    """The error of those who would use the table of a deleted topic."""
    return UnknownTopicIdError(
        f"topic {topic.name!r} with id {topic.topic_id} was deleted: nothing more is archived into "
        "its table, and its files may be gone. Look the topic up again; if Redis still has it, "
        "Redis has lost the deletion: say again what is to hold, `lakelog topics delete "
        f"{topic.name}` or, while it is kept, `lakelog topics undelete {topic.name}`",
        topic=topic.name,
        topic_id=topic.topic_id,
    )


def _untiered_topic(topic: Topic, config_version: int) -> PolicyViolationError:
    """The error of those who would archive a topic that is archived no more."""
    lost = (
        f". Redis says otherwise in version {topic.config_version}: it has lost the change. Say "
        f"again what is to hold: `lakelog topics alter {topic.name} --config "
        "remote.storage.enable=true` (or false)"
        if topic.config_version < config_version
        else ""
    )
    return PolicyViolationError(
        f"topic {topic.name!r} is archived no more: its table has remote.storage.enable=false, "
        f"from version {config_version} of the topic's settings{lost}",
        topic=topic.name,
    )


def refuse_loss(table: ColdTable, missing: Iterable[SegmentFile]) -> None:
    """Keep what files were made of, where somebody deleted the files that took their place.

    Args:
        missing: see `ColdTable.missing`.

    Raises:
        MissingFileError: there are some.
    """
    for file in missing:
        raise MissingFileError(
            f"{file.path} is gone, though the table at {table.where} names it: somebody deleted "
            "it, as a full VACUUM with a retention of 0 does. Nothing was deleted now, since what "
            "it was made of may be there yet. Put it back from a backup, or look at DESCRIBE "
            "HISTORY and RESTORE the table to the version before it was written",
            path=file.path,
        )


def tell_purge(table: ColdTable, *, decided: bool) -> bool:
    """Have a table say that it is being removed, so that nobody can bring its topic back any more.

    Args:
        decided: see `ColdTable.purge`.

    Returns:
        False if there is no table.

    Raises:
        PolicyViolationError: the table says that its topic is there again.
        ColdTierError: it cannot be read or committed to.
    """
    while True:
        held = table.mirrored()
        if held is None or held.purged_ms is not None:
            return held is not None
        now_ms = time.time_ns() // 1_000_000
        version = held.config_version + 1
        if held.deleted_ms is None and decided:
            table.mirror(replace(held, deleted_ms=now_ms, config_version=version))
        else:
            table.mirror(replace(held, purged_ms=now_ms, config_version=version))


def read_back(
    where: str,
    path: str,
    ask: Callable[[], T],
    error: Exception | None,
    reads: BackOff,
    at_once: tuple[type[ColdTierError], ...] = (),
) -> T:
    """What a table says of a commit that may have landed.

    Args:
        where: "the table at s3://…".
        path: for errors.
        ask: reads the table.
        error: what the commit failed with, if it did.
        at_once: errors of `ask` that another try does not mend.

    Raises:
        CommitUnknownError: the table cannot be read.
    """
    tries = Tries(f"reading {where} after a commit", reads)
    while True:
        try:
            return ask()
        except at_once:
            raise
        except ColdTierError as failure:
            error = error or failure
            pause_s = tries.failed(failure)
            if pause_s is None:
                raise CommitUnknownError(
                    f"a commit to {where} may have landed: its outcome was not reported, and "
                    f"reading it back failed too ({failure.message}). Take a new snapshot when it "
                    "answers again; running this once more is safe",
                    path=path,
                ) from error
            time.sleep(pause_s)


class LostCommits:
    """The commits of one change that did not land, so far.

    Args:
        where: "the table at s3://…".
        path: for errors.
    """

    def __init__(self, where: str, path: str, back_off: CommitBackOff) -> None:
        self._where = where
        self._path = path
        self._races_lost = back_off.races.tries
        self._races = Tries(f"a commit to {where}", back_off.races, level=logging.INFO)
        self._refusals = Tries(f"a commit to {where}", back_off.refusals)
        self._pause_s = 0.0

    def lost(self, commit: NotLanded) -> None:
        """Note a commit that did not land.

        Raises:
            ColdTierError: the store refuses again and again; see `store_errors`.
            CommitConflictError: others win again and again.
        """
        said = "it is not in the log" if commit.error is None else one_line(commit.error)
        if commit.to_others:
            self._refusals.renew()
            pause_s = self._races.failed(said[:_SAID_CHARACTERS])
            if pause_s is None:
                raise CommitConflictError(
                    f"others kept committing to {self._where}: none of {self._races_lost} attempts "
                    "won. Nothing of this change was committed; try again",
                    path=self._path,
                )
        else:
            pause_s = self._refusals.failed(said[:_SAID_CHARACTERS])
            if pause_s is None:
                raise error_class(said)(
                    f"{self._where} takes no commit: {said[:_SAID_CHARACTERS]}. Nothing was "
                    f"changed. {commit.advice}",
                    path=self._path,
                ) from commit.error
        self._pause_s = pause_s

    def wait(self) -> None:
        """Pause before the next attempt, so as not to meet the others again at the same moment."""
        time.sleep(self._pause_s)
