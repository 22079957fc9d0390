"""What is asked of both sides, in Kafka's words: each scenario yields questions with their answers.

All calls are those of kafka-python's `KafkaConsumer`, on both sides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .sides import Side

Answer = Any
Scenario = Callable[[Side, Path], Iterator[tuple[str, Answer]]]

#: A poll that finds nothing takes so long; one that finds something is repeated until all is there.
POLL_MS = 200
#: How long whatever must come may take.
PATIENCE_S = 60.0

NOON_MS = 1_700_000_000_000


def answer(call: Callable[[], Any]) -> Answer:
    """What a call gives, or the name of its error."""
    try:
        return call()
    except Exception as error:
        return f"error: {type(error).__name__}"


def read(consumer: Any, records: int) -> dict[str, list[int]]:
    """So many records, by partition; fewer if no more come."""
    found: dict[str, list[int]] = {}
    deadline_s = time.monotonic() + (PATIENCE_S if records else 2.0)
    while sum(map(len, found.values())) < max(1, records) and time.monotonic() < deadline_s:
        for tp, some in consumer.poll(timeout_ms=POLL_MS).items():
            found.setdefault(str(tp.partition), []).extend(record.offset for record in some)
    return dict(sorted(found.items()))


def numbers(partitions: Iterable[Any]) -> list[int]:
    return sorted(tp.partition for tp in partitions)


def by_number(found: Mapping[Any, Any] | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {str(tp.partition): value for tp, value in sorted(found.items())}


def settle(consumers: Sequence[Any], is_over: Callable[[], bool]) -> bool:
    """Polls all of them in turn until that holds."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        for consumer in consumers:
            consumer.poll(timeout_ms=50)
        if is_over():
            return True
    return False


# -- without a group ---------------------------------------------------------------------------


def positions(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("positions", 2)
    side.append("positions", 0, [NOON_MS + 1000 * n for n in range(10)])
    first, second = side.tp("positions", 0), side.tp("positions", 1)
    unknown = side.tp("positions", 7)
    consumer = side.consumer(auto_offset_reset="earliest", group_id=None)
    yield "partitions_for_topic", sorted(consumer.partitions_for_topic(side.name("positions")))
    yield "topics", side.name("positions") in consumer.topics()
    yield "subscription before", consumer.subscription()
    yield "poll before", answer(lambda: consumer.poll(timeout_ms=0))
    consumer.assign([first, second])
    yield "assignment", numbers(consumer.assignment())
    yield "beginning_offsets", by_number(consumer.beginning_offsets([first, second]))
    yield "end_offsets", by_number(consumer.end_offsets([first, second]))
    yield "position at the beginning", consumer.position(first)
    yield "read", read(consumer, 10)
    yield "position at the end", consumer.position(first)
    for offset in (3, 10, 0):
        consumer.seek(first, offset)
        yield f"position after seek {offset}", consumer.position(first)
        yield f"read after seek {offset}", read(consumer, 10 - offset)
    yield "seek -1", answer(lambda: consumer.seek(first, -1))
    yield "seek of what is not assigned", answer(lambda: consumer.seek(unknown, 0))
    yield "position of what is not assigned", answer(lambda: consumer.position(unknown))
    consumer.seek_to_end(first)
    yield "position after seek_to_end", consumer.position(first)
    consumer.seek_to_beginning()
    yield "positions after seek_to_beginning", [consumer.position(tp) for tp in (first, second)]
    consumer.pause(first)
    yield "paused", numbers(consumer.paused())
    yield "read while paused", read(consumer, 0)
    consumer.resume(first)
    yield "paused after resume", numbers(consumer.paused())
    yield "read after resume", read(consumer, 10)
    yield "subscribe after assign", answer(lambda: consumer.subscribe(["positions"]))
    consumer.unsubscribe()
    yield "assignment after unsubscribe", numbers(consumer.assignment())
    consumer.close()


def times(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("times", 2)
    side.append("times", 0, [NOON_MS, NOON_MS + 2000, NOON_MS + 1000, NOON_MS + 3000])
    tp, empty = side.tp("times", 0), side.tp("times", 1)
    consumer = side.consumer(group_id=None)

    def asked(when: Mapping[Any, int]) -> Answer:
        found = answer(lambda: consumer.offsets_for_times(when))
        if isinstance(found, str):
            return found
        return by_number({tp: one and [one[0], one[1]] for tp, one in found.items()})

    for after_ms in (-1, 0, 1, 1000, 1500, 2000, 2001, 3000, 3001):
        yield f"offset for noon + {after_ms}", asked({tp: NOON_MS + after_ms})
    yield "of the first record ever", asked({tp: 0})
    yield "of an empty partition", asked({empty: 0, tp: NOON_MS})
    yield "of nothing", asked({})
    yield "of a negative time", asked({tp: -1})
    consumer.close()


def resets(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("resets", 1)
    side.append("resets", 0, [NOON_MS + n for n in range(10)])
    tp = side.tp("resets", 0)
    for policy in ("earliest", "latest", "none"):
        for group in (None, side.name(f"resets-{policy}")):
            whose = "no group" if group is None else "a group"
            consumer = side.consumer(
                auto_offset_reset=policy, group_id=group, enable_auto_commit=False
            )
            consumer.assign([tp])
            if policy != "none":
                yield f"{policy}, {whose}: position", answer(lambda c=consumer: c.position(tp))
            records = 10 if policy == "earliest" else 0
            yield f"{policy}, {whose}: read", answer(lambda c=consumer, n=records: read(c, n))
            consumer.seek(tp, 100)
            yield f"{policy}, {whose}: position beyond the end", consumer.position(tp)
            yield (
                f"{policy}, {whose}: read beyond the end",
                answer(lambda c=consumer, n=records: read(c, n)),
            )
            consumer.close()


# -- commits -----------------------------------------------------------------------------------


def commits(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("commits", 2)
    for number in (0, 1):
        side.append("commits", number, [NOON_MS + n for n in range(10)])
    first, second = side.tp("commits", 0), side.tp("commits", 1)
    settings = {
        "group_id": side.name("commits"),
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
    }
    consumer = side.consumer(**settings)
    consumer.assign([first])
    yield "committed before", consumer.committed(first)
    consumer.seek(first, 4)
    consumer.commit()
    yield "committed", consumer.committed(first)
    yield "committed of another", consumer.committed(second)
    consumer.commit({first: side.offset(6, "half way")})
    with_text = consumer.committed(first, metadata=True)
    yield "committed with metadata", [with_text.offset, with_text.metadata]
    yield "position after that", consumer.position(first)
    consumer.commit({first: side.offset(3)})
    yield "committed further back", consumer.committed(first)
    consumer.commit({first: side.offset(1000)})
    yield "committed beyond the end", consumer.committed(first)
    consumer.commit({second: side.offset(5)})
    yield "committed of what is not assigned", consumer.committed(second)
    yield "commit of -1", answer(lambda: consumer.commit({first: side.offset(-1)}))
    yield "commit of nothing", answer(lambda: consumer.commit({}))
    yield (
        "commit of a large text",
        answer(lambda: consumer.commit({first: side.offset(1, "x" * 5000)})),
    )
    yield "committed after that", consumer.committed(first)
    told: list[Any] = []
    future = consumer.commit_async(
        {first: side.offset(7)}, lambda offsets, error: told.append((by_number(offsets), error))
    )
    settle([consumer], lambda: bool(told))
    ((offsets, error),) = told
    yield "callback", [{number: one.offset for number, one in offsets.items()}, str(error)]
    yield "committed by commit_async", consumer.committed(first)
    yield "future", future is not None
    consumer.close()
    again = side.consumer(**settings)
    again.assign([first, second])
    yield "another goes on at", [again.position(first), again.position(second)]
    yield "and reads", read(again, 8)
    again.close()
    nobody = side.consumer(group_id=None)
    nobody.assign([first])
    yield "commit without a group", answer(nobody.commit)
    yield "committed without a group", answer(lambda: nobody.committed(first))
    nobody.close()
    for enabled in (True, False):
        group = side.name(f"commits-auto-{enabled}")
        own = {**settings, "group_id": group, "enable_auto_commit": enabled}
        one = side.consumer(**own)
        one.assign([first])
        read(one, 10)
        one.close()
        after = side.consumer(**own)
        yield f"committed after close, auto commit {enabled}", after.committed(first)
        after.close(autocommit=False)


def illegal(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("illegal", 1)
    side.append("illegal", 0, [NOON_MS])
    tp = side.tp("illegal", 0)

    def committing(**settings: Any) -> Any:
        consumer = side.consumer(enable_auto_commit=False, **settings)
        try:
            consumer.assign([tp])
            consumer.commit({tp: side.offset(1)})
            return consumer.committed(tp)
        finally:
            consumer.close()

    def joining(**settings: Any) -> Any:
        consumer = side.consumer("illegal", enable_auto_commit=False, **settings)
        try:
            settle([consumer], lambda: bool(consumer.assignment()))
            return numbers(consumer.assignment())
        finally:
            consumer.close()

    for group in (" ", "a group", "ä/ö:*", "x" * 300):
        yield (
            f"group id {group[:10]!r}",
            answer(lambda group=group: committing(group_id=side.name(group))),
        )
    yield "an empty group id", answer(lambda: committing(group_id=""))
    yield (
        "a session that is too short",
        answer(
            lambda: joining(
                group_id=side.name("short"), session_timeout_ms=3000, heartbeat_interval_ms=1000
            )
        ),
    )
    yield "reset to anywhere", answer(lambda: side.consumer(auto_offset_reset="anywhere").close())
    yield "a setting that is none", answer(lambda: side.consumer(group_name="g").close())
    consumer = side.consumer(group_id=None)
    yield "both names and a pattern", answer(lambda: consumer.subscribe(["a"], pattern="b"))
    yield "neither names nor a pattern", answer(lambda: consumer.subscribe())
    yield "a topic that no topic can be", answer(lambda: consumer.subscribe(["a b"]))
    consumer.close()


# -- members -----------------------------------------------------------------------------------


def members(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("members", 4)
    for number in range(4):
        side.append("members", number, [NOON_MS + n for n in range(10)])
    settings = {
        "group_id": side.name("members"),
        "enable_auto_commit": False,
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200,
    }
    first = side.consumer("members", **settings)
    yield "subscription", first.subscription() == {side.name("members")}
    settle([first], lambda: len(first.assignment()) == 4)
    yield "one has all", numbers(first.assignment())
    first.commit({side.tp("members", 2): side.offset(5)})
    second = side.consumer("members", **settings)

    def shared() -> bool:
        both = first.assignment() | second.assignment()
        return len(first.assignment()) == len(second.assignment()) == 2 and len(both) == 4

    yield "two share", settle([first, second], shared)
    yield (
        "shares are neighbours",
        sorted([numbers(first.assignment()), numbers(second.assignment())]),
    )
    third = side.tp("members", 2)
    owner, other = (first, second) if third in first.assignment() else (second, first)
    owner.seek(third, 7)
    owner.commit()
    yield "committed by its owner", other.committed(third)
    yield "seek of another's", answer(lambda: other.seek(third, 1))
    yield "position of another's", answer(lambda: other.position(third))
    outsider = side.consumer(**settings)
    outsider.assign([third])
    yield "commit by an outsider", answer(lambda: outsider.commit({third: side.offset(1)}))
    outsider.close()
    yield "committed after that", owner.committed(third)
    generation_id = owner.group_metadata().generation_id
    other.close()
    yield "the one that stays has all", settle([owner], lambda: len(owner.assignment()) == 4)
    yield "a generation later", owner.group_metadata().generation_id > generation_id
    owner.unsubscribe()
    yield "after unsubscribe", [numbers(owner.assignment()), owner.subscription()]
    owner.close()


def listeners(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("listeners", 2)
    told: list[Any] = []

    def listener(who: str) -> Any:
        from kafka import ConsumerRebalanceListener

        class Listener(ConsumerRebalanceListener):  # type: ignore[misc]
            def on_partitions_revoked(self, revoked: Any) -> None:
                if revoked:  # kafka-python now and then tells of none, too
                    told.append([who, "revoked", numbers(revoked)])

            def on_partitions_assigned(self, assigned: Any) -> None:
                if assigned:
                    told.append([who, "assigned", numbers(assigned)])

        return Listener()

    settings = {
        "group_id": side.name("listeners"),
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200,
        "partition_assignment_strategy": _range(side),
    }
    first = side.consumer(**settings)
    first.subscribe([side.name("listeners")], listener=listener("first"))
    settle([first], lambda: len(first.assignment()) == 2)
    yield "the first one joins", [*told]
    second = side.consumer(**settings)
    told.clear()
    second.subscribe([side.name("listeners")], listener=listener("second"))
    settle([first, second], lambda: len(first.assignment()) == len(second.assignment()) == 1)
    # How many rounds it takes is up to who asks when.
    yield "the second one joins", told[0]
    yield "and gets its share", {who: len(some) for who, what, some in told if what == "assigned"}
    told.clear()
    second.close()
    yield "the second one leaves", [[who, what, len(some)] for who, what, some in told]
    told.clear()
    settle([first], lambda: len(first.assignment()) == 2)
    yield "the first one hears of it", [[who, what, len(some)] for who, what, some in told]
    told.clear()
    first.close()
    yield "the first one leaves", told


def _range(side: Side) -> Any:
    from kafka.coordinator.assignors.range import RangePartitionAssignor

    return [RangePartitionAssignor] if type(side).__name__ == "KafkaSide" else ["range"]


def patterns(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    for topic in ("pattern-a", "pattern-b", "no-pattern"):
        side.create(topic, 1)
    consumer = side.consumer(
        group_id=side.name("patterns"),
        auto_offset_reset="earliest",
        metadata_max_age_ms=500,
        heartbeat_interval_ms=200,
    )
    run = side.name("")
    consumer.subscribe(pattern=f"^pattern-.{run}$")
    settle([consumer], lambda: len(consumer.assignment()) == 2)

    def found() -> list[str]:
        return sorted(tp.topic.removesuffix(run) for tp in consumer.assignment())

    yield "what is there", found()
    side.create("pattern-c", 2)
    settle([consumer], lambda: len(consumer.assignment()) == 4)
    yield "and what is made later", found()
    side.append("pattern-c", 1, [NOON_MS])
    yield "is read", read(consumer, 1)
    consumer.close()


def static_members(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    side.create("static", 2)
    settings = {
        "group_id": side.name("static"),
        "group_instance_id": "one",
        "enable_auto_commit": False,
        "session_timeout_ms": 10_000,
        "heartbeat_interval_ms": 200,
    }
    first = side.consumer("static", **settings)
    settle([first], lambda: len(first.assignment()) == 2)
    generation_id = first.group_metadata().generation_id
    first.commit({side.tp("static", 0): side.offset(0)})
    first.close()  # it may come back
    again = side.consumer("static", **settings)
    settle([again], lambda: len(again.assignment()) == 2)
    yield "it comes back in its generation", again.group_metadata().generation_id - generation_id
    other = side.consumer("static", **settings)
    settle([other], lambda: len(other.assignment()) == 2)
    yield "another takes its place", numbers(other.assignment())
    yield "and it is fenced", answer(lambda: again.commit({side.tp("static", 0): side.offset(0)}))
    other.close()
    again.close()


# -- the tool for groups -----------------------------------------------------------------------


def tool(side: Side, folder: Path) -> Iterator[tuple[str, Answer]]:
    topic, group = side.name("tool"), side.name("tool")
    side.create("tool", 2)
    for number in (0, 1):
        side.append("tool", number, [NOON_MS + 1000 * n for n in range(100)])
    settings = {
        "group_id": group,
        "enable_auto_commit": False,
        "session_timeout_ms": 6000,
        "heartbeat_interval_ms": 200,
    }
    consumer = side.consumer("tool", **settings)
    settle([consumer], lambda: len(consumer.assignment()) == 2)
    consumer.commit({side.tp("tool", number): side.offset(40) for number in (0, 1)})

    def rows(*names: str) -> Callable[[Any], Any]:
        def chosen(found: Any) -> Any:
            if isinstance(found, str):
                return found
            return sorted([row.get(name) for name in names] for row in found)

        return chosen

    def asked(verb: str, *options: str) -> Any:
        return side.tool(verb, "--group", group, *options)

    shown = rows("partition", "current_offset", "log_end_offset", "lag")
    moved = rows("partition", "new_offset")
    yield "list", [group] in rows("group")(side.tool("list"))
    yield "describe", shown(asked("describe"))
    yield "describe members", rows("#partition_count")(asked("describe", "--members"))
    yield "describe state", rows("state", "#member_count")(asked("describe", "--state"))
    reset = ("reset-offsets", "--topic", topic)
    yield "reset while active", moved(asked(*reset, "--to-earliest", "--execute"))
    yield "delete while active", moved(asked("delete"))
    yield "delete-offsets while active", moved(asked("delete-offsets", "--topic", topic))
    consumer.close()
    yield "describe without members", shown(asked("describe"))
    for scenario in (
        ("--to-earliest",),
        ("--to-latest",),
        ("--to-current",),
        ("--to-offset", "50"),
        ("--to-offset", "500"),
        ("--shift-by", "-10"),
        ("--shift-by", "-100"),
        ("--shift-by", "100"),
        ("--to-datetime", "2023-11-14T22:13:50.000"),
        ("--to-datetime", "2023-11-14T23:13:50.000+01:00"),
        ("--to-datetime", "2030-01-01T00:00:00.000Z"),
        ("--to-datetime", "2023-11-14"),
        ("--by-duration", "P3650D"),
        ("--by-duration", "1h"),
    ):
        yield f"reset {' '.join(scenario)}", moved(asked(*reset, *scenario, "--dry-run"))
    yield "describe after dry runs", shown(asked("describe"))
    yield (
        "reset of one partition",
        moved(asked("reset-offsets", "--topic", f"{topic}:1", "--to-offset", "7", "--execute")),
    )
    yield "describe after that", shown(asked("describe"))
    csv = asked(*reset, "--to-current", "--export", "--dry-run")
    yield "export", sorted(csv.replace(topic, "tool").splitlines())
    file = folder / "offsets.csv"
    file.write_text(csv)
    asked(*reset, "--to-latest", "--execute")
    moved_back = asked("reset-offsets", "--from-file", str(file), "--execute")
    yield "reset from that file", moved(moved_back)
    yield "describe at the end", shown(asked("describe"))
    yield (
        "reset of an unknown topic",
        moved(asked("reset-offsets", "--topic", side.name("none"), "--to-earliest")),
    )
    yield "reset without a scenario", moved(asked(*reset, "--execute"))
    new = side.name("tool-new")
    yield (
        "reset of a new group",
        moved(
            side.tool(
                "reset-offsets", "--group", new, "--topic", topic, "--to-offset", "7", "--execute"
            )
        ),
    )
    yield "describe of the new group", shown(side.tool("describe", "--group", new))
    asked("delete-offsets", "--topic", f"{topic}:0")
    yield "describe after delete-offsets", shown(asked("describe"))
    asked("delete")
    yield "list after delete", [group] in rows("group")(side.tool("list"))
    yield "describe of no group", shown(asked("describe"))
    yield "delete of no group", moved(asked("delete"))


SCENARIOS: Mapping[str, Scenario] = {
    one.__name__: one
    for one in (
        positions,
        times,
        resets,
        commits,
        illegal,
        members,
        listeners,
        patterns,
        static_members,
        tool,
    )
}
