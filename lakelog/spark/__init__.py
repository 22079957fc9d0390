"""Spark: the session, the engine that runs the jobs, and logs as DataFrames and streams."""

from ..engines.spark import SparkEngine
from .catalog.registration import register_topics
from .dataframe import read
from .reachability import reach
from .session import register, session

__all__ = ["SparkEngine", "reach", "read", "register", "register_topics", "session"]
