"""SCRAM: a client proves that it knows a password, which neither is sent nor kept.

| kept         | is                                                     | shows                    |
|--------------|--------------------------------------------------------|--------------------------|
| salt         | 32 bytes at random                                     |                          |
| iterations   | how often the password is hashed to be tried           |                          |
| stored key   | H(HMAC(salted password, "Client Key"))                 | whether a proof is right |
| server key   | HMAC(salted password, "Server Key")                    | who the gateway is       |

Whoever reads what is kept can try passwords, and can pretend to be the gateway; it is no password
that lets anybody in. Names and passwords are taken as their bytes in UTF-8, without SASLprep, which
Kafka's brokers and clients leave out as well: a library that prepares them keeps out whoever has a
letter in a password that has two spellings.

Source: RFC 5802, RFC 7677; ``ScramFormatter`` and ``ScramSaslServer`` of Kafka 4.1.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping

from msgspec import Struct

from ..base.json_text import parse_json
from ..errors import InvalidArgumentError
from ..values.format_version import USUAL_FORMAT, check_format

#: Of the mechanisms, the hash functions by the names that Python has for them.
HASHES: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}

#: RFC 7677 and Kafka's brokers ask for as many, and Kafka's take no more than the other.
MIN_ITERATIONS, MAX_ITERATIONS = 4_096, 16_384
_SALT_BYTES = 32
_NONCE_BYTES = 24

_FIRST = re.compile(
    r"(?P<gs2>(?P<binding>n|y|p=[^,]*),(?:a=(?P<as>[^,]*))?,)"
    r"(?P<bare>n=(?P<name>[^,]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<more>,.*)?)"
)
_FINAL = re.compile(
    r"(?P<bare>c=(?P<gs2>[^,]+),r=(?P<nonce>[^,]+)(?:,[A-Za-z]=[^,]*)*),p=(?P<proof>[^,]+)"
)


class ScramError(Exception):
    """What a client sent is no message of SCRAM, or no proof; without what it sent."""


class ScramCredential(Struct, frozen=True):
    """What is kept of a password."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of(cls, mechanism: str, password: str, iterations: int = MAX_ITERATIONS) -> ScramCredential:
        """That of a password, with a new salt.

        Raises:
            InvalidArgumentError: the password is empty, or the number out of bounds.
        """
        if not password:
            raise InvalidArgumentError("the password is empty: give one of at least one sign")
        salt = secrets.token_bytes(_SALT_BYTES)
        salted = hashlib.pbkdf2_hmac(HASHES[mechanism], password.encode(), salt, iterations)
        return cls.of_salted(mechanism, salted, salt, iterations)

    @classmethod
    def of_salted(
        cls, mechanism: str, salted: bytes, salt: bytes, iterations: int
    ) -> ScramCredential:
        """That of a password that was hashed elsewhere.

        Raises:
            InvalidArgumentError: it is not as long as its hash, or the number is out of bounds.
        """
        name = HASHES[mechanism]
        if not MIN_ITERATIONS <= iterations <= MAX_ITERATIONS:
            raise InvalidArgumentError(
                f"{iterations} iterations: a credential has from {MIN_ITERATIONS} to "
                f"{MAX_ITERATIONS}",
                name="iterations",
                value=iterations,
            )
        if len(salted) != hashlib.new(name).digest_size or not salt:
            raise InvalidArgumentError(f"a salt and a salted password of {mechanism} are needed")
        client_key = hmac.digest(salted, b"Client Key", name)
        server_key = hmac.digest(salted, b"Server Key", name)
        return cls(salt, iterations, hashlib.new(name, client_key).digest(), server_key)

    @classmethod
    def decoy(cls, mechanism: str, name: str, secret: bytes) -> ScramCredential:
        """What a name that nobody has is answered by, so that nobody hears which names there are:
        each time the same salt, and keys that no password has.
        """
        salt = hmac.digest(secret, f"{mechanism} {name}".encode(), "sha256")
        size = hashlib.new(HASHES[mechanism]).digest_size
        keys = secrets.token_bytes(size), secrets.token_bytes(size)
        return cls(salt, MAX_ITERATIONS, *keys)

    def to_json(self) -> str:
        """What `from_json` reads."""
        fields = {
            "format": USUAL_FORMAT,
            "salt": _text(self.salt),
            "iterations": self.iterations,
            "stored_key": _text(self.stored_key),
            "server_key": _text(self.server_key),
        }
        return json.dumps(fields)

    @classmethod
    def from_json(cls, text: bytes, what: str) -> ScramCredential:
        """Reads what `to_json` gave.

        Raises:
            NewerVersionError: a newer lakelog wrote it.
            ValueError, TypeError, LookupError: it is something else.
        """
        fields = parse_json(text)
        check_format(fields.get("format"), what)
        keys = (_bytes(fields[name]) for name in ("salt", "stored_key", "server_key"))
        salt, stored_key, server_key = keys
        return cls(salt, int(fields["iterations"]), stored_key, server_key)

    def __repr__(self) -> str:
        return f"ScramCredential(iterations={self.iterations})"


class ScramServer:
    """The server's side of one exchange: `first`, `challenge`, `final`, in that order.

    Args:
        nonce: the server's part of it; default: at random.
    """

    def __init__(self, mechanism: str, nonce: str | None = None) -> None:
        self._hash = HASHES[mechanism]
        self._nonce = nonce or secrets.token_urlsafe(_NONCE_BYTES)
        self._gs2 = self._first_bare = self._server_first = ""
        self._credential: ScramCredential | None = None

    def first(self, message: bytes) -> str:
        """Whom the client's first message says that it is.

        Raises:
            ScramError: it is none, or asks for what is not offered.
        """
        found = _FIRST.fullmatch(_legible(message))
        if found is None or (found["more"] or "").startswith(",m="):
            raise ScramError("the first message is none of SCRAM")
        if found["binding"].startswith("p="):
            raise ScramError("it asks for channel binding, which is not offered")
        name = _name(found["name"])
        if found["as"] not in (None, "") and _name(found["as"]) != name:
            raise ScramError("it asks to act as somebody else, which nobody may")
        self._gs2, self._first_bare = found["gs2"], found["bare"]
        self._nonce = found["nonce"] + self._nonce
        return name

    def challenge(self, credential: ScramCredential) -> bytes:
        """What the client is to prove that it knows."""
        self._credential = credential
        salt = _text(credential.salt)
        self._server_first = f"r={self._nonce},s={salt},i={credential.iterations}"
        return self._server_first.encode()

    def final(self, message: bytes) -> bytes:
        """The gateway's own proof, after the client's.

        Raises:
            ScramError: the client does not know the password.
        """
        found = _FINAL.fullmatch(_legible(message))
        credential = self._credential
        if found is None or credential is None:
            raise ScramError("the second message is none of SCRAM")
        try:
            proof, gs2 = _bytes(found["proof"]), _bytes(found["gs2"])
        except ValueError:
            raise ScramError("the second message is none of SCRAM") from None
        if gs2 != self._gs2.encode() or found["nonce"] != self._nonce:
            raise ScramError("the second message belongs to another exchange")
        said = f"{self._first_bare},{self._server_first},{found['bare']}".encode()
        signature = hmac.digest(credential.stored_key, said, self._hash)
        if len(proof) != len(signature):
            raise ScramError("the second message is none of SCRAM")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        stored_key = hashlib.new(self._hash, client_key).digest()
        if not hmac.compare_digest(stored_key, credential.stored_key):
            raise ScramError("the user or the password is wrong")
        return f"v={_text(hmac.digest(credential.server_key, said, self._hash))}".encode()


def _legible(message: bytes) -> str:
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise ScramError("a message is no text") from None


def _name(spelled: str) -> str:
    if re.search(r"=(?!2C|3D)", spelled):
        raise ScramError("the first message is none of SCRAM")
    return spelled.replace("=2C", ",").replace("=3D", "=")


def _text(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("no base64") from error
