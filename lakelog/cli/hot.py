"""``lakelog hot``: pause the hot tier before a planned stop of Redis, and resume it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from .connect import open_log
from .options import Offer
from .output import Message

if TYPE_CHECKING:
    from ..values.topic_partition import TopicPartition

_PAUSE = """\
Appends are refused (producers wait and retry) and every partition is marked clean. Then stop or
restart Redis, and run `lakelog hot resume`: the log goes on without a gap in its offsets.
"""
_RESUME = """\
Needs the right to CONFIG SET appendfsync for a moment, to be sure that the clean mark is off the
disk before anything is appended. Where that is not allowed, the next append leaves a gap instead.
"""


def add_hot(offer: Offer) -> None:
    verb = offer.verbs("Pause before a planned stop of Redis, and resume after it.")
    verb("pause", _pause, "refuse appends and mark partitions clean", _PAUSE)
    verb("resume", _resume, "accept appends again", _RESUME)


def _pause(arguments: argparse.Namespace) -> Message:
    from ..hot.hot_log import pause_all

    _check_it_runs(arguments, "pause")
    with open_log(arguments) as log:
        left = pause_all(log.hot)
        sure = all(server.append_only_file for server in log.hot.servers())
    text = "paused; stop Redis now, and `lakelog hot resume` after its start"
    if not sure:
        text += (
            ". It keeps no append-only file, so that nothing proves that it came back whole: "
            "the next append will leave a gap in the offsets all the same"
        )
    return _message(text, left)


def _resume(arguments: argparse.Namespace) -> Message:
    from ..hot.hot_log import resume_all

    _check_it_runs(arguments, "resume")
    with open_log(arguments) as log:
        left = resume_all(log.hot)
    return _message("resumed; appends go on", left)


def _check_it_runs(arguments: argparse.Namespace, verb: str) -> None:
    """Refuse a directory that nobody uses: its Redis would run for this command alone."""
    from ..errors import InvalidArgumentError
    from ..hot.embedded.redis_server import EmbeddedRedis

    if arguments.dir and not EmbeddedRedis(Path(arguments.dir) / "redis").is_used():
        raise InvalidArgumentError(
            f"nobody uses {arguments.dir}, so there is no Redis to {verb}: its last user stopped "
            "it clean, and the next one goes on without a gap",
            value=arguments.dir,
        )


def _message(text: str, left: list[TopicPartition]) -> Message:
    names = [str(topic_partition) for topic_partition in left]
    if names:
        text += f". Not clean, so the next append leaves a gap: {', '.join(names)}"
    return Message(text, {"left_with_a_gap": names})
