"""Whose life may have changed, kept until it is asked for; and who wants to be called when something has."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from gpuyard.domain.workload import ReplicaId

_log = logging.getLogger(__name__)

_MOST_REMEMBERED = 100_000  # whoever does not fetch the names for so long looks at everything


class News:
    def __init__(self) -> None:
        self._calls: list[Callable[[], None]] = []
        self._lock = threading.Lock()
        self._heard: set[ReplicaId] | None = None  # None: anything may have changed, as before it was there to hear

    def add(self, call: Callable[[], None]) -> None:
        self._calls.append(call)

    def note(self, id: ReplicaId | None) -> None:
        """A replica's life may have changed; None: nobody knows whose."""
        with self._lock:
            if id is None or self._heard is None or len(self._heard) >= _MOST_REMEMBERED:
                self._heard = None
            else:
                self._heard.add(id)

    def heard(self) -> frozenset[ReplicaId] | None:
        """Who was noted since this was last asked; None when that is not known."""
        with self._lock:
            heard, self._heard = self._heard, set()
        return None if heard is None else frozenset(heard)

    def tell(self) -> None:
        for call in list(self._calls):
            try:
                call()
            except Exception:  # one listener's mistake must not make the others deaf
                _log.exception("a listener failed")
