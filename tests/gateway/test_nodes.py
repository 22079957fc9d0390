"""Several gateways at one log: clients are told of those that are alive, by all in the same way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError
from lakelog.gateway.gateway import Gateway
from lakelog.gateway.nodes import Node, agreed, own_node
from lakelog.gateway.protocol.messages import (
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataResponse,
)
from lakelog.testing.eventually import eventually
from tests.gateway.raw_client import RawClient


def seen(address: str) -> MetadataResponse:
    """All that a node tells."""
    with RawClient(address) as client:
        response: MetadataResponse = client.ask(MetadataRequest(topics=None), 12)
        return response


def addresses(address: str) -> set[str]:
    return {f"{node.host}:{node.port}" for node in seen(address).brokers}


def test_all_tell_the_same_of_all(lake: Lakelog, make_gateway: Callable[..., Gateway]) -> None:
    lake.topics.create("orders", 6)
    two = [make_gateway() for _ in range(2)]
    both = {gateway.bootstrap_servers for gateway in two}
    for gateway in two:
        eventually(lambda gateway=gateway: addresses(gateway.bootstrap_servers) == both)
    first, second = (seen(gateway.bootstrap_servers) for gateway in two)
    assert first == second
    leaders = [one.leader_id for one in first.topics[0].partitions]
    ids = {node.node_id for node in first.brokers}
    assert {leaders.count(one) for one in ids} == {3}
    groups = [f"group-{number}" for number in range(20)]
    found = []
    for gateway in two:
        with RawClient(gateway.bootstrap_servers) as client:
            asked = FindCoordinatorRequest(coordinator_keys=groups)
            found.append([one.node_id for one in client.ask(asked, 4).coordinators])
    assert found[0] == found[1]
    assert set(found[0]) == ids


def test_one_that_ends_is_told_of_no_more(make_gateway: Callable[..., Gateway]) -> None:
    stays, ends = make_gateway(), make_gateway()
    eventually(lambda: len(addresses(stays.bootstrap_servers)) == 2)
    ends.close()
    eventually(lambda: addresses(stays.bootstrap_servers) == {stays.bootstrap_servers})


def test_one_that_is_killed_is_told_of_for_seconds(
    lake: Lakelog, redis_url: str, make_gateway: Callable[..., Gateway]
) -> None:
    stays = make_gateway()
    code = (
        "import sys\n"
        "from lakelog import Lakelog\n"
        "lake = Lakelog.connect(sys.argv[1], keyspace=sys.argv[2], engine='inline')\n"
        "print(lake.gateway('127.0.0.1:0').bootstrap_servers, flush=True)\n"
        "sys.stdin.read()\n"
    )
    command = [sys.executable, "-c", code, redis_url, lake.hot.keyspace]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        killed = process.stdout.readline().strip()
        assert killed
        eventually(lambda: killed in addresses(stays.bootstrap_servers))
        os.kill(process.pid, signal.SIGKILL)
    eventually(lambda: addresses(stays.bootstrap_servers) == {stays.bootstrap_servers})


def test_what_is_no_gateway_is_not_told_of(
    lake: Lakelog, make_gateway: Callable[..., Gateway]
) -> None:
    gateway = make_gateway()
    for name, said in {"a": {"node_id": 9, "host": 1, "port": "x"}, "b": {}}.items():
        lake.hot.gateways().leave(name, said, 60_000)
    lake.hot.gateways().leave("c", {"node_id": 7, "host": "another", "port": 9092}, 60_000)
    own = gateway.bootstrap_servers
    eventually(lambda: addresses(own) == {own, "another:9092"})


@given(st.lists(st.integers(0, 3), min_size=1, max_size=6), st.data())
def test_whoever_begins_when_ids_and_addresses_are_agreed_on(
    hosts: list[int], data: st.DataObject
) -> None:
    """Processes that look and say in any order, with looks that others have overtaken."""
    said: dict[int, Node] = {}
    own = {number: Node(1, f"host-{host}", 9092) for number, host in enumerate(hosts)}
    seen: dict[int, dict[int, Node]] = {}

    def look(number: int) -> None:
        seen[number] = dict(said)

    def say(number: int) -> None:
        others = [node for other, node in seen.pop(number, {}).items() if other != number]
        known = [own[number], *others] if number in said else others
        own[number] = said[number] = own_node(own[number], agreed(known))

    steps = st.tuples(st.sampled_from([look, say]), st.sampled_from(sorted(own)))
    for step, number in data.draw(st.lists(steps, max_size=20)):
        step(number)
    for _ in range(len(hosts) + 1):  # what each does every second and a half
        for number in own:
            look(number)
            say(number)
    nodes = agreed(said.values())
    assert {node.address for node in nodes} == {node.address for node in own.values()}
    assert set(own.values()) == set(nodes)


def test_clients_are_not_sent_to_every_address(lake: Lakelog) -> None:
    with pytest.raises(InvalidArgumentError, match="advertise"):
        lake.gateway("0.0.0.0:0", sasl_mechanisms=("PLAIN",), allows_plaintext=True)
