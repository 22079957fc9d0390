"""What runs wrote down, read again and drawn."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from status_contract import NOW_MS, at_path, rows_of

from lakelog import Lakelog
from lakelog.errors import InvalidArgumentError
from lakelog.explore import charts
from lakelog.jobs import JobRun, add_readings, group_history, run_history, status_history
from lakelog.jobs.status_rows import RunKey
from lakelog.place import PathRoot

DAY_MS = 86_400_000


def test_it_is_of_the_past_days_and_topics_that_are_asked_for(log: Lakelog) -> None:
    assert isinstance(log.place.cold, PathRoot)
    table = at_path(log.place.cold.storage)
    for days in (9, 3, 0):
        key = RunKey("archive", str(days))
        table.append(rows_of(key, "orders", "clicks", now_ms=NOW_MS - days * DAY_MS), key)
    rows = status_history(log, ["clicks"])
    assert rows.select(["run_id", "topic"]).to_pylist() == [
        {"run_id": "3", "topic": "clicks"},
        {"run_id": "0", "topic": "clicks"},
    ]
    assert status_history(log, "clicks") == rows
    assert status_history(log, past=timedelta(days=20)).num_rows == 6
    for past in (20, "20d", timedelta(days=-1)):
        for history in (status_history, group_history, run_history):
            with pytest.raises(InvalidArgumentError, match=r"past=.* is not a duration"):
                history(log, past=past)  # type: ignore[arg-type]


def message(rows: pa.Table) -> str:
    return str(charts.archive_lag(rows)._repr_mimebundle_()["text/plain"])


def test_the_archive_lag_is_drawn_of_those_rows_that_know_it(log: Lakelog, tmp_path: Path) -> None:
    unseen = rows_of(RunKey("archive", "1"), done=False, error="HotTierUnavailableError: away")
    assert message(unseen).startswith("No run has looked yet")
    add_readings(log, "readings", 80)
    log.archive()
    add_readings(log, "readings", 160)
    JobRun(log, "ingest", "2").once(lambda: None)
    cold = Lakelog.connect(None, tmp_path / "cold", engine="inline")
    JobRun(cold, "cleanup", "3").once(cold.cleanup)  # knows nothing of what waits in Redis
    rows = status_history(log)
    assert rows["archive_lag_records"].to_pylist() == [30, 50, None, None]
    assert " to be archived" in message(pa.concat_tables([rows, unseen]))
    assert not message(rows).startswith("Nothing waits")
