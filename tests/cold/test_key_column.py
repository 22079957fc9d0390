"""Keys lie in a dictionary where they repeat; plainly, in fewer bytes, where they do not."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lakelog import Lakelog
from lakelog.cold.parquet.file_writer import write_file
from lakelog.cold.schema import WRITER_OPTIONS
from lakelog.cold.store.storage import Storage

COUNT = 20_000
OPTIONS = {**WRITER_OPTIONS, "use_dictionary": ["key", "kind"], "column_encoding": {}}
OPTIONS["write_statistics"] = False


def in_dictionary(path: Path) -> dict[str, bool]:
    group = pq.ParquetFile(path).metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    return {chunk.path_in_schema: chunk.has_dictionary_page for chunk in chunks}


def write(path: Path, keys: list[bytes | None]) -> Path:
    rows = pa.table({"key": pa.array(keys, pa.binary()), "kind": ["a"] * len(keys)})
    write_file(
        Storage(str(path.parent)),
        str(path),
        [rows],
        rows.schema,
        OPTIONS,
        filtered=True,
    )
    assert pq.read_table(path)["key"].to_pylist() == keys
    return path


@pytest.mark.parametrize(
    ("distinct", "repeats"), [(1, True), (COUNT // 2, True), (COUNT * 9 // 10, False)]
)
def test_a_dictionary_is_for_keys_that_repeat(tmp_path, distinct, repeats):
    keys = [b"%08d" % (at % distinct) for at in range(COUNT)]
    found = in_dictionary(write(tmp_path / "keys.parquet", [*keys]))
    assert found == {"key": repeats, "kind": True}


def test_keys_that_do_not_repeat_take_fewer_bytes_without_one(tmp_path):
    chance = Random(1)
    keys = pa.array([chance.randbytes(4).hex().encode() for _ in range(COUNT)])
    plain = write(tmp_path / "plain.parquet", keys.to_pylist())
    rows = pa.table({"key": keys, "kind": ["a"] * COUNT})
    pq.write_table(rows, tmp_path / "dictionary.parquet", **OPTIONS)
    # the first has Bloom filters, too: a byte a key
    assert plain.stat().st_size < (tmp_path / "dictionary.parquet").stat().st_size


def test_records_without_keys_are_written_as_they_are(tmp_path):
    write(tmp_path / "keyless.parquet", [None] * COUNT)


def test_a_cleaned_segment_has_each_key_once_and_no_dictionary_of_them(redis_url, tmp_path):
    config = {"cleanup.policy": "compact", "segment.ms": 1000, "min.cleanable.dirty.ratio": 0}
    with Lakelog.connect(redis_url, str(tmp_path), engine="inline") as lake:
        lake.topics.create("prices", 1, config)
        with lake.producer() as producer:
            for at in range(400):
                producer.send("prices", b"%d" % at, key=b"%d" % (at % 100), timestamp_ms=10 * at)
            producer.flush()
            producer.send("prices", b"open", key=b"open", timestamp_ms=100_000)
        lake.archive("prices")
        table = lake.log("prices").table
        (archived, _) = table.snapshot().files.of_partition(0)
        assert in_dictionary(Path(table.where) / archived.path)["key"]
        (cleaned,) = lake.cleanup("prices", steps=["compact"])[0].compacted
        assert (cleaned.records_kept, cleaned.keys) == (100, 100)
        (kept, _) = table.snapshot().files.of_partition(0)
        assert not in_dictionary(Path(table.where) / kept.path)["key"]
        assert len(list(lake.log("prices").read(0).records())) == 101
