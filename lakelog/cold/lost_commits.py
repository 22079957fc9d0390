"""How often a commit is tried again that did not land."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from ..back_off import BackOff, Tries
from ..errors import CommitConflictError
from .storage import one_line
from .store_errors import error_class

_SAID_CHARACTERS = 1000  # of what Spark or a store says; a stack trace is no message


@dataclass(frozen=True, slots=True)
class CommitBackOff:
    """How long commits and what belongs to them are tried again."""

    races: BackOff  # commits that others won; its tries count them all
    refusals: BackOff  # commits that failed although nobody else committed; its tries, in a row
    reads: BackOff  # reads that find out whether a commit landed


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

    @property
    def refused(self) -> int:
        """How many failed in a row although nobody else committed."""
        return self._refusals.failures

    def lost(self, error: Exception | None, *, to_others: bool, advice: str) -> None:
        """Note a commit that did not land.

        Args:
            error: what it failed with; None if it did not say.
            advice: what to do about a store that refuses.

        Raises:
            ColdTierError: the store refuses again and again; see `store_errors`.
            CommitConflictError: others win again and again.
        """
        said = "it is not in the log" if error is None else one_line(error)
        if to_others:
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
                    f"changed. {advice}",
                    path=self._path,
                ) from error
        self._pause_s = pause_s

    def wait(self) -> None:
        """Before the next attempt; others should not meet us again at the same moment."""
        time.sleep(self._pause_s)
