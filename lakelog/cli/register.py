"""``lakelog register``: tables and their views in a catalog."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from .connect import open_log, storage_options
from .options import Offer
from .output import Table, row
from .progress import ConsoleProgress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_EPILOG = """\
Each topic gets three names in the schema: TOPIC, its Delta table; TOPIC_view, its records decoded;
TOPIC_latest, the last value of each key. '.' and '-' of a topic become '_'. Done again, the views
show columns that the table got since. More: `lakelog help names and views in a catalog`.

examples:
  lakelog --redis redis://host:6379 --cold s3://bucket/log register --in main.logs
  lakelog --cold s3://bucket/log register orders --in main.logs
"""


def add_register(offer: Offer) -> None:
    added = offer.command(
        _run,
        "Give topics' tables names in a catalog, and make their views.",
        _EPILOG,
        recorded="register",
    )
    added.add_argument("topics", nargs="*", metavar="TOPIC", help="default: all that are tiered")
    added.add_argument(
        "--in",
        dest="schema",
        metavar="CATALOG.SCHEMA",
        help="where the names go; default: what --cold names",
    )


def _run(arguments: argparse.Namespace) -> Table:
    from ..spark.catalog.registration import register_topics
    from ..spark.session import session

    with ConsoleProgress().step("register"):
        spark = session()
        _check_lasting(spark, arguments.schema or arguments.cold or "")
        if arguments.cold and not arguments.redis and not arguments.dir:
            registered = register_topics(
                spark,
                arguments.cold,
                arguments.schema,
                arguments.topics or None,
                location=arguments.location,
                storage_options=storage_options(arguments),
            )
        else:
            with open_log(arguments) as log:
                names = arguments.topics or [t.name for t in log.topics.list() if t.config.tiered]
                registered = [log.register(name, arguments.schema, spark=spark) for name in names]
    rows = [row(one, "topic table view latest") for one in registered]
    return Table(rows, empty="no topic has a table yet: archive first")


def _check_lasting(spark: SparkSession, schema: str) -> None:
    """Refuse to make names that would be gone when this command ends.

    Raises:
        InvalidArgumentError: Spark keeps its own catalog in memory.
    """
    from ..errors import InvalidArgumentError

    try:
        kept = spark.conf.get("spark.sql.catalogImplementation")
    except Exception:  # a platform that has no such setting has a catalog of its own
        return
    if kept == "in-memory" and schema.startswith("spark_catalog."):
        raise InvalidArgumentError(
            f"the names in {schema} would be gone when this command ends: this Spark keeps its "
            "catalog in memory. Call Lakelog.register in the session that asks for them, or use a "
            "Spark with a metastore (SPARK_REMOTE, Databricks)"
        )
