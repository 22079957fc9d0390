"""SCRAM by the examples of its RFCs, and what it refuses."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.cli.gateway import SCRAMS
from lakelog.errors import InvalidArgumentError, NewerVersionError
from lakelog.gateway.scram import HASHES, ScramCredential, ScramError, ScramServer

NONCE, OWN = "rOprNGfwEbeRWgbNEkqO", "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="


def credential(mechanism: str, password: str, salt: bytes = SALT) -> ScramCredential:
    salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, 4096)
    return ScramCredential.of_salted(mechanism, salted, salt, 4096)


def begun(first: str = f"n,,n=user,r={NONCE}") -> ScramServer:
    server = ScramServer("SCRAM-SHA-256", OWN)
    server.first(first.encode())
    server.challenge(credential("SCRAM-SHA-256", "pencil"))
    return server


def proof_of(mechanism: str, password: str, bare: str, challenge: bytes, gs2: str = "n,,") -> bytes:
    """What a client says last. Source: RFC 5802, 3."""
    name = HASHES[mechanism]
    parts = dict(part.split("=", 1) for part in challenge.decode().split(","))
    salt, iterations = base64.b64decode(parts["s"]), int(parts["i"])
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    key = hmac.digest(salted, b"Client Key", name)
    without = f"c={base64.b64encode(gs2.encode()).decode()},r={parts['r']}"
    said = f"{bare},{challenge.decode()},{without}".encode()
    signature = hmac.digest(hashlib.new(name, key).digest(), said, name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    return f"{without},p={base64.b64encode(proof).decode()}".encode()


def test_the_example_of_rfc_7677() -> None:
    server = ScramServer("SCRAM-SHA-256", OWN)
    assert server.first(f"n,,n=user,r={NONCE}".encode()) == "user"
    challenge = server.challenge(credential("SCRAM-SHA-256", "pencil"))
    assert challenge == f"r={NONCE}{OWN},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    final = f"c=biws,r={NONCE}{OWN},p={PROOF}".encode()
    assert server.final(final) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


@given(mechanism=st.sampled_from(SCRAMS), password=st.text(min_size=1), other=st.text(min_size=1))
def test_who_knows_the_password_gets_in_and_nobody_else(
    mechanism: str, password: str, other: str
) -> None:
    kept = credential(mechanism, password, secrets.token_bytes(8))
    bare = "n=a=2Cb=3Dc,r=nonce"
    for tried in (password, other):
        server = ScramServer(mechanism)
        assert server.first(f"y,a=a=2Cb=3Dc,{bare}".encode()) == "a,b=c"
        said = proof_of(mechanism, tried, bare, server.challenge(kept), "y,a=a=2Cb=3Dc,")
        if tried == password:
            assert server.final(said).startswith(b"v=")
        else:
            with pytest.raises(ScramError, match="wrong"):
                server.final(said)


@pytest.mark.parametrize(
    "first",
    [
        b"",
        b"\xff",
        b"n,,n=,r=x",
        b"n,,n=user",
        b"n,,r=x,n=user",
        b"n,,n=us=er,r=x",
        b"n,,m=more,n=user,r=x",
        b"n,,n=user,r=x,m=more",
        b"n,,n=user,r=has space",
        b"x,,n=user,r=x",
        b"p=tls-unique,,n=user,r=x",
        b"n,a=root,n=user,r=x",
    ],
)
def test_first_messages_that_are_refused(first: bytes) -> None:
    with pytest.raises(ScramError):
        ScramServer("SCRAM-SHA-256").first(first)


@pytest.mark.parametrize(
    "final",
    [
        "",
        f"c=biws,r={NONCE}{OWN}",
        f"c=biws,r={NONCE}{OWN},p=",
        f"c=biws,r={NONCE}{OWN},p=!!!!",
        f"c=biws,r={NONCE}{OWN},p=AAAA",
        f"c=biws,r={NONCE},p={PROOF}",  # without the server's part
        f"c=eSws,r={NONCE}{OWN},p={PROOF}",  # of another first message
        f"c=biws,r={NONCE}{OWN},p={PROOF[:-2]}A=",
    ],
)
def test_second_messages_that_are_refused(final: str) -> None:
    with pytest.raises(ScramError):
        begun().final(final.encode())


def test_nobody_proves_anything_before_a_challenge() -> None:
    with pytest.raises(ScramError):
        ScramServer("SCRAM-SHA-256").final(f"c=biws,r={NONCE},p={PROOF}".encode())


def test_a_name_that_nobody_has_is_answered_like_others() -> None:
    first, again, other = (
        ScramCredential.decoy("SCRAM-SHA-512", name, b"secret") for name in ("a", "a", "b")
    )
    kept = ScramCredential.of("SCRAM-SHA-512", "sesame")
    assert first.salt == again.salt != other.salt
    assert (len(first.salt), first.iterations) == (len(kept.salt), kept.iterations)


def test_what_is_kept_is_read_again_and_not_shown() -> None:
    kept = ScramCredential.of("SCRAM-SHA-256", "sesame")
    assert ScramCredential.from_json(kept.to_json().encode(), "user") == kept
    assert "sesame" not in kept.to_json()
    assert repr(kept) == "ScramCredential(iterations=16384)"
    with pytest.raises(NewerVersionError):
        ScramCredential.from_json(b'{"format": 999}', "user")


def test_credentials_of_elsewhere_are_checked() -> None:
    for salted, salt, iterations in (
        (bytes(32), b"s", 4_095),
        (bytes(32), b"s", 16_385),
        (bytes(31), b"s", 4_096),
        (bytes(32), b"", 4_096),
    ):
        with pytest.raises(InvalidArgumentError):
            ScramCredential.of_salted("SCRAM-SHA-256", salted, salt, iterations)
    with pytest.raises(InvalidArgumentError):
        ScramCredential.of("SCRAM-SHA-256", "")


def test_the_command_line_knows_the_mechanisms() -> None:
    assert tuple(HASHES) == SCRAMS
