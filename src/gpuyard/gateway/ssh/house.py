"""Everyone who is here by SSH: how many may be, and whether each still may."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from gpuyard.domain.errors import YardError
from gpuyard.domain.reasons import Code, because
from gpuyard.gateway.ssh.inside import Inside, Program
from gpuyard.gateway.ssh.logins import Logins
from gpuyard.gateway.ssh.visitors import Visitor
from gpuyard.gateway.strangers import Strangers
from gpuyard.words import LanguageName

P = ParamSpec("P")
T = TypeVar("T")

MOST_PER_USER = 32
MOST_STRANGERS, MOST_STRANGERS_PER_ADDRESS = 128, 48
LOOK_AGAIN_SECONDS = 3.0
LINGER_SECONDS = 30.0
THREADS = 8
GOODBYE_SECONDS = 0.1
_log = logging.getLogger(__name__)


class House:
    """What all connections have in common."""

    def __init__(
        self,
        logins: Logins,
        broker: Inside,
        used: Callable[[str], None],
        language: LanguageName = "en",
        strangers: Strangers | None = None,
    ) -> None:
        self.logins = logins
        self.broker = broker
        self.used = used
        self.language: LanguageName = language
        self.most_per_user = MOST_PER_USER
        self._at_the_door = strangers or Strangers(MOST_STRANGERS, MOST_STRANGERS_PER_ADDRESS)
        self._strangers: set[Visitor] = set()
        self._visitors: set[Visitor] = set()
        self._lingering: set[asyncio.Task[None]] = set()
        self._is_closing = False
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="ssh")

    async def in_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Not in the loop's own pool: password guesses wait in line here, and must not hold up anybody else."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(call, *args, **kwargs))

    # --- how many -------------------------------------------------------------------------------------------------

    def arrived(self, visitor: Visitor) -> bool:
        if not self._at_the_door.come(visitor.peer):
            return False
        self._strangers.add(visitor)
        return True

    def _no_stranger(self, visitor: Visitor) -> None:
        if visitor in self._strangers:
            self._strangers.discard(visitor)
            self._at_the_door.go(visitor.peer)

    def admitted(self, visitor: Visitor) -> bool:
        self._no_stranger(visitor)
        if Counter(other.user for other in self._visitors)[visitor.user] >= self.most_per_user:
            return False
        self._visitors.add(visitor)
        return True

    def sessions_of(self, user: str) -> int:
        return sum(visitor.sessions for visitor in self._visitors if visitor.user == user)

    def forwards_of(self, user: str) -> int:
        return sum(visitor.forwards for visitor in self._visitors if visitor.user == user)

    def left(self, visitor: Visitor) -> None:
        self._no_stranger(visitor)
        self._visitors.discard(visitor)

    # --- how long -------------------------------------------------------------------------------------------------

    async def keep_looking(self) -> None:
        """Again and again: send away those whose account, password or key is no longer good."""
        while True:
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            try:
                await self.look_again()
            except YardError as error:  # a busy store: the next round will do
                _log.warning("logins over SSH were not looked at: %s", error)

    async def look_again(self) -> None:
        here = {visitor: visitor.proof for visitor in self._visitors if visitor.proof is not None}
        if not here:
            return
        good = await self.in_thread(self.logins.still_good, list(here.values()))
        for visitor, proof in here.items():
            if proof not in good and visitor in self._visitors:
                visitor.leave(because(Code.LOGIN_OVER))

    # --- what stays behind ----------------------------------------------------------------------------------------

    def linger(self, program: Program) -> None:
        """A command whose visitor is gone: its pipes are closed, and it has a while to end by itself, as under any
        sshd. What it left in the background then goes on; what would wait for ever is hung up."""
        if self._is_closing:
            program.close()
            return
        task = asyncio.create_task(_end_well(program))
        self._lingering.add(task)
        task.add_done_callback(self._lingering.discard)
        task.add_done_callback(lambda _: program.close())  # also of one that is called off before it began

    async def close(self) -> None:
        self._is_closing = True
        for visitor in [*self._strangers, *self._visitors]:
            visitor.leave(because(Code.GATEWAY_ENDS))
        for task in self._lingering:
            task.cancel()
        await asyncio.gather(*self._lingering, return_exceptions=True)
        await asyncio.sleep(GOODBYE_SECONDS)  # for what asyncssh still has to do about each of them
        self._threads.shutdown(wait=False, cancel_futures=True)


async def _end_well(program: Program) -> None:
    with contextlib.suppress(TimeoutError, YardError, OSError):
        await asyncio.wait_for(program.wait(), LINGER_SECONDS)
