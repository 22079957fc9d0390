"""Clients as they come, on a gateway; with ``--kafka`` each also on the broker that judges it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from lakelog import Lakelog
from tests.support.kafka_broker import KafkaBroker


@pytest.fixture(scope="session")
def kafka_folder(request: pytest.FixtureRequest) -> Path:
    """The folder that ``--kafka`` names."""
    folder: Path | None = request.config.getoption("--kafka")
    if folder is None:
        pytest.skip("give a folder that starts a Kafka broker, and has its tools: --kafka PATH")
    return folder.absolute()


@pytest.fixture(scope="session")
def kafka(kafka_folder: Path) -> Iterator[KafkaBroker]:
    """The run's one broker."""
    broker = KafkaBroker(kafka_folder)
    try:
        yield broker.start()
    finally:
        broker.stop()


@pytest.fixture
def gateway_servers(lake: Lakelog) -> Iterator[str]:
    """``bootstrap.servers`` of a gateway in front of `lake`."""
    with lake.gateway("127.0.0.1:0") as gateway:
        yield gateway.bootstrap_servers


@pytest.fixture(params=["gateway", "kafka"])
def servers(request: pytest.FixtureRequest) -> str:
    """``bootstrap.servers`` of the gateway, and of the broker: what is asserted is true of both."""
    if request.param == "kafka":
        broker: KafkaBroker = request.getfixturevalue("kafka")
        return broker.servers
    found: str = request.getfixturevalue("gateway_servers")
    return found


@pytest.fixture
def topic(servers: str) -> str:
    """A new topic of two partitions."""
    name = f"t-{uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": servers})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(30)
    return name
