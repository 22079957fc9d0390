"""What the notebooks build on: parameters, the log they name, a run that is done once, its rows."""

from .connection import connect, connect_cold
from .history import group_history, run_history, status_history
from .looks import doctor, failures, finish, group_lags, servers, standing, warnings
from .parameters import parameters, step_names, topic_names
from .readings import add_readings
from .run import JobRun

__all__ = [
    "JobRun",
    "add_readings",
    "connect",
    "connect_cold",
    "doctor",
    "failures",
    "finish",
    "group_history",
    "group_lags",
    "parameters",
    "run_history",
    "servers",
    "standing",
    "status_history",
    "step_names",
    "topic_names",
    "warnings",
]
