"""Who logs in to a gateway, and the log as each of them has it."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from contextlib import suppress
from functools import partial

from redis.exceptions import AuthenticationError

from ..errors import HotTierAccessError, LakelogError
from .sasl import Conversation, Login, Lookup, Principal, Reply, SaslError
from .scram import ScramCredential
from .served_log import Log, ServedLog
from .users import ScramUsers

#: How long a user's connections to Redis are kept after the last client of that user.
_KEPT_S = 60.0


class Logins:
    """The log as each user of Redis has it: opened with the first client that logs in with a
    password, shared with the others, closed a while after the last one. Used on one event loop.

    Redis is asked at each login, so that a password that was changed, or a user that was taken
    away, lets nobody in from then on. Clients that are in stay so, as Redis has it for its own.

    Args:
        own: the log as the gateway's own user of Redis has it.
    """

    def __init__(self, own: ServedLog) -> None:
        self.own = own
        self._users = ScramUsers(own.lake.hot)
        self._secret = secrets.token_bytes(32)  # of this process
        self._held: dict[tuple[str, bytes], Held] = {}

    async def check(self) -> None:
        """Makes sure that users of the gateway can be looked up.

        Raises:
            HotTierAccessError: the gateway's user of Redis has no right to.
        """
        await self.own.run(self._users.find, "SCRAM-SHA-256", "nobody")

    async def credential(self, asked: Lookup) -> ScramCredential:
        """What is kept of a password, or what nobody can tell from it.

        Raises:
            LakelogError: see `ScramUsers.find`.
        """
        found = await self.own.run(self._users.find, asked.mechanism, asked.user)
        return found or ScramCredential.decoy(asked.mechanism, asked.user, self._secret)

    async def enter(self, login: Login) -> Held:
        """The log of a user of Redis; to be given back by `leave`.

        Raises:
            SaslError: Redis knows no such user, or one that can do nothing here.
            LakelogError: Redis does not answer.
        """
        lake = await self._opened(login)
        key = (login.user, hmac.digest(self._secret, login.password.encode(), hashlib.sha256))
        held = self._held.get(key)
        if held is None:
            try:
                served = self.own.of(lake)
                await self._check_useful(login.user, served)
            except BaseException:
                await self.own.run(lake.close)
                raise
            held = self._held.get(key)  # another client may have been faster
            if held is None:
                self._held[key] = held = Held(served)
                held.clients += 1
                return held
            served.close()
        held.clients += 1
        await self.own.run(lake.close)
        return held

    def leave(self, held: Held) -> None:
        """One client less."""
        held.clients -= 1
        held.left_s = time.monotonic()

    async def sweep(self) -> None:
        """Closes logs that nobody has used for a while."""
        oldest_s = time.monotonic() - _KEPT_S
        for key, held in list(self._held.items()):
            if not held.clients and held.left_s < oldest_s:
                del self._held[key]
                held.log.close()
                await self.own.run(held.log.lake.close)

    def close(self) -> None:
        """Closes all of them."""
        for held in self._held.values():
            held.log.close()
            held.log.lake.close()
        self._held.clear()

    async def _opened(self, login: Login) -> Log:
        try:
            return await self.own.run(self.own.lake.as_user, login.user, login.password)
        except HotTierAccessError as error:
            if isinstance(error.__cause__, AuthenticationError):
                raise SaslError("the user or the password is wrong") from None
            raise _useless(error) from None

    async def _check_useful(self, user: str, served: ServedLog) -> None:
        """Refuses users that every password lets in, and those that see no topics.

        Raises:
            SaslError: it is such a one.
        """
        with suppress(HotTierAccessError):
            opened = partial(self.own.lake.as_user, user, secrets.token_urlsafe(32))
            await self.own.run((await self.own.run(opened)).close)
            raise SaslError(
                "the user has no password in Redis (nopass), so that every password would do: "
                "`ACL SETUSER` gives it one"
            )
        try:
            await served.topics(fresh=True)
        except HotTierAccessError as error:
            raise _useless(error) from None


def _useless(error: LakelogError) -> SaslError:
    return SaslError(
        "the user lacks rights in Redis that every client needs: `lakelog acl ROLE` prints them",
        detail=error.message,
    )


class Held:
    """The log of one user, and how many clients have it."""

    def __init__(self, log: ServedLog) -> None:
        self.log = log
        self.clients = 0
        self.left_s = 0.0


class Authentication:
    """Who one client is: what it says, and what Redis says of that."""

    def __init__(self, logins: Logins, mechanisms: tuple[str, ...]) -> None:
        self._logins = logins
        self._conversation = Conversation(mechanisms)
        self._held: Held | None = None
        self.mechanisms = mechanisms
        self.shake_hands = self._conversation.shake_hands

    @property
    def principal(self) -> Principal | None:
        """Who the client is; None: it has not proved it."""
        return self._conversation.principal

    @property
    def user(self) -> str:
        """Who the client said that it is, last."""
        return self._conversation.user

    @property
    def log(self) -> ServedLog:
        """The log that it sees, once it is in."""
        return self._logins.own if self._held is None else self._held.log

    async def answer(self, token: bytes) -> bytes:
        """What a client is told after a token.

        Raises:
            SaslError: it does not get in.
            LakelogError: Redis does not answer.
        """
        step = self._conversation.take(token)
        if isinstance(step, Reply):
            return step.token
        if isinstance(step, Lookup):
            return self._conversation.found(await self._logins.credential(step)).token
        held = await self._logins.enter(step)
        try:
            reply = self._conversation.accepted()
        except SaslError:
            self._logins.leave(held)
            raise
        self.close()
        self._held = held
        return reply.token

    def close(self) -> None:
        """The client has gone."""
        if self._held is not None:
            self._logins.leave(self._held)
            self._held = None
