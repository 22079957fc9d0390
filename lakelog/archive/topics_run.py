"""One archive run over several topics; a topic that fails stops no other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..back_off import ASK_AGAIN, Tries
from ..errors import ArchiveFailedError, LakelogError, by_topic
from ..topic import Topic
from .report import ArchiveReport


class TopicsRun:
    """Every report and every error of a run over topics.

    Args:
        attempt: archives a topic; gives what was archived, and why the rest was not. An error that
            it raises is one more.
    """

    def __init__(
        self, attempt: Callable[[Topic], tuple[ArchiveReport, Sequence[LakelogError]]]
    ) -> None:
        self._attempt = attempt
        self.reports: dict[str, ArchiveReport] = {}
        self.errors: dict[str, list[LakelogError]] = {}

    def archive(self, topics: Sequence[Topic], patience_s: float) -> None:
        """Archive each topic; then retry failed ones for `patience_s`, if that may help."""
        tries = Tries("archiving", ASK_AGAIN.within(patience_s))
        left = list(topics)
        while left:
            for topic in left:
                self.errors.pop(topic.name, None)
                self.do(topic, self._one)
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
                    return

    def do(self, topic: Topic, work: Callable[[Topic], None]) -> None:
        """Do something for a topic, and keep its error, if any."""
        try:
            work(topic)
        except LakelogError as error:
            self.errors.setdefault(topic.name, []).append(error)

    def checked(self) -> list[ArchiveReport]:
        """The reports.

        Raises:
            ArchiveFailedError: there are errors; it has the reports too.
        """
        reports = list(self.reports.values())
        if self.errors:
            raise ArchiveFailedError(
                f"not all could be archived, the rest was: {by_topic(self.errors)}. Mend that and "
                "archive again; what is left is in Redis",
                reports=reports,
                errors=self.errors,
            )
        return reports

    def _one(self, topic: Topic) -> None:
        report, errors = self._attempt(topic)
        before = self.reports.get(topic.name)
        if before is not None:
            report = before.followed_by(report)
        if report or not errors:
            self.reports[topic.name] = report
        if errors:
            self.errors[topic.name] = list(errors)
