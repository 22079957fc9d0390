"""Messages of arrow entries, read without a stream of their own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from lakelog.codec import encode
from lakelog.codec.arrow_entry import read_message
from lakelog.codec.decoded_size import buffer_lengths
from lakelog.values.config import KIB, Compression, EntryFormat
from lakelog.values.record import produced_batch

#: Some are small, some large; their records tell which is which.
RECORDS = [
    produced_batch([(5, None, b"%d" % n * size, [])] * 20)
    for n, size in enumerate([9, KIB * 9] * 3)
]


def message(records, compression=Compression.LZ4):
    (entry,) = encode(records, EntryFormat.ARROW, compression)
    return entry.fields[1]


def size_bytes(given):
    return sum(buffer_lengths(given) or ())


def read(given):
    return read_message(given, size_bytes(given))


@pytest.mark.parametrize("compression", Compression)
def test_each_gives_its_own_records(compression):
    given = [message(records, compression) for records in RECORDS]
    assert [read(one) for one in given] == RECORDS


@pytest.mark.parametrize("cut", [3, 90, -1])
def test_after_half_a_message_the_next_is_read_whole(cut):
    whole = message(RECORDS[0])
    for _ in range(3):
        with pytest.raises((pa.ArrowException, OSError, EOFError, StopIteration)):
            read_message(whole[:cut], size_bytes(whole))
        assert read(whole) == RECORDS[0]


def test_what_follows_a_message_is_not_taken_for_the_next_one():
    first, second = message(RECORDS[0]), message(RECORDS[1])
    assert read_message(first + second, size_bytes(first)) == RECORDS[0]
    assert read(message(RECORDS[2])) == RECORDS[2]


def test_threads_that_end_leave_their_messages_to_the_others():
    given = [message(records) for records in RECORDS]
    for _ in range(20):
        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(read, given)) == RECORDS
