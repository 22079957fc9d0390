"""Durations and sizes with units, wherever a setting takes a number of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog import TopicConfig
from lakelog.base.unit_text import duration_ms, size_bytes
from lakelog.errors import InvalidConfigError
from lakelog.values.keyspace_defaults import KeyspaceDefaults

MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


@given(st.integers(0, 10**12), st.sampled_from(sorted(MS)), st.sampled_from(sorted(BYTES)))
def test_so_many_of_a_unit(count: int, time: str, size: str) -> None:
    assert duration_ms(f"{count}{time}") == count * MS[time]
    assert size_bytes(f" {count} {size} ") == count * BYTES[size]
    assert size_bytes(f"{count}{size.lower()}") == count * BYTES[size]


@pytest.mark.parametrize(
    ("text", "expected"), [("1.5h", 5_400_000), ("0.5ms", None), ("7", None), ("-1d", None),
                           ("7 days", None), ("1e3s", None), ("d", None), ("٣d", None)]
)  # fmt: skip
def test_a_duration_is_whole_milliseconds_or_none(text: str, expected: int | None) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize("text", ["1GB", "1K", "1.3B", "GiB", "1 GiB s"])
def test_what_is_no_size(text: str) -> None:
    assert size_bytes(text) is None


def test_settings_are_stored_as_numbers() -> None:
    config = TopicConfig.of({"retention.ms": "7d", "segment.bytes": "64MiB", "segment.ms": "1.5h"})
    assert dict(config.overrides) == {
        "retention.ms": "604800000", "segment.bytes": "67108864", "segment.ms": "5400000",
    }  # fmt: skip
    assert config["retention.ms"] == 604_800_000
    assert config == TopicConfig.from_json(config.to_json())
    defaults = KeyspaceDefaults((("log.retention.ms", "2d"), ("log.segment.bytes", "1MiB")))
    assert dict(defaults.settings) == {
        "log.retention.ms": "172800000",
        "log.segment.bytes": "1048576",
    }


@pytest.mark.parametrize(
    ("name", "text", "hint"),
    [
        ("retention.ms", "1GiB", ", or with a unit, such as 30s, 12h or 7d"),
        ("segment.bytes", "7d", ", or with a unit, such as 64KiB or 1GiB"),
        ("min.cleanable.dirty.ratio", "1d", ""),
    ],
)
def test_a_unit_of_something_else_is_refused(name: str, text: str, hint: str) -> None:
    with pytest.raises(InvalidConfigError) as caught:
        TopicConfig.of({name: text})
    assert str(caught.value).endswith(hint)
