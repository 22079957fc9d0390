"""The tables and charts of growth.md, from the figures of one run of `growth`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .curves import CPU_HERE, CPU_OF_REDIS, SUPERLINEAR, Curve, curves, part, without_parts, work
from .line_chart import Line, Panel, svg
from .measures import BYTES, SECONDS, Row
from .report import Report
from .simulation import Services, bytes_per_s, panels, services

#: Of the charts, by their axis.
TITLES = {
    "partitions": "Partitions of a topic",
    "topics": "Topics of 10 partitions",
    "segments": "Segments",
    "commits": "Commits to a table",
    "bytes of a value": "Bytes of a value, by the record",
    "producers": "Producers that a partition remembers",
    "consumers": "Consumers, over 500 partitions",
    "readers": "Processes that read one cold table at once",
}
LINES_AT_MOST = 8


def charts(report: Report) -> str:
    """A panel an axis; times, since other units have scales of their own."""
    found = curves(report.rows["growth"])
    return svg(
        f"what grows with what, taken {report.taken}",
        [_panel(axis, title, found) for axis, title in TITLES.items()],
    )


def _panel(axis: str, title: str, found: Iterable[Curve]) -> Panel:
    shown = [
        Line(one.measure.replace("`", ""), one.points)
        for one in without_parts(found)
        if one.axis == axis and one.unit is SECONDS
    ]
    shown.sort(key=lambda line: -line.points[-1][1])
    return Panel(title, axis, SECONDS, shown[:LINES_AT_MOST])


def queues(report: Report) -> str:
    """What the simulation makes of the figures."""
    return svg(
        f"a hundred simulated nodes, by figures taken {report.taken}",
        panels(services(curves(report.rows["growth"]))),
    )


def table(rows: Sequence[Row]) -> str:
    """A line a curve: its ends, how steep it is, and who works at its largest count."""
    found = curves(rows)
    lines = [
        "| with more … | what | from | to | steepest | of it CPU here / of Redis |",
        "|---|---|---:|---:|---|---:|",
    ]
    axis = ""
    for one in without_parts(found):
        named = one.axis if one.axis != axis else ""
        axis = one.axis
        first, last = one.points[0], one.points[-1]
        lines.append(
            f"| {named} | {one.measure} | {one.unit.show(first[1])} at {first[0]:,} "
            f"| {one.unit.show(last[1])} at {last[0]:,} | {_steepest(work(found, one))} "
            f"| {_cpu(found, one)} |"
        )
    return "\n".join(lines)


def _steepest(curve: Curve) -> str:
    steepest = curve.steepest()
    if steepest is None:
        return ""
    before, at, power = steepest
    text = f"{power:.2f}, {before:,} → {at:,}"
    return f"**{text}**" if curve.is_superlinear else text


def _cpu(found: Iterable[Curve], of: Curve) -> str:
    parts = [part(found, of, suffix) for suffix in (CPU_HERE, CPU_OF_REDIS)]
    if not any(parts):
        return ""
    return " / ".join(one.unit.show(one.last) if one else "–" for one in parts)


def superlinear(rows: Sequence[Row]) -> list[Curve]:
    """The work behind each curve of which a part is steeper than what is linear."""
    found = curves(rows)
    shown = [work(found, one) for one in without_parts(found)]
    return [one for one in shown if one.is_superlinear]


def capacity(services: Services) -> str:
    """What one thread or core takes, and how many of each a rate needs."""
    needs = (
        ("producers' cores", services.send_s),
        ("Redis's threads, appends", services.append_s),
        ("Redis's threads, archiving", services.read_s),
        ("archivers' cores", services.archive_s),
    )
    lines = [
        "| part | of it takes | needed for 1 GiB/s |",
        "|---|---:|---:|",
    ]
    for what, seconds in needs:
        rate = bytes_per_s(seconds)
        lines.append(f"| {what} | {rate:.2f} GiB/s | {1 / rate:.1f} |")
    redis = bytes_per_s(services.redis_s)
    lines.append(f"| Redis's threads, both | {redis:.2f} GiB/s | {1 / redis:.1f} |")
    return "\n".join(lines)


def nodes(services: Services) -> str:
    """How much nodes of two cores take, and what of them is full first."""
    lines = [
        "| nodes of 2 cores | what they do | first full | GiB/s at most, at 70 % |",
        "|---|---|---|---:|",
    ]
    for count in (1, 10, 100):
        for what, first, most in _plans(services, count):
            lines.append(f"| {count} | {what} | {first} | {_rate(most)} / {_rate(0.7 * most)} |")
    return "\n".join(lines)


def _rate(gib_per_s: float) -> str:
    return f"{gib_per_s:.1f}" if gib_per_s >= 1 else f"{gib_per_s:.2f}"


def _plans(services: Services, count: int) -> Iterator[tuple[str, str, float]]:
    """What is done where, what is full first, and at how many GiB/s."""
    if count == 1:
        everything = services.send_s + services.redis_s + services.archive_s
        by = {
            "the cores": 2 * bytes_per_s(everything),
            "Redis's thread": bytes_per_s(services.redis_s),
        }
        first = min(by, key=lambda one: by[one])
        yield "all, the producers too", first, by[first]
        return
    by = {
        "Redis's threads": count * bytes_per_s(services.redis_s),
        "the other cores": count * bytes_per_s(services.archive_s),
    }
    first = min(by, key=lambda one: by[one])
    yield "a Redis and an archiver's core each", first, by[first]
    # As many servers as make both full at once; a Redis alone on a node leaves a core idle.
    servers = services.redis_s / (services.redis_s + services.archive_s / 2)
    of_redis = max(1, round(count * servers))
    by = {
        "Redis's threads": of_redis * bytes_per_s(services.redis_s),
        "the archivers' cores": 2 * (count - of_redis) * bytes_per_s(services.archive_s),
    }
    first = min(by, key=lambda one: by[one])
    yield f"{of_redis} a Redis, {count - of_redis} two archivers' cores", first, by[first]


def measured(services: Services) -> str:
    """What the simulation is given."""
    shown = ", ".join(
        f"{what} {SECONDS.show(seconds)}"
        for what, seconds in (
            ("an append", services.append_s),
            ("reading it for the archive", services.read_s),
            ("archiving it", services.archive_s),
            ("sending it", services.send_s),
            ("a task", services.task_s),
            ("a commit", services.commit_s),
        )
    )
    return f"Of a call of {BYTES.show(2**20)}, values of 1,000 bytes: {shown}."


def sections(report: Report) -> dict[str, str]:
    """The text between each pair of marks, by their name."""
    rows = report.rows["growth"]
    found = services(curves(rows))
    steep = superlinear(rows)
    named = "; ".join(f"{one.axis}: {one.measure} ({_steepest(one)})" for one in steep)
    head = (
        f"Taken {report.taken} on {report.machine.sentence()}. *Steepest* is the largest power "
        f"between neighbours, of CPU time where it is known; above {SUPERLINEAR} it is bold."
    )
    return {
        "figures": f"{head}\n\n{table(rows)}",
        "steep": f"Steeper than linear in this run: {named or 'nothing'}.",
        "capacity": f"{measured(found)}\n\n{capacity(found)}",
        "nodes": nodes(found),
    }
