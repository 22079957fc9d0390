"""The keys of `keys` as Redis's glob patterns, for access rules that name many at once.

``*`` in a pattern stands for any text. What a keyspace, topic or group has of a glob's signs is
written with a backslash before it; a space or a quote, which a rule of Redis cannot hold, as ``?``.
"""

from __future__ import annotations

import re

from .keys import Keys, check_keyspace

_PARTITION = "[0-9]*"


class KeyPatterns:
    """The patterns of one keyspace.

    Raises:
        InvalidArgumentError: it is no keyspace.
    """

    def __init__(self, keyspace: str) -> None:
        self._keys = Keys(check_keyspace(keyspace))
        self._prefix = _literal(keyspace)

    @property
    def topics(self) -> str:
        return _literal(self._keys.topics)

    @property
    def quotas(self) -> str:
        return _literal(self._keys.quotas)

    @property
    def archivers(self) -> str:
        return _literal(self._keys.archivers)

    @property
    def cleanups(self) -> str:
        return _literal(self._keys.cleanups)

    @property
    def groups(self) -> str:
        """The list of groups, shared by all of them."""
        return _literal(self._keys.groups)

    @property
    def groups_recorded(self) -> str:
        return _literal(self._keys.groups_recorded)

    @property
    def share_groups(self) -> str:
        return _literal(self._keys.share_groups)

    @property
    def resume_locks(self) -> str:
        return f"{self._prefix}:resume:*"

    @property
    def naming_locks(self) -> str:
        return f"{self._prefix}:naming:*"

    def partitions(self, topic: str) -> tuple[str, str]:
        """The streams of a topic, and all that belongs to them.

        Args:
            topic: its name; ``web.*`` for all that begin with ``web.``.
        """
        stream = f"{self._prefix}:stream:{_prefixed(topic)}:{_PARTITION}"
        return stream, f"{{{stream}}}:*"

    def shares(self, topic: str) -> str:
        """How far share groups have come in a topic; `topic` as in `partitions`."""
        return f"{{{self.partitions(topic)[0]}}}:shares"

    def group(self, group_id: str) -> tuple[str, str]:
        """A group, and all that belongs to it; ``*`` stands for text of any kind at its end."""
        spelled = group_id[:-1] if group_id.endswith("*") else group_id
        key = _literal(self._keys.group(spelled).group) + ("*" if spelled != group_id else "")
        return key, f"{{{key}}}:*"

    def everything(self) -> tuple[str, str]:
        """All keys of the keyspace."""
        return f"{self._prefix}:*", f"{{{self._prefix}:*"


def _prefixed(name: str) -> str:
    return f"{_literal(name[:-1])}*" if name.endswith("*") else _literal(name)


def _literal(text: str) -> str:
    return re.sub(r"[\s\"']", "?", re.sub(r"([*?\[\]\\^])", r"\\\1", text))
