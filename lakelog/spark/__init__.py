"""Spark: the session, the engine that runs the jobs, and logs as DataFrames and streams."""

from typing import TYPE_CHECKING

from ..base.lazy_names import lazy_names
from .session import register, session

if TYPE_CHECKING:
    from ..engines.spark import SparkEngine
    from .catalog.registration import register_topics
    from .dataframe import read
    from .reachability import reach

__all__ = ["SparkEngine", "reach", "read", "register", "register_topics", "session"]

__getattr__ = lazy_names(
    __name__,
    {
        "SparkEngine": "..engines.spark",
        "reach": ".reachability",
        "read": ".dataframe",
        "register_topics": ".catalog.registration",
    },
)
