"""Encrypted values: the bytes that stand where a value would, and how they are made and opened.

| bytes | what                                                                                  |
|-------|---------------------------------------------------------------------------------------|
| 4     | `MAGIC`, which begins no UTF-8 text                                                   |
| 1     | version of this layout, 1                                                             |
| 3     | number of the data key, big-endian                                                    |
| 16    | salt: random, of all values that were encrypted together                              |
| 4     | index of the value among them, big-endian                                             |
| n     | ciphertext of AES-256-GCM, as long as the value                                       |
| 16    | its tag                                                                               |

What encrypts is not the data key but HMAC-SHA-256(data key, salt), and the nonce is the index. Thus
no nonce comes twice under a key, however many records a topic gets: with random nonces alone, a
data key would be worn out after 2^32 values. Salts could only meet after 2^64 calls.

The record's key is authenticated with the value, a null key otherwise than an empty one: a value
that is put beside another key is refused. A null value stays null; an empty one is encrypted.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from ...errors import DecryptionError, NewerVersionError
from .keyring import NONCE_BYTES, TAG_BYTES, Keyring, aes_gcm, invalid_tag

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

MAGIC = b"\x9cLke"
VERSION = 1

_NUMBER = slice(5, 8)
_SALT = slice(8, 24)
_NAME = slice(4, 24)  # of the key that a value is encrypted with: version, number and salt
_INDEX = slice(24, 28)
_HEAD_BYTES = 28

#: How much longer an encrypted value is.
OVERHEAD_BYTES = _HEAD_BYTES + TAG_BYTES

_PAD = bytes(NONCE_BYTES - 4)
#: Up to so many bytes, searching all of them takes less than NumPy's first call.
_FEW_BYTES = 16 * 1024
#: Ciphers kept for reading; values of one call follow each other, but for what compaction left.
_MAX_CIPHERS = 256


def any_begins_sealed(values: pa.Array) -> bool:
    """Whether one of a ``pa.binary()`` column begins as encrypted values do.

    Every reader asks, so it does without ``pyarrow.compute``, which is no faster and takes longer
    to import than a record takes to read.
    """
    _, ends, data = values.buffers()
    if data is None or (data.size <= _FEW_BYTES and MAGIC not in data.to_pybytes()):
        return False
    edges = np.frombuffer(ends, np.int32)[values.offset : values.offset + len(values) + 1]
    begins = edges[:-1][np.diff(edges) >= len(MAGIC)]
    read = np.frombuffer(data, np.uint8)
    for place, byte in enumerate(MAGIC):
        begins = begins[read[begins + place] == byte]
    return len(begins) > 0


class SealedValues:
    """Encrypts and decrypts columns of values. Thread-safe.

    Args:
        keyring: the topic's.
    """

    def __init__(self, keyring: Keyring) -> None:
        self._keyring = keyring
        self._ciphers: dict[bytes, AESGCM] = {}  # by `_NAME`

    def seal(self, keys: pa.Array, values: pa.Array) -> pa.Array:
        """The values encrypted with the ring's current key.

        What this ring encrypted before, beside the same key, is left as it is.

        Args:
            keys, values: ``pa.binary()``, of the same records.
        """
        pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
        return pa.array(self.seal_all(pairs), pa.binary())

    def seal_records(self, records: pa.RecordBatch) -> pa.RecordBatch:
        """As `seal`, of records with the columns ``key`` and ``value``."""
        return with_values(records, self.seal(records.column("key"), records.column("value")))

    def seal_all(self, pairs: Iterable[tuple[bytes | None, bytes | None]]) -> list[bytes | None]:
        """As `seal`, of keys with their values: 2^32 of them at most."""
        number, salt = self._keyring.current, os.urandom(16)
        head = MAGIC + bytes([VERSION]) + number.to_bytes(3, "big") + salt
        encrypt = self._derived(number, salt).encrypt
        sealed: list[bytes | None] = []
        for index, (key, value) in enumerate(pairs):
            if value is None or (value[:4] == MAGIC and self._is_own(key, value)):
                sealed.append(value)
                continue
            count = index.to_bytes(4, "big")
            sealed.append(head + count + encrypt(_PAD + count, value, _bound_to(key)))
        return sealed

    def open(self, keys: pa.Array, values: pa.Array) -> pa.Array:
        """The values as they were given.

        Raises:
            DecryptionError: one is not what was encrypted; ``row`` says which.
            NewerVersionError: a newer lakelog encrypted it.
        """
        opened: list[bytes | None] = []
        clear = self._keyring.data_keys.clear
        name = b""
        cipher: AESGCM | None = None
        pairs = zip(keys.to_pylist(), values.to_pylist(), strict=True)
        for row, (key, value) in enumerate(pairs):
            if value is None:
                opened.append(None)
            elif value[:4] != MAGIC:
                if not clear:
                    _refuse(row, "is not encrypted, and all of the topic's values are")
                opened.append(value)
            else:
                if value[_NAME] != name or cipher is None:
                    cipher = self._cipher(row, value)
                    name = value[_NAME]
                try:
                    plain = _opened(cipher, key, value)
                except invalid_tag():
                    _refuse(row, "or its key was changed since it was encrypted")
                opened.append(plain)
        return pa.array(opened, pa.binary())

    def check_of(self, checksum: int) -> str:
        """A checksum of values in the clear as something that tells nothing of them.

        It depends on the ring's oldest key alone, so that it stays the same when keys are rotated.
        """
        key = self._keyring.key(self._keyring.first)
        assert key is not None  # a ring has all of its keys
        return hmac.digest(key, b"lakelog checksum" + checksum.to_bytes(4, "big"), "sha256")[
            :4
        ].hex()

    def _is_own(self, key: bytes | None, value: bytes) -> bool:
        """Whether the ring encrypted it, beside this key."""
        try:
            _opened(self._cipher(0, value), key, value)
        except (DecryptionError, NewerVersionError, invalid_tag()):
            return False
        return True

    def _cipher(self, row: int, value: bytes) -> AESGCM:
        if len(value) > 4 and value[4] != VERSION:
            raise NewerVersionError(
                f"the value of record {row} was encrypted in format {value[4]}, and this lakelog "
                f"knows {VERSION} alone; use the lakelog that wrote it, or a newer one"
            )
        if len(value) < OVERHEAD_BYTES:
            _refuse(row, f"is cut off: it has {len(value)} bytes of at least {OVERHEAD_BYTES}")
        name = value[_NAME]
        cipher = self._ciphers.get(name)
        if cipher is None:
            number = int.from_bytes(value[_NUMBER], "big")
            if self._keyring.key(number) is None:
                _refuse(row, f"is encrypted with data key {number}, which the topic does not have")
            if len(self._ciphers) >= _MAX_CIPHERS:
                self._ciphers = {}
            cipher = self._ciphers[name] = self._derived(number, value[_SALT])
        return cipher

    def _derived(self, number: int, salt: bytes) -> AESGCM:
        key = self._keyring.key(number)
        assert key is not None  # the caller looked
        return aes_gcm(hmac.digest(key, b"lakelog value" + salt, "sha256"))


def _bound_to(key: bytes | None) -> bytes:
    """What is authenticated with the value of a record that has this key."""
    return b"\0" if key is None else b"\1" + key


def _opened(cipher: AESGCM, key: bytes | None, value: bytes) -> bytes:
    return cipher.decrypt(_PAD + value[_INDEX], value[_HEAD_BYTES:], _bound_to(key))


def with_values(records: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    """The records with other values."""
    columns = [
        values if name == "value" else column
        for name, column in zip(records.schema.names, records.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=records.schema)


def _refuse(row: int, why: str) -> NoReturn:
    raise DecryptionError(
        f"the stored value of record {row} {why}. Read the stored bytes as they are to look at it",
        row=row,
    )
