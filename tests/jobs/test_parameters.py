"""What a notebook is run with."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from lakelog.errors import InvalidArgumentError
from lakelog.jobs import parameters, step_names, topic_names


class Widgets:
    """As `dbutils.widgets`, with values that a job gave."""

    def __init__(self, **given: str) -> None:
        self.given = given
        self.made: dict[str, str] = {}

    def text(self, name: str, default: str) -> None:
        self.made[name] = default

    def get(self, name: str) -> str:
        return self.given.get(name, self.made[name])


@pytest.fixture
def user_ns() -> Iterator[dict[str, Any]]:
    """The namespace of a notebook that runs here."""
    shell = InteractiveShell.instance()
    shell.user_ns.pop("dbutils", None)
    yield shell.user_ns
    shell.user_ns.pop("dbutils", None)
    InteractiveShell.clear_instance()


def test_without_anything_defaults_count() -> None:
    given = parameters(topic="readings", records=10_000, max_hours=0.5, cold_only=False)
    assert {name: getattr(given, name) for name in given} == {
        "topic": "readings",
        "records": 10_000,
        "max_hours": 0.5,
        "cold_only": False,
    }


def test_the_environment_gives_text_that_takes_the_defaults_type(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, text in {
        "RECORDS": " 7 ",
        "COLD_ONLY": "TRUE",
        "MAX_HOURS": "2",
        "COLD": "a",
    }.items():
        monkeypatch.setenv(f"LAKELOG_{name}", text)
    given = parameters(records=10, cold_only=False, max_hours=0.0, cold="")
    assert (given.records, given.cold_only, given.max_hours, given.cold) == (7, True, 2.0, "a")
    assert repr(given).splitlines()[2].split() == ["records", "7", "LAKELOG_RECORDS"]


def test_a_jobs_parameters_come_through_widgets_and_the_environment_is_not_asked(
    user_ns: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_TOPIC", "of the cluster")
    widgets = Widgets(records="20", cold_only="true")
    user_ns["dbutils"] = SimpleNamespace(widgets=widgets)
    given = parameters(topic="readings", records=10, cold_only=False)
    assert (given.topic, given.records, given.cold_only) == ("readings", 20, True)
    assert widgets.made == {"topic": "readings", "records": "10", "cold_only": "false"}


@pytest.mark.parametrize("default", [10, 0.5, False])
def test_a_number_or_flag_that_is_left_empty_is_the_default(
    default: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_ONE", " ")
    assert parameters(one=default).one == default


@pytest.mark.parametrize(
    ("default", "text", "wanted"),
    [
        (10, "ten", "a whole number"),
        (10, "1.5", "a whole number"),
        (0.5, "half", "a number"),
        (0.5, "nan", "a number"),
        (0.5, "inf", "a number"),
        (False, "maybe", "true or false"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(
    default: float, text: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELOG_ONE", text)
    with pytest.raises(InvalidArgumentError) as refused:
        parameters(one=default)
    for part in ("parameter one", repr(text), "LAKELOG_ONE", wanted):
        assert part in str(refused.value)


def test_a_parameter_that_is_none_is_an_attribute_error_that_says_which_there_are() -> None:
    given = parameters(topic="readings", records=1)
    with pytest.raises(AttributeError, match=r"'topics'; there are topic, records"):
        _ = given.topics
    assert given.get("topics") is None
    assert "records" in given


def test_parameters_are_shown_as_a_table_that_cannot_be_broken_out_of() -> None:
    shown = parameters(topic="<b>", cold="")._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_a_password_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAKELOG_REDIS_URL", "redis://ada:hush@host:6379")
    monkeypatch.setenv("LAKELOG_OTHER_URL", "redis://host:6379?password=hush")
    root = "abfss://logs@account.dfs.core.windows.net/lakelog"
    monkeypatch.setenv("LAKELOG_REDIS_PASSWORD_REF", "hush")
    given = parameters(redis_url="", other_url="", redis_password_ref="", cold=root)
    for shown in (repr(given), given._repr_html_()):
        assert "hush" not in shown
        assert "host:6379" in shown
        assert root in shown
    assert given.redis_url == "redis://ada:hush@host:6379"
    assert "databricks:scope/key" in repr(parameters(one_ref="databricks:scope/key"))


def test_topics_are_named_by_commas_and_none_means_all() -> None:
    assert topic_names("") is None
    assert topic_names(" , ") is None
    assert topic_names("orders, clicks,orders") == ["orders", "clicks"]


def test_steps_have_one_order_and_empty_means_all() -> None:
    assert step_names("") == ("retain", "compact", "optimize", "vacuum")
    assert step_names("vacuum, retain") == ("retain", "vacuum")
    with pytest.raises(InvalidArgumentError, match="'shrink' is not a step"):
        step_names("retain,shrink")
