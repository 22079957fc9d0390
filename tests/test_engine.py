"""Engines run a function over values, and nothing before its result is asked for."""

from __future__ import annotations

import pytest

from lakelog.engines.engine import InlineEngine


def test_each_task_has_its_result_and_errors_come_as_they_were():
    results = InlineEngine().map(lambda task: 10 // task, [1, 5, 0])
    assert [next(results), next(results)] == [10, 2]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert list(InlineEngine().map(str, [])) == []
