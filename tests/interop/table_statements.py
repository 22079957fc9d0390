"""The statements that make a topic's table known to other engines, and what its columns become."""

from __future__ import annotations

import json
from typing import Any

from deltalake import DeltaTable

from lakelog.values.topic import catalog_name

#: Source: the type mapping on the page of Trino's Delta Lake connector.
TRINO_TYPES = {
    "integer": "integer",
    "long": "bigint",
    "boolean": "boolean",
    "string": "varchar",
    "binary": "varbinary",
    "date": "date",
    "timestamp": "timestamp(3) with time zone",
}


def statements(topic: str, location: str) -> dict[str, str]:
    """By engine. None of them names columns that matter: all engines take them from the log."""
    name = catalog_name(topic)
    return {
        "Trino": (
            "CALL delta.system.register_table(\n"
            f"  schema_name => 'lake', table_name => '{name}',\n"
            f"  table_location => '{location}')"
        ),
        "Presto": (
            f"CREATE TABLE delta.lake.{name} (ignored integer)\n"
            f"WITH (external_location = '{location}')"
        ),
        "Athena": (
            f"CREATE EXTERNAL TABLE lake.{name}\n"
            f"LOCATION '{location}/'\n"
            "TBLPROPERTIES ('table_type' = 'DELTA')"
        ),
        "Databricks, Spark": f"CREATE TABLE lake.{name} USING DELTA\nLOCATION '{location}'",
    }


def columns(table: DeltaTable) -> list[tuple[str, str, str]]:
    """Name, Delta's type and Trino's."""
    fields = json.loads(table.schema().to_json())["fields"]
    return [(field["name"], _delta(field["type"]), _trino(field["type"])) for field in fields]


def _delta(of: Any) -> str:
    if isinstance(of, str):
        return {"integer": "int", "long": "bigint"}.get(of, of)  # as SQL calls them
    if of["type"] == "array":
        return f"array<{_delta(of['elementType'])}>"
    if of["type"] == "map":
        return f"map<{_delta(of['keyType'])},{_delta(of['valueType'])}>"
    inner = [f"{field['name']}: {_delta(field['type'])}" for field in of["fields"]]
    return f"struct<{', '.join(inner)}>"


def _trino(of: Any) -> str:
    if isinstance(of, str):
        return of if of.startswith("decimal") else TRINO_TYPES[of]
    if of["type"] == "array":
        return f"array({_trino(of['elementType'])})"
    if of["type"] == "map":
        return f"map({_trino(of['keyType'])}, {_trino(of['valueType'])})"
    inner = [f"{field['name']} {_trino(field['type'])}" for field in of["fields"]]
    return f"row({', '.join(inner)})"
