import pytest

from lakelog.errors import OffsetOutOfRangeError
from lakelog.values.record import RECORDS


@pytest.fixture
def ten(bench):
    """Offsets 0..9 with timestamps 100, 110 … 190; cold holds [0, 6), hot [4, 10)."""
    bench.append(range(100, 200, 10))
    bench.tier(6, 4)
    return bench


@pytest.mark.parametrize(
    ("start", "end", "offsets"),
    [
        ("earliest", "latest", range(10)),
        (2, 8, range(2, 8)),
        (5, 5, []),
        (10, 10, []),
        ("earliest-local", "latest", range(4, 10)),
        ("earliest", "latest-tiered", range(5)),
        ("@115", "@165", range(2, 7)),
        ("1970-01-01T00:00:00.150Z", "latest", range(5, 10)),
        ("@150", "@999", range(5, 10)),
        ("@999", "latest", []),
        ("@999", "@9999", []),
        ("@999", 3, []),
        ("latest", "latest", []),
        ("max-timestamp", "latest", [9]),
        ("-1h", "latest", []),
    ],
)
def test_a_range_is_what_its_ends_say(ten, start, end, offsets):
    read = ten.log.read(0, start, end)

    assert [record.offset for record in read.records()] == list(offsets)


def test_a_range_can_be_read_as_batches_as_records_or_whole(ten):
    read = ten.log.read(0, 2, 8)

    assert repr(read) == f"RangeRead({ten.topic.name}-0 [2, 8))"
    assert all(batch.schema == RECORDS for batch in read)
    assert sum(batch.num_rows for batch in read) == 6
    assert list(read.records()) == ten.appended[0][2:8]
    assert read.to_arrow().schema == RECORDS
    assert read.to_arrow().column("offset").to_pylist() == list(range(2, 8))


def test_a_range_is_fixed_when_it_is_asked_for(ten):
    read = ten.log.read(0)
    ten.append([1, 2])

    assert read.to_arrow().num_rows == 10
    ten.tier(12, 12)
    assert list(read.records()) == ten.appended[0][:10]


@pytest.mark.parametrize(("start", "end"), [(0, 11), (11, "latest"), (20, 30), (11, 10)])
def test_a_range_past_the_log_end_is_refused(ten, start, end):
    with pytest.raises(OffsetOutOfRangeError, match=r"the log holds \[0, 10\)"):
        ten.log.read(0, start, end).to_arrow()
