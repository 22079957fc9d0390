"""What ends a wait."""

from __future__ import annotations

import os
import resource

from lakelog.hot.waker import Waker

FILES = 1_100  # more than `select.select` takes


def test_it_is_waited_for_in_a_process_of_many_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4 * FILES)), hard))
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(FILES)]
    try:
        waker = Waker()
        assert waker.fileno() > 1_024
        waker.wait(0)
        assert not waker.is_set
        waker.set()
        waker.wait(60)
        waker.clear()
        waker.wait(0.001)
        assert not waker.is_set
    finally:
        for one in opened:
            os.close(one)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
