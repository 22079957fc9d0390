"""Every metric that lakelog shows."""

from __future__ import annotations

from .metric import Metric
from .of_log import OF_LOG
from .of_process import OF_PROCESS

#: In the order in which they are shown.
METRICS: tuple[Metric, ...] = (*OF_LOG, *OF_PROCESS)
