"""What encrypts and decrypts a topic's values, as its settings say; keys come from their places."""

from __future__ import annotations

import base64
import binascii
import re
from functools import lru_cache

import pyarrow as pa

from ...base.secret_reference import check_executors_can_resolve, resolve_secret
from ...errors import EncryptionKeyError, InvalidArgumentError
from ...values.config import DATA_KEYS, ENCRYPTION_KEY
from ...values.data_keys import DataKeys, parse_data_keys
from ...values.topic import Topic
from .keyring import KEY_BYTES, Keyring, unwrap
from .sealed_values import SealedValues

#: Topics whose keys a process keeps: to ask a secret scope takes a tenth of a second.
_KEPT_TOPICS = 256


def sealing(topic: Topic) -> SealedValues | None:
    """What encrypts the values that are appended to a topic; None: they lie in the clear.

    Raises:
        EncryptionKeyError: the key cannot be had here, or the topic has no data key yet.
        MissingExtraError: cryptography, or what reads the key, is not installed.

    Runs on: driver|executor.
    """
    if not topic.config.encrypts:
        return None
    if not topic.config.text(DATA_KEYS):
        raise EncryptionKeyError(
            f"values of topic {topic.name!r} are to be encrypted "
            f"({ENCRYPTION_KEY}={topic.config.text(ENCRYPTION_KEY)}), and it has no data key yet; "
            f"nothing was sent. `lakelog topics rotate-key {topic.name}` makes one",
            topic=topic.name,
            reference=topic.config.text(ENCRYPTION_KEY),
        )
    return opening(topic)


def sealed(topic: Topic, records: pa.RecordBatch) -> pa.RecordBatch:
    """Records as a topic takes them: their values encrypted, if its settings say so.

    Raises:
        EncryptionKeyError, MissingExtraError: as `sealing`.

    Runs on: driver|executor.
    """
    values = sealing(topic)
    if values is None:
        return records
    return values.seal_records(records)


def opening(topic: Topic) -> SealedValues | None:
    """What decrypts a topic's values; None: none was ever encrypted.

    Raises:
        EncryptionKeyError: the key cannot be had here.
        MissingExtraError: cryptography, or what reads the key, is not installed.

    Runs on: driver|executor.
    """
    text = topic.config.text(DATA_KEYS)
    return _sealed_values(text, topic.name) if text else None


def keyring_of(topic: Topic) -> tuple[Keyring, bytes] | None:
    """A topic's data keys, and the key-encryption key; None: it has none.

    Raises:
        EncryptionKeyError, MissingExtraError: as `opening`.
    """
    data_keys: DataKeys | None = topic.config[DATA_KEYS]
    if data_keys is None:
        return None
    key = key_encryption_key(data_keys.reference, topic.name)
    return unwrap(data_keys, key, topic.name), key


def key_encryption_key(reference: str, topic: str) -> bytes:
    """The key that a reference names.

    Args:
        topic: whose it is, for errors.

    Raises:
        EncryptionKeyError: it cannot be read here, or is no key.
        MissingExtraError: what reads it is not installed.
    """
    try:
        key = key_of_text(resolve_secret(reference, ENCRYPTION_KEY))
    except InvalidArgumentError as error:
        raise EncryptionKeyError(
            f"the values of topic {topic!r} are encrypted, and their key cannot be had here: "
            f"{error}",
            topic=topic,
            reference=reference,
        ) from error
    if key is None:
        raise EncryptionKeyError(
            f"what {reference!r} names is no key for the values of topic {topic!r}: a key is 32 "
            f"random bytes, as 64 hex digits or as Base64, such as `{HOW_TO_MAKE}` prints",
            topic=topic,
            reference=reference,
        )
    return key


def check_tasks_have_key(topic: Topic) -> None:
    """Refuse a topic whose key only the driver could read, before a task fails at it.

    Raises:
        InvalidArgumentError: it is in a Databricks secret.
    """
    data_keys: DataKeys | None = topic.config[DATA_KEYS]
    if data_keys is not None:
        check_executors_can_resolve(data_keys.reference, ENCRYPTION_KEY)


@lru_cache(_KEPT_TOPICS)
def _sealed_values(text: str, topic: str) -> SealedValues:
    data_keys = parse_data_keys(text)
    assert data_keys is not None  # the text is not empty
    return SealedValues(unwrap(data_keys, key_encryption_key(data_keys.reference, topic), topic))


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
