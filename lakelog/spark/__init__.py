"""Spark: the session, the engine that runs the jobs, and logs as DataFrames and streams."""

from .dataframe import read
from .engine import SparkEngine
from .session import register, session

__all__ = ["SparkEngine", "read", "register", "session"]
