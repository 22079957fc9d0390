"""A notebook's parameters: those of a job on Databricks, the environment's elsewhere."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

from ..base.notebook import of_notebook
from ..base.secret_reference import check_secret_reference
from ..base.text_table import text_table
from ..cleanup import STEPS
from ..errors import InvalidArgumentError
from ..hot.redis_url import mask
from ..values.config import boolean
from .table_rows import table_html

Value = str | int | float | bool

#: Characters of a wrong value that an error repeats.
_SHOWN = 100


class Parameters:
    """Values by name, as attributes; its repr is a table, without passwords.

    Args:
        values: by name, in the order in which they are shown.
        sources: where each comes from, by name: ``job``, an environment variable, or ``default``.
    """

    def __init__(self, values: dict[str, Value], sources: dict[str, str] | None = None) -> None:
        self._values = dict(values)
        self._sources = sources or dict.fromkeys(values, "default")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # while a copy or a pickle is made, it has no values yet
            raise AttributeError(name)
        if name not in self._values:
            raise AttributeError(f"there is no parameter {name!r}; there are {', '.join(self)}")
        return self._values[name]

    def get(self, name: str, default: Any = None) -> Any:
        """The value of a parameter; the default if this notebook has no such parameter."""
        return self._values.get(name, default)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __repr__(self) -> str:
        return text_table(self._rows())

    def _repr_html_(self) -> str:
        return table_html(self._rows())

    def _rows(self) -> list[dict[str, str | None]]:
        return [
            {"parameter": name, "value": _shown(name, value) or None, "from": self._sources[name]}
            for name, value in self._values.items()
        ]


def parameters(**defaults: Value) -> Parameters:
    """The parameters of this notebook's run.

    On Databricks each is a widget with its default, which a job's parameter of the same name fills.
    Elsewhere the environment variable ``LAKELOG_{NAME}`` counts, if it is set. A value takes the
    type of its default; an empty number or truth value means the default.

    Args:
        defaults: text, whole numbers, numbers, or True and False, by name.

    Raises:
        InvalidArgumentError: a value is not of its default's type.
    """
    widgets = databricks_utilities()
    values: dict[str, Value] = {}
    sources = {}
    for name, default in defaults.items():
        text, source = (
            _from_environment(name) if widgets is None else _from_widget(widgets, name, default)
        )
        values[name] = default if text is None else _converted(name, text, default, source)
        sources[name] = "default" if text is None else source
    return Parameters(values, sources)


def topic_names(text: str) -> list[str] | None:
    """The topics that a parameter names, separated by commas; None if it is empty: all topics."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    return list(dict.fromkeys(names)) or None


def step_names(text: str) -> tuple[str, ...]:
    """The steps of cleanup that a parameter names, in their fixed order; all if it is empty.

    Raises:
        InvalidArgumentError: a name is not a step.
    """
    names = topic_names(text) or STEPS
    for name in names:
        if name not in STEPS:
            raise InvalidArgumentError(
                f"parameter steps is {text!r}, but {name!r} is not a step of cleanup; they are "
                f"{', '.join(STEPS)}",
                name="steps",
            )
    return tuple(step for step in STEPS if step in names)


def databricks_utilities() -> Any | None:
    """The ``dbutils`` of the notebook that runs; None outside of Databricks."""
    return of_notebook("dbutils")


def _from_widget(utilities: Any, name: str, default: Value) -> tuple[str | None, str]:
    utilities.widgets.text(name, _text(default))  # keeps a value that it has already
    text = str(utilities.widgets.get(name))
    return (None if text == _text(default) else text), "job or widget"


def _from_environment(name: str) -> tuple[str | None, str]:
    variable = f"LAKELOG_{name.upper()}"
    return os.environ.get(variable), variable


def _converted(name: str, text: str, default: Value, source: str) -> Value:
    text = text.strip()
    if isinstance(default, str):
        return text
    if not text:
        return default
    kind, wanted = _KINDS[type(default)]
    try:
        value: Value = kind(text)
        return value
    except (ValueError, KeyError):
        raise InvalidArgumentError(
            f"parameter {name} is {text[:_SHOWN]!r} ({source}), but should be {wanted}, as its "
            f"default {_text(default)}",
            name=name,
        ) from None


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(text)
    return number


_KINDS: dict[type, tuple[Any, str]] = {
    bool: (boolean, "true or false"),
    int: (int, "a whole number"),
    float: (_finite, "a number"),
}


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown(name: str, value: Value) -> str:
    """As text for a notebook's output, which gets saved and shared."""
    text = _text(value)
    if name.endswith("_ref") and text:
        try:
            check_secret_reference(text, name)
        except InvalidArgumentError:  # it may be the secret itself; its use will be refused
            return "***"
    return mask(text) if "@" in text or "password=" in text else text
