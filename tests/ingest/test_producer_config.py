"""A producer's settings are checked when made, and say what is legal."""

import pytest

from lakelog.errors import InvalidConfigError
from lakelog.ingest.producer import ProducerConfig


def test_an_unknown_setting_is_refused_and_the_legal_ones_named():
    with pytest.raises(InvalidConfigError, match=r"'linger'; legal: acks, batch_size, linger_ms"):
        ProducerConfig.of(linger=5)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"batch_size": 0}, r"batch_size=0 is not legal: it takes a whole number in 1\.\."),
        ({"linger_ms": -1}, "linger_ms=-1 is not legal: it takes a whole number ≥ 0"),
        ({"linger_ms": 1.5}, "linger_ms=1.5 is not legal"),
        ({"max_in_flight": 6}, r"max_in_flight=6 is not legal: it takes a whole number in 1\.\.5"),
        ({"delivery_timeout_ms": 4}, "linger_ms=5 must not exceed it"),
        ({"acks": "all"}, "'memory', 'replicas=N'"),
        ({"compression_type": "brotli"}, "compression"),
        ({"compression_type": "producer"}, "a topic's setting"),
    ],
)
def test_a_value_out_of_bounds_is_refused(settings, sentence):
    with pytest.raises(InvalidConfigError, match=sentence):
        ProducerConfig.of(**settings)
