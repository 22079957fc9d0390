"""The cipher, of the optional package ``cryptography``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

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
