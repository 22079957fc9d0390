"""What a notebook shows: a job's result, a log's state, its groups, and what it stands on."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import pyarrow as pa

from ..base import compute as pc
from ..base.text_table import text_table
from ..cold.by_name.names import SCHEMA
from ..cold.store.store_options import workspace_options
from ..hot.keys import DEFAULT_KEYSPACE
from ..hot.server_info import ServerInfo
from ..lakelog import Lakelog
from ..operate.diagnosis import Finding, diagnose
from ..operate.group_lag import GroupLag
from ..operate.workspace import Deployment, diagnose_workspace, log_in
from .parameters import Parameters, databricks_utilities
from .status_rows import RunKey, of_partitions, status_rows
from .table_rows import TableRows, table_html

#: What a job's result says of a partition: where it stands, and nothing of the run, so that a run
#: that found everything done gives the same result.
RESULT = (
    "topic",
    "partition",
    "state",
    "log_start",
    "archived_end",
    "log_end",
    "archive_lag_records",
    "lost_offsets",
    "cold_segments",
)


class JobResult(dict[str, Any]):
    """``job`` and ``partitions``; shows the partitions as a table."""

    @classmethod
    def of(cls, job: str, rows: pa.Table) -> JobResult:
        """Where each partition stood in these rows, by topic and partition."""
        told = of_partitions(rows)
        told = told.filter(pc.is_valid(told["partition"]))  # others are about what failed
        ordered = told.sort_by([("topic", "ascending"), ("partition", "ascending")])
        return cls(job=job, partitions=ordered.select(list(RESULT)).to_pylist())

    def __repr__(self) -> str:
        if not self["partitions"]:
            return f"{self['job']}: no partitions"
        return text_table(self["partitions"], RESULT)

    def _repr_html_(self) -> str:
        if not self["partitions"]:
            return f"<p>{escape(repr(self))}</p>"
        return table_html(self["partitions"], RESULT)


class ResultLine(str):
    """JSON that a notebook shows as it is, below a table of what it says where HTML is shown."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        partitions = json.loads(self).get("partitions") or []
        columns = [name for name in RESULT if partitions and name in partitions[0]]
        return (
            f"{table_html(partitions, columns) if partitions else ''}<details><summary>as JSON"
            f'</summary><code style="overflow-wrap:anywhere">{escape(self)}</code></details>'
        )


def standing(lakelog: Lakelog, topics: Sequence[str] | None = None) -> JobResult:
    """Where things stand now, as the result of a job that does nothing else.

    Args:
        topics: names; None for all.

    Raises:
        LakelogError: that of the first topic whose state cannot be told.
    """
    found = lakelog.status(topics)
    found.check()
    return JobResult.of("look", status_rows(RunKey("look", ""), found, {}, 0.0))


def finish(result: Mapping[str, Any]) -> ResultLine:
    """Ends a notebook: on Databricks with this result of the task, elsewhere by showing it.

    On Databricks, nothing after this call is run.
    """
    line = ResultLine(json.dumps(result, separators=(",", ":"), sort_keys=True))
    utilities = databricks_utilities()
    if utilities is not None:
        utilities.notebook.exit(str(line))
    return line


# -- a log's state ---------------------------------------------------------------------------------


class Failures(dict[str, str]):
    """Why the state of topics cannot be told, by topic; shows itself as a table."""

    def _told(self) -> TableRows:
        rows = ({"topic": topic, "why": why} for topic, why in self.items())
        return TableRows(rows, "The state of every topic can be told.")

    def __repr__(self) -> str:
        return repr(self._told())

    def _repr_html_(self) -> str:
        return self._told()._repr_html_()


def failures(lakelog: Lakelog, topics: Sequence[str] | None = None) -> Failures:
    """Topics whose state cannot be told, and why: a table is damaged, or contradicts itself.

    Args:
        topics: names; None for all.
    """
    found = lakelog.status(topics).failures
    return Failures({failure.topic: str(failure.error) for failure in found})


def servers(lakelog: Lakelog, topics: Sequence[str] | None = None) -> TableRows:
    """The servers of the hot tier: what they are, their memory, how they write to disk."""
    found = lakelog.status(topics).servers
    return TableRows(map(_server, found), "No server of Redis holds these topics.")


def warnings(lakelog: Lakelog, topics: Sequence[str] | None = None) -> TableRows:
    """What stays wrong until somebody does something."""
    found = lakelog.status(topics).warnings
    rows = ({"warning": warning.text} for warning in found)
    return TableRows(rows, "Nothing is wrong that stays so.")


def _server(server: ServerInfo) -> dict[str, object]:
    used = f"{server.used_memory_bytes / 2**20:,.1f} MiB"
    limit = server.max_memory_bytes
    return {
        "server": server.name,
        "program": f"{server.program} {server.version}",
        "role": server.role,
        "memory": f"{used} of {limit / 2**20:,.0f} MiB" if limit else f"{used}, no limit",
        "when full": server.eviction_policy,
        "append-only file": (server.appendfsync or "yes") if server.append_only_file else "no",
        "snapshots": server.snapshots or ("–" if server.snapshots is None else "no"),
    }


# -- groups ----------------------------------------------------------------------------------------

#: A table that is longer is of no use to anybody.
MOST_GROUPS = 100


def group_lags(lakelog: Lakelog, topics: Sequence[str] | None = None) -> TableRows:
    """A line for each group and topic, those furthest behind first; 100 at most.

    Args:
        topics: names; None for all.
    """
    by_topic: dict[tuple[str, str, str], list[GroupLag]] = {}
    for one in lakelog.group_lags(topics):
        key = one.group_id, one.group_type.value, one.topic_partition.topic
        by_topic.setdefault(key, []).append(one)
    rows = sorted(map(_row, by_topic.values()), key=_urgency)
    return TableRows(rows[:MOST_GROUPS], "No group has committed anything of these topics.")


def _row(lags: Sequence[GroupLag]) -> dict[str, object]:
    first = lags[0]
    return {
        "group": first.group_id,
        "type": first.group_type.value,
        "state": first.state.value,
        "members": first.members,
        "topic": first.topic_partition.topic,
        "partitions": len(lags),
        "lag_records": sum(one.lag_records for one in lags),
        "lag_ms": _longest(one.lag_ms for one in lags),
    }


def _longest(waits: Iterable[int | None]) -> int | None:
    return max((one for one in waits if one is not None), default=None)


def _urgency(row: dict[str, object]) -> tuple[int, int, str]:
    wait, records = row["lag_ms"], row["lag_records"]
    assert isinstance(records, int)
    return -(wait if isinstance(wait, int) else 0), -records, str(row["group"])


# -- what it stands on -----------------------------------------------------------------------------

_FINDING = ("state", "what", "found", "do")
_SECRET = re.compile(r"databricks:(.+)/(.+)")


class Findings(list[Finding]):
    """Shows itself as a table."""

    def __repr__(self) -> str:
        return text_table([finding.row for finding in self], _FINDING)

    def _repr_html_(self) -> str:
        return table_html([finding.row for finding in self], _FINDING)


def doctor(parameters: Parameters) -> Findings:
    """Looks at this machine, and at the Redis and the cold root that the parameters name.

    On Databricks also from Spark's driver and executors, and at what the workspace lets whoever
    runs this have.

    Args:
        parameters: as for `connect`.
    """
    is_databricks = "DATABRICKS_RUNTIME_VERSION" in os.environ
    cold, location = parameters.cold or None, parameters.location or None
    spark = None
    if is_databricks and (parameters.redis_url or cold):
        from ..spark.session import session

        spark = session()
    findings = diagnose(
        redis_url=parameters.redis_url or None,
        cold=cold,
        location=location,
        keyspace=parameters.get("keyspace", DEFAULT_KEYSPACE),
        password_ref=parameters.redis_password_ref or None,
        storage_options=workspace_options(location or cold or ""),
        spark=spark,
    )
    if is_databricks:
        findings += diagnose_workspace(log_in(), _deployment(parameters))
    return Findings(findings)


def _deployment(parameters: Parameters) -> Deployment:
    """What the jobs were told; the compute they ask for is what this runs on."""
    found = _SECRET.fullmatch(parameters.redis_password_ref)
    by_name = SCHEMA.fullmatch(parameters.cold) is not None
    catalog, _, schema = parameters.cold.partition(".") if by_name else ("", "", "")
    return Deployment(
        catalog=catalog,
        schema=schema,
        external_location=parameters.location,
        redis_url=parameters.redis_url,
        redis_password=f"{{{{secrets/{found[1]}/{found[2]}}}}}" if found else "",
        node_type_id="",
    )
