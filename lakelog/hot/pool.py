"""The connections to a server that are not in use."""

from __future__ import annotations

import inspect
import os
from contextlib import suppress
from typing import Any

from redis.connection import BlockingConnectionPool, ConnectionPool
from redis.exceptions import RedisError


class Pool:
    """redis-py's pool, with the connection that came back last kept at hand.

    Taking one from redis-py's pool and giving it back takes about as long as a command of Redis.
    Most callers are alone, or nearly, and the one at hand is all they need.

    Args:
        connections: redis-py's; it may bound how many there are, and let who asks for one more
            wait.
    """

    def __init__(self, connections: ConnectionPool) -> None:
        # Lists, since adding to one and taking from it is one step for all threads.
        self._connections = connections
        self._at_hand: list[Any] = []  # one at most, but where two come back at once
        self._asking: list[None] = []  # one for each caller that redis-py may keep waiting

    def take(self) -> Any:
        """An open connection on which nothing is under way.

        Raises: whatever redis-py does if none can be opened.
        """
        try:
            connection = self._at_hand.pop()
        except IndexError:
            return self._ask()
        if connection.pid != os.getpid():  # it is the parent's, as all that are at hand
            self._at_hand.clear()
            return self._ask()
        if not _is_idle(connection):
            connection.disconnect()
            self._connections.release(connection)
            return self._ask()  # opens it again
        return connection

    def give_back(self, connection: Any) -> None:
        """Takes back one that was taken; it may have been closed."""
        if self._at_hand or self._asking or connection._sock is None or _must_go(connection):
            self._connections.release(connection)
            return
        self._at_hand.append(connection)
        if self._asking:  # since then: whoever it is may not have seen what is at hand
            self._pass_on()

    def disconnect(self) -> None:
        """Closes all of them. They can be opened again."""
        self._connections.disconnect()

    def _ask(self) -> Any:
        self._asking.append(None)
        try:
            if self._at_hand:  # since then: whoever gave it back may not have seen who asks
                self._pass_on()
            return get_connection(self._connections)
        finally:
            self._asking.pop()

    def _pass_on(self) -> None:
        """Gives what is at hand to whoever waits for redis-py."""
        with suppress(IndexError):
            self._connections.release(self._at_hand.pop())


def _is_idle(connection: Any) -> bool:
    """Whether it is open, and the server has neither closed it nor sent anything unasked."""
    try:
        return connection._sock is not None and not connection.can_read()
    except (RedisError, OSError):
        return False


def _must_go(connection: Any) -> bool:
    """Whether the server has announced that it moves; older versions of redis-py do not listen."""
    asked = getattr(connection, "should_reconnect", None)
    return asked is not None and asked()


def _connection_arguments() -> tuple[str, ...]:
    """The arguments of `get_connection`: before redis-py 5.3 it needed a command's name."""
    name = inspect.signature(BlockingConnectionPool.get_connection).parameters.get("command_name")
    return ("_",) if name is not None and name.default is inspect.Parameter.empty else ()


_CONNECTION_ARGUMENTS = _connection_arguments()  # asking each time takes longer than connecting


def get_connection(connections: ConnectionPool) -> Any:
    """A connection of redis-py's pool, whatever its version."""
    return connections.get_connection(*_CONNECTION_ARGUMENTS)
