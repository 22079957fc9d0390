"""Deletion vectors, read as Delta writes them."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lakelog.cold.by_name.deletion_vectors import DeletionVector

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"


def z85(data: bytes) -> str:
    """As base85 of another alphabet, which Python has."""
    data += b"\0" * (-len(data) % 4)
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def bitmap(values: list[int], runs: bool) -> bytes:
    """A bitmap of 32 bits in the portable format, written as its specification says."""
    containers: dict[int, list[int]] = {}
    for value in values:
        containers.setdefault(value >> 16, []).append(value & 0xFFFF)
    count = len(containers)
    header = b"".join(struct.pack("<HH", key, len(v) - 1) for key, v in containers.items())
    bodies = [body(found, runs) for found in containers.values()]
    if runs:
        flags = np.packbits(np.ones(count, np.uint8), bitorder="little").tobytes()
        start = struct.pack("<I", 12347 | (count - 1) << 16) + flags + header
        offsets = 4 * count if count >= 4 else 0
    else:
        start, offsets = struct.pack("<II", 12346, count) + header, 4 * count
    at, places = len(start) + offsets, b""
    for one in bodies:
        places += struct.pack("<I", at)
        at += len(one)
    return start + (places if offsets else b"") + b"".join(bodies)


def body(found: list[int], runs: bool) -> bytes:
    if runs:
        pairs: list[list[int]] = []
        for value in found:
            if pairs and value == pairs[-1][0] + pairs[-1][1] + 1:
                pairs[-1][1] += 1
            else:
                pairs.append([value, 0])
        return struct.pack("<H", len(pairs)) + b"".join(struct.pack("<HH", *one) for one in pairs)
    if len(found) <= 4096:
        return struct.pack(f"<{len(found)}H", *found)
    bits = np.zeros(65536, np.uint8)
    bits[found] = 1
    return np.packbits(bits, bitorder="little").tobytes()


def written(rows: Iterable[int], *, runs: bool) -> bytes:
    by_high: dict[int, list[int]] = {}
    for row in sorted(rows):
        by_high.setdefault(row >> 32, []).append(row & 0xFFFFFFFF)
    parts = [struct.pack("<I", high) + bitmap(found, runs) for high, found in by_high.items()]
    return struct.pack("<iq", 1681511377, len(parts)) + b"".join(parts)


def inline(data: bytes, cardinality: int) -> DeletionVector:
    return DeletionVector("i", z85(data), None, len(data), cardinality)


rows_of_files = st.one_of(
    st.sets(st.integers(0, 2**33), max_size=50),
    st.tuples(st.integers(0, 200_000), st.integers(1, 70_000)).map(
        lambda edge: set(range(edge[0], edge[0] + edge[1]))
    ),
)


@given(rows_of_files, st.booleans())
def test_the_rows_that_were_written_are_read(rows: set[int], runs: bool) -> None:
    data = written(rows, runs=runs)
    assert inline(data, len(rows)).rows(None).tolist() == sorted(rows)
    content = b"\1" + struct.pack(">i", len(data)) + data + b"crc."
    in_file = DeletionVector("u", "ab" + "0" * 20, 1, len(data), len(rows))
    assert in_file.rows(content).tolist() == sorted(rows)
    assert in_file.path == "ab/deletion_vector_00000000-0000-0000-0000-000000000000.bin"


@given(st.binary(max_size=60), st.integers(0, 60), st.booleans())
@example(b"\x00\x00\x80", 13, False)  # rows beyond what a number of 64 bits counts
def test_what_is_damaged_is_an_error_or_as_long_as_the_log_says(
    noise: bytes, at: int, runs: bool
) -> None:
    data = written(range(5, 90, 3), runs=runs)
    damaged = data[:at] + noise + data[at + len(noise) :]
    try:
        found = inline(damaged, 29).rows(None)
    except ValueError:
        return
    assert len(found) == 29


def test_a_vector_of_delta_is_read() -> None:
    """As Delta 4.4 wrote it for the row 5 of a file."""
    vector = DeletionVector("u", "nI]XI*t?L9v>V:MKUJlVrG", 1, 34, 1)
    assert vector.path == "nI/deletion_vector_f4de3fb4-dea2-4330-b3b6-a0d78cce6e60.bin"
    content = base64.b64decode(CONTENT)
    assert vector.rows(content).tolist() == [5]
    with pytest.raises(ValueError, match="the log says 33"):
        DeletionVector("u", vector.said, 1, 33, 1).rows(content)


CONTENT = "AQAAACLR0zlkAQAAAAAAAAAAAAAAOjAAAAEAAAAAAAAAEAAAAAUAitFA8A=="
