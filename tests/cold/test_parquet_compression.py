"""A topic says how its archived files are compressed."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

from lakelog import Lakelog
from lakelog.errors import InvalidConfigError
from lakelog.values.config import PARQUET_COMPRESSION, TopicConfig

#: What a topic says → what Parquet's footers call it, by pyarrow.
CODECS = {"zstd": "ZSTD", "lz4_raw": "LZ4", "snappy": "SNAPPY", "uncompressed": "UNCOMPRESSED"}


def codecs_of(file: str | Path) -> set[str]:
    group = pq.ParquetFile(file).metadata.row_group(0)
    return {group.column(n).compression for n in range(group.num_columns)}


@pytest.mark.parametrize("codec", CODECS)
def test_files_are_compressed_as_the_topic_says_when_they_are_written(
    redis_url: str, tmp_path: Path, codec: str
) -> None:
    rest = [b"%d" % n * 100 for n in range(100)]
    with Lakelog.connect(redis_url, str(tmp_path), engine="inline") as lake:
        lake.topics.create("orders", 1)

        def archive(*values: bytes) -> None:
            with lake.producer() as producer:
                producer.send_batch("orders", values)
            lake.archive()

        archive(b"a")
        lake.topics.alter("orders", {PARQUET_COMPRESSION: codec})
        archive(*rest)  # larger, so that it is worth merging the first with it
        table = DeltaTable(str(lake.log("orders").table.path))
        first, second = sorted(table.file_uris(), key=lambda uri: Path(uri).stat().st_mtime_ns)
        assert (codecs_of(first), codecs_of(second)) == ({"ZSTD"}, {CODECS[codec]})
        assert sorted(table.to_pyarrow_table()["value"].to_pylist()) == sorted([b"a", *rest])
        lake.cleanup("orders", steps=["optimize"])
        table.update_incremental()
        assert [codecs_of(uri) for uri in table.file_uris()] == [{CODECS[codec]}]
        assert [r.value for r in lake.log("orders").read(0).records()] == [b"a", *rest]
        assert not lake.check("orders").findings


def test_what_is_no_codec_is_refused() -> None:
    with pytest.raises(InvalidConfigError, match="zstd, lz4_raw, snappy or uncompressed"):
        TopicConfig.of({PARQUET_COMPRESSION: "lzo"})
