"""Hypothesis strategies: records of every shape, and how producers batch them."""

from __future__ import annotations

from dataclasses import dataclass

from ..codec import Entry, encode
from ..config import Compression, EntryFormat
from ..errors import MissingExtraError
from ..record import Headers, produced_batch
from .model import Row

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

#: Timestamps lie around it, so that they meet and overtake each other.
BASE_TIME_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z, where a ManualClock begins


def timestamps() -> st.SearchStrategy[int]:
    """Milliseconds: out of order, often equal, at times none (-1) or very old."""
    return st.one_of(
        st.integers(-30, 30).map(lambda seconds: BASE_TIME_MS + 1000 * seconds),
        st.sampled_from([-1, -1, 0, 1, BASE_TIME_MS]),
    )


def keys() -> st.SearchStrategy[bytes | None]:
    return st.one_of(st.none(), st.sampled_from([b"", b"a", b"b"]), st.binary(max_size=6))


def values() -> st.SearchStrategy[bytes | None]:
    """Null, empty, bytes, and JSON objects that flatten or nearly do."""
    json = [b'{"a":1,"b":"x"}', b'{"a": 1, "b": [2]}', b"{}", b'{"value":1}', b'{"a":1,"a":2}']
    return st.one_of(st.none(), st.just(b""), st.binary(max_size=24), st.sampled_from(json))


def headers() -> st.SearchStrategy[Headers]:
    """Ordered, with repeated keys and null values."""
    name = st.one_of(st.sampled_from(["", "h", "trace"]), st.text(max_size=3))
    value = st.one_of(st.none(), st.binary(max_size=4))
    return st.lists(st.tuples(name, value), max_size=3).map(tuple)


def rows() -> st.SearchStrategy[Row]:
    """One record without a place."""
    return st.tuples(timestamps(), keys(), values(), headers())


@dataclass(frozen=True, slots=True)
class Batch:
    """Records of one append call and how they are laid out."""

    rows: tuple[Row, ...]
    layout: tuple[EntryFormat, ...]  # the records are cut into as many runs
    compression: Compression
    flatten: bool

    def entries(self) -> tuple[Entry, ...]:
        count = -(-len(self.rows) // len(self.layout))
        entries: tuple[Entry, ...] = ()
        for index, entry_format in enumerate(self.layout):
            run = self.rows[index * count : (index + 1) * count]
            if run:
                records = produced_batch(run)
                entries += encode(records, entry_format, self.compression, flatten=self.flatten)
        return entries


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    """A few records, or some dozens that repeat a few."""
    template = draw(st.lists(rows(), min_size=1, max_size=4))
    repeats = draw(st.sampled_from([1, 1, 1, 3, 12]))
    return Batch(
        tuple(template * repeats),
        draw(
            st.sampled_from(
                [
                    (EntryFormat.FIELDS,),
                    (EntryFormat.ARROW,),
                    (EntryFormat.AUTO,),
                    (EntryFormat.FIELDS, EntryFormat.ARROW),
                    (EntryFormat.ARROW, EntryFormat.ARROW, EntryFormat.FIELDS),
                ]
            )
        ),
        draw(st.sampled_from(Compression)),
        draw(st.booleans()),
    )


def topic_settings() -> st.SearchStrategy[dict[str, object]]:
    """Settings that make small logs do what large ones do: roll, index, trim."""
    return st.fixed_dictionaries(
        {
            "retention.ms": st.just(-1),
            "internal.segment.bytes": st.sampled_from([8_000, 30_000]),
            "segment.ms": st.sampled_from([5_000, 604_800_000]),
            "index.interval.bytes": st.sampled_from([0, 1, 300, 4096]),
            "local.retention.ms": st.sampled_from([0, 10_000, -1]),
            "local.retention.bytes": st.sampled_from([-1, 2_000]),
            "message.timestamp.type": st.sampled_from(
                ["CreateTime", "CreateTime", "LogAppendTime"]
            ),
        }
    )
