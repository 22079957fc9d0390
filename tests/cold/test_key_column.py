"""Keys lie in a dictionary where they repeat; plainly, in fewer bytes, where they do not."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

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
