"""Users of a gateway, as they are typed and as they are kept."""

from __future__ import annotations

import getpass
import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.errors import ForeignEntryError, HotTierAccessError, InvalidArgumentError
from lakelog.gateway.users import ScramUser, ScramUsers
from lakelog.operate.acl.acl import acl

SECRET = "se same"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def users(
    redis_url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Callable[..., tuple[str, str]]:
    """Runs ``lakelog gateway users``; what it prints, on stdout and stderr."""

    def run(
        *arguments: str, stdin: str = "", code: int = 0, is_typed: bool = False
    ) -> tuple[str, str]:
        monkeypatch.setattr(sys, "stdin", Terminal() if is_typed else io.StringIO(stdin))
        where = ["--redis", redis_url, "--cold", str(tmp_path / "cold")]
        assert main([*where, "gateway", "users", *arguments]) == code
        printed = capsys.readouterr()
        assert SECRET not in printed.out + printed.err
        return printed.out, printed.err

    return run


def test_a_user_is_made_listed_and_deleted(users: Any) -> None:
    assert "no users" in "".join(users("list"))
    out, _ = users("set", "ada", stdin=f"{SECRET}\n")
    assert out == "ada may log in by SCRAM-SHA-256 and SCRAM-SHA-512\n"
    users("set", "bob", "--mechanism", "scram-sha-512", stdin=SECRET)
    told = json.loads(users("list", "--output", "json")[0])
    assert [(one["name"], one["mechanism"], one["iterations"]) for one in told] == [
        ("ada", "SCRAM-SHA-256", 16_384),
        ("ada", "SCRAM-SHA-512", 16_384),
        ("bob", "SCRAM-SHA-512", 16_384),
    ]
    users("delete", "ada")
    assert "bob" in users("list")[0]
    assert "ada" not in users("list")[0]
    assert "there is no user 'ada'" in users("delete", "ada", code=1)[1]


def test_a_password_by_reference(
    users: Any, lake: Lakelog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADAS_SECRET", SECRET)
    users("set", "ada", "--user-password-ref", "env:ADAS_SECRET")
    assert ScramUsers(lake.hot).find("SCRAM-SHA-256", "ada") is not None
    assert "never the secret itself" in users("set", "x", "--user-password-ref", SECRET, code=1)[1]


def test_a_password_that_is_typed_is_typed_twice(
    users: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = [SECRET, SECRET]
    monkeypatch.setattr(getpass, "getpass", lambda _: typed.pop())
    users("set", "ada", is_typed=True)
    typed = [SECRET, "another"]
    assert "differ" in users("set", "ada", code=1, is_typed=True)[1]


def test_what_no_user_can_have_is_refused(users: Any) -> None:
    assert "password is empty" in users("set", "ada", stdin="\n", code=1)[1]
    assert "no name of a user" in users("set", "", stdin=SECRET, code=1)[1]
    assert "no name of a user" in users("set", "a\nb", stdin=SECRET, code=1)[1]


def test_what_is_kept_is_no_password(lake: Lakelog, redis_client: redis.Redis) -> None:
    users = ScramUsers(lake.hot)
    users.set("a b", SECRET, ["SCRAM-SHA-256"])
    assert users.list() == [ScramUser("a b", "SCRAM-SHA-256", 16_384)]
    kept: Any = redis_client.hgetall("lakelog:gateway_users")
    ((name, text),) = kept.items()
    assert name == b"SCRAM-SHA-256 a b"
    assert json.loads(text).keys() == {"format", "salt", "iterations", "stored_key", "server_key"}
    assert SECRET.encode() not in text
    with pytest.raises(InvalidArgumentError):
        users.set("a", SECRET, ["PLAIN"])


def test_what_somebody_else_wrote_is_told_without_it(
    lake: Lakelog, redis_client: redis.Redis
) -> None:
    redis_client.hset("lakelog:gateway_users", "SCRAM-SHA-256 ada", '{"salt": "c2VjcmV0"}')
    for ask in (
        lambda: ScramUsers(lake.hot).find("SCRAM-SHA-256", "ada"),
        ScramUsers(lake.hot).list,
    ):
        with pytest.raises(ForeignEntryError) as refused:
            ask()
        assert "c2VjcmV0" not in str(refused.value)


@pytest.mark.parametrize("role", ["producer", "consumer", "reader", "archiver"])
def test_only_an_admin_sees_what_is_kept(make_redis: Any, tmp_path: Path, role: str) -> None:
    server = make_redis()
    with Lakelog.connect(server.url, tmp_path / "cold", engine="inline") as lake:
        with server.client() as client:
            for made in (acl(role), acl("admin")):
                client.execute_command("ACL SETUSER", made.user, *made.redis, f">{SECRET}")
        with lake.as_user("admin", SECRET) as admin:
            ScramUsers(admin.hot).set("ada", SECRET)
            assert len(ScramUsers(admin.hot).list()) == 2
        with lake.as_user(role, SECRET) as other:
            for ask in (ScramUsers(other.hot).list, lambda: ScramUsers(other.hot).delete("ada")):
                with pytest.raises(HotTierAccessError):
                    ask()


def test_a_tenant_has_users_of_its_own_and_takes_them_along(lake: Lakelog, redis_url: str) -> None:
    lake.tenants.create("acme")
    cold = lake.place.cold
    assert cold is not None
    with Lakelog.connect(redis_url, tenant="acme", engine="inline") as own:
        ScramUsers(own.hot).set("ada", SECRET)
        assert ScramUsers(lake.hot).list() == []
        lake.tenants.delete("acme")
        assert ScramUsers(own.hot).list() == []
