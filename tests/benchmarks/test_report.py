from __future__ import annotations

import math
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from . import chart, readme
from .machine import QUIET_SHARE, Machine, others_share
from .measures import CORES, OURS, RECORDS_PER_S, SECONDS, UNITS, Goal, Row
from .report import HEAD, Report, changes, lines, table

MACHINE = Machine("a CPU", 2, 24.0, "Linux 6", "3.11.7", "redis 7.0.15", {"lakelog": "1.0"}, 0.01)


def report(*rows: Row) -> Report:
    return Report(MACHINE, "2026-11-26", 5, 1.0, {"append": list(rows)})


def rate(ours: list[float], theirs: list[float], *goals: Goal) -> Row:
    samples = {OURS: tuple(ours), "confluent-kafka": tuple(theirs)}
    return Row("many records", RECORDS_PER_S, samples, goals)


def test_a_rate_is_as_good_as_it_is_large_and_a_time_as_it_is_short() -> None:
    assert rate([200.0], [100.0]).times("confluent-kafka") == 2
    slow = Row("one record", SECONDS, {OURS: (0.2,), "Kafka": (0.1,)})
    assert slow.times("Kafka") == 0.5


def test_a_slow_round_of_both_changes_no_ratio() -> None:
    row = rate([100.0, 10.0, 100.0], [50.0, 5.0, 50.0])
    assert row.times("confluent-kafka") == 2
    assert row.times_spread("confluent-kafka") == 0
    assert row.spread(OURS) > 0


def test_goals_are_reached_or_named() -> None:
    reached = Goal(2.0, "confluent-kafka")
    missed = Goal(2.1, "confluent-kafka")
    not_measured = Goal(99.0, "Kafka's Java producer")
    assert rate([200.0], [100.0], reached, missed, not_measured).missed() == [missed]
    assert Row("time", SECONDS, {OURS: (0.5,)}, (Goal(0.4), Goal(0.5))).missed() == [Goal(0.4)]
    assert Row("rate", RECORDS_PER_S, {OURS: (5.0,)}, (Goal(6.0), Goal(5.0))).missed() == [
        Goal(6.0)
    ]
    assert list(report(rate([200.0], [100.0], missed)).missed()) == [
        "many records: 2.0 × of confluent-kafka, goal ≥ 2.1 ×"
    ]


def test_nothing_used_is_infinitely_better_than_something_and_as_good_as_nothing() -> None:
    idle = Row("idle", CORES, {OURS: (0.0, 0.0), "Kafka": (0.5, 0.0)}, (Goal(0), Goal(2, "Kafka")))
    assert (idle.ratios("Kafka"), idle.spread(OURS)) == ([math.inf, 1.0], 0.0)
    assert idle.missed() == []
    busy = Row("idle", CORES, {OURS: (0.5, 0.5)})
    alone = Row("idle", CORES, {OURS: (0.0, 0.0)})
    (worse,), (same,) = (list(changes(report(alone), report(now))) for now in (busy, alone))
    assert (worse.times, worse.is_slower, same.times) == (0.0, True, 1.0)


@pytest.mark.parametrize("samples", [{}, {OURS: ()}, {"Kafka": (1.0,)}, {OURS: (1.0,), "b": ()}])
def test_a_row_without_figures_is_none(samples: dict[str, tuple[float, ...]]) -> None:
    with pytest.raises(ValueError, match="nothing measured"):
        Row("rate", RECORDS_PER_S, samples)


@pytest.mark.parametrize(
    ("unit", "value", "shown"),
    [
        ("s", 1.5, "1.50 s"),
        ("s", 0.0123, "12.3 ms"),
        ("s", 0.000_45, "450 µs"),
        ("s", 0.000_000_4, "0.4 µs"),
        ("/s", 2_912_345.0, "2.91 M/s"),
        ("/s", 375_123.4, "375,123/s"),
        ("B", 1023.0, "1,023 B"),
        ("B", 110 * 2.0**20, "110 MiB"),
        ("B", 5 * 2.0**30, "5.00 GiB"),
        (" of a core", 0.02, "0.02 of a core"),
    ],
)
def test_figures_are_shown_as_people_say_them(unit: str, value: float, shown: str) -> None:
    assert UNITS[unit].show(value) == shown


def test_the_table_has_a_line_for_each_other_side() -> None:
    row = Row(
        "append",
        RECORDS_PER_S,
        {OURS: (2e6,), "confluent-kafka": (1e6,), "bare XADD": (4e6,)},
        (Goal(2.0, "confluent-kafka"),),
    )
    assert table([row]).splitlines() == [
        *HEAD.splitlines(),
        "| append | 2.00 M/s |  | confluent-kafka | 1.00 M/s | 2.0 × | ≥ 2.0 × |",
        "| | | | bare XADD | 4.00 M/s | 0.50 × |  |",
    ]
    (alone,) = lines(Row("import", SECONDS, {OURS: (0.02, 0.03)}, (Goal(0.03),)))
    assert alone == "| import | 25.0 ms | ± 10% | | | | ≤ 30.0 ms |"


figures = st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=9).map(tuple)
rows = st.builds(
    Row,
    st.text(min_size=1),
    st.sampled_from(list(UNITS.values())),
    st.dictionaries(st.text(min_size=1), figures, max_size=3).flatmap(
        lambda others: figures.map(lambda ours: {OURS: ours, **others})
    ),
    st.lists(st.builds(Goal, st.floats(0.1, 100), st.none() | st.text(min_size=1)), max_size=2).map(
        tuple
    ),
)


@given(st.lists(rows, min_size=1, max_size=4))
def test_what_is_written_is_read(those: list[Row]) -> None:
    made = report(*those)
    assert Report.of_json(made.to_json()) == made


def test_another_format_is_refused() -> None:
    with pytest.raises(ValueError, match="format 9"):
        Report.of_json('{"format": 9}')


def test_what_became_slower_by_more_than_the_noise_is_named() -> None:
    before = report(rate([200.0, 202.0, 198.0], [100.0, 100.0, 100.0]))
    (slower,) = changes(before, report(rate([150.0, 151.0, 149.0], [100.0, 100.0, 100.0])))
    assert slower.is_slower
    assert str(slower).startswith("many records: 0.75 × of before beside confluent-kafka")
    (same,) = changes(before, report(rate([100.0, 101.0, 99.0], [50.0, 50.0, 50.0])))
    assert not same.is_slower  # a machine of half the speed
    assert not same.is_faster
    (noisy,) = changes(before, report(rate([80.0, 170.0, 260.0], [100.0, 100.0, 100.0])))
    assert not noisy.is_slower
    (faster,) = changes(before, report(rate([300.0] * 3, [100.0] * 3)))
    assert faster.is_faster


def test_without_a_common_side_the_figures_themselves_are_compared() -> None:
    before = report(Row("start", SECONDS, {OURS: (1.0, 1.0)}))
    (slower,) = changes(before, report(Row("start", SECONDS, {OURS: (2.0, 2.0)})))
    assert slower.is_slower
    assert slower.than is None
    assert list(changes(before, report(Row("another", SECONDS, {OURS: (2.0,)})))) == []


def test_the_chart_is_a_small_picture_with_a_bar_for_each_peer() -> None:
    many = [rate([float(n)], [50.0]) for n in range(1, 101)]
    picture = chart.ratios(report(*many, Row("alone", SECONDS, {OURS: (1.0,)})))
    drawn = ElementTree.fromstring(picture)
    assert len(drawn.findall("{http://www.w3.org/2000/svg}rect")) == 100
    assert len(picture.encode()) <= 50_000


def test_the_readme_keeps_what_stands_around_its_table() -> None:
    made = report(rate([200.0], [100.0]))
    text = f"# Performance\n{readme.BEGIN}\nold\n{readme.END}\nwhy\n"
    written = readme.text(made, text, ["append"])
    assert written.startswith(f"# Performance\n{readme.BEGIN}\nTaken 2026-11-26")
    assert written.endswith(f"{readme.END}\nwhy\n")
    assert "old" not in written
    assert readme.text(made, written, ["append"]) == written


def test_what_could_not_be_measured_is_told_below_the_table() -> None:
    told = ("`sink`, Kafka's: no answer", "`check`: no room")
    made = replace(report(), rows={"sink": [rate([200.0], [100.0])]}, failed=told)
    assert Report.of_json(made.to_json()) == made
    page = f"{readme.BEGIN}\nold\n{readme.END}\n"
    written = readme.text(made, page, ["sink", "spark"])
    assert written.endswith(
        "\n\nNot measured: `sink`, Kafka's: no answer.\n\n"
        f"Not measured: `spark`: not asked for in this run.\n{readme.END}\n"
    )


def test_each_page_has_what_was_kept_of_its_benchmarks_and_the_chart_all() -> None:
    kept = Report.of_json(readme.RESULTS.read_text("utf-8"))
    for page, names in readme.PAGES.items():
        held = page.read_text("utf-8")
        assert readme.text(kept, held, names) == held
        assert len(held.splitlines()) <= 300
    assert chart.ratios(kept) == readme.CHART.read_text("utf-8")
    assert len(readme.CHART.read_bytes()) <= 50_000


def test_a_machine_says_whether_others_use_it() -> None:
    assert MACHINE.is_quiet
    assert 0 <= others_share(0.05) <= 1
    busy = Machine(**{**vars(MACHINE), "others_share": 2 * QUIET_SHARE})
    assert not busy.is_quiet
    assert "others, with 6% of it, used" in busy.sentence()
