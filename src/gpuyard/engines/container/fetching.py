"""The images that launches wait for. A launch whose image is not here holds no thread until it is: it is put off, and
asked for again when the image has come or could not be had."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from gpuyard.domain.errors import EngineError, EngineWaits
from gpuyard.domain.reasons import Code, Reason, because
from gpuyard.domain.workload import ReplicaId
from gpuyard.engines.container.client import Refused
from gpuyard.engines.container.images import Images, is_reference, pull_failed
from gpuyard.engines.container.pulls import Problem


@dataclass(eq=False, slots=True)
class _Wait:
    image: str
    is_begun: bool = False  # before, other images have their turn
    is_over: bool = False
    problem: Problem | None = None
    calls: list[Callable[[], None]] = field(default_factory=list)
    leave: Callable[[], None] | None = None


class Fetching:
    def __init__(self, images: Images, note: Callable[[ReplicaId], None]) -> None:
        """`note` hears whose wait has changed."""
        self._images = images
        self._note = note
        self._lock = threading.Lock()
        self._waits: dict[ReplicaId, _Wait] = {}

    def ensure(self, id: ReplicaId, owner: str, image: str) -> dict[str, Any]:
        """The image's details. Raises EngineWaits while it is being fetched, EngineError when it cannot be had."""
        if not is_reference(image):
            raise EngineError(because(Code.ENGINE_CANNOT, engine="container", what=f"use {image!r} as an image"))
        wait = self._waits.get(id)
        was_over = wait is not None and wait.is_over  # only then does it matter that it is not here
        found = self._images.find(image)
        if found is not None:
            self.give_up(id)
            return found
        if wait is not None and was_over:
            self.give_up(id)
            raise _failure(id, wait)
        wait = wait or self._begin(id, owner, image)
        reason = _reason(id, wait)
        raise EngineWaits(reason, partial(self._then, wait, was_begun=reason.code is Code.PULLING))

    def reason(self, id: ReplicaId) -> Reason | None:
        """What its launch waits for; None when it does not."""
        wait = self._waits.get(id)
        return None if wait is None else _reason(id, wait)

    def ids(self) -> list[ReplicaId]:
        with self._lock:
            return list(self._waits)

    def give_up(self, id: ReplicaId) -> None:
        """Nobody wants it to start any more, or it need not wait."""
        with self._lock:
            wait = self._waits.pop(id, None)
        if wait is not None:
            self._end(wait, wait.problem)
            if wait.leave is not None:
                wait.leave()

    def _begin(self, id: ReplicaId, owner: str, image: str) -> _Wait:
        wait = _Wait(image)

        def told(step: str) -> None:
            if not wait.is_begun:
                wait.is_begun = True
                self._note(id)
                self._call(wait)  # asked again, it says that it is being fetched now

        def over(problem: Problem | None) -> None:
            self._end(wait, problem)
            self._note(id)

        with self._lock:
            self._waits[id] = wait
        try:
            leave = self._images.fetch(image, owner, told, over, is_request=False)
        except EngineError:
            self.give_up(id)
            raise
        with self._lock:
            wait.leave = leave
            is_given_up = self._waits.get(id) is not wait
        if is_given_up:  # stopped in this very moment
            leave()
        return wait

    def _then(self, wait: _Wait, call: Callable[[], None], *, was_begun: bool) -> None:
        with self._lock:
            leads_on = wait.is_over or wait.is_begun != was_begun
            if not leads_on:
                wait.calls.append(call)
        if leads_on:
            call()

    def _end(self, wait: _Wait, problem: Problem | None) -> None:
        wait.problem, wait.is_over = problem, True
        self._call(wait)

    def _call(self, wait: _Wait) -> None:
        with self._lock:
            calls, wait.calls = wait.calls, []
        for call in calls:
            call()


def _reason(id: ReplicaId, wait: _Wait) -> Reason:
    return because(Code.PULLING if wait.is_begun else Code.PULL_WAITS, image=wait.image, replica=id.short)


def _failure(id: ReplicaId, wait: _Wait) -> Exception:
    if wait.problem is None:
        return pull_failed(wait.image, "it is not here although its registry gave it", id.short)
    if isinstance(wait.problem, Refused):
        return pull_failed(wait.image, wait.problem.message, id.short)
    return wait.problem
