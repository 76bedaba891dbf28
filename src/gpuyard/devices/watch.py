"""Looks for the holders of cards in a thread of its own: a process with very many open files makes nobody wait."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from gpuyard.devices.holders import Holder

PATIENCE_SECONDS = 1.0
log = logging.getLogger(__name__)

Held = Mapping[str, Sequence[Holder]]  # path -> who holds it and should not


@dataclass(frozen=True, slots=True)
class Look:
    """What a finished look found. It speaks of the time from `began` on, and of nothing before it."""

    began: float  # by the monotonic clock
    held: Held


class HolderWatch:
    """One look at a time. Who asks gets one that began after the question, unless that takes too long: then the last
    that was finished, however old."""

    def __init__(self, find: Callable[[Sequence[str]], Held], patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._find = find
        self._patience = patience_seconds
        self._change = threading.Condition()
        self._wish: Sequence[str] | None = None  # the paths to look for, until a look has begun
        self._running_since: float | None = None
        self._last: Look | None = None
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def look(self, paths: Sequence[str]) -> Look | None:
        """None while not a single look has been finished."""
        with self._change:
            asked = time.monotonic()
            self._wish = paths
            self._start_thread()
            self._change.notify_all()
            if self._patience and not self._is_slow(asked):
                self._change.wait_for(lambda: self._last is not None and self._last.began >= asked, self._patience)
            return self._last

    @property
    def last(self) -> Look | None:
        """The last that was finished; nobody waits for it."""
        with self._change:
            return self._last

    def close(self) -> None:
        with self._change:
            self._is_closed = True
            self._change.notify_all()

    def _is_slow(self, now: float) -> bool:
        """Somebody has waited for the present look in vain already."""
        return self._running_since is not None and now - self._running_since > self._patience

    def _start_thread(self) -> None:
        if self._thread is None and not self._is_closed:
            self._thread = threading.Thread(target=self._run, name="card-holders", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while (wish := self._next_wish()) is not None:
            began, paths = wish
            try:
                found = Look(began, self._find(paths))
            except Exception:  # whatever it is, the next question tries again, and until then no news is told as such
                log.exception("looking for the holders of cards failed")
                found = None
            with self._change:
                self._running_since = None
                self._last = found or self._last
                self._change.notify_all()

    def _next_wish(self) -> tuple[float, Sequence[str]] | None:
        with self._change:
            self._change.wait_for(lambda: self._is_closed or self._wish is not None)
            if self._is_closed or self._wish is None:
                return None
            paths, self._wish = self._wish, None
            self._running_since = time.monotonic()
            return self._running_since, paths
