"""The data keys of a topic as its setting ``lakelog.encryption.data.keys`` has them: wrapped.

JSON, so that it travels wherever settings do (Redis, the table's properties, exports):

| member    | what                                                                              |
|-----------|-----------------------------------------------------------------------------------|
| `ring`    | 16 random bytes in hex, made with the first key; they bind wrapped keys together   |
| `under`   | the reference of the key-encryption key; see `secret_reference`                    |
| `wrapped` | number of a data key → nonce (12 bytes), wrapped key (32), tag (16), as Base64     |
| `clear`   | `true` if values may lie there in the clear: from before, or because it was off    |

Whoever reads it learns where the key-encryption key is, and nothing about any key. What wraps and
unwraps is ``lakelog/encryption``; this module knows no cipher, for settings are checked everywhere.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from msgspec import Struct

from ..base.json_text import parse_json
from ..base.secret_reference import is_secret_reference

RING_BYTES = 16
#: Nonce, a 256-bit key and the tag of AES-GCM.
WRAPPED_BYTES = 12 + 32 + 16
#: How often a topic's data key can be rotated. A thousand keys are 90 kB of settings.
MAX_DATA_KEYS = 1_000
MAX_NUMBER = 2**24 - 1  # a stored value has three bytes for it


class DataKeys(Struct, frozen=True):
    """A topic's data keys, each wrapped under one key-encryption key. Checked when made.

    Args:
        ring: `RING_BYTES` that tell these keys from any other topic's.
        reference: where the key-encryption key is.
        wrapped: numbers (from 1 on, ascending) and wrapped keys.
        clear: whether values may lie there that are not encrypted; where none may, a reader
            refuses them.

    Raises:
        ValueError: it is not that.
    """

    ring: bytes
    reference: str
    wrapped: tuple[tuple[int, bytes], ...]
    clear: bool = False

    def __post_init__(self) -> None:
        numbers = [number for number, _ in self.wrapped]
        if not (
            len(self.ring) == RING_BYTES
            and isinstance(self.clear, bool)
            and is_secret_reference(self.reference)
            and 1 <= len(numbers) <= MAX_DATA_KEYS
            and numbers == sorted(set(numbers))
            and numbers[0] >= 1
            and numbers[-1] <= MAX_NUMBER
            and all(len(key) == WRAPPED_BYTES for _, key in self.wrapped)
        ):
            raise ValueError("no data keys of lakelog")

    @property
    def current(self) -> int:
        """The number of the key that new values are encrypted with."""
        return self.wrapped[-1][0]

    @property
    def numbers(self) -> frozenset[int]:
        """The numbers of its keys."""
        return frozenset(number for number, _ in self.wrapped)

    def keeps(self, others: DataKeys) -> bool:
        """Whether what the others opened can still be opened, as far as wrapped keys tell that.

        Under one key-encryption key, a data key is wrapped once.
        """
        if self.ring != others.ring or not others.numbers <= self.numbers:
            return False
        mine = dict(self.wrapped)
        return self.reference != others.reference or all(
            mine[number] == wrapped for number, wrapped in others.wrapped
        )

    def __str__(self) -> str:
        """How many, and where the key is under which they are wrapped."""
        count = len(self.wrapped)
        keys = "1 data key" if count == 1 else f"{count} data keys"
        return f"{keys} under {self.reference}, and encrypts with number {self.current}"

    def to_text(self) -> str:
        """As the setting has it; equal keys give equal texts."""
        wrapped = {str(number): base64.b64encode(key).decode() for number, key in self.wrapped}
        fields: dict[str, Any] = {"ring": self.ring.hex(), "under": self.reference}
        fields |= {"wrapped": wrapped, "clear": self.clear}
        return json.dumps(fields, separators=(",", ":"))


def parse_data_keys(text: str) -> DataKeys | None:
    """What `DataKeys.to_text` wrote; None for an empty text.

    Raises:
        ValueError: it is something else.
    """
    if not text:
        return None
    try:
        fields: Any = parse_json(text)
        if set(fields) != {"ring", "under", "wrapped", "clear"}:
            raise ValueError("other members")
        wrapped = [
            (_number(name), base64.b64decode(key, validate=True))
            for name, key in fields["wrapped"].items()
        ]
        ring = bytes.fromhex(fields["ring"])
        return DataKeys(ring, fields["under"], tuple(sorted(wrapped)), fields["clear"])
    except (TypeError, AttributeError, KeyError, binascii.Error) as error:
        raise ValueError(f"no data keys of lakelog: {type(error).__name__}") from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 10 and text[0] != "0"):
        raise ValueError("no number of a data key")
    return int(text)
