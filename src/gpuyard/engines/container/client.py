"""Asks the container engine, from any thread, and never waits longer than it was told.

What takes long and is asked for by users, such as pulls, goes over connections apart: however many of those there are
and however silent, a knock, a start and a stop wait for none of them.

While the engine does not answer the circuit is open: whoever asks hears so at once, and only a small knock now and then
tries whether it is back.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import aiohttp
from aiodocker import Docker
from aiodocker.exceptions import DockerError

log = logging.getLogger(__name__)

T = TypeVar("T")

USUAL_SECONDS = 20.0
_KNOCK_SECONDS = 4.0  # an engine that does not even answer a knock in this time hangs
_REST_WELL, _REST_AWAY = 3.0, 0.3
_NO_CONNECTION = 900  # aiodocker's own number
_MOST_APART = 32


class EngineAway(Exception):
    """The engine gave no answer. What was asked may or may not have happened."""


class Refused(Exception):
    """The engine answered, and said no."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(f"{message} ({status})" if status else message)
        self.status, self.message = status, message

    @property
    def is_missing(self) -> bool:
        return self.status == 404

    @property
    def is_taken(self) -> bool:
        """The name exists already. Docker says so with 409, podman in words."""
        return self.status == 409 or "already in use" in self.message or "already exists" in self.message


class EngineClient:
    def __init__(self, socket: str) -> None:
        self.socket = socket
        self._away_since: float | None = None
        self._listeners: list[Callable[[bool], None]] = []
        self._docker: Docker | None = None
        self._docker_apart: Docker | None = None
        self._loop = asyncio.new_event_loop()
        self._handing = threading.Lock()
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="container-engine", daemon=True)
        self._thread.start()

    @property
    def away_seconds(self) -> float:
        """For how long it has not answered; 0 when it does."""
        since = self._away_since
        return 0.0 if since is None else time.monotonic() - since

    def on_news(self, call: Callable[[bool], None]) -> None:
        """`call` hears, from the client's thread, each time the engine goes away (True) or comes back (False), and with
        every further knock that stays unanswered."""
        self._listeners.append(call)

    def call(self, ask: Callable[[Docker], Awaitable[T]], seconds: float = USUAL_SECONDS, *, apart: bool = False) -> T:
        """Raises Refused when the engine says no, EngineAway when it says nothing."""
        answer = self.begin(ask, seconds, apart=apart)
        try:
            return answer.result(seconds + 5.0)
        except concurrent.futures.TimeoutError as problem:
            answer.cancel()
            raise EngineAway("the container engine did not answer in time") from problem
        except concurrent.futures.CancelledError as problem:
            raise EngineAway("the container engine is being let go") from problem

    def begin(
        self, ask: Callable[[Docker], Awaitable[T]], seconds: float, *, apart: bool = True
    ) -> concurrent.futures.Future[T]:
        """The same for somebody who does not wait for it. To cancel it hangs up."""
        if self._away_since is not None:
            raise EngineAway("the container engine does not answer")
        return self._hand_over(self._ask(ask, seconds, apart=apart))

    def knock(self) -> bool:
        """Whether it answers now."""
        try:
            return self._hand_over(self._knock()).result(_KNOCK_SECONDS + 1.0)
        except (concurrent.futures.TimeoutError, concurrent.futures.CancelledError, EngineAway):
            return False

    def _hand_over(self, asking: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """To the client's thread; after `close` nobody there would take it up."""
        with self._handing:
            if not self._is_closed:
                return asyncio.run_coroutine_threadsafe(asking, self._loop)
        asking.close()
        raise EngineAway("the container engine is being let go")

    def close(self) -> None:
        with self._handing:
            if self._is_closed:
                return
            self._is_closed = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)

    # --- in the client's own thread -------------------------------------------------------------------------------

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        watching = self._loop.create_task(self._watch())
        self._loop.run_forever()
        self._loop.run_until_complete(asyncio.sleep(0))  # what was handed over in the last moment becomes a task, too
        while left := asyncio.all_tasks(self._loop):
            for task in left:
                task.cancel()
            self._loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
        assert watching.done()
        self._loop.run_until_complete(self._hang_up())
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    async def _hang_up(self) -> None:
        for docker in filter(None, (self._docker, self._docker_apart)):
            await docker.close()
            await docker.session.close()

    def _engine(self) -> Docker:
        """As many connections as there are calls: behind each of them a thread waits, which bounds them."""
        if self._docker is None:
            self._docker = self._connected(most=0)
        return self._docker

    def _engine_apart(self) -> Docker:
        if self._docker_apart is None:
            self._docker_apart = self._connected(most=_MOST_APART)
        self._docker_apart.api_version = self._engine().api_version
        return self._docker_apart

    def _connected(self, most: int) -> Docker:
        """Every call has a connection of its own: one that an engine left behind when it died would be no use."""
        connector = aiohttp.UnixConnector(self.socket, force_close=True, limit=most)
        session = aiohttp.ClientSession(connector=connector, timeout=aiohttp.ClientTimeout())
        return Docker("unix://localhost", connector=connector, session=session)

    async def _ask(self, ask: Callable[[Docker], Awaitable[T]], seconds: float, *, apart: bool) -> T:
        try:
            async with asyncio.timeout(seconds):
                if self._engine().api_version == "auto":
                    await self._knock()
                answer = await ask(self._engine_apart() if apart else self._engine())
        except TimeoutError as problem:
            self._note(is_away=not await self._knock())
            raise EngineAway(f"the container engine did not answer within {seconds:g} seconds") from problem
        except DockerError as problem:
            if problem.status == _NO_CONNECTION:
                self._note(is_away=True)
                raise EngineAway("the container engine cannot be reached") from problem
            raise Refused(problem.status, problem.message) from problem
        except (aiohttp.ClientError, OSError) as problem:
            self._note(is_away=not await self._knock())
            raise EngineAway(f"the container engine broke off: {problem}") from problem
        return answer

    async def _knock(self) -> bool:
        """The answer tells the version to talk in, too. Asked for its versions, podman would look up the package of
        each of its programs, which takes Debian half a second."""
        url = "http://localhost/_ping"
        try:
            async with asyncio.timeout(_KNOCK_SECONDS), self._engine().session.get(url) as answer:
                if version := answer.headers.get("Api-Version"):
                    self._engine().api_version = f"v{version}"
                return answer.status == 200
        except (TimeoutError, aiohttp.ClientError, OSError):
            return False

    async def _watch(self) -> None:
        while True:
            self._note(is_away=not await self._knock())
            await asyncio.sleep(_REST_WELL if self._away_since is None else _REST_AWAY)

    def _note(self, *, is_away: bool) -> None:
        was_away = self._away_since is not None
        if is_away and not was_away:
            self._away_since = time.monotonic()
        elif not is_away:
            self._away_since = None
        if is_away or was_away:
            for call in list(self._listeners):
                try:
                    call(is_away)
                except Exception:  # one listener's mistake must not make the others deaf
                    log.exception("a listener failed")


def about(socket: str, seconds: float = USUAL_SECONDS) -> dict[str, Any] | None:
    """What the engine behind a socket says of itself; None when nobody answers there."""
    if not os.path.exists(socket):
        return None
    client = EngineClient(socket)
    try:
        return client.call(_info, seconds) if client.knock() else None
    except (EngineAway, Refused):
        return None
    finally:
        client.close()


async def _info(docker: Docker) -> dict[str, Any]:
    info = dict(await docker.system.info())
    return info | {"Version": dict(await docker.version())}
