"""Errors of a job's tasks, on their way to a driver that gets to see text alone.

Runs on: executor, but for `TaskErrors.found_in`.
"""

from __future__ import annotations

import base64
import contextlib
import pickle
import re
import secrets
from dataclasses import dataclass, field

from ...errors import LakelogError


class CarriedError(Exception):
    """Says what an error said, and carries it."""


@dataclass(frozen=True, slots=True)
class TaskErrors:
    """Carries the errors of one job, in the text of the exception that Spark makes of them.

    Such a text may quote records, so it is unpickled only where the job's own token stands beside
    it: random, made on the driver, bound into the function that travels. No record can hold it.

    | token | ``<`` what the error says | token | ``=`` the error, base64 | token | ``>`` |
    """

    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def carried(self, error: Exception) -> CarriedError:
        """What a task raises instead of an error."""
        from pyspark import cloudpickle

        try:
            content = cloudpickle.dumps(error)
            pickle.loads(content)
        except Exception:  # it cannot travel, but what it says can
            content = pickle.dumps(_plain(f"{type(error).__name__}: {error}"))
        encoded = base64.b64encode(content).decode()
        token = self.token
        return CarriedError(f"{token}< {error} {token}={encoded}{token}>")

    def found_in(self, text: str) -> Exception | None:
        """The error that a failed job's text carries; None if it is none of the tasks' own.

        Of a text that was cut, which Spark Connect does with long ones, a plain error that says
        what is left of it.
        """
        token = re.escape(self.token)
        whole = re.search(f"{token}=([A-Za-z0-9+/=]+){token}>", text)
        if whole is not None:
            # What cannot be made here again (other versions on the executors) is said all the same.
            with contextlib.suppress(Exception):
                error: Exception = pickle.loads(base64.b64decode(whole[1]))
                return error
        said = re.search(f"{token}<(.*?)(?:{token}|$)", text, re.DOTALL)
        return None if said is None else _plain(said[1].strip())


def _plain(what: str) -> LakelogError:
    return LakelogError(f"a task failed: {what}")
