"""kcat, which scripts call. Needs it.

``pytest -m slow tests/gateway/clients/test_kcat.py``
"""

from __future__ import annotations

import json

import pytest

from tests.gateway.clients.programs import needed, run

pytestmark = pytest.mark.slow

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture
def kcat(servers: str) -> list[str]:
    """The command, on a cluster."""
    return [needed("kcat", "Debian: apt-get install kcat"), "-b", servers, "-q"]


@pytest.mark.parametrize("acks", ["1", "all"])
def test_what_is_produced_is_consumed(kcat: list[str], topic: str, acks: str) -> None:
    produce = [*kcat, "-P", "-t", topic, "-p", "1", "-K:", "-H", "h=x", "-X", f"acks={acks}"]
    for codec in CODECS:
        run([*produce, "-z", codec], input=f"{codec}:{codec * 50}\n")
    shown = [*kcat, "-f", "%p %o %k %s %h\\n", "-e"]
    lines = [f"1 {offset} {codec} {codec * 50} h=x" for offset, codec in enumerate(CODECS)]
    assert run([*shown, "-C", "-t", topic, "-o", "beginning"]).splitlines() == lines
    assert run([*shown, "-C", "-t", topic, "-p", "1", "-o", "-2"]).splitlines() == lines[-2:]
    in_group = [*shown, "-X", "auto.offset.reset=earliest", "-G", f"group-of-{topic}", topic]
    assert run(in_group).splitlines() == lines
    assert run(in_group) == ""  # it has committed


def test_the_cluster_and_its_offsets_are_told(kcat: list[str], topic: str) -> None:
    run([*kcat, "-P", "-t", topic, "-p", "0"], input="1\n2\n3\n")
    told = json.loads(run([*kcat, "-L", "-J", "-t", topic]))
    (described,) = told["topics"]
    replicas = [{"id": 1}]
    assert described == {
        "topic": topic,
        "partitions": [
            {"partition": number, "leader": 1, "replicas": replicas, "isrs": replicas}
            for number in range(2)
        ],
    }
    asked = [f"{topic}:0:{time}" for time in (-2, -1, 1)]
    found = [run([*kcat, "-Q", "-t", one]).strip() for one in asked]
    assert found == [f"{topic} [0] offset {offset}" for offset in (0, 3, 0)]
