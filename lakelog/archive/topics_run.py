"""One archive run over several topics; a topic that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..base.back_off import ASK_AGAIN, Tries
from ..engines.threads import each_at_once
from ..errors import LakelogError, PartlyFailedError, by_topic
from ..values.topic import Topic
from .report import ArchiveReport


class TopicsRun:
    """Every report and every error of a run over topics, in the order of the topics.

    Args:
        attempt: archives a topic; gives what was archived, and why the rest was not. An error that
            it raises is one more.
        at_once: topics worked on at a time; one: in the caller's thread, else see `each_at_once`.
        cancel: see `each_at_once`.
    """

    def __init__(
        self,
        attempt: Callable[[Topic], tuple[ArchiveReport, Sequence[LakelogError]]],
        *,
        at_once: int = 1,
        cancel: Callable[[], None] | None = None,
    ) -> None:
        self._attempt = attempt
        self._cancel = cancel
        self._at_once = at_once
        self.reports: dict[str, ArchiveReport] = {}
        self.errors: dict[str, list[LakelogError]] = {}

    def archive(self, topics: Sequence[Topic], patience_s: float) -> None:
        """Archive each topic once; then retry failed ones for `patience_s`, if that may help."""
        by_name = {topic.name: topic for topic in topics}
        left = list(by_name.values())
        tries = Tries("archiving", ASK_AGAIN.within(patience_s))
        while left:
            for topic in left:
                self.errors.pop(topic.name, None)
            each_at_once(left, self._one, self._at_once, self._cancel)
            found = [(topic, self.errors.get(topic.name, [])) for topic in left]
            again = [
                (topic, errors[0])
                for topic, errors in found
                if errors and all(error.retriable for error in errors)
            ]
            left = [topic for topic, _ in again]
            if again:
                try:
                    tries.wait(again[0][1])
                except LakelogError:  # the time is over
                    break
        self.reports = {name: self.reports[name] for name in by_name if name in self.reports}
        self.errors = {name: self.errors[name] for name in by_name if name in self.errors}

    def do(self, topic: Topic, work: Callable[[Topic], None]) -> None:
        """Do something for a topic, and keep its error, if any."""
        try:
            work(topic)
        except LakelogError as error:
            self.errors.setdefault(topic.name, []).append(error)

    def checked(self) -> list[ArchiveReport]:
        """The reports.

        Raises:
            PartlyFailedError: there are errors; it has the reports too.
        """
        reports = list(self.reports.values())
        if self.errors:
            raise PartlyFailedError(
                f"not all could be archived, the rest was: {by_topic(self.errors)}. Mend that and "
                "archive again; what is left is in Redis",
                reports=reports,
                errors=self.errors,
            )
        return reports

    def _one(self, topic: Topic) -> None:
        try:
            report, errors = self._attempt(topic)
        except LakelogError as error:
            self.errors[topic.name] = [error]
            return
        before = self.reports.get(topic.name)
        if before is not None:
            report = before.followed_by(report)
        if report or not errors:
            self.reports[topic.name] = report
        if errors:
            self.errors[topic.name] = list(errors)
