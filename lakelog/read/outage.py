"""A tier that does not answer while somebody polls: asked again, and told in the log."""

from __future__ import annotations

import time
from typing import TypeGuard

from ..base.back_off import BackOff, Tries
from ..errors import ColdTierUnavailableError, HotTierUnavailableError, LakelogError

#: How often a tier that is away is asked. Source: Kafka's ``reconnect.backoff.ms`` and
#: ``reconnect.backoff.max.ms``.
ASK_AGAIN = BackOff(0.05, 1.0)


def is_outage(error: object) -> TypeGuard[LakelogError]:
    """Whether it says that a tier does not answer."""
    return isinstance(error, (HotTierUnavailableError, ColdTierUnavailableError))


class Outage:
    """One consumer's, over all its polls: it ends when one of them comes through."""

    def __init__(self) -> None:
        self.error: LakelogError | None = None  # of the last try; None: the tiers answer
        self._tries: Tries | None = None

    def began(self, error: LakelogError, what: str) -> None:
        """Note that the tiers do not answer, or still do not.

        Args:
            what: was tried, for the log; see `Telling.failed`.

        Raises:
            LakelogError: the error, if asking again is of no use.
        """
        if not is_outage(error):
            raise error
        self._tries = self._tries or Tries(what, ASK_AGAIN)
        self._tries.failed(error)
        self.error = error

    def ended(self) -> None:
        """The tiers have answered."""
        if self._tries is not None:
            self._tries.succeeded()
            self._tries = self.error = None

    @property
    def is_due(self) -> bool:
        """Whether to ask: the tiers answer, or the pause after the last failure is over."""
        return self._tries is None or self._tries.next_s <= time.monotonic()

    def wait(self, until_s: float) -> bool:
        """Until it is due; False if that is after `until_s` (monotonic), when it returns."""
        due_s = 0.0 if self._tries is None else self._tries.next_s
        time.sleep(max(0.0, min(due_s, until_s) - time.monotonic()))
        return due_s <= until_s
