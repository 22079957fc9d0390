"""Actions of cases about `kafka-get-offsets`: topics to ask about, the command, what it says."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from lakelog import Lakelog
from lakelog.cli import main as cli


class OffsetsTool:
    """`lakelog offsets`, on the topics that a case fills."""

    def __init__(self, url: str, root: Path) -> None:
        self._url = url
        self._root = root
        self._where = ["--redis", url, "--cold", str(root), "--engine", "inline"]
        self._code = 0
        self._out = ""
        self._err = ""

    def do_fill(self, topics: Mapping[str, Mapping[str, Any]]) -> None:
        """Topics by name: ``partitions``; ``records``, dealt to them in turn; ``archived`` ends.

        All that is archived of a topic is trimmed from the hot tier.
        """
        with Lakelog.connect(self._url, self._root, engine="inline") as lakelog:
            for name, what in topics.items():
                tiered = "archived" in what
                topic = lakelog.topics.create(
                    name, what["partitions"], {"remote.storage.enable": tiered, "retention.ms": -1}
                )
                with lakelog.producer() as producer:
                    for number in range(what.get("records", 0)):
                        partition = number % topic.partitions
                        producer.send(name, f"val{number}", partition=partition).result()
                if what.get("archived"):
                    lakelog.archive(name, what["archived"])
                    for one in topic.topic_partitions():
                        lakelog.hot.trim(one, what["archived"])

    def do_tool(self, arguments: Sequence[str]) -> None:
        """Runs ``lakelog offsets`` with these options."""
        self._run(["offsets", *arguments])

    def do_lakelog(self, arguments: Sequence[str]) -> None:
        self._run(arguments)

    def see_exit(self, _: Any) -> int:
        return self._code

    def see_lines(self, _: Any) -> list[str]:
        return self._out.splitlines()

    def see_in_bounds(self, wanted: Mapping[str, int]) -> dict[str, int]:
        """By topic-partition how many records it has, where the line has the offset of one."""
        rows = [line.split(":") for line in self._out.splitlines()]
        offsets = {f"{topic}-{partition}": int(offset) for topic, partition, offset in rows}
        return {one: wanted.get(one, 0) for one, at in offsets.items() if at < wanted.get(one, 0)}

    def see_said(self, wanted: str) -> str:
        """Words that are on stdout, or on stderr."""
        said = self._out + self._err
        return wanted if wanted in said else said

    def _run(self, arguments: Sequence[str]) -> None:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            try:
                self._code = cli.main([*self._where, *map(str, arguments)])
            except SystemExit as exit_:  # argparse's, after --help
                self._code = int(exit_.code or 0)
        self._out, self._err = out.getvalue(), err.getvalue()
