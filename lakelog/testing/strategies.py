"""Hypothesis strategies: records of every shape, and how producers batch them."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from ..codec import Entry, encode
from ..codec.encryption.sealed_values import MAGIC, SealedValues
from ..errors import MissingExtraError
from ..values.config import DAY_MS, HOUR_MS, INT64_MAX, Compression, EntryFormat
from ..values.record import Headers, produced_batch
from .model import Row

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

#: Timestamps lie around this time, so that they repeat and come out of order.
BASE_TIME_MS = 1_700_000_000_000  # 2023-11-14T22:13:20Z, where a ManualClock begins


def timestamps() -> st.SearchStrategy[int]:
    """Milliseconds: out of order, often equal, sometimes none (-1) or very old."""
    return st.one_of(
        st.integers(-30, 30).map(lambda seconds: BASE_TIME_MS + 1000 * seconds),
        st.sampled_from([-1, -1, 0, 1, BASE_TIME_MS]),
    )


def keys() -> st.SearchStrategy[bytes | None]:
    return st.one_of(st.none(), st.sampled_from([b"", b"a", b"b"]), st.binary(max_size=6))


def values() -> st.SearchStrategy[bytes | None]:
    """Null, empty, bytes, and JSON objects that flatten or nearly do."""
    json = [b'{"a":1,"b":"x"}', b'{"a": 1, "b": [2]}', b"{}", b'{"value":1}', b'{"a":1,"a":2}']
    # Hypothesis tries constants of this code, too; what begins with that one cannot be told from an
    # encrypted value once its topic encrypts.
    data = st.binary(max_size=24).filter(lambda value: not value.startswith(MAGIC))
    return st.one_of(st.none(), st.just(b""), data, st.sampled_from(json))


def headers() -> st.SearchStrategy[Headers]:
    """Ordered, with repeated keys and null values."""
    name = st.one_of(st.sampled_from(["", "h", "trace"]), st.text(max_size=3))
    value = st.one_of(st.none(), st.binary(max_size=4))
    return st.lists(st.tuples(name, value), max_size=3).map(tuple)


def rows() -> st.SearchStrategy[Row]:
    """One record without an offset."""
    return st.tuples(timestamps(), keys(), values(), headers())


class Batch(Struct, frozen=True):
    """The records of one append call, and their layout in entries."""

    rows: tuple[Row, ...]
    layout: tuple[EntryFormat, ...]  # the records are cut into this many runs
    compression: Compression
    flatten: bool
    fresh: bool  # the timestamps lie around now, not around BASE_TIME_MS

    def at(self, now_ms: int) -> Batch:
        """The batch with its timestamps at that time."""
        if not self.fresh:
            return self
        later_ms = now_ms - BASE_TIME_MS
        rows = tuple(
            (time_ms if time_ms <= 1 else time_ms + later_ms, key, value, headers)
            for time_ms, key, value, headers in self.rows
        )
        return replace(self, rows=rows)

    def keyed(self) -> Batch:
        """The batch with a key in each record."""
        rows = tuple(
            (time_ms, key or b"", value, headers) for time_ms, key, value, headers in self.rows
        )
        return replace(self, rows=rows)

    def entries(self, sealing: SealedValues | None = None) -> tuple[Entry, ...]:
        """As entries, with encrypted values if there is what encrypts them."""
        count = -(-len(self.rows) // len(self.layout))
        entries: tuple[Entry, ...] = ()
        for index, entry_format in enumerate(self.layout):
            run = self.rows[index * count : (index + 1) * count]
            if run:
                records = produced_batch(run)
                if sealing is not None:
                    records = sealing.seal_records(records)
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
                    (EntryFormat.KAFKA,),
                    (EntryFormat.FIELDS, EntryFormat.ARROW),
                    (EntryFormat.KAFKA, EntryFormat.FIELDS, EntryFormat.KAFKA),
                    (EntryFormat.ARROW, EntryFormat.ARROW, EntryFormat.FIELDS),
                ]
            )
        ),
        draw(st.sampled_from(Compression)),
        draw(st.booleans()),
        draw(st.booleans()),
    )


@st.composite
def topic_settings(draw: st.DrawFn) -> dict[str, object]:
    """Settings that make small logs do what large ones do: roll, index, trim, expire, compact."""
    retention_ms = draw(st.sampled_from([-1, -1, 10_000, HOUR_MS, 7 * DAY_MS]))
    retention_bytes = draw(st.sampled_from([-1, -1, -1, 0, 2_600, 4_000]))
    min_lag_ms = draw(st.sampled_from([0, HOUR_MS]))
    return {
        "cleanup.policy": draw(st.sampled_from(["compact,delete", "compact", "delete", ""])),
        "retention.ms": retention_ms,
        "retention.bytes": retention_bytes,
        "delete.retention.ms": draw(st.sampled_from([0, HOUR_MS, DAY_MS])),
        "min.compaction.lag.ms": min_lag_ms,
        "max.compaction.lag.ms": draw(st.sampled_from([INT64_MAX, INT64_MAX, 2 * HOUR_MS])),
        "min.cleanable.dirty.ratio": draw(st.sampled_from(["0", "0", "0", "0.5", "1"])),
        "file.delete.delay.ms": draw(st.sampled_from([0, DAY_MS])),
        "internal.segment.bytes": draw(st.sampled_from([8_000, 30_000])),
        "segment.ms": draw(st.sampled_from([1_000, 5_000, 7 * DAY_MS])),
        "producer.id.expiration.ms": 100 * 365 * DAY_MS,  # the oracle forgets no producer
        "index.interval.bytes": draw(st.sampled_from([0, 1, 300, 4096])),
        "local.retention.ms": _at_most(retention_ms, draw(st.sampled_from([0, 10_000, -1]))),
        "local.retention.bytes": _at_most(retention_bytes, draw(st.sampled_from([-1, 2_000]))),
        "message.timestamp.type": draw(
            st.sampled_from(["CreateTime", "CreateTime", "LogAppendTime"])
        ),
    }


def updates() -> st.SearchStrategy[list[Batch]]:
    """Calls that write the same few keys again and again, and delete some."""
    key = st.sampled_from([b"a", b"b", b"c", b"aa", b""])
    value = st.sampled_from([b"v", b"w", None, b""])
    rows = st.lists(
        st.tuples(st.just(BASE_TIME_MS), key, value, st.just(())), min_size=1, max_size=4
    )
    return st.lists(
        rows.map(
            lambda rows: Batch(tuple(rows), (EntryFormat.AUTO,), Compression.NONE, False, True)
        ),
        min_size=2,
        max_size=6,
    )


def _at_most(total: int, local: int) -> int:
    """Keeps the hot tier's limit within the log's; -2: the same limit."""
    return -2 if total >= 0 and not 0 <= local <= total else local


def clock_jumps() -> st.SearchStrategy[int]:
    """Milliseconds: a little back, or forward past every setting of `topic_settings`."""
    return st.sampled_from([-60_000, 0, 11_000, HOUR_MS, DAY_MS, 8 * DAY_MS])
