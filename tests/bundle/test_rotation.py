"""Redis's password is exchanged as conf/README.md says, while clients go on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakelog import Lakelog
from lakelog.errors import LakelogError
from lakelog.jobs import add_readings
from tests.support.servers import RedisServer

OLD, NEW = "an old word", "a new word"


def test_a_password_is_exchanged_without_a_pause(
    make_redis: Callable[..., RedisServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = make_redis()
    url = server.url.replace("//", "//lakelog@")

    def connect(password: str) -> Lakelog:
        monkeypatch.setenv("LAKELOG_REDIS_PASSWORD", password)
        return Lakelog.connect(url, password_ref="env:LAKELOG_REDIS_PASSWORD")

    with server.client() as admin:
        admin.execute_command("ACL", "SETUSER", "lakelog", "on", f">{OLD}", "~*", "&*", "+@all")
        with connect(OLD) as running:
            add_readings(running, "readings", 100)
            admin.execute_command("ACL", "SETUSER", "lakelog", f">{NEW}")
            with connect(NEW) as renewed:
                add_readings(renewed, "readings", 200)
            add_readings(running, "readings", 300)  # what runs still has the old one
        admin.execute_command("ACL", "SETUSER", "lakelog", f"<{OLD}")
        with pytest.raises(LakelogError):
            connect(OLD)
        with connect(NEW) as renewed:
            assert renewed.log("readings").offsets()[1].log_end > 0
