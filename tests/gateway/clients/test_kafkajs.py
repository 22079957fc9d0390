"""KafkaJS, by a program that does what services in Node do. Needs Node and npm.

``pytest -m slow tests/gateway/clients/test_kafkajs.py``
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.gateway.clients.programs import needed, run, run_json

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the packages that it names."""
    npm = needed("npm", "Debian: apt-get install nodejs npm")
    folder = tmp_path_factory.mktemp("kafkajs")
    shutil.copytree(Path(__file__).with_name("kafkajs"), folder, dirs_exist_ok=True)
    run([npm, "install", "--no-audit", "--no-fund"], cwd=folder)
    return folder / "client.js"


def test_kafkajs(program: Path, servers: str) -> None:
    all_of_each = dict.fromkeys(("none", "gzip", "snappy"), 300)
    assert run_json([needed("node", ""), program, servers]) == {
        "created": True,
        "created again": False,
        "consumed": all_of_each,
        "committed": 900,
        "group": ["Empty", "consumer"],
        "group is listed": True,
        "end": 900,
        "past": 0,
        "consumed again": all_of_each,
        "left": 900,
        "configs": {"max.message.bytes": "5000", "retention.ms": "604800000"},
        "partitions": 5,
        "deleted": True,
    }
