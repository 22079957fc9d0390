"""An archiver that starts while Redis is away, or is stopped while it starts."""

from __future__ import annotations

import threading

import pytest

from lakelog.archive.watchers import wait_for_redis
from lakelog.errors import HotTierAccessError, HotTierUnavailableError


class Server:
    """Answers from some call on."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def connect(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise HotTierUnavailableError("away")
        return "connected"


def test_it_is_waited_for_until_it_answers() -> None:
    server = Server(2)
    assert wait_for_redis(server.connect, threading.Event()) == "connected"
    assert server.calls == 3


def test_who_is_stopped_at_once_still_connects_to_a_server_that_is_there() -> None:
    stop = threading.Event()
    stop.set()
    assert wait_for_redis(Server(0).connect, stop, deadline_s=0.0) == "connected"


@pytest.mark.parametrize("by", ["stop", "deadline"])
def test_who_is_stopped_does_not_wait_for_one_that_is_away(by: str) -> None:
    server, stop = Server(10**9), threading.Event()
    if by == "stop":
        stop.set()
    assert wait_for_redis(server.connect, stop, 0.0 if by == "deadline" else None) is None
    assert server.calls == 1


def test_what_is_told_of_it_is_told_once_at_first() -> None:
    told: list[str] = []
    heard = threading.Event()

    def tell(troubles) -> None:
        told.extend(str(one) for one in troubles)
        heard.set()

    assert wait_for_redis(Server(1).connect, threading.Event(), None, tell) == "connected"
    assert heard.wait(60)
    assert len(told) == 1
    assert "away" in told[0]


def test_what_will_not_be_over_is_raised() -> None:
    def refused() -> None:
        raise HotTierAccessError("a wrong password")

    with pytest.raises(HotTierAccessError):
        wait_for_redis(refused, threading.Event())
