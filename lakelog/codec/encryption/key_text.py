"""The key-encryption key as the text that a secret holds."""

from __future__ import annotations

import base64
import binascii
import re

from .aes_gcm import KEY_BYTES

_HEX = re.compile(r"[0-9a-fA-F]{64}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{43}=?")

#: How to make one, for errors.
HOW_TO_MAKE = "openssl rand -hex 32"


def key_of_text(text: str) -> bytes | None:
    """The 32 bytes of 64 hex digits, or of Base64 in either alphabet; None: it is neither.

    A pass phrase is none: what people can remember can be guessed by who has the wrapped keys.
    """
    text = text.strip()
    if _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if not _BASE64.fullmatch(text):
        return None
    plain = text.rstrip("=").replace("-", "+").replace("_", "/") + "="
    try:
        key = base64.b64decode(plain, validate=True)
    except binascii.Error:
        return None
    return key if len(key) == KEY_BYTES else None
