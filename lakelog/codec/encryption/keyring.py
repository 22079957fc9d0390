"""A topic's data keys, unwrapped: made, wrapped, added to, and wrapped under another key.

A data key is 256 random bits. AES-256-GCM wraps it under the key-encryption key, with a random
nonce; what is authenticated with it is the ring's id and the key's number, so that no wrapped key
can stand for another one. The topic's id is not part of it: an imported topic has another id, and
its values are the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, NoReturn

from msgspec.structs import replace

from ...base.text_table import counted
from ...errors import EncryptionKeyError, InvalidArgumentError, MissingExtraError
from ...values.data_keys import MAX_DATA_KEYS, RING_BYTES, DataKeys

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM


class Keyring:
    """The data keys of one topic. Never pickled and never shown: processes unwrap their own.

    Args:
        data_keys: as they are stored.
        keys: unwrapped, by number.
    """

    def __init__(self, data_keys: DataKeys, keys: Mapping[int, bytes]) -> None:
        self.data_keys = data_keys
        self._keys = dict(keys)

    def __repr__(self) -> str:
        return f"Keyring({counted(len(self._keys), 'key')} under {self.data_keys.reference!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a keyring holds keys, which must not leave the process")

    @property
    def current(self) -> int:
        """The number of the key that new values are encrypted with."""
        return self.data_keys.current

    @property
    def first(self) -> int:
        """The number of the oldest key."""
        return self.data_keys.wrapped[0][0]

    def key(self, number: int) -> bytes | None:
        """The data key of a number; None if there is none."""
        return self._keys.get(number)


def new_data_keys(reference: str, key: bytes, *, clear: bool) -> DataKeys:
    """A ring with its first data key.

    Args:
        reference: where the key-encryption key is.
        key: the key-encryption key itself.
        clear: whether values lie there already that are not encrypted.
    """
    ring = os.urandom(RING_BYTES)
    return DataKeys(ring, reference, ((1, _wrap(key, ring, 1, os.urandom(KEY_BYTES))),), clear)


def unwrap(data_keys: DataKeys, key: bytes, topic: str) -> Keyring:
    """The ring's data keys.

    Args:
        key: the key-encryption key.
        topic: for the error.

    Raises:
        EncryptionKeyError: the key is not the one that wrapped them, or they were changed.
    """
    cipher = aes_gcm(key)
    keys: dict[int, bytes] = {}
    for number, wrapped in data_keys.wrapped:
        nonce, sealed = wrapped[:NONCE_BYTES], wrapped[NONCE_BYTES:]
        try:
            keys[number] = cipher.decrypt(nonce, sealed, _bound_to(data_keys.ring, number))
        except invalid_tag():
            raise EncryptionKeyError(
                f"the key at {data_keys.reference!r} is not the one that wrapped data key {number} "
                f"of topic {topic!r}: it was replaced, or the topic's settings were changed by "
                "hand. Put the old key back there; if it moved, `lakelog topics rotate-key` with "
                "--wrap-with names another place while the old one can still be read",
                topic=topic,
                reference=data_keys.reference,
            ) from None
    return Keyring(data_keys, keys)


def with_new_key(keyring: Keyring, key: bytes) -> DataKeys:
    """The ring with one more data key, which new values are encrypted with.

    Args:
        key: the key-encryption key, which the ring is wrapped under.

    Raises:
        InvalidArgumentError: it has `MAX_DATA_KEYS` already.
    """
    data_keys = keyring.data_keys
    if len(data_keys.wrapped) >= MAX_DATA_KEYS:
        raise InvalidArgumentError(
            f"the topic has {MAX_DATA_KEYS} data keys, and can have no more: copy it to a new topic"
        )
    number = data_keys.current + 1
    wrapped = _wrap(key, data_keys.ring, number, os.urandom(KEY_BYTES))
    return replace(data_keys, wrapped=(*data_keys.wrapped, (number, wrapped)))


def wrapped_under(keyring: Keyring, reference: str, key: bytes) -> DataKeys:
    """The same data keys, wrapped under another key-encryption key."""
    data_keys = keyring.data_keys
    wrapped = []
    for number, _ in data_keys.wrapped:
        data_key = keyring.key(number)
        assert data_key is not None  # all were unwrapped
        wrapped.append((number, _wrap(key, data_keys.ring, number, data_key)))
    return replace(data_keys, reference=reference, wrapped=tuple(wrapped))


def _wrap(key: bytes, ring: bytes, number: int, data_key: bytes) -> bytes:
    nonce = os.urandom(NONCE_BYTES)
    return nonce + aes_gcm(key).encrypt(nonce, data_key, _bound_to(ring, number))


def _bound_to(ring: bytes, number: int) -> bytes:
    return b"lakelog data key" + ring + number.to_bytes(4, "big")


# -- the cipher, of the optional package ``cryptography`` ---------------------------------------

KEY_BYTES = 32
NONCE_BYTES = 12
TAG_BYTES = 16


def invalid_tag() -> type[Exception]:
    """What the cipher raises where something is not what was encrypted."""
    from cryptography.exceptions import InvalidTag

    return InvalidTag


def aes_gcm(key: bytes) -> AESGCM:
    """AES-256-GCM under a key.

    Raises:
        MissingExtraError: cryptography is not installed.
    """
    try:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    except ModuleNotFoundError as missing:
        raise MissingExtraError(
            "the topic's values are encrypted, which takes the package cryptography, and it is not "
            "installed. Install it with: pip install 'lakelog[encryption]'"
        ) from missing
    return AESGCM(key)
