"""Spark: the session the jobs run in, and the engine that runs them."""

from .engine import SparkEngine
from .session import session

__all__ = ["SparkEngine", "session"]
