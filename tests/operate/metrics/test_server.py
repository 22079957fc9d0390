"""Metrics as Prometheus gets them: over HTTP, while the log's tiers come and go."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from lakelog.base.address import Address
from lakelog.base.metrics import Kind, Measured
from lakelog.errors import InvalidArgumentError
from lakelog.lakelog import Lakelog
from lakelog.operate.metrics.exposition import METRICS, Collector, MetricsServer, Scrapes
from lakelog.operate.metrics.of_log import LOG_END, UP
from lakelog.testing.eventually import eventually

LOCAL = Address("127.0.0.1", 0)


@pytest.fixture
def serve() -> Iterator[Callable[[Scrapes], str]]:
    """Serves scrapes; gives the URL."""
    servers = []

    def serve(scrapes: Scrapes) -> str:
        servers.append(MetricsServer(LOCAL, Collector(scrapes.measured, METRICS)))
        return f"http://{servers[-1].address}"

    yield serve
    for server in servers:
        server.close()


def scrapes_of(log: Lakelog) -> Scrapes:
    return Scrapes(lambda within_s: log.log_look.look(log.topics.list(), within_s), lasts_s=0)


def get(url: str) -> str:
    with urllib.request.urlopen(url) as answer:
        return str(answer.read().decode())


def families(text: str) -> dict[str, Any]:
    return {family.name: family for family in text_string_to_metric_families(text)}


def up(url: str) -> float:
    return float(families(get(f"{url}/metrics"))["lakelog_up"].samples[0].value)


def test_all_that_is_served_is_known_and_what_is_known_is_served(log, append, serve):
    log.topics.create("t", 1, {"cleanup.policy": "compact,delete"})
    with log.producer() as producer:
        producer.send("t", "v", key="k").result()
    log.archive()
    found = families(get(f"{serve(scrapes_of(log))}/metrics"))
    known = {metric.name.removesuffix("_total"): metric for metric in METRICS}
    assert set(found) == set(known)
    for name, family in found.items():
        metric = known[name]
        assert (family.type, family.documentation) == (metric.kind.value, metric.help)
        own = {"le"} if metric.kind is Kind.HISTOGRAM else set()
        for sample in family.samples:
            assert set(sample.labels) - own == set(metric.labels)


def test_a_topic_s_values_are_there(log, append, serve):
    log.topics.create("t", 2)
    append("t", 3, partition=1)
    found = families(get(f"{serve(scrapes_of(log))}/metrics"))
    ends = {one.labels["partition"]: one.value for one in found["lakelog_log_end_offset"].samples}
    assert ends == {"0": 0, "1": 3}
    records_in = found["lakelog_log_records_in"].samples
    assert {one.name for one in records_in} == {"lakelog_log_records_in_total"}


def test_one_metric_by_name_and_openmetrics(log, append, serve):
    url = serve(scrapes_of(log))
    assert set(families(get(f"{url}/metrics?name[]=lakelog_up"))) == {"lakelog_up"}
    asked = urllib.request.Request(
        f"{url}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
    )
    with urllib.request.urlopen(asked) as answer:
        assert answer.read().endswith(b"# EOF\n")


def test_redis_comes_and_goes(make_redis, tmp_path, serve):
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as log:
        scrapes = scrapes_of(log)
        url = serve(scrapes)
        assert up(url) == 1
        server.kill()
        assert up(url) == 0
        found = families(get(f"{url}/metrics"))
        (error,) = found["lakelog_last_error_info"].samples
        assert error.labels == {"error": "HotTierUnavailableError"}
        assert "lakelog_producer_records" in found  # what the process counted stays
        server.start()
        eventually(lambda: up(url) == 1)


def test_no_secret_is_served(make_redis, tmp_path, serve):
    server = make_redis(requirepass="a-secret-word")
    assert "a-secret-word" in server.url
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as log:
        served = serve(scrapes_of(log))
        assert "a-secret-word" not in get(f"{served}/metrics")
        server.kill()
        assert "a-secret-word" not in get(f"{served}/metrics") + get(served)


def test_a_look_that_hangs_is_not_waited_for_for_ever(serve):
    gate, looks = threading.Event(), []

    def look(within_s: float) -> list[Measured]:
        looks.append(within_s)
        gate.wait()
        return [Measured(UP, [((), 1)])]

    told: list[str] = []
    url = serve(Scrapes(look, told.append, within_s=0.05, lasts_s=0))
    assert [up(url), up(url)] == [0, 0]
    assert len(looks) == 1  # the one that hangs is asked, not another one beside it
    assert told == ["TimeoutError: no answer within 0.05 s"]
    gate.set()
    eventually(lambda: up(url) == 1)
    assert told[1:] == [""]


def test_who_asks_at_the_same_time_shares_a_look(serve):
    looks = []

    def look(within_s: float) -> list[Measured]:
        looks.append(within_s)
        return [Measured(LOG_END, [(("t", "0"), len(looks))])]

    url = serve(Scrapes(look, lasts_s=3600))
    assert get(f"{url}/metrics") == get(f"{url}/metrics")
    assert len(looks) == 1


def test_a_defect_of_a_look_is_told_too(serve):
    def look(within_s: float) -> list[Measured]:
        raise ZeroDivisionError("by nobody")

    told: list[str] = []
    url = serve(Scrapes(look, told.append, lasts_s=0))
    assert up(url) == 0
    assert told == ["ZeroDivisionError: by nobody"]


def test_a_port_that_is_taken_is_said_in_two_lines(serve):
    url = serve(Scrapes(lambda within_s: []))
    taken = Address.parse(url.removeprefix("http://"))
    with pytest.raises(
        InvalidArgumentError, match=r"^cannot listen at 127.0.0.1:\d+:\n"
    ) as refused:
        MetricsServer(taken, Collector())
    assert len(str(refused.value).splitlines()) == 2


@pytest.mark.parametrize(
    ("text", "address", "is_loopback"),
    [
        ("9464", Address("127.0.0.1", 9464), True),
        ("127.0.0.1:0", Address("127.0.0.1", 0), True),
        ("localhost:9464", Address("localhost", 9464), True),
        ("[::1]:9464", Address("::1", 9464), True),
        ("0.0.0.0:9464", Address("0.0.0.0", 9464), False),
        ("host.example:9464", Address("host.example", 9464), False),
    ],
)
def test_an_address_is_read(text: str, address: Address, is_loopback: bool) -> None:
    assert Address.parse(text) == address
    assert Address.parse(str(address)) == address
    assert address.is_loopback == is_loopback


@pytest.mark.parametrize("text", [":9464", "host", "host:", "host:65536", "host:-1", "", "a:b:c"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="no place to listen"):
        Address.parse(text)


def test_an_address_of_another_machine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match=r"cannot listen at 192\.0\.2\.1:9464"):
        MetricsServer(Address("192.0.2.1", 9464), Collector())
