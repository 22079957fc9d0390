"""What people of notebooks do: rows in, frames out, SQL over typed columns, the first look.

Frames and SQL are timed beside those who do the same without a log: pyarrow and DuckDB read the
very files that hold the archived records. The first look is that of a kernel that has connected,
two seconds ago, and done nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
from jupyter_client.manager import start_new_kernel

from lakelog import Lakelog

from .bench import Bench, rates
from .measures import OURS, RECORDS_PER_S, SECONDS, Goal, Row

RECORDS = 1_000_000
COLUMNS = (
    "n bigint, at timestamp, room string, city string, celsius double, humid double, ok boolean, "
    "level int, price double, note string"
)
CONFIG = {"retention.ms": -1, "local.retention.ms": 0, "lakelog.value.columns": COLUMNS}
ASKED = "select room, count(*) as n, avg(celsius) as c, max(level) as top from {} group by room"
FIRST_ROWS_S = 0.5
BESIDE_LIBRARY = 1 / 1.2

CONNECTED = (
    "from lakelog import Lakelog\nlake = Lakelog.connect({url!r}, {cold!r}, engine='inline')"
)
LOOK = """
import time
began_s = time.perf_counter()
explorer = lake.explore("readings")
explorer.wait()
print(time.perf_counter() - began_s)
explorer.close()
"""


def rows(bench: Bench) -> Iterator[Row]:
    with bench.redis({"appendfsync": "no", "save": ""}) as server:
        cold = bench.new_folder() / "cold"
        made = frame(bench.scaled(RECORDS, 1_000))
        with Lakelog.connect(server.url, cold, engine="inline") as lake:
            yield rows_in(bench, lake, made)
            lake.append("readings", made, key="room", timestamp="at", create=True, config=CONFIG)
            lake.archive("readings")
            files = [str(one) for one in (cold).rglob("*.parquet") if "_delta_log" not in str(one)]
            yield frames_out(bench, lake, files, made.num_rows)
            yield of_sql(bench, lake, files)
        yield Row(
            "the explorer's first rows, in a kernel that only connected",
            SECONDS,
            {OURS: tuple(first_look(server.url, cold) for _ in range(bench.few))},
            (Goal(FIRST_ROWS_S),),
        )


def frame(count: int) -> pa.Table:
    """Readings of ten columns."""
    dice = np.random.default_rng(1)
    numbers = np.arange(count)
    texts = np.char.add("room ", dice.integers(0, 500, count).astype(str))
    return pa.table(
        {
            "n": numbers,
            "at": pa.array(1_700_000_000_000 + numbers, pa.timestamp("ms", "UTC")),
            "room": texts,
            "city": dice.choice(["Oslo", "Lima", "Kyoto"], count),
            "celsius": dice.normal(20, 5, count).round(2),
            "humid": dice.random(count).round(4),
            "ok": dice.random(count) < 0.9,
            "level": dice.integers(0, 100, count).astype(np.int32),
            "price": dice.lognormal(3, 1, count).round(2),
            "note": dice.choice(["", "a note that is longer", "short"], count),
        }
    )


def rows_in(bench: Bench, lake: Lakelog, made: pa.Table) -> Row:
    def ours() -> None:
        lake.append("in", made, key="room", timestamp="at", create=True, config=CONFIG)
        lake.topics.delete("in")
        lake.purge("in")

    def json_alone() -> None:
        told = duckdb.from_arrow(made).query("t", "select to_json(t)::varchar as value from t")
        assert told.fetch_arrow_table().num_rows == made.num_rows

    seconds = bench.interleaved({OURS: ours, "DuckDB's to_json alone": json_alone}, bench.few)
    return Row(
        "`lake.append` of a frame, 10 columns",
        RECORDS_PER_S,
        rates(seconds, made.num_rows),
        (Goal(0.5, "DuckDB's to_json alone"),),
    )


def frames_out(bench: Bench, lake: Lakelog, files: list[str], count: int) -> Row:
    names = ["offset", "timestamp", "timestampType", "key", "value", "headers"]

    def of(values: Any) -> None:
        assert len(lake.log("readings").read(0).to_pandas(values)) == count

    def pyarrow() -> None:
        assert len(ds.dataset(files).to_table(columns=names).to_pandas()) == count

    sides = {
        OURS: lambda: of("bytes"),
        "pyarrow, the same files": pyarrow,
        "with typed columns": lambda: of("columns"),
    }
    return Row(
        "`to_pandas` of archived records",
        RECORDS_PER_S,
        rates(bench.interleaved(sides, bench.few), count),
        (Goal(BESIDE_LIBRARY, "pyarrow, the same files"),),
    )


def of_sql(bench: Bench, lake: Lakelog, files: list[str]) -> Row:
    def ours() -> None:
        lake.sql(ASKED.format("readings")).read_all()

    def duck() -> None:
        duckdb.sql(ASKED.format(f"read_parquet({files})")).fetch_arrow_table()

    return Row(
        "SQL over typed columns, archived",
        SECONDS,
        bench.interleaved({OURS: ours, "DuckDB, the same files": duck}),
        (Goal(BESIDE_LIBRARY, "DuckDB, the same files"),),
    )


def first_look(url: str, cold: Path) -> float:
    """Seconds until the rows are there."""
    manager, client = start_new_kernel()
    try:
        heard: list[str] = []
        client.execute_interactive(CONNECTED.format(url=url, cold=str(cold)), timeout=60)
        time.sleep(2)

        def hear(message: Any) -> None:
            if message["header"]["msg_type"] == "stream" and message["content"]["name"] == "stdout":
                heard.append(message["content"]["text"])

        client.execute_interactive(LOOK, timeout=60, output_hook=hear)
        return float("".join(heard))
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
