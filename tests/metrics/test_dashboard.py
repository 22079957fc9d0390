"""The dashboard of Grafana asks for metrics, and by labels, that there are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest

from lakelog.base.metrics import Kind
from lakelog.operate.metrics.exposition import METRICS

FILE = Path(__file__).parents[2] / "conf" / "grafana" / "lakelog.json"
DASHBOARD = json.loads(FILE.read_text("utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
VARIABLES = {one["name"]: one for one in DASHBOARD["templating"]["list"]}


def series() -> dict[str, set[str]]:
    """The labels of each series by its name, as Prometheus has them."""
    found = {}
    for metric in METRICS:
        labels = set(metric.labels)
        if metric.kind is Kind.HISTOGRAM:
            found[f"{metric.name}_bucket"] = labels | {"le"}
            found[f"{metric.name}_sum"] = found[f"{metric.name}_count"] = labels
        else:
            found[metric.name] = labels
    return found


def expressions() -> list[tuple[str, str, str]]:
    """Each panel's title, what it asks, and how it names the answer."""
    return [
        (panel["title"], target["expr"], target["legendFormat"])
        for panel in PANELS
        for target in panel["targets"]
    ]


def parsed(expression: str) -> Any:
    """What Prometheus makes of it, once Grafana has put in its variables."""
    text = expression.replace("$__rate_interval", "5m")
    return promql_parser.parse(re.sub(r"\$\w+", ".*", text))


def parts(node: Any) -> Iterator[Any]:
    """A parsed expression with all that it is made of."""
    yield node
    for name in ("lhs", "rhs", "expr", "param", "vector_selector"):
        if (child := getattr(node, name, None)) is not None:
            yield from parts(child)
    for child in getattr(node, "args", ()):
        yield from parts(child)


def labels_left(node: Any) -> set[str]:
    """The labels that the answer has."""
    if isinstance(node, promql_parser.AggregateExpr):
        return set(node.modifier.labels) if node.modifier else set()
    if isinstance(node, promql_parser.VectorSelector):
        return series()[node.name]
    return {
        label
        for name in ("lhs", "expr", "vector_selector")
        if (child := getattr(node, name, None)) is not None
        for label in labels_left(child)
    } | {label for child in getattr(node, "args", ()) for label in labels_left(child)}


@pytest.mark.parametrize(("title", "expression", "legend"), expressions())
def test_an_expression_asks_for_what_there_is(title: str, expression: str, legend: str) -> None:
    tree = parsed(expression)
    asked = [one for one in parts(tree) if isinstance(one, promql_parser.VectorSelector)]
    assert asked
    for selector in asked:
        assert selector.name in series(), selector.name
        names = {matcher.name for matcher in selector.matchers.matchers}
        assert names <= series()[selector.name], (selector.name, names)
    for one in parts(tree):
        if isinstance(one, promql_parser.AggregateExpr) and one.modifier:
            inner = labels_left(one.expr)
            assert set(one.modifier.labels) <= inner, (title, one.modifier.labels, inner)
    assert set(re.findall(r"{{(\w+)}}", legend)) <= labels_left(tree), (title, legend)


@pytest.mark.parametrize(("title", "expression", "legend"), expressions())
def test_a_rate_is_of_what_only_grows(title: str, expression: str, legend: str) -> None:
    kinds = {
        f"{metric.name}{part}": metric.kind
        for metric in METRICS
        for part in ("", "_bucket", "_count", "_sum")
    }
    for one in parts(parsed(expression)):
        if isinstance(one, promql_parser.Call) and one.func.name in ("rate", "increase"):
            (selector,) = [
                part for part in parts(one) if isinstance(part, promql_parser.VectorSelector)
            ]
            assert kinds[selector.name] in (Kind.COUNTER, Kind.HISTOGRAM), (title, selector.name)


@pytest.mark.parametrize("panel", PANELS, ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows(panel: Any) -> None:
    assert panel["title"]
    assert panel["description"]
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert panel["targets"]
    assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_variables_are_values_of_labels_that_there_are() -> None:
    used = set(re.findall(r"\$(\w+)", " ".join(expr for _, expr, _ in expressions())))
    assert used - {"__rate_interval"} <= VARIABLES.keys()
    for one in VARIABLES.values():
        if one["type"] == "query":
            found = re.fullmatch(r"label_values\((\w+), (\w+)\)", one["definition"])
            assert found is not None
            assert found[2] in series()[found[1]]


def test_panels_lie_beside_each_other() -> None:
    ids = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(ids)) == len(ids)
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        at = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(at["x"], at["x"] + at["w"])
            for y in range(at["y"], at["y"] + at["h"])
        }
        assert max(x for x, _ in cells) < 24
        assert not cells & taken, panel["title"]
        taken |= cells


def test_what_there_is_no_panel_for_is_no_oversight() -> None:
    asked = " ".join(expr for _, expr, _ in expressions())
    names = [metric.name for metric in METRICS]
    left = {name for name in names if not re.search(rf"{name}(_bucket)?\b", asked)}
    assert left == {
        "lakelog_last_error_info",
        "lakelog_look_duration_seconds",
        "lakelog_log_start_offset",
        "lakelog_log_end_offset",
        "lakelog_log_local_start_offset",
        "lakelog_log_archived_end_offset",
        "lakelog_cold_files",
        "lakelog_group_committed_offset",
        "lakelog_producer_records_total",  # what Redis counts is of all processes
        "lakelog_producer_bytes_total",
        "lakelog_consumer_bytes_total",
        "lakelog_archive_commits_total",
        "lakelog_archive_records_total",
        "lakelog_archive_bytes_total",
        "lakelog_cleaner_runs_total",
        "lakelog_cleaner_seconds",
        "lakelog_redis_clock_skew_seconds",  # what there is of it is a warning's
    }
