"""Every pull there is, and who waits for it: requests and launches alike stand in one line.

An image is fetched once for all who wait for it, and no longer than somebody does. Whoever waits holds no thread: they
are called, from whatever thread it happens in, and must not take long over it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from functools import partial

from gpuyard.domain.errors import TooMany
from gpuyard.domain.reasons import Code, because
from gpuyard.engines.container.client import EngineAway, Refused
from gpuyard.engines.container.turns import next_turn

log = logging.getLogger(__name__)

MOST_ASKED_OF_ONE = 8  # requests that wait, of one user; launches are bounded by what the machine has room for
MOST_ASKED = 128
_LATER_SECONDS = 10.0

Told = Callable[[str], None]  # each step, in the engine's words; nothing as long as it is not its turn
Problem = Refused | EngineAway
Over = Callable[[Problem | None], None]  # once, at the end; None: it is here
Begin = Callable[[str, Told], "Future[None]"]


@dataclass(eq=False, slots=True)
class _Waiter:
    user: str
    told: Told
    over: Over
    is_request: bool


@dataclass(eq=False, slots=True)
class _Fetch:
    image: str
    waiters: list[_Waiter] = field(default_factory=list)
    of: str | None = None  # in whose name it goes on; None: it is not its turn yet
    pull: Future[None] | None = None


class Pulls:
    def __init__(self, begin: Begin) -> None:
        """`begin` has an image fetched; cancelling what it gives ends that."""
        self._begin = begin
        self._lock = threading.Lock()
        self._fetches: dict[str, _Fetch] = {}  # in the order in which they were asked for

    def join(self, image: str, user: str, told: Told, over: Over, *, is_request: bool) -> Callable[[], None]:
        """Wait for an image. The answer gives that up. Raises TooMany when somebody asks for too many."""
        waiter = _Waiter(user, told, over, is_request)
        with self._lock:
            if is_request:
                self._refuse_too_many(user)
            fetch = self._fetches.setdefault(image, _Fetch(image))
            fetch.waiters.append(waiter)
            goes_on = fetch.of is not None
        if goes_on:
            _call(partial(told, image))
        self._go_on()
        return partial(self._leave, fetch, waiter)

    def _refuse_too_many(self, user: str) -> None:
        asking = [waiter.user for fetch in self._fetches.values() for waiter in fetch.waiters if waiter.is_request]
        if (own := asking.count(user)) >= MOST_ASKED_OF_ONE:
            raise TooMany(because(Code.TOO_MANY_PULLS, own=own), _LATER_SECONDS)
        if len(asking) >= MOST_ASKED:
            raise TooMany(because(Code.TOO_MANY_PULLS), _LATER_SECONDS)

    def _leave(self, fetch: _Fetch, waiter: _Waiter) -> None:
        with self._lock:
            if waiter not in fetch.waiters:
                return
            fetch.waiters.remove(waiter)
            users = [one.user for one in fetch.waiters]
            if fetch.of is not None and users and fetch.of not in users:
                fetch.of = users[0]
            if not users and self._fetches.get(fetch.image) is fetch:
                del self._fetches[fetch.image]
        if not users and fetch.pull is not None:
            fetch.pull.cancel()
        self._go_on()

    def _go_on(self) -> None:
        """Begin whatever may begin now."""
        while (fetch := self._next()) is not None:
            self._tell(fetch, fetch.image)
            try:
                pull = self._begin(fetch.image, partial(self._tell, fetch))
            except EngineAway as problem:
                self._end(fetch, problem)
                continue
            with self._lock:
                fetch.pull, is_wanted = pull, bool(fetch.waiters)
            if not is_wanted:  # they left in this very moment
                pull.cancel()
            pull.add_done_callback(partial(self._note_end, fetch))

    def _next(self) -> _Fetch | None:
        with self._lock:
            fetches = self._fetches.values()
            line = [(fetch.image, [one.user for one in fetch.waiters]) for fetch in fetches if fetch.of is None]
            turn = next_turn(line, [fetch.of for fetch in fetches if fetch.of is not None])
            if turn is None:
                return None
            image, user = turn
            self._fetches[image].of = user
            return self._fetches[image]

    def _note_end(self, fetch: _Fetch, pull: Future[None]) -> None:
        problem: Problem | None
        try:
            pull.result(0)
            problem = None
        except (Refused, EngineAway) as said:
            problem = said
        except CancelledError:  # by the last who left, or because the engine is let go
            problem = EngineAway("the pull was ended")
        except Exception as mistake:
            log.exception("fetching %s", fetch.image)
            problem = Refused(0, str(mistake))
        if isinstance(problem, Refused):
            log.warning("%s could not be fetched: %s", fetch.image, problem)
        self._end(fetch, problem)
        self._go_on()

    def _end(self, fetch: _Fetch, problem: Problem | None) -> None:
        with self._lock:
            if self._fetches.get(fetch.image) is fetch:
                del self._fetches[fetch.image]
            waiters, fetch.waiters = fetch.waiters, []
        for waiter in waiters:
            _call(partial(waiter.over, problem))

    def _tell(self, fetch: _Fetch, step: str) -> None:
        with self._lock:
            waiters = list(fetch.waiters)
        for waiter in waiters:
            _call(partial(waiter.told, step))


def _call(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:  # one waiter's mistake must not make the others deaf
        log.exception("telling of a pull")
