"""A topic of lakelog behind gateways, through the same clients as one of a broker."""

from __future__ import annotations

from lakelog import Lakelog

from .answers import Answer
from .kafka_log import KafkaClients, KafkaLog
from .lakelog_log import keep, of_tiers
from .workload import Move, Step, Workload


class GatewayLog(KafkaLog):
    """See `answers.Log`. Of two gateways the other one is asked where a log is opened again.

    Args:
        clients: of one gateway, and of the other.
        lake: does what a broker's own threads do.
    """

    applied_s = 0.0

    def __init__(
        self,
        clients: tuple[KafkaClients, KafkaClients],
        workload: Workload,
        begin_ms: int,
        lake: Lakelog,
    ) -> None:
        self._both = clients
        self._lake = lake
        self._tiered = workload.tiered
        super().__init__(clients[0], workload, begin_ms, of_tiers(workload))

    def _take(self, step: Step) -> Answer:
        answer = super()._take(step)
        if isinstance(step, Move) and step.how == "reopen":
            self._both = self._both[::-1]
            self._clients = self._both[0]
        keep(self._lake, self._topic, self._tiered, step)
        return answer
