"""By name: rows of the sink that are archived are appended once, also when Redis is lost."""

from __future__ import annotations

import pytest
import strangers
from sink_attempts import COUNT, LostAttempts, rows

pytestmark = pytest.mark.slow


def test_what_was_archived_of_a_task_is_not_appended_again(
    redis_url: str, schema: str, spark
) -> None:
    lost = LostAttempts(redis_url, schema)
    table = rows()
    for calls in (2, 4):
        lost.begin(table, calls)
        lost.archive()
    held = lost.values()
    strangers.rewrite(spark, f"{schema}.orders")
    lost.lose()
    assert lost.values() == held
    assert lost.append(table) == COUNT
    lost.compare(table)
    lost.archive()
    lost.lose()
    assert lost.append(table) == COUNT
    lost.compare(table)
    lost.lakelog.close()
