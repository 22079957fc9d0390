"""A notebook's look at what it stands on, which `lakelog doctor` takes from a command line."""

from __future__ import annotations

import os
import re

from ..base.text_table import text_table
from ..cold.by_name.names import SCHEMA
from ..cold.store.store_options import workspace_options
from ..hot.keys import DEFAULT_KEYSPACE
from ..operate.diagnosis import Finding, diagnose
from ..operate.workspace import Deployment, diagnose_workspace, log_in
from .parameters import Parameters
from .table_rows import table_html

_COLUMNS = ("state", "what", "found", "do")
_SECRET = re.compile(r"databricks:(.+)/(.+)")


class Findings(list[Finding]):
    """Shows itself as a table."""

    def __repr__(self) -> str:
        return text_table([finding.row for finding in self], _COLUMNS)

    def _repr_html_(self) -> str:
        return table_html([finding.row for finding in self], _COLUMNS)


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
