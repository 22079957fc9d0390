"""What a stored value must and must not give away, for any keys and values."""

from __future__ import annotations

import os
import pickle

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.codec.encryption.keyring import (
    Keyring,
    new_data_keys,
    unwrap,
    with_new_key,
    wrapped_under,
)
from lakelog.codec.encryption.of_topic import key_of_text
from lakelog.codec.encryption.sealed_values import (
    MAGIC,
    OVERHEAD_BYTES,
    SealedValues,
    any_begins_sealed,
)
from lakelog.errors import DecryptionError, EncryptionKeyError, NewerVersionError
from lakelog.values.data_keys import DataKeys, parse_data_keys

KEY, OTHER = bytes(range(32)), bytes(range(1, 33))
RING = unwrap(new_data_keys("env:KEY", KEY, clear=False), KEY, "orders")
MIXED = unwrap(new_data_keys("env:KEY", KEY, clear=True), KEY, "orders")
SEALED = SealedValues(RING)

payloads = st.none() | st.binary(max_size=40) | st.binary(max_size=40).map(MAGIC.__add__)
records = st.lists(st.tuples(payloads, payloads), max_size=8)


def column(values: object) -> pa.Array:
    return pa.array(values, pa.binary())


def seal(rows, sealed=SEALED):
    stored = sealed.seal(column([key for key, _ in rows]), column([value for _, value in rows]))
    return stored.to_pylist()


def opened(rows, sealed=SEALED):
    plain = sealed.open(column([key for key, _ in rows]), column([value for _, value in rows]))
    return plain.to_pylist()


@given(records)
def test_values_come_back_and_only_nulls_are_as_they_were(rows):
    stored = seal(rows)
    assert opened([(key, value) for (key, _), value in zip(rows, stored, strict=True)]) == [
        value for _, value in rows
    ]
    for (_, value), kept in zip(rows, stored, strict=True):
        if value is None:
            assert kept is None
        else:
            assert kept is not None
            assert len(kept) == len(value) + OVERHEAD_BYTES


@given(st.binary(max_size=40), payloads, st.integers(0, 10**6), st.integers(1, 255))
def test_a_changed_byte_anywhere_is_an_error(value, key, place, change):
    (stored,) = seal([(key, value)])
    at = place % len(stored)
    damaged = stored[:at] + bytes([stored[at] ^ change]) + stored[at + 1 :]
    with pytest.raises((DecryptionError, NewerVersionError)):
        opened([(key, damaged)])


@given(st.binary(max_size=40), payloads, payloads)
def test_a_value_beside_another_key_is_an_error(value, key, other):
    (stored,) = seal([(key, value)])
    if key == other:
        assert opened([(other, stored)]) == [value]
    else:
        with pytest.raises(DecryptionError):
            opened([(other, stored)])


@given(st.binary(max_size=40), payloads, st.integers(0, 10**6))
def test_a_truncated_value_is_an_error(value, key, end):
    (stored,) = seal([(key, value)])
    with pytest.raises(DecryptionError):
        opened([(key, stored[: end % len(stored)])])
    with pytest.raises(DecryptionError):  # after one under the same key
        opened([(key, stored), (key, stored[: end % len(stored)])])


@given(st.binary(max_size=80) | st.binary(max_size=80).map(lambda tail: MAGIC + b"\1" + tail))
def test_bytes_of_others_are_an_error_or_where_some_may_be_in_the_clear_themselves(foreign):
    with pytest.raises((DecryptionError, NewerVersionError)):
        opened([(b"k", foreign)])
    mixed = SealedValues(MIXED)
    if foreign[:4] != MAGIC:
        assert opened([(b"k", foreign)], mixed) == [foreign]
    else:
        with pytest.raises((DecryptionError, NewerVersionError)):
            opened([(b"k", foreign)], mixed)


@given(records)
def test_what_the_ring_encrypted_is_not_encrypted_again_and_all_else_is(rows):
    once = [(key, value) for (key, _), value in zip(rows, seal(rows), strict=True)]
    assert seal(once) == [value for _, value in once]
    other = SealedValues(MIXED)
    twice = [(key, value) for (key, _), value in zip(rows, seal(once, other), strict=True)]
    assert opened(twice, other) == [value for _, value in once]


def test_equal_values_are_stored_as_different_bytes():
    stored = seal([(b"k", b"same")] * 1000) + seal([(b"k", b"same")])
    assert len(set(stored)) == 1001


def test_the_error_names_the_row():
    stored = seal([(b"a", b"1"), (b"b", b"2")])
    with pytest.raises(DecryptionError) as caught:
        opened([(b"a", stored[0]), (b"a", stored[1])])
    assert caught.value.row == 1


def test_old_keys_read_and_the_new_one_writes():
    before = seal([(b"k", b"old")])
    rotated = unwrap(with_new_key(RING, KEY), KEY, "orders")
    sealed = SealedValues(rotated)
    after = seal([(b"k", b"new")], sealed)
    assert opened([(b"k", before[0]), (b"k", after[0])], sealed) == [b"old", b"new"]
    with pytest.raises(DecryptionError, match="data key 2, which the topic does not have"):
        opened([(b"k", after[0])])
    assert sealed.check_of(7) == SEALED.check_of(7) != SEALED.check_of(8)


def test_keys_wrapped_under_another_key_are_the_same_keys():
    stored = seal([(b"k", b"v")])
    moved = wrapped_under(RING, "file:/run/key", OTHER)
    assert opened([(b"k", stored[0])], SealedValues(unwrap(moved, OTHER, "orders"))) == [b"v"]
    with pytest.raises(EncryptionKeyError, match="'file:/run/key' is not the one"):
        unwrap(moved, KEY, "orders")


def test_a_wrapped_key_cannot_stand_for_another_one():
    data_keys = with_new_key(RING, KEY)
    (_, first), (_, second) = data_keys.wrapped
    swapped = DataKeys(data_keys.ring, data_keys.reference, ((1, second), (2, first)))
    with pytest.raises(EncryptionKeyError):
        unwrap(swapped, KEY, "orders")
    moved = DataKeys(os.urandom(16), data_keys.reference, data_keys.wrapped)
    with pytest.raises(EncryptionKeyError):
        unwrap(moved, KEY, "orders")


def test_stored_keys_come_back_from_their_text_and_hold_no_key():
    data_keys = with_new_key(RING, KEY)
    text = data_keys.to_text()
    assert parse_data_keys(text) == data_keys
    assert parse_data_keys("") is None
    for number in (1, 2):
        key = unwrap(data_keys, KEY, "orders").key(number)
        assert key is not None
        assert key.hex() not in text


@given(st.text(max_size=60) | st.from_regex(r'\{"ring": ?"[0-9a-f]*", ?"under": ?"env:A".*\}'))
def test_other_texts_are_no_data_keys(text):
    try:
        found = parse_data_keys(text)
    except ValueError:
        return
    assert found is None or parse_data_keys(found.to_text()) == found


def test_a_keyring_shows_and_sends_no_key():
    assert repr(RING) == "Keyring(1 key under 'env:KEY')"
    with pytest.raises(TypeError, match="must not leave the process"):
        pickle.dumps(RING)
    assert isinstance(RING, Keyring)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (KEY.hex(), KEY),
        (KEY.hex().upper() + "\n", KEY),
        ("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", KEY),
        ("__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA", bytes(range(255, 223, -1))),
        ("correct horse battery staple", None),
        (KEY.hex()[:-2], None),
        ("", None),
    ],
)
def test_a_key_is_hex_or_base64_of_32_bytes(text, key):
    assert key_of_text(text) == key


@given(
    st.lists(
        st.none()
        | st.binary(max_size=6)
        | st.sampled_from([MAGIC, MAGIC[:3], MAGIC + b"\x01", b"x" + MAGIC])
    ),
    st.integers(0, 3),
)
def test_a_column_with_a_sealed_value_is_told_by_how_values_begin(values, start):
    column = pa.array(values, pa.binary())[start:]
    begins = [value.startswith(MAGIC) for value in values[start:] if value is not None]
    assert any_begins_sealed(column) == any(begins)
