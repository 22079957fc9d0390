"""What a client says of itself, step by step, with nobody to ask."""

from __future__ import annotations

import pytest

from lakelog.gateway.protocol.codes import ErrorCode
from lakelog.gateway.sasl import (
    MECHANISMS,
    Conversation,
    Kind,
    Login,
    Lookup,
    Principal,
    Reply,
    SaslError,
)
from lakelog.gateway.scram import ScramCredential
from tests.gateway.test_scram import proof_of

KEPT = ScramCredential.of("SCRAM-SHA-256", "sesame", 4_096)


def proved(conversation: Conversation, user: str) -> Reply:
    """By SCRAM."""
    assert conversation.shake_hands("SCRAM-SHA-256") is ErrorCode.NONE
    bare = f"n={user},r=x"
    assert conversation.take(f"n,,{bare}".encode()) == Lookup(user, "SCRAM-SHA-256")
    challenge = conversation.found(KEPT)
    assert not challenge.is_in
    step = conversation.take(proof_of("SCRAM-SHA-256", "sesame", bare, challenge.token))
    assert isinstance(step, Reply)
    return step


def test_a_user_of_redis() -> None:
    conversation = Conversation(MECHANISMS)
    conversation.shake_hands("PLAIN")
    assert conversation.take(b"\0ada\0se\xc3\xa4same") == Login("ada", "seäsame")
    assert conversation.principal is None
    assert conversation.accepted() == Reply(b"", is_in=True)
    assert conversation.principal == Principal(Kind.REDIS, "ada")


def test_a_user_of_the_gateway() -> None:
    conversation = Conversation(MECHANISMS)
    assert proved(conversation, "ada").is_in
    assert conversation.principal == Principal(Kind.GATEWAY, "ada")


def test_whoever_is_in_stays_who_it_was() -> None:
    conversation = Conversation(MECHANISMS)
    proved(conversation, "ada")
    proved(conversation, "ada")
    with pytest.raises(SaslError, match="one user"):
        proved(conversation, "bob")
    conversation.shake_hands("PLAIN")
    conversation.take(b"\0ada\0sesame")  # of that name in Redis
    with pytest.raises(SaslError, match="one user"):
        conversation.accepted()
    assert conversation.principal == Principal(Kind.GATEWAY, "ada")


@pytest.mark.parametrize(
    "token",
    [b"", b"\0", b"ada\0sesame", b"\0ada\0", b"\0\0sesame", b"root\0ada\0x", b"\0a\0b\0c", b"\xff"],
)
def test_tokens_of_plain_that_are_refused(token: bytes) -> None:
    conversation = Conversation(MECHANISMS)
    conversation.shake_hands("PLAIN")
    with pytest.raises(SaslError) as refused:
        conversation.take(token)
    assert refused.value.code is ErrorCode.SASL_AUTHENTICATION_FAILED


def test_a_handshake_comes_first_and_chooses_what_is_offered() -> None:
    conversation = Conversation(["PLAIN"])
    with pytest.raises(SaslError) as refused:
        conversation.take(b"\0ada\0sesame")
    assert refused.value.code is ErrorCode.ILLEGAL_SASL_STATE
    for mechanism in ("SCRAM-SHA-256", "plain", "GSSAPI", ""):
        code = conversation.shake_hands(mechanism)
        assert code is ErrorCode.UNSUPPORTED_SASL_MECHANISM


def test_a_password_shows_nowhere() -> None:
    assert "sesame" not in repr(Login("ada", "sesame"))
