"""Kafka's compression names."""

from __future__ import annotations

import logging
import warnings

import pytest

from lakelog.codec import compression, resolve_compression
from lakelog.errors import InvalidConfigError
from lakelog.values.config import Compression


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
