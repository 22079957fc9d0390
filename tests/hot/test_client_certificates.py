"""A server that lets in only those who show a certificate of its authority."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.errors import HotTierUnavailableError, InvalidArgumentError, LakelogError
from lakelog.place.log_place import check_no_password
from tests.support.servers import RedisServer, TlsFront, free_port

KEY_PASSWORD = "of the key"


@dataclass
class Certified:
    """A server behind mutual TLS, and the files of those who know it."""

    port: int
    folder: Path

    def url(self, certificate: str | None = "client", **more: str) -> str:
        files = {"ssl_ca_certs": "authority.pem"}
        if certificate is not None:
            files |= {"ssl_certfile": f"{certificate}.pem", "ssl_keyfile": f"{certificate}.key"}
        given = {name: str(self.folder / file) for name, file in files.items()} | more
        query = "&".join(f"{name}={value}" for name, value in given.items())
        return f"rediss://127.0.0.1:{self.port}?{query}"


@pytest.fixture(params=["a server's own TLS", "TLS in front of it"])
def certified(
    request: pytest.FixtureRequest, make_redis: Callable[..., RedisServer], tmp_path: Path
) -> Iterator[Certified]:
    import trustme  # builds certificates with compiled code: only where they are needed

    authority, another = trustme.CA(), trustme.CA()
    folder = tmp_path / "certificates"
    folder.mkdir()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    for name, of, host in (
        ("server", authority, "127.0.0.1"),
        ("client", authority, "ada@lakelog.test"),
        ("stranger", another, "eve@lakelog.test"),
    ):
        made = of.issue_cert(host)
        made.private_key_pem.write_to_path(str(folder / f"{name}.key"))
        for part in made.cert_chain_pems:
            part.write_to_path(str(folder / f"{name}.pem"), append=True)
    if request.param == "TLS in front of it":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        context.load_verify_locations(folder / "authority.pem")
        context.verify_mode = ssl.CERT_REQUIRED
        front = TlsFront(make_redis(), context).start()
        try:
            yield Certified(front.port, folder)
        finally:
            front.stop()
        return
    port = free_port()
    tls = {
        "tls-port": port,
        "tls-cert-file": folder / "server.pem",
        "tls-key-file": folder / "server.key",
        "tls-ca-cert-file": folder / "authority.pem",
        "tls-auth-clients": "yes",
    }
    try:
        make_redis(**{name: str(value) for name, value in tls.items()})
    except RuntimeError:
        pytest.skip("the server of this machine is built without TLS")
    yield Certified(port, folder)


def test_who_shows_a_certificate_does_all_work(
    certified: Certified, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cold = str(tmp_path / "cold")
    with Lakelog.connect(certified.url(), cold, engine="inline") as lake:
        lake.topics.create("orders", 1, {"local.retention.ms": 0})
        with lake.producer() as producer:
            producer.send("orders", b"x").result(20)
        lake.archive()
        assert lake.log("orders").read(0).to_arrow().num_rows == 1
        shown = f"{lake!r} {lake.place!r} {lake.status()!r}"
    assert str(certified.folder) not in shown  # where keys lie is nobody's business
    assert main(["--redis", certified.url(), "--cold", cold, "status"]) == 0
    assert str(certified.folder) not in capsys.readouterr().out


@pytest.mark.parametrize("certificate", [None, "stranger"])
def test_who_shows_none_or_anothers_is_told_so(
    certified: Certified, certificate: str | None
) -> None:
    url = certified.url(certificate)
    with pytest.raises(HotTierUnavailableError, match="ssl_certfile=") as caught:
        Lakelog.connect(url)
    assert str(certified.folder) not in str(caught.value)


def test_a_certificate_that_is_not_there_is_named(certified: Certified) -> None:
    with pytest.raises(LakelogError, match="missing"):
        Lakelog.connect(certified.url("missing"))


def test_the_password_of_a_key_is_one_too(certified: Certified) -> None:
    url = certified.url(ssl_password=KEY_PASSWORD.replace(" ", "%20"))
    with contextlib.suppress(LakelogError):
        Lakelog.connect(url).close()
    with pytest.raises(InvalidArgumentError, match="password"):
        check_no_password(url)
