"""Whether a table is the one that a topic is archived into."""

from __future__ import annotations

import pytest

from lakelog.hot.archived_into import ArchivedInto, Standing, standing

SAID = ArchivedInto("first", "/cold/orders")


@pytest.mark.parametrize(
    ("said", "table_id", "where", "expected"),
    [
        (None, None, "/cold/orders", Standing.UNMADE),
        (None, "first", "/cold/orders", Standing.FREE),
        (SAID, "first", "/cold/orders", Standing.OWN),
        (SAID, "first", "/moved/orders", Standing.FREE),
        (SAID, None, "/cold/orders", Standing.OTHER),
        (SAID, "second", "/cold/orders", Standing.OTHER),
        (SAID, None, "/moved/orders", Standing.OTHER),
        (SAID, "second", "/moved/orders", Standing.OTHER),
    ],
)
def test_a_topic_has_the_table_of_one_id_wherever_it_is_opened(
    said: ArchivedInto | None, table_id: str | None, where: str, expected: Standing
) -> None:
    assert standing(said, table_id, where) is expected
