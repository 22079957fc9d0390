"""Encryption of values that begins, goes on under other keys, and ends, as rules of the machine."""

from __future__ import annotations

from lakelog.errors import MissingExtraError
from lakelog.values.config import DATA_KEYS, ENCRYPTION_KEY

from .harness import LogHarness, any_new

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

#: Keys that wrap the topic's data keys, by the names of their files.
_KEYS = {"key": "5e" * 32, "other": "7a" * 32}


class KeyRules(LogHarness):
    """What is done to the keys of a topic's values. The model does not notice: it holds values."""

    @precondition(any_new)
    @rule(
        what=st.sampled_from(["rotate", "rotate", "wrap", "stop"]),
        other=st.booleans(),
        told=st.booleans(),
    )
    def change_keys(self, what: str, other: bool, told: bool) -> None:
        """The topic's values are encrypted from now on, or under another key, or no more.

        Its table is told at once, or by the next archiver.
        """
        self.news = 0
        reference = self._reference("other" if other else "key")
        topics = self.hot.topics()
        name, config = self.topic.name, self.topic.config
        if not config.encrypts:
            kept = config[DATA_KEYS]
            under = reference if kept is None else kept.reference
            self.topic = topics.alter(name, {ENCRYPTION_KEY: under})
        elif what == "stop":
            self.topic = topics.alter(name, {ENCRYPTION_KEY: None})
        else:
            under = reference if what == "wrap" else None
            self.topic = topics.rotate_key(name, wrap_with=under)
        if told:
            self.table.mirror(self.topic)
        self._cannot_be_lost()

    def _reference(self, name: str) -> str:
        path = self.directory / f"{name}.key"
        path.write_text(_KEYS[name])
        return f"file:{path}"
