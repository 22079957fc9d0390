"""Carries the errors of a job's tasks to a driver that sees only text.

Runs on: executor; `TaskErrors.found_in` on the driver.
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
    """Holds an error's text, and the error itself."""


@dataclass(frozen=True, slots=True)
class TaskErrors:
    """Carries the errors of one job in the text of the exception that Spark makes of them.

    Such a text may quote records, so only what stands beside the job's own token is unpickled. The
    token is random, made on the driver and sent with the function, so no record can hold it.

    | token | ``<`` what the error says | token | ``=`` the error, base64 | token | ``>`` |
    """

    token: str = field(default_factory=lambda: secrets.token_hex(16), repr=False)

    def carried(self, error: Exception) -> CarriedError:
        """What a task raises instead of an error."""
        from pyspark import cloudpickle

        try:
            content = cloudpickle.dumps(error)
            pickle.loads(content)
        except Exception:  # the error cannot be pickled, but its text can
            content = pickle.dumps(_plain(f"{type(error).__name__}: {error}"))
        encoded = base64.b64encode(content).decode()
        token = self.token
        return CarriedError(f"{token}< {error} {token}={encoded}{token}>")

    def found_in(self, text: str) -> Exception | None:
        """The error that a failed job's text carries; None if it carries none.

        Spark Connect cuts long texts. Of a text that was cut, this is a plain error that says what
        is left of it.
        """
        token = re.escape(self.token)
        whole = re.search(f"{token}=([A-Za-z0-9+/=]+){token}>", text)
        if whole is not None:
            # An error of other versions on the executors may not load here; then its text must do.
            with contextlib.suppress(Exception):
                error: Exception = pickle.loads(base64.b64decode(whole[1]))
                return error
        said = re.search(f"{token}<(.*?)(?:{token}|$)", text, re.DOTALL)
        return None if said is None else _plain(said[1].strip())


def _plain(what: str) -> LakelogError:
    return LakelogError(f"a task failed: {what}")
