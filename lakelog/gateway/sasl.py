"""SASL: how a client says who it is, before it is answered anything else. Decides, and asks nobody.

| a client | sends | and is told |
|---|---|---|
| of anybody | ``SaslHandshake`` with a mechanism | that it is offered, or which are |
| of a mechanism | ``SaslAuthenticate`` with a token | what to prove; that it is in; or why not |
| that is in | the same again | the same, and it stays who it was |

A handshake of version 0 is followed by tokens alone, in frames of their own.

A mechanism is also whose rights hold. With PLAIN they are those of a user of Redis, of that name
and password. With SCRAM they are the gateway's own: its users are kept by it (`users`), and Redis
does not know them.

Source: ``SaslServerAuthenticator`` of Kafka 4.1, KIP-43, KIP-152, KIP-368; RFC 4616.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from msgspec import Struct

from .protocol.codes import ErrorCode
from .scram import HASHES, ScramCredential, ScramError, ScramServer

PLAIN = "PLAIN"
#: All there are.
MECHANISMS = (PLAIN, *HASHES)

_WRONG = "the user or the password is wrong"


class SaslError(Exception):
    """The client does not get in. The message is for it; neither that nor `detail` has a password.

    Args:
        detail: what only the log of the gateway tells.
    """

    def __init__(
        self,
        message: str,
        code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED,
        detail: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail


class Kind(Enum):
    """Whose users somebody is one of."""

    REDIS = "Redis"
    GATEWAY = "the gateway"


class Principal(Struct, frozen=True):
    """Who a client is."""

    kind: Kind
    name: str


# -- what comes of a token -------------------------------------------------------------------------


class Login(Struct, frozen=True):
    """Redis is to be asked whether it knows that user."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"Login({self.user!r})"


class Lookup(Struct, frozen=True):
    """What is kept of that user's password is to be looked up."""

    user: str
    mechanism: str


class Reply(Struct, frozen=True):
    """The client is to be told so; it is in, or sends another token."""

    token: bytes
    is_in: bool


Step: TypeAlias = "Login | Lookup | Reply"


class Conversation:
    """What one client and the gateway say, and who the client has proved to be.

    Args:
        mechanisms: those that are offered.
    """

    def __init__(self, mechanisms: Sequence[str]) -> None:
        self.mechanisms = mechanisms
        self.principal: Principal | None = None
        self.user = ""  # whom the newest token was of
        self._mechanism = ""  # agreed on; tokens of it may come
        self._scram: ScramServer | None = None  # that has answered one

    def shake_hands(self, mechanism: str) -> ErrorCode:
        """Takes the wish for a mechanism."""
        self._mechanism, self._scram = "", None
        if mechanism not in self.mechanisms:
            return ErrorCode.UNSUPPORTED_SASL_MECHANISM
        self._mechanism = mechanism
        return ErrorCode.NONE

    def take(self, token: bytes) -> Step:
        """What a token comes to. After `Login` comes `accepted`, after `Lookup` `found`.

        Raises:
            SaslError: it is none, or was not expected, or proves nothing.
        """
        if not self._mechanism:
            raise SaslError(
                "SaslHandshake comes before SaslAuthenticate", ErrorCode.ILLEGAL_SASL_STATE
            )
        if self._mechanism == PLAIN:
            login = _login(token)
            self.user = login.user
            return login
        try:
            if self._scram is None:
                self._scram = ScramServer(self._mechanism)
                self.user = self._scram.first(token)
                return Lookup(self.user, self._mechanism)
            proof = self._scram.final(token)
        except ScramError as error:
            raise SaslError(str(error)) from None
        self._prove(Kind.GATEWAY)
        return Reply(proof, is_in=True)

    def found(self, credential: ScramCredential) -> Reply:
        """What the client is to prove, after a `Lookup`."""
        assert self._scram is not None
        return Reply(self._scram.challenge(credential), is_in=False)

    def accepted(self) -> Reply:
        """Redis knows the user, after a `Login`.

        Raises:
            SaslError: the client was somebody else before.
        """
        self._prove(Kind.REDIS)
        return Reply(b"", is_in=True)

    def _prove(self, kind: Kind) -> None:
        proved = Principal(kind, self.user)
        if self.principal not in (None, proved):
            raise SaslError("a connection stays that of one user: open another one")
        self.principal, self._mechanism, self._scram = proved, "", None


def _login(token: bytes) -> Login:
    try:
        act_as, user, password = token.decode().split("\0")
    except ValueError:
        raise SaslError("the token is none of PLAIN: a user and a password are expected") from None
    if not user or not password:
        raise SaslError(_WRONG)
    if act_as not in ("", user):
        raise SaslError("it asks to act as somebody else, which nobody may")
    return Login(user, password)
