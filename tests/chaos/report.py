"""What is printed of the rounds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from lakelog.base.text_table import text_table

from .chaos_round import RoundResult
from .history import Outcome

_SHOWN = 20  # anomalies of a round


def report(results: Sequence[RoundResult]) -> str:
    """A table of the rounds with their sums, then what was done, then the anomalies."""
    rows = [_row(str(result.plan.number), result.plan.scenario, [result]) for result in results]
    rows.append(_row("", "all", results))
    header = ("round", "scenario", "seed", "seconds", "acked", "unknown", "refused", "read")
    header += ("handled", "commits", "in log", "gaps", "lives", "kills", "stops", "anomalies")
    table = [dict(zip(header, row, strict=True)) for row in rows]
    lines = [text_table(table, right=header)]
    acts: Counter[str] = sum((result.acts for result in results), Counter())
    ended: Counter[str] = sum((result.processes for result in results), Counter())
    lines += ["", "acts: " + ", ".join(f"{name} {n}" for name, n in sorted(acts.items()))]
    lines += ["processes: " + ", ".join(f"{name} {n}" for name, n in sorted(ended.items()))]
    for result in results:
        names = Counter(anomaly.name for anomaly in result.anomalies)
        if names:
            lines += ["", f"round {result.plan.number} ({result.plan.scenario}): {dict(names)}"]
            lines += [f"  {anomaly}" for anomaly in result.anomalies[:_SHOWN]]
    return "\n".join(lines)


def _row(number: str, scenario: str, results: Sequence[RoundResult]) -> tuple[str, ...]:
    sent: Counter[Outcome] = sum((result.sent for result in results), Counter())
    seed = str(results[0].plan.seed) if number else ""
    processes: Counter[str] = sum((result.processes for result in results), Counter())
    return (
        number,
        scenario,
        seed,
        f"{sum(result.seconds for result in results):.0f}",
        *(f"{sent[kind]:,}" for kind in (Outcome.ACKED, Outcome.UNKNOWN, Outcome.REFUSED)),
        f"{sum(result.read for result in results):,}",
        f"{sum(result.handled for result in results):,}",
        f"{sum(result.commits for result in results):,}",
        f"{sum(result.in_the_log for result in results):,}",
        str(sum(result.gaps for result in results)),
        str(sum(result.lives for result in results)),
        str(processes["kills"]),
        str(processes["stops"]),
        str(sum(len(result.anomalies) for result in results)),
    )
