"""What a command says on standard error while it works: its steps, Spark's start, the engine."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from .output import Message, row

if TYPE_CHECKING:
    from ..engines.engine import Choice


class ConsoleProgress:
    """Progress on stderr: bars on a terminal, otherwise a line when a step is done."""

    @contextmanager
    def step(self, name: str, total: int | None = None) -> Iterator[Step]:
        """A step, of so many records."""
        started_s = time.monotonic()
        if not sys.stderr.isatty():
            yield Step(lambda done: None)
        else:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = [
                TextColumn("{task.description:<22}"),
                BarColumn(),
                TextColumn("{task.fields[count]:>18}"),
                TimeElapsedColumn(),
            ]
            of = f" / {total:,}" if total else ""
            with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
                task = progress.add_task(name, total=total or None, count="")
                yield Step(
                    lambda done: progress.update(task, completed=done, count=f"{done:,}{of}")
                )
        seconds = time.monotonic() - started_s
        rate = f"{total:>10,} records {total / max(seconds, 1e-9):>12,.0f}/s" if total else ""
        print(f"  ✓ {name:<22}{seconds:>8.1f} s  {rate}".rstrip(), file=sys.stderr, flush=True)


class Step:
    """Counts what is done of a step."""

    def __init__(self, show_done: Callable[[int], object]) -> None:
        self._done = 0
        self._show = show_done

    def advance(self, count: int) -> None:
        self._done += count
        self._show(self._done)


@contextmanager
def bytes_progress() -> Iterator[Callable[[Any], None]]:
    """What takes ``done_bytes`` and ``total_bytes``: a bar on a terminal, otherwise nothing."""
    if not sys.stderr.isatty():
        yield lambda seen: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TransferSpeedColumn

    columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda seen: bar.update(task, completed=seen.done_bytes, total=seen.total_bytes)


@contextmanager
def spark_start_said(*, verbose: bool) -> Iterator[None]:
    """While a command runs, what the session says of its start goes to standard error: it takes as
    long as a hang would.

    Not on a terminal, where a clock runs; nor with ``--verbose``, which shows it as a log.
    """
    if verbose or sys.stderr.isatty():
        yield
        return
    logger = logging.getLogger("lakelog.spark.session")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("  %(message)s"))
    handler.addFilter(lambda record: record.levelno == logging.INFO)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


# -- what did the work, and why --------------------------------------------------------------------

#: Reasons that are printed; of more topics, how many there are.
_REASONS = 3


def engine_names(choices: Sequence[Choice]) -> str | None:
    """The engines, as one column has them; None: nothing was to be done."""
    return " and ".join(dict.fromkeys(choice.engine for choice in choices)) or None


def engines_told(choices: Mapping[str, Sequence[Choice]]) -> Message:
    """What did the work of each topic, and why: for standard error, and for JSON."""
    made = [(topic, one) for topic, several in choices.items() for one in several]
    lines = [f"  {topic}: engine {one}" for topic, one in made[:_REASONS]]
    if len(made) > _REASONS:
        names = engine_names([one for _, one in made])
        lines.append(f"  and {len(made) - _REASONS:,} more topics: {names}")
    rows = [{"topic": topic, **row(one)} for topic, one in made]
    return Message("\n".join(lines), rows, is_aside=True)
