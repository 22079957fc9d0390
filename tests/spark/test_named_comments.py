"""Comments that people put on tables by name and their columns stay, and disturb nothing."""

from __future__ import annotations

import pytest
from spark_log import SparkLog, rows_of

pytestmark = pytest.mark.slow


def test_comments_and_properties_stay_while_the_table_is_archived_and_cleaned(
    log: SparkLog, spark, schema: str
) -> None:
    log.create(1)
    log.append(100, batch=50)
    log.archive()
    table = f"{schema}.orders"
    spark.sql(f"COMMENT ON TABLE {table} IS 'orders of the shop'")
    spark.sql(f"ALTER TABLE {table} ALTER COLUMN key COMMENT 'customer'")
    spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('team' = 'shop')")
    log.append(100, batch=50)
    log.archive()
    log.lakelog.cleanup(["orders"])

    assert rows_of(log.lakelog.log("orders").dataframe()) == log.expected()
    columns = {row.col_name: row for row in spark.sql(f"DESCRIBE EXTENDED {table}").collect()}
    assert columns["key"].comment == "customer"
    assert columns["Comment"].data_type == "orders of the shop"
    properties = {row.key: row.value for row in spark.sql(f"SHOW TBLPROPERTIES {table}").collect()}
    assert properties["team"] == "shop"
