"""Kafka's compression names; and compression is left out where it does not pay, and tried again."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec import (
    AdaptiveCompression,
    Entry,
    compression,
    decode,
    encode,
    resolve_compression,
)
from lakelog.codec.compression import TRIED_EACH
from lakelog.codec.entry import EntryId
from lakelog.errors import InvalidConfigError
from lakelog.values.config import KIB, Compression, EntryFormat
from lakelog.values.record import produced_batch


@pytest.fixture(autouse=True)
def fresh_process(monkeypatch):
    monkeypatch.setattr(compression, "_said", set())


@pytest.mark.parametrize(
    ("topic", "producer", "kind"),
    [
        ("producer", "none", Compression.NONE),
        ("producer", "uncompressed", Compression.NONE),
        ("producer", "lz4", Compression.LZ4),
        ("producer", "zstd", Compression.ZSTD),
        ("uncompressed", "zstd", Compression.NONE),
        ("lz4", "none", Compression.LZ4),
        ("zstd", "gzip", Compression.ZSTD),
    ],
)
def test_the_topic_decides_unless_it_leaves_it_to_the_producer(topic, producer, kind):
    with warnings.catch_warnings():
        warnings.simplefilter("error")

        assert resolve_compression(topic, producer) is kind


@pytest.mark.parametrize(("topic", "producer"), [("gzip", "none"), ("producer", "gzip")])
def test_gzip_is_stored_as_zstd_and_said_once(topic, producer, caplog):
    with pytest.warns(UserWarning, match="gzip is stored as zstd"):
        assert resolve_compression(topic, producer) is Compression.ZSTD
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert resolve_compression(topic, producer) is Compression.ZSTD

    assert [
        record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
    ] == ["compression.type=gzip is stored as zstd"]


def test_snappy_is_stored_as_lz4_and_said_beside_gzip():
    with pytest.warns(UserWarning, match="gzip"):
        resolve_compression("gzip", "none")
    with pytest.warns(UserWarning, match="snappy is stored as lz4"):
        assert resolve_compression("producer", "snappy") is Compression.LZ4


@pytest.mark.parametrize(("topic", "producer"), [("producer", "producer"), ("brotli", "none")])
def test_another_name_is_refused_with_the_legal_ones(topic, producer):
    with pytest.raises(InvalidConfigError, match="none, uncompressed, lz4, zstd, gzip, snappy"):
        resolve_compression(topic, producer)


# -- what pays -----------------------------------------------------------------------------------

SQUEEZED = [Compression.LZ4, Compression.ZSTD]


def entries_of(values: Sequence[bytes], compression: Compression) -> tuple[Entry, ...]:
    rows = [(0, b"key", value, ()) for value in values]
    return encode(produced_batch(rows), EntryFormat.ARROW, compression)


def calls(adaptive: AdaptiveCompression, values: Sequence[bytes], count: int) -> list[Compression]:
    used = []
    for _ in range(count):
        used.append(adaptive.next())
        adaptive.learn(used[-1], entries_of(values, used[-1]))
    return used


@pytest.mark.parametrize("wanted", SQUEEZED)
def test_random_bytes_are_compressed_once_in_sixteen_calls(wanted):
    used = calls(AdaptiveCompression(wanted), [os.urandom(KIB) for _ in range(64)], 3 * TRIED_EACH)
    assert used == 3 * ([wanted] + (TRIED_EACH - 1) * [Compression.NONE])


@pytest.mark.parametrize("wanted", SQUEEZED)
def test_text_is_always_compressed(wanted):
    words = [b'{"name": "something", "number": %d}' % number * 8 for number in range(64)]
    assert calls(AdaptiveCompression(wanted), words, 40) == 40 * [wanted]


def test_what_becomes_compressible_is_compressed_again_by_the_next_try():
    adaptive = AdaptiveCompression(Compression.LZ4)
    calls(adaptive, [os.urandom(KIB) for _ in range(64)], 5)
    used = calls(adaptive, [bytes(KIB)] * 64, 40)
    assert used[TRIED_EACH - 5 :] == (40 - TRIED_EACH + 5) * [Compression.LZ4]


def test_few_records_decide_nothing():
    assert calls(AdaptiveCompression(Compression.LZ4), [os.urandom(20)], 40) == 40 * [
        Compression.LZ4
    ]


@given(st.lists(st.booleans(), max_size=40), st.sampled_from(SQUEEZED))
def test_it_is_wanted_or_none_and_readers_take_either(are_random, wanted):
    adaptive = AdaptiveCompression(wanted)
    end, stored, given = 0, [], []
    for is_random in are_random:
        values = [os.urandom(KIB) if is_random else bytes(KIB) for _ in range(8)]
        used = adaptive.next()
        assert used in (wanted, Compression.NONE)
        made = entries_of(values, used)
        adaptive.learn(used, made)
        for entry in made:
            end += entry.record_count
            stored.append((EntryId(end - 1, entry.record_count), entry.fields))
        given += values
    assert decode(stored).column("value").to_pylist() == given
