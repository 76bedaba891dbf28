"""Who was seen a moment ago, so that a busy client costs one look into the store per second and not per request."""

from __future__ import annotations

import threading

from gpuyard.access.actors import Actor

MOST = 10_000


class RecentActors:
    """Remembers for a second. What changes somebody's rights in this process empties it at once."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._actors: dict[str, tuple[Actor, float]] = {}
        self._generation = 0
        self._lock = threading.Lock()

    def find(self, key: str, now: float) -> Actor | None:
        known = self._actors.get(key)
        if known is None or not 0 <= now - known[1] < self._seconds:
            return None
        actor = known[0]
        return None if actor.expires_at is not None and now >= actor.expires_at else actor

    @property
    def generation(self) -> int:
        """Read before looking into the store, and given back with what was found there."""
        return self._generation

    def remember(self, key: str, actor: Actor, now: float, generation: int) -> None:
        """Unless something was changed since: then what was found may be out of date already."""
        with self._lock:
            if generation != self._generation:
                return
            if len(self._actors) >= MOST:
                self._actors = {k: (a, at) for k, (a, at) in self._actors.items() if now - at < self._seconds}
            if len(self._actors) < MOST:
                self._actors[key] = (actor, now)

    def forget(self) -> None:
        with self._lock:
            self._generation += 1
            self._actors = {}
