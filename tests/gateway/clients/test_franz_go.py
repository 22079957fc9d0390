"""franz-go, by a program that does what services in Go do. Needs Go.

``pytest -m slow tests/gateway/clients/test_franz_go.py``
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gateway.clients.programs import needed, run, run_json

pytestmark = pytest.mark.slow

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built; Go fetches the modules that ``go.sum`` names the first time."""
    go = needed("go", "Debian: apt-get install golang")
    built = tmp_path_factory.mktemp("go") / "franz-go"
    run([go, "build", "-o", built, "."], cwd=Path(__file__).with_name("franz_go"))
    return built


def test_franz_go(program: Path, servers: str) -> None:
    assert run_json([program, servers]) == {
        "partitions": 3,
        "created again": "TOPIC_ALREADY_EXISTS: Topic with this name already exists.",
        "first half": 750,
        "lag": 750,
        "second half": 750,
        "lag at the end": 0,
        "group": ["Empty", "consumer"],
        "group is listed": True,
        "by consumer protocol": dict.fromkeys(CODECS, 300),
        "end": 1_500,
        "end of past": 0,
        "start": 1_500,
        "max.message.bytes": ["5000", "DYNAMIC_TOPIC_CONFIG"],
        "retention.ms": ["604800000", "DEFAULT_CONFIG"],
        "cleanup.policy": ["delete,compact", "DYNAMIC_TOPIC_CONFIG"],
        "more partitions": 5,
        "deleted": True,
    }
