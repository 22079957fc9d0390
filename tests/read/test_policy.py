from datetime import timedelta

import pytest

from lakelog.errors import InvalidArgumentError, InvalidConfigError
from lakelog.read.consumer_config import OffsetReset
from lakelog.values.offsets import Ago, Earliest, Latest
from lakelog.values.typed_time import parse_duration


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("earliest", Earliest()),
        ("latest", Latest()),
        ("none", None),
        ("by_duration:PT1H", Ago(timedelta(hours=1))),
        ("by_duration:PT0S", Ago(timedelta(0))),
        ("by_duration:P1DT2H3M4.5S", Ago(timedelta(days=1, hours=2, minutes=3, seconds=4.5))),
    ],
)
def test_a_policy_names_where_to_go(text, position):
    assert OffsetReset.parse(text) == OffsetReset(text, position)


@pytest.mark.parametrize(
    "text",
    [
        *("invalid", "by_duration", "by_duration:", "by_duration:invalid", "by_duration:-PT1H"),
        *(
            "by_duration:PT-1H",
            "by_duration:PT",
            "by_duration:P",
            "by_duration:P1W",
            "by_duration:P1Y",
        ),
        *("LATEST", "EARLIEST", "NONE", "Latest", "BY_DURATION:PT1H", " latest", "", None, 5),
        "by_duration:P99999999999D",
    ],
)
def test_anything_else_is_refused_with_the_legal_ones(text):
    with pytest.raises(InvalidConfigError, match="'earliest', 'latest', 'none' or 'by_duration:"):
        OffsetReset.parse(text)


@pytest.mark.parametrize(
    ("text", "duration"),
    [
        ("PT10M", timedelta(minutes=10)),
        ("pt0.25s", timedelta(milliseconds=250)),
        ("PT1,5S", timedelta(seconds=1.5)),
        ("P2D", timedelta(days=2)),
        ("-PT5S", timedelta(seconds=-5)),
        ("PT1H-30M", timedelta(minutes=30)),
    ],
)
def test_a_duration_is_read_as_java_reads_it(text, duration):
    assert parse_duration(text) == duration


@pytest.mark.parametrize("text", ["", "P", "PT", "P1DT", "1H", "PT1", "P1M", "PT1H ", "PT١H"])
def test_what_is_not_a_duration_is_refused(text):
    with pytest.raises(InvalidArgumentError, match="not an ISO-8601 duration"):
        parse_duration(text)
