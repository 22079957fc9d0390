"""The bytes of requests and responses under way, bounded for all connections together."""

from __future__ import annotations

import asyncio
from collections import deque


class Budget:
    """So many bytes, taken and given back; who asks for more than is left waits in turn.

    One that alone asks for more than there is gets it once nobody else has any, so that it can be
    served at all.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.taken_bytes = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take_now(self, size_bytes: int) -> bool:
        """Takes them if that is possible without waiting."""
        if self._waiting or not self._fits(size_bytes):
            return False
        self.taken_bytes += size_bytes
        return True

    async def take(self, size_bytes: int) -> None:
        """Takes them, once there are as many."""
        if self.take_now(size_bytes):
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size_bytes, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(size_bytes)
            raise

    def give_back(self, size_bytes: int) -> None:
        """Gives them to those who wait."""
        self.taken_bytes -= size_bytes
        while self._waiting and self._fits(self._waiting[0][0]):
            size, turn = self._waiting.popleft()
            if not turn.done():
                self.taken_bytes += size
                turn.set_result(None)

    def _fits(self, size_bytes: int) -> bool:
        return not self.taken_bytes or self.taken_bytes + size_bytes <= self.limit_bytes
